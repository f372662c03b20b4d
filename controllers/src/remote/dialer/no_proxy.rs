//! Decides which hosts are dialled without the proxy, by the rules that curl has for `NO_PROXY`.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use ipnet::IpNet;

use super::{address, literal};

/// Longest name of a host.
const NAME: usize = 253;

/// Names, domains, addresses and ranges that the proxy is not asked for.
#[derive(Clone)]
pub struct NoProxy {
    entries: Arc<str>,
    matcher: Arc<Matcher>,
}

impl NoProxy {
    /// Hosts by entries that [`NoProxy::entry`] has read.
    pub fn new(entries: &[String]) -> Self {
        // The matcher takes the asterisk for every name, and not for an address.
        let every = if entries.iter().any(|entry| entry == "*") { ",0.0.0.0/0,::/0" } else { "" };
        let entries = format!("{}{every}", entries.join(","));
        // The matcher answers with the proxy where no entry fits; who that is does not matter here.
        let matcher = Matcher::builder().all("http://proxy.invalid").no(entries.as_str()).build();
        Self { entries: entries.into(), matcher: Arc::new(matcher) }
    }

    /// Reads one entry: `registry.example.com` and `.example.com` (each with all names below), an address, a range, or `*`.
    ///
    /// # Errors
    /// A sentence on how entries are written. Without it, a misspelt entry would be a name that no host has.
    pub fn entry(text: &str) -> Result<String, String> {
        let text = text.trim();
        if text == "*" || text.parse::<IpNet>().is_ok() {
            return Ok(text.to_owned());
        }
        if let Some(address) = literal(text) {
            return Ok(address.to_string());
        }
        let labels = text.strip_prefix('.').unwrap_or(text);
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        // What ends with a number is an address with a mistake in it.
        let number =
            labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        if (1..=NAME).contains(&labels.len())
            && labels.bytes().all(good)
            && !labels.starts_with('.')
            && !labels.ends_with('.')
            && !number
        {
            return Ok(text.to_owned());
        }
        Err("write a name such as registry.example.com (.example.com is the same with all names below), an address, a range such as 203.0.113.0/24, or * for every host; without scheme, port and path"
            .to_owned())
    }

    /// Whether a host, at the address that was judged for it, is dialled without the proxy.
    pub fn has(&self, host: &str, at: IpAddr) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        self.fits(host) || self.fits(&at.to_string()) || self.fits(&address::embedded(at).to_string())
    }

    fn fits(&self, host: &str) -> bool {
        let authority = match literal(host) {
            Some(IpAddr::V6(v6)) => format!("[{v6}]"),
            _ => host.to_owned(),
        };
        let uri = Uri::builder().scheme("https").authority(authority).path_and_query("/").build();
        uri.is_ok_and(|uri| uri.host().is_some() && self.matcher.intercept(&uri).is_none())
    }
}

impl Default for NoProxy {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl fmt::Debug for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A public address that no entry of the tests has.
    const ELSEWHERE: &str = "93.184.216.34";

    fn has(entries: &str, host: &str, at: &str) -> bool {
        let entries: Vec<_> = entries.split(',').map(|entry| NoProxy::entry(entry).unwrap()).collect();
        NoProxy::new(&entries).has(host, at.parse().unwrap())
    }

    #[test]
    fn a_name_stands_for_itself_and_all_names_below() {
        for entries in ["example.com", ".example.com", "other.org, EXAMPLE.com"] {
            for host in
                ["example.com", "Example.COM", "charts.example.com", "a.b.example.com", "example.com."]
            {
                assert!(has(entries, host, ELSEWHERE), "{entries}: {host}");
            }
            for host in ["notexample.com", "example.com.org", "com", "example.org"] {
                assert!(!has(entries, host, ELSEWHERE), "{entries}: {host}");
            }
        }
    }

    #[test]
    fn addresses_and_ranges_fit_what_a_name_leads_to() {
        for (entries, at) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.0/24", "203.0.113.200"),
            ("203.0.113.0/24", "::ffff:203.0.113.200"),
            ("2001:db8::/32", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
        ] {
            assert!(has(entries, "edge.example.com", at), "{entries}: {at}");
            assert!(has(entries, at, at), "{entries}: {at}");
            assert!(!has(entries, "edge.example.com", ELSEWHERE), "{entries}");
        }
        assert!(!has("203.0.113.0/24", "edge.example.com", "203.0.114.1"));
    }

    #[test]
    fn an_asterisk_is_every_host_and_nothing_is_none() {
        for (host, at) in [("example.com", ELSEWHERE), (ELSEWHERE, ELSEWHERE), ("a", "2001:db8::1")] {
            assert!(NoProxy::new(&["*".to_owned()]).has(host, at.parse().unwrap()), "{host}");
            assert!(!NoProxy::default().has(host, at.parse().unwrap()), "{host}");
        }
    }

    #[test]
    fn a_misspelt_entry_is_refused_with_the_form() {
        for wrong in [
            "",
            ".",
            "..example.com",
            "example.com.",
            "*.example.com",
            "example.com:443",
            "https://example.com",
            "example.com/charts",
            "203.0.113.0/33",
            "203.0.113.256",
            "a b",
        ] {
            let error = NoProxy::entry(wrong).unwrap_err();
            assert!(error.contains(".example.com") && error.contains("without scheme"), "{wrong}: {error}");
        }
    }
}
