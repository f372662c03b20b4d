use super::*;
use crate::remote::testing::{Authority, kubeconfig};
use serde_json::{Value, json};

fn changed(path: &[&str], value: Value) -> Result<Credentials, KubeconfigError> {
    let mut config: Value = serde_json::from_slice(&kubeconfig(
        "https://edge.example.com:6443",
        &Authority::new().pem(),
        "secret-token",
    ))
    .unwrap();
    let mut at = &mut config;
    for key in path {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[*key],
        };
    }
    *at = value;
    read(config.to_string().as_bytes())
}

fn user(field: &str, value: Value) -> KubeconfigError {
    changed(&["users", "0", "user", field], value).unwrap_err()
}

fn cluster(field: &str, value: Value) -> KubeconfigError {
    changed(&["clusters", "0", "cluster", field], value).unwrap_err()
}

#[test]
fn everything_that_runs_reads_or_trusts_more_than_the_file_is_forbidden() {
    for (field, value) in [
        ("exec", json!({"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"})),
        ("auth-provider", json!({"name": "gcp"})),
        ("tokenFile", json!("/var/run/secrets/token")),
        ("client-certificate", json!("/etc/passwd")),
        ("client-key", json!("/etc/passwd")),
        ("username", json!("admin")),
        ("password", json!("admin")),
        ("as", json!("system:admin")),
        ("as-groups", json!(["system:masters"])),
        ("as-uid", json!("1")),
        ("as-user-extra", json!({"a": ["b"]})),
    ] {
        let error = user(field, value);
        assert_eq!(error.reason, "KubeconfigForbidden", "{field}");
        assert!(error.message.contains(field.split('-').next().unwrap()), "{field}: {}", error.message);
    }
    for (field, value) in [
        ("certificate-authority", json!("/etc/ssl/ca.crt")),
        ("insecure-skip-tls-verify", json!(true)),
        ("proxy-url", json!("http://proxy:3128")),
    ] {
        let error = cluster(field, value);
        assert_eq!(error.reason, "KubeconfigForbidden", "{field}");
        assert!(error.message.contains(field), "{}", error.message);
    }
    assert_eq!(cluster("server", json!("http://edge:6443")).reason, "KubeconfigForbidden");
    assert_eq!(cluster("server", json!("https://user:pw@edge:6443")).reason, "KubeconfigForbidden");
}

#[test]
fn what_is_missing_is_named_with_its_cure() {
    let error = cluster("certificate-authority-data", Value::Null);
    assert_eq!(error.reason, "KubeconfigInvalid");
    assert!(error.message.contains("--flatten"), "{}", error.message);
    assert!(user("token", Value::Null).message.contains("neither token nor client-certificate-data"));
    assert!(cluster("server", json!("edge")).message.contains("is not a URL"));
    assert!(
        cluster("certificate-authority-data", json!("bm90IHBlbQ=="))
            .message
            .contains("no certificate in PEM")
    );
    let other = changed(&["current-context"], json!("nope")).unwrap_err();
    assert!(other.message.contains("\"nope\" is not among the contexts"));
    assert!(changed(&["contexts"], json!([])).unwrap_err().message.contains("current-context"));
    assert!(changed(&["current-context"], Value::Null).is_ok(), "one context needs no current-context");
}

#[test]
fn no_secret_appears_in_errors_or_debug() {
    let credentials =
        read(&kubeconfig("https://edge:6443", &Authority::new().pem(), "secret-token")).unwrap();
    let shown = format!("{credentials:?} {:?}", credentials.authorization);
    assert!(!shown.contains("secret-token"), "{shown}");
    let error = read(b"users: [{name: u, user: {token: {a: secret-token}}}]").unwrap_err();
    assert!(!error.to_string().contains("secret-token"), "{error}");
    let error = read(b"secret-token").unwrap_err();
    assert!(!error.to_string().contains("secret-token"), "{error}");
    assert!(user("token", json!("secret\ntoken")).message.contains("characters"));
}

#[test]
fn large_files_and_alias_bombs_are_refused() {
    assert!(read(&vec![b' '; BYTES + 1]).unwrap_err().message.contains("larger"));
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 'b'..='j' {
        let before = char::from(level as u8 - 1);
        bomb.push_str(&format!("{level}: &{level} [{}]\n", vec![format!("*{before}"); 9].join(",")));
    }
    bomb.push_str("clusters: *j\n");
    assert_eq!(read(bomb.as_bytes()).unwrap_err().reason, "KubeconfigInvalid");
}

#[test]
fn the_key_is_the_named_one_or_the_first_known() {
    let data: BTreeMap<String, Vec<u8>> = [("kubeconfig", "c"), ("value", "a"), ("other", "d")]
        .map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec()))
        .into();
    assert_eq!(pick(&data, None).unwrap(), b"a");
    assert_eq!(pick(&data, Some("other")).unwrap(), b"d");
    let error = pick(&data, Some("nope")).unwrap_err();
    assert_eq!(error.reason, "SecretKeyNotFound");
    assert!(error.message.contains("no key nope"));
}

#[test]
fn a_client_certificate_is_read_with_its_end() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue(&["operator"], |params| {
        params.not_after = rcgen::date_time_ymd(2031, 5, 1);
    });
    let with = |certificate: &str, key: &str| {
        let mut config: Value =
            serde_json::from_slice(&kubeconfig("https://edge:6443/k8s/clusters/c-1/", &authority.pem(), ""))
                .unwrap();
        config["users"][0]["user"] = json!({
            "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
        });
        read(config.to_string().as_bytes())
    };
    let credentials = with(&certificate, &key).unwrap();
    assert_eq!(credentials.life().unwrap().ends.to_string(), "2031-05-01T00:00:00Z");
    assert_eq!((credentials.base.as_str(), credentials.port), ("/k8s/clusters/c-1", 6443));
    assert!(credentials.authorization.is_none());
    let (_, other) = authority.issue(&["somebody"], |_| {});
    assert!(with(&certificate, &other).unwrap_err().message.contains("not the key of"));
    assert!(with(&certificate, "").unwrap_err().message.contains("client-key-data is not"));
    assert!(with(&certificate, "junk").unwrap_err().message.contains("no private key"));
}

#[test]
fn people_reach_a_cluster_as_registered_and_get_nothing_secret_of_it() {
    let authority = Authority::new().pem();
    let noted = format!("made by hand, token hunter2\n{authority}");
    let config = kubeconfig("https://[2001:db8::1]/k8s/clusters/c-1/", &noted, "hunter2");
    let data = BTreeMap::from([("kubeconfig".to_owned(), config)]);
    let endpoint = endpoint_of_secret(None, &data, None).unwrap();
    assert_eq!(endpoint.server, "https://[2001:db8::1]:443/k8s/clusters/c-1");
    assert_eq!(endpoint.tls_server_name, None);
    let kept = String::from_utf8(STANDARD.decode(&endpoint.authority).unwrap()).unwrap();
    assert!(!kept.contains("hunter2") && kept.starts_with("-----BEGIN CERTIFICATE-----\n"), "{kept}");
    assert_eq!(kept, authority.replace("\r\n", "\n"));
    let moved =
        BTreeMap::from([("kubeconfig".to_owned(), kubeconfig("https://edge", &authority, "hunter2"))]);
    assert_ne!(endpoint_of_secret(None, &moved, None).unwrap().digest(), endpoint.digest());
}
