//! Parses the Secret that Argo CD knows a cluster by. What kubeconfigs are refused for, this form is refused for.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Cluster, KubeconfigError, User, decode, forbidden, invalid};

/// Key and value of the label that marks such Secrets.
const LABEL: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");
/// Largest `config`.
const BYTES: usize = 256 << 10;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    username: Option<String>,
    password: Option<SecretString>,
    bearer_token: Option<SecretString>,
    #[serde(rename = "tlsClientConfig")]
    tls: Option<Tls>,
    #[serde(rename = "execProviderConfig")]
    exec: Option<IgnoredAny>,
    #[serde(rename = "awsAuthConfig")]
    aws: Option<IgnoredAny>,
    proxy_url: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    insecure: Option<bool>,
    server_name: Option<String>,
    ca_data: Option<String>,
    cert_data: Option<String>,
    key_data: Option<SecretString>,
}

/// Whether a Secret with these labels is of this form.
pub fn is_form(labels: Option<&BTreeMap<String, String>>) -> bool {
    labels.and_then(|labels| labels.get(LABEL.0)).is_some_and(|kind| kind == LABEL.1)
}

/// Reads the keys `server` and `config`, without what is secret.
pub(super) fn cluster<V: AsRef<[u8]>>(data: &BTreeMap<String, V>) -> Result<Cluster, KubeconfigError> {
    parts(data).map(|(cluster, _)| cluster)
}

/// Reads the keys `server` and `config`.
pub(super) fn parts<V: AsRef<[u8]>>(data: &BTreeMap<String, V>) -> Result<(Cluster, User), KubeconfigError> {
    let key = |key: &str| {
        data.get(key).map(AsRef::as_ref).ok_or_else(|| KubeconfigError {
            reason: "SecretKeyNotFound",
            message: format!(
                "the Secret has the label of Argo CD's clusters and no key {key}: add it, or remove the label {}",
                LABEL.0
            ),
        })
    };
    let server =
        std::str::from_utf8(key("server")?).map_err(|_| invalid("the key server is not UTF-8 text"))?;
    let config = key("config")?;
    if config.len() > BYTES {
        return Err(invalid(&format!("the key config is larger than {BYTES} bytes")));
    }
    // What the parser says may quote the content, which holds secrets.
    let config: Config = serde_json::from_slice(config).map_err(|error| {
        invalid(&format!("the key config is not the JSON that Argo CD writes, at line {}", error.line()))
    })?;
    let Config { bearer_token, tls, .. } = refuse(config)?;
    let Tls { server_name, ca_data, cert_data, key_data, insecure: _ } = tls.unwrap_or_default();
    let set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let secret = |text: &Option<SecretString>| {
        text.as_ref().is_some_and(|text| !text.expose_secret().trim().is_empty())
    };
    if !set(&ca_data) {
        return Err(invalid(
            "config.tlsClientConfig.caData is missing: embed the CA of the cluster's certificate there, in base64",
        ));
    }
    if set(&cert_data) != secret(&key_data) {
        return Err(invalid("config.tlsClientConfig has only one of certData and keyData: it needs both"));
    }
    if !secret(&bearer_token) && !set(&cert_data) {
        return Err(invalid("config has neither bearerToken nor tlsClientConfig.certData with keyData"));
    }
    for (field, text) in [("caData", &ca_data), ("certData", &cert_data)] {
        decode(&format!("config.tlsClientConfig.{field}"), text.as_deref().unwrap_or_default())?;
    }
    let cluster = Cluster {
        server: Some(server.trim().to_owned()),
        certificate_authority_data: ca_data,
        tls_server_name: server_name,
        ..Cluster::default()
    };
    let user = User {
        token: bearer_token,
        client_certificate_data: cert_data,
        client_key_data: key_data,
        ..User::default()
    };
    Ok((cluster, user))
}

