//! Searches the logs, Events and statuses of a bed for the secrets that its planes hold.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::bed::Bed;

/// Shorter ones are words that stand anywhere.
const LENGTH: usize = 12;
/// A plane that a test has stopped does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Keys of Secrets whose values are no secret.
const PUBLIC: [&str; 10] =
    ["username", "ca.crt", "tls.crt", "server", "name", "namespace", "type", "url", "project", "id"];
/// Keys of a kubeconfig's users whose values are.
const CREDENTIALS: [&str; 3] = ["token", "client-key-data", "password"];
/// All of these are generated: names, digests and messages.
const WHOLE: [&str; 2] = ["appcontexts", "syncshards"];
const STATUSES: [&str; 8] = [
    "clusterproviders",
    "clusters",
    "projects",
    "logicalclouds",
    "compositeapps",
    "compositeprofiles",
    "deploymentintentgroups",
    "deploymentapprovals",
];
/// Logs of programs that are not under test.
const OTHERS: [&str; 5] = ["kube-", "etcd", "kwok", "prometheus", "registry"];

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
        let (secret, from) = self.0.iter().find(|(secret, _)| text.contains(secret.as_str()))?;
        let line = text.lines().find(|line| line.contains(secret.as_str())).unwrap_or_default();
        Some(format!("{from} is shown: {}", line.replace(secret.as_str(), "(the secret)")))
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

impl Bed {
    /// The secrets in all Secrets of all planes as they are now.
    pub async fn secrets(&self) -> Result<Secrets> {
        let mut all = Secrets::default();
        for plane in self.planes() {
            let list = Api::<Secret>::all(plane.client().await?).list(&ListParams::default()).await;
            for secret in list.with_context(|| format!("the Secrets of {}", plane.name()))? {
                all.0.extend(Secrets::of(&secret).0);
            }
        }
        Ok(all)
    }

    /// What the programs under test logged, and the Events and statuses of the hub.
    pub async fn readable(&self) -> Result<String> {
        let mut text = self.logs_under_test()?;
        let client = self.hub().client().await?;
        if let Some(events) = list(&client, "/api/v1/events").await? {
            text.push_str(&events.to_string());
        }
        for kind in WHOLE.iter().chain(&STATUSES) {
            let Some(objects) = list(&client, &format!("/apis/emco.io/v1alpha1/{kind}")).await? else {
                continue;
            };
            for object in objects["items"].as_array().into_iter().flatten() {
                let shown = if WHOLE.contains(kind) { object } else { &object["status"] };
                text.push_str(&format!("\n{kind} {}: {shown}", object["metadata"]["name"]));
            }
        }
        Ok(text)
    }

    fn logs_under_test(&self) -> Result<String> {
        let mut text = String::new();
        for entry in std::fs::read_dir(self.dir().join("logs")).context("the folder of logs")? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let of_others = OTHERS.iter().any(|other| name.contains(other));
            if !of_others && path.extension().is_some_and(|extension| extension == "log") {
                let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        Ok(text)
    }

    /// An error where a secret of this bed stands where people may read it. A bed with a plane that does not answer is not searched.
    pub async fn shows_no_secret(&self) -> Result<()> {
        if self.planes().all(|plane| plane.name() != "hub") {
            return Ok(());
        }
        let both = async { Ok::<_, anyhow::Error>((self.secrets().await?, self.readable().await?)) };
        let Ok(Ok((secrets, readable))) = tokio::time::timeout(PATIENCE, both).await else { return Ok(()) };
        let shown = secrets.shown_in(&readable);
        ensure!(shown.is_none(), "{}", shown.unwrap_or_default());
        Ok(())
    }
}

/// The objects of a collection; `None` where the server does not know the kind.
async fn list(client: &Client, path: &str) -> Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new()).context("a path of our own")?;
    match client.request::<Value>(request).await {
        Ok(list) => Ok(Some(list)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).context(path.to_owned()),
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
    fn values_of_a_file_are_secret_one_by_one() {
        let secrets =
            of(&json!({"values.yaml": base64("db: {password: first-password}\nhosts: [second-secret]\n")}));
        assert!(secrets.shown_in("got first-password").is_some());
        assert!(secrets.shown_in("got second-secret").is_some());
        assert_eq!(secrets.shown_in("got third-password"), None);
    }
}
