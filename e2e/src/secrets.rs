//! Knows the secrets that the planes of a bed hold, and finds them in what people may read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

mod finder;
mod metrics;
mod printed;
mod readable;

use finder::Finder;
pub(crate) use metrics::listening;
pub use printed::Printed;

/// Shorter ones are words that stand anywhere.
const LENGTH: usize = 12;
/// Keys of Secrets whose values are no secret.
const PUBLIC: [&str; 10] =
    ["username", "ca.crt", "tls.crt", "server", "name", "namespace", "type", "url", "project", "id"];
/// Keys of a kubeconfig's users whose values are.
const CREDENTIALS: [&str; 3] = ["token", "client-key-data", "password"];

/// Texts that nobody may read, with the Secret and the key that hold each.
#[derive(Debug, Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which of them stands in a text: where it is from, and the line without it.
    pub fn shown_in(&self, text: &str) -> Option<String> {
        let secret = Finder::new(self.0.keys()).find(text)?;
        Some(self.sentence(secret, text))
    }

    /// The same of a file, read line by line: no secret has two. A file that is not there shows none.
    pub fn shown_in_file(&self, file: &Path) -> Result<Option<String>> {
        let mut lines = match File::open(file) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| file.display().to_string()),
        };
        let finder = Finder::new(self.0.keys());
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line).with_context(|| file.display().to_string())? == 0 {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(secret) = finder.find(&text) {
                return Ok(Some(self.sentence(secret, &text)));
            }
        }
    }

    fn sentence(&self, secret: &str, text: &str) -> String {
        let from = self.0.get(secret).map(String::as_str).unwrap_or_default();
        let line = text.lines().find(|line| line.contains(secret)).unwrap_or_default();
        format!("{from} is shown: {}", line.replace(secret, "(the secret)"))
    }

    fn of(secret: &Secret) -> Self {
        let mut found = Self::default();
        let (kind, meta) = (secret.type_.as_deref().unwrap_or_default(), &secret.metadata);
        // Compressed: what is in them are the manifests of Secrets that clusters have. Of differences, what is secret is masked.
        if ["emco.io/manifests", "emco.io/plan", "helm.sh/release.v1"].contains(&kind) {
            return found;
        }
        let name = format!(
            "Secret {}/{}",
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default()
        );
        for (key, bytes) in secret.data.iter().flatten().filter(|(key, _)| !PUBLIC.contains(&key.as_str())) {
            found.add_value(&format!("{name}, key {key}"), &bytes.0);
        }
        found
    }

    fn add_value(&mut self, from: &str, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.add(from, &STANDARD.encode(bytes));
            self.add(from, &hex::encode(bytes));
            return;
        };
        match serde_yaml::from_str::<Value>(text) {
            Ok(Value::Object(map)) if map.contains_key("users") => {
                let users = map["users"].as_array().into_iter().flatten();
                for (key, value) in users.filter_map(|user| user["user"].as_object()).flatten() {
                    if CREDENTIALS.contains(&key.as_str()) {
                        self.add(&format!("{from}, {key}"), value.as_str().unwrap_or_default());
                    }
                }
            }
            Ok(document @ (Value::Object(_) | Value::Array(_))) => self.add_leaves(from, &document),
            _ => self.add(from, text.trim()),
        }
        self.add(from, &STANDARD.encode(bytes));
    }

    fn add_leaves(&mut self, from: &str, document: &Value) {
        match document {
            Value::String(text) => self.add(from, text),
            Value::Array(items) => items.iter().for_each(|item| self.add_leaves(from, item)),
            Value::Object(map) => {
                map.iter().filter(|(key, _)| !PUBLIC.contains(&key.as_str())).for_each(|(key, value)| {
                    self.add_leaves(&format!("{from}, {key}"), value);
                });
            }
            _ => {}
        }
    }

    /// A text of one line. What is an address is public.
    fn add(&mut self, from: &str, text: &str) {
        if text.len() >= LENGTH && !text.contains(['\n', ' ']) && !text.contains("://") {
            self.0.insert(text.to_owned(), from.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(data: &Value) -> Secrets {
        let secret = json!({"metadata": {"name": "s", "namespace": "n"}, "data": data});
        Secrets::of(&serde_json::from_value(secret).unwrap())
    }

    fn base64(text: &str) -> String {
        STANDARD.encode(text)
    }

    #[test]
    fn a_password_is_found_as_it_is_and_in_base64() {
        let secrets =
            of(&json!({"username": base64("somebody-known"), "password": base64("hunter2-hunter2")}));
        for shown in
            ["login hunter2-hunter2 is wrong".to_owned(), format!("data: {}", base64("hunter2-hunter2"))]
        {
            let said = secrets.shown_in(&shown).unwrap();
            assert!(said.starts_with("Secret n/s, key password is shown: "), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        assert_eq!(secrets.shown_in("somebody-known may not log in"), None);
    }

    #[test]
    fn of_a_kubeconfig_the_credentials_alone_are_secret() {
        let kubeconfig = "users:\n- name: u\n  user: {token: a-token-of-an-account}\nclusters:\n- cluster: {server: 'https://edge.example.com'}\n";
        let secrets = of(&json!({"kubeconfig": base64(kubeconfig)}));
        assert_eq!(secrets.shown_in("https://edge.example.com does not answer"), None);
        assert!(secrets.shown_in("Bearer a-token-of-an-account").is_some());
    }

    #[test]
    fn what_a_command_printed_is_searched_unless_it_was_asked_for_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let printed = Printed::new(folder.path());
        let secrets = of(&json!({"password": base64("hunter2-hunter2")}));
        assert_eq!(printed.shows(&secrets).unwrap(), None, "nothing was printed yet");
        printed.keep(&["manifests", "shop/till"], &[b"kind: Secret\n", b"1 is withheld"]).unwrap();
        printed.keep(&["manifests", "shop/till", "--show-secrets"], &[b"a: hunter2-hunter2\n"]).unwrap();
        assert_eq!(printed.shows(&secrets).unwrap(), None);
        printed.keep(&["status", "shop/till"], &[b"", b"login \xff hunter2-hunter2 is wrong\nmore"]).unwrap();
        let shown = printed.shows(&secrets).unwrap().unwrap();
        assert!(shown.starts_with("Secret n/s, key password is shown: login "), "{shown}");
        assert!(shown.ends_with(" (the secret) is wrong"), "{shown}");
    }

    #[test]
    fn values_of_a_file_are_secret_one_by_one() {
        let secrets =
            of(&json!({"values.yaml": base64("db: {password: first-password}\nhosts: [second-secret]\n")}));
        assert!(secrets.shown_in("got first-password").is_some());
        assert!(secrets.shown_in("got second-secret").is_some());
        assert_eq!(secrets.shown_in("got third-password"), None);
    }
}