fn refuse(config: Config) -> Result<Config, KubeconfigError> {
    const TOKEN: &str = "use config.bearerToken or a client certificate";
    let login = config.username.as_deref().is_some_and(|user| !user.is_empty()) || config.password.is_some();
    let fields = [
        (config.exec.is_some(), "execProviderConfig", "runs a program", TOKEN),
        (config.aws.is_some(), "awsAuthConfig", "runs a program", TOKEN),
        (login, "username/password", "is not accepted by API servers", TOKEN),
        (
            config.tls.as_ref().is_some_and(|tls| tls.insecure == Some(true)),
            "tlsClientConfig.insecure",
            "trusts whoever answers",
            "embed the CA in config.tlsClientConfig.caData",
        ),
        (
            config.proxy_url.as_deref().is_some_and(|url| !url.is_empty()),
            "proxyUrl",
            "sends requests through another machine",
            "make the API server reachable directly",
        ),
    ];
    match fields.iter().find(|(present, ..)| *present) {
        Some((_, field, does, cure)) => {
            Err(forbidden(&format!("the Secret's config.{field} {does}, which is not allowed: {cure}")))
        }
        None => Ok(config),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::super::{Credentials, assemble};
    use super::*;
    use crate::remote::testing::Authority;

    fn read<V: AsRef<[u8]>>(data: &BTreeMap<String, V>) -> Result<Credentials, KubeconfigError> {
        let (cluster, user) = parts(data)?;
        assemble(&cluster, &user)
    }

    fn of(server: &str, config: &Value) -> Result<Credentials, KubeconfigError> {
        let config = config.to_string();
        let data = [("name", "edge"), ("server", server), ("config", config.as_str())];
        read(&data.into_iter().map(|(key, text)| (key.to_owned(), text)).collect())
    }

    fn good() -> Value {
        let ca = STANDARD.encode(Authority::new().pem());
        json!({"bearerToken": "hunter2", "tlsClientConfig": {"insecure": false, "caData": ca, "serverName": "edge"}})
    }

    #[test]
    fn a_token_or_a_certificate_is_read_as_from_a_kubeconfig() {
        let read = of("https://edge.example.com:6443/base/", &good()).unwrap();
        assert_eq!((read.server().as_str(), read.base.as_str()), ("edge.example.com:6443", "/base"));
        assert_eq!(read.server_name, "edge".try_into().unwrap());
        assert_eq!(read.authorization.as_ref().unwrap(), "Bearer hunter2");
        assert!(!format!("{read:?}").contains("hunter2"));
        let authority = Authority::new();
        let (certificate, key) = authority.issue(&["ann"], |_| {});
        let encode = |text: &str| STANDARD.encode(text);
        let tls = json!({"caData": encode(&authority.pem()), "certData": encode(&certificate), "keyData": encode(&key)});
        let read = of("https://10.0.0.1", &json!({"tlsClientConfig": tls})).unwrap();
        assert!(read.authorization.is_none() && read.life().is_some());
        assert_eq!(read.server(), "10.0.0.1:443");
    }

    #[test]
    fn what_runs_programs_or_trusts_anybody_is_refused_by_its_name() {
        let with = |pointer: &str, key: &str, value: Value| {
            let mut config = good();
            config.pointer_mut(pointer).unwrap()[key] = value;
            of("https://edge.example.com", &config).unwrap_err()
        };
        for (pointer, key, value, words) in [
            ("", "execProviderConfig", json!({"command": "aws"}), "config.execProviderConfig runs a program"),
            ("", "awsAuthConfig", json!({"clusterName": "x"}), "config.awsAuthConfig runs a program"),
            ("", "username", json!("ann"), "config.username/password is not accepted"),
            ("/tlsClientConfig", "insecure", json!(true), "config.tlsClientConfig.insecure trusts"),
            ("", "proxyUrl", json!("http://x"), "config.proxyUrl sends"),
        ] {
            let error = with(pointer, key, value);
            assert_eq!(error.reason, "KubeconfigForbidden", "{error}");
            assert!(error.message.contains(words) && !error.message.contains("hunter2"), "{error}");
        }
        for (pointer, key, value, words) in [
            ("/tlsClientConfig", "caData", json!(""), "caData is missing"),
            ("/tlsClientConfig", "caData", json!("***"), "caData is not base64"),
            ("/tlsClientConfig", "certData", json!("aGk="), "only one of certData and keyData"),
            ("", "bearerToken", json!(""), "neither bearerToken"),
            ("", "bearerToken", json!({}), "at line 1"),
        ] {
            let error = with(pointer, key, value);
            assert_eq!(error.reason, "KubeconfigInvalid", "{error}");
            assert!(error.message.contains(words) && !error.message.contains("hunter2"), "{error}");
        }
        assert_eq!(of("http://edge.example.com", &good()).unwrap_err().reason, "KubeconfigForbidden");
        let error = read(&BTreeMap::from([("server".to_owned(), "https://x")])).unwrap_err();
        assert!(error.reason == "SecretKeyNotFound" && error.message.contains("no key config"), "{error}");
    }

    #[test]
    fn the_label_makes_the_form() {
        let labels = |value: &str| BTreeMap::from([(LABEL.0.to_owned(), value.to_owned())]);
        assert!(is_form(Some(&labels("cluster"))));
        assert!(!is_form(Some(&labels("repository"))) && !is_form(None));
    }
}
