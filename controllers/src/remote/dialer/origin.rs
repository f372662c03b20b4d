//! Decides by a project's chartSources whether a tenant may fetch a URL, and with which address policy.

use url::Url;

use super::Policy;

/// How a URL stands to a project's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// An entry names it: every address is allowed there.
    Listed,
    /// The project has no list, and the URL is https: public addresses alone.
    Public,
}

impl Listing {
    /// The address policy that follows.
    pub const fn policy(self) -> Policy {
        match self {
            Self::Listed => Policy::TenantListed,
            Self::Public => Policy::Tenant,
        }
    }
}

/// Judges a URL by its text; the addresses behind it are judged when it is dialled. The error is a sentence.
pub fn check_source(url: &Url, sources: Option<&[String]>) -> Result<Listing, String> {
    let shown = shown(url);
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!(
            "{shown} carries a user name or password: put them into the Secret that secretRef names"
        ));
    }
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
        return Err(format!("{shown} is not an http(s) address of a host"));
    }
    match sources {
        Some(entries) if entries.iter().any(|entry| matches(entry, url)) => Ok(Listing::Listed),
        Some(_) => Err(format!(
            "{shown} is not below any entry of the project's chartSources: an admin adds it, or the chart comes from a listed source"
        )),
        None if url.scheme() == "https" => Ok(Listing::Public),
        None => Err(format!(
            "{shown} is plain http: use https, or an admin lists the origin in the project's chartSources"
        )),
    }
}

/// A URL as messages show it: no user, password, query or fragment, at most 200 bytes.
pub fn shown(url: &Url) -> String {
    let mut text = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        text.push_str(&format!(":{port}"));
    }
    text.push_str(url.path());
    crate::remote::wire::cut(&text, 200)
}

/// Scheme, host and port are equal, and the path is the entry's or below it. An entry `oci://host/charts/` lists the
/// addresses that a registry has for repositories below `charts/`, and nothing else of that host. Escaped separators match
/// nothing: servers disagree on what they mean, so a prefix would not bind them.
fn matches(entry: &str, url: &Url) -> bool {
    let registry = entry.strip_prefix("oci://");
    let parsed = registry.map_or_else(|| Url::parse(entry), |rest| Url::parse(&format!("https://{rest}")));
    let Ok(entry) = parsed else { return false };
    let same = entry.scheme() == url.scheme()
        && entry.host_str().is_some()
        && entry.host_str() == url.host_str()
        && entry.port_or_known_default() == url.port_or_known_default();
    let prefix = entry.path().trim_end_matches('/');
    let path = match registry {
        None => Some(url.path()),
        Some(_) => url.path().strip_prefix("/v2").filter(|rest| rest.starts_with('/')),
    };
    let Some(path) = path else { return false };
    let escaped = path.to_ascii_lowercase();
    let below = path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let plain = !["%2f", "%5c", "%2e", "\\"].iter().any(|bad| escaped.contains(bad));
    same && below && (plain || prefix.is_empty() && registry.is_none())
}
