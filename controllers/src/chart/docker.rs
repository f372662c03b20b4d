//! The content of a Secret of type `kubernetes.io/dockerconfigjson` and a repository's URL in, the login for its host out.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use crate::remote::wire::cut;

/// The key of such Secrets.
pub const KEY: &str = ".dockerconfigjson";

/// A user with a password.
pub struct Login {
    pub username: String,
    pub password: SecretString,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<SecretString>,
    auth: Option<SecretString>,
}

/// Finds the login of a host. The error is a sentence, and quotes no more than names of hosts.
pub fn login(config: &[u8], url: Option<&str>) -> Result<Login, String> {
    let url = url.and_then(|url| Url::parse(url).ok());
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
        return Err(format!("logins of the key {KEY} are for a host, and this chart comes from none"));
    };
    // What serde says would quote the content.
    let config: Config = serde_json::from_slice(config).map_err(|_| {
        format!("the Secret's key {KEY} is not JSON with a map auths: make it with kubectl create secret docker-registry")
    })?;
    let port = url.port_or_known_default();
    let wanted: Vec<String> = match (url.port(), port) {
        (None, Some(port)) => vec![host.to_owned(), format!("{host}:{port}")],
        (_, Some(port)) => vec![format!("{host}:{port}")],
        _ => vec![host.to_owned()],
    };
    let found = wanted.iter().find_map(|wanted| config.auths.iter().find(|(name, _)| bare(name) == *wanted));
    let Some((name, entry)) = found else {
        let known: Vec<String> = config.auths.keys().take(3).map(|name| cut(&bare(name), 80)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!(
            "the Secret's key {KEY} has no login for {}; it has {known}",
            wanted.join(" or ")
        ));
    };
    entry.login().ok_or_else(|| {
        format!(
            "the Secret's key {KEY} has neither username and password nor a usable auth for {}",
            cut(&bare(name), 80)
        )
    })
}

/// A name of `auths` as host and port: Docker also writes `https://host/v1/`.
fn bare(name: &str) -> String {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

impl Entry {
    fn login(&self) -> Option<Login> {
        use secrecy::ExposeSecret;
        if let (Some(username), Some(password)) = (&self.username, &self.password) {
            return Some(Login { username: username.clone(), password: password.clone() });
        }
        let pair = Zeroizing::new(STANDARD.decode(self.auth.as_ref()?.expose_secret()).ok()?);
        let (username, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
        Some(Login { username: username.to_owned(), password: SecretString::from(password.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};

    use super::*;

    fn of(auths: &Value, url: &str) -> Result<(String, String), String> {
        let config = json!({"auths": auths}).to_string();
        login(config.as_bytes(), Some(url)).map(|l| (l.username, l.password.expose_secret().to_owned()))
    }

    fn pair(user: &str, password: &str) -> (String, String) {
        (user.to_owned(), password.to_owned())
    }

    #[test]
    fn the_login_of_the_repositorys_host_is_taken_and_no_other() {
        let auths = json!({
            "charts.example.com": {"username": "ann", "password": "one"},
            "https://Charts.example.com:8443/v1/": {"auth": STANDARD.encode("bob:t:wo")},
        });
        assert_eq!(of(&auths, "https://charts.example.com/stable").unwrap(), pair("ann", "one"));
        assert_eq!(of(&auths, "https://charts.example.com:443/").unwrap(), pair("ann", "one"));
        assert_eq!(of(&auths, "https://charts.example.com:8443/stable").unwrap(), pair("bob", "t:wo"));
        let error = of(&auths, "https://evil.example/").unwrap_err();
        assert!(
            error.contains("no login for evil.example") && error.contains("charts.example.com"),
            "{error}"
        );
        assert!(of(&auths, "http://charts.example.com:80/").is_ok());
        assert!(of(&auths, "http://charts.example.com:8080/").is_err());
    }

    #[test]
    fn what_cannot_be_read_is_said_without_quoting_it() {
        for (config, url) in [
            (r#"{"auths": {"a.example": {"password": "hunter2"}}}"#, Some("https://a.example/")),
            (r#"{"auths": {"a.example": {"auth": "hunter2"}}}"#, Some("https://a.example/")),
            (r#"{"auths": "hunter2"}"#, Some("https://a.example/")),
            (r#"{"auths": {"a.example": {"username": "u", "password": "hunter2"}}}"#, None),
        ] {
            let error = login(config.as_bytes(), url).err().unwrap();
            assert!(error.contains(KEY) && !error.contains("hunter2"), "{error}");
        }
    }
}
