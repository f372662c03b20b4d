//! Reads credentials for a chart's source from a Secret's data, or says what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use url::Url;

use super::{ChartError, docker, mix};

/// What a Secret that `secretRef` names may hold. Sent to the origin of the repository's URL alone.
#[derive(Clone, Default)]
pub struct ChartCredentials {
    /// `username`
    pub username: Option<String>,
    /// `password`
    pub password: Option<SecretString>,
    /// `ca.crt`, PEM: trusted besides the public CAs.
    pub ca_crt: Option<Vec<u8>>,
    /// `tls.crt`, PEM: client certificate.
    pub tls_crt: Option<Vec<u8>>,
    /// `tls.key`, PEM.
    pub tls_key: Option<SecretString>,
    /// `.dockerconfigjson`: a token realm on another host, or one that an index names, gets what is here under its own name.
    pub(super) logins: docker::Logins,
}

impl fmt::Debug for ChartCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChartCredentials")
    }
}

impl ChartCredentials {
    /// Reads a Secret's data. `url` is the repository that they are for: logins of a Secret of type
    /// `kubernetes.io/dockerconfigjson` are found by host.
    pub fn read<V: AsRef<[u8]>>(data: &BTreeMap<String, V>, url: Option<&str>) -> Result<Self, ChartError> {
        let refused = |message: &str| ChartError::new("ChartUnauthorized", message);
        let bytes = |key: &str| data.get(key).map(AsRef::as_ref);
        let text = |key: &str| match bytes(key).map(std::str::from_utf8) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text.to_owned())),
            Some(Err(_)) => Err(refused(&format!("the Secret's key {key} is not UTF-8 text"))),
        };
        let (mut username, mut password) = (text("username")?, text("password")?.map(SecretString::from));
        let mut logins = docker::Logins::default();
        if let (None, None, Some(config)) = (&username, &password, bytes(docker::KEY)) {
            let login = docker::Logins::read(config).and_then(|read| {
                let Some(url) = url.and_then(|url| Url::parse(url).ok()) else {
                    return Err(format!(
                        "logins of the key {} are for a host, and this chart comes from none",
                        docker::KEY
                    ));
                };
                let login = read.login(&url)?;
                logins = read;
                Ok(login)
            });
            let login = login.map_err(|message| refused(&message))?;
            (username, password) = (Some(login.username), Some(login.password));
        }
        let credentials = Self {
            username,
            password,
            ca_crt: bytes("ca.crt").map(<[u8]>::to_vec),
            tls_crt: bytes("tls.crt").map(<[u8]>::to_vec),
            tls_key: text("tls.key")?.map(SecretString::from),
            logins,
        };
        let Self { username, password, ca_crt, tls_crt, tls_key, logins: _ } = &credentials;
        if username.is_some() != password.is_some() {
            return Err(refused("the Secret has only one of the keys username and password: it needs both"));
        }
        if tls_crt.is_some() != tls_key.is_some() {
            return Err(refused("the Secret has only one of the keys tls.crt and tls.key: it needs both"));
        }
        if username.is_none() && tls_crt.is_none() && ca_crt.is_none() {
            return Err(refused(
                "the Secret has none of the keys username and password, ca.crt, tls.crt and tls.key, .dockerconfigjson",
            ));
        }
        Ok(credentials)
    }

    /// Adds all of it to a hash.
    pub(super) fn mix_into(&self, hash: &mut Sha256) {
        let Self { username, password, ca_crt, tls_crt, tls_key, logins } = self;
        let parts = [
            username.as_deref().map(str::as_bytes),
            password.as_ref().map(|secret| secret.expose_secret().as_bytes()),
            ca_crt.as_deref(),
            tls_crt.as_deref(),
            tls_key.as_ref().map(|secret| secret.expose_secret().as_bytes()),
        ];
        for part in parts {
            mix(hash, part.unwrap_or_default());
        }
        logins.parts().for_each(|part| mix(hash, part));
    }
}
