//! Finds the login for the host of a URL in a Secret of type `kubernetes.io/dockerconfigjson`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use crate::remote::wire::cut;

/// The key of such Secrets.
pub const KEY: &str = ".dockerconfigjson";

/// What Docker writes for its own registry, and the hosts that it means by it.
const HUB: &str = "index.docker.io";
const HUB_HOSTS: [&str; 3] = ["registry-1.docker.io", "docker.io", "auth.docker.io"];

/// A user with a password.
pub struct Login {
    pub username: String,
    pub password: SecretString,
}

/// Logins by host.
#[derive(Clone, Default, Deserialize)]
pub struct Logins {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Clone, Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<SecretString>,
    auth: Option<SecretString>,
}

impl Logins {
    /// Reads the key's content. The error is a sentence, and quotes nothing.
    pub fn read(config: &[u8]) -> Result<Self, String> {
        // What serde says would quote the content.
        serde_json::from_slice(config).map_err(|_| {
            format!("the Secret's key {KEY} is not JSON with a map auths: make it with kubectl create secret docker-registry")
        })
    }

    /// The login of a URL's host. The error is a sentence, and quotes no more than names of hosts.
    pub fn login(&self, url: &Url) -> Result<Login, String> {
        let Some(host) = url.host_str() else {
            return Err(format!("logins of the key {KEY} are for a host, and this chart comes from none"));
        };
        let mut wanted: Vec<String> = match (url.port(), url.port_or_known_default()) {
            (None, Some(port)) => vec![host.to_owned(), format!("{host}:{port}")],
            (_, Some(port)) => vec![format!("{host}:{port}")],
            _ => vec![host.to_owned()],
        };
        if url.port().is_none() && HUB_HOSTS.contains(&host) {
            wanted.push(HUB.to_owned());
        }
        let named = |wanted: &String| self.auths.iter().find(|(name, _)| bare(name) == *wanted);
        let Some((name, entry)) = wanted.iter().find_map(named) else {
            let known: Vec<String> = self.auths.keys().take(3).map(|name| cut(&bare(name), 80)).collect();
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

    /// Everything that distinguishes these logins from others.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.auths.iter().flat_map(|(name, Entry { username, password, auth })| {
            [
                name.as_bytes(),
                username.as_deref().unwrap_or_default().as_bytes(),
                password.as_ref().map_or("", |text| text.expose_secret()).as_bytes(),
                auth.as_ref().map_or("", |text| text.expose_secret()).as_bytes(),
            ]
        })
    }
}

/// A name of `auths` as host and port: Docker also writes `https://host/v1/`.
fn bare(name: &str) -> String {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').next().unwrap_or_default().to_ascii_lowercase()
}

impl Entry {
    fn login(&self) -> Option<Login> {
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
    use serde_json::{Value, json};

    use super::*;

    fn of(auths: &Value, url: &str) -> Result<(String, String), String> {
        let config = json!({"auths": auths}).to_string();
        let url = Url::parse(url).unwrap();
        Logins::read(config.as_bytes())?
            .login(&url)
            .map(|l| (l.username, l.password.expose_secret().to_owned()))
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
    fn dockers_own_registry_is_known_by_the_name_that_docker_writes() {
        let auths = json!({"https://index.docker.io/v1/": {"username": "ann", "password": "one"}});
        for url in ["https://registry-1.docker.io/v2/ann/web/", "https://auth.docker.io/token"] {
            assert_eq!(of(&auths, url).unwrap(), pair("ann", "one"));
        }
        assert!(of(&auths, "https://auth.docker.io.evil.example/").is_err());
    }

    #[test]
    fn what_cannot_be_read_is_said_without_quoting_it() {
        for config in [
            r#"{"auths": {"a.example": {"password": "hunter2"}}}"#,
            r#"{"auths": {"a.example": {"auth": "hunter2"}}}"#,
            r#"{"auths": "hunter2"}"#,
        ] {
            let url = Url::parse("https://a.example/").unwrap();
            let error = Logins::read(config.as_bytes()).and_then(|all| all.login(&url)).err().unwrap();
            assert!(error.contains(KEY) && !error.contains("hunter2"), "{error}");
        }
    }
}
