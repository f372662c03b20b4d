//! Applies objects as `kubectl apply --server-side` does, without a program: that would ask for all kinds and their schemas first.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::Value;

/// Who kubectl says it is.
const MANAGER: &str = "kubectl";
/// Where objects go that name no namespace.
const DEFAULT: &str = "default";

/// Where objects of a kind are.
type Found = (ApiResource, Scope);

/// Kinds that were found, by the address of their server and their own name. What serves a kind at an address does not change while a program runs.
static KINDS: Mutex<BTreeMap<String, Found>> = Mutex::new(BTreeMap::new());

/// Applies each object of the text, also those after one that is refused; answers a line for each that was applied. The error names
/// all that were refused.
pub(super) async fn apply(kubeconfig: &Path, namespace: Option<&str>, yaml: &str) -> Result<String> {
    let (client, server) = connect(kubeconfig).await?;
    let (mut applied, mut refused) = (String::new(), Vec::new());
    for object in objects(yaml)? {
        match one(&client, &server, namespace, &object).await {
            Ok(line) => applied.push_str(&line),
            Err(error) => refused.push(format!("{}: {error:#}", name_of(&object))),
        }
    }
    if !refused.is_empty() {
        bail!("kubectl apply --server-side failed:\n{applied}{}", refused.join("\n"));
    }
    Ok(applied)
}

/// A client of its own connections, and the address of its server.
pub(super) async fn connect(kubeconfig: &Path) -> Result<(Client, String)> {
    let config =
        Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    // A server that is not there is told of at once, as kubectl tells of it.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    Ok((Client::try_from(config).context("cannot make a client")?, server))
}

async fn one(client: &Client, server: &str, namespace: Option<&str>, object: &Value) -> Result<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let (resource, scope) = found(client, server, &GroupVersionKind::gvk(group, version, &kind)).await?;
    let own = object["metadata"]["namespace"].as_str();
    let api: Api<DynamicObject> = match scope {
        Scope::Namespaced => {
            Api::namespaced_with(client.clone(), own.or(namespace).unwrap_or(DEFAULT), &resource)
        }
        Scope::Cluster => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().context("it has no name")?;
    let params = PatchParams::apply(MANAGER).validation_strict();
    api.patch(name, &params, &Patch::Apply(object)).await?;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    Ok(format!("{}{group}/{name} serverside-applied\n", kind.to_lowercase()))
}

/// The resource of a kind, which the server is asked for once.
async fn found(client: &Client, server: &str, kind: &GroupVersionKind) -> Result<Found> {
    let key = format!("{server} {} {}", kind.api_version(), kind.kind);
    if let Some(found) = KINDS.lock().get(&key).cloned() {
        return Ok(found);
    }
    let (resource, capabilities) = pinned_kind(client, kind).await?;
    let found = (resource, capabilities.scope);
    KINDS.lock().insert(key, found.clone());
    Ok(found)
}

/// The documents of a text, and what its lists hold.
fn objects(yaml: &str) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for document in serde_yaml::Deserializer::from_str(yaml) {
        let document = Value::deserialize(document).with_context(|| format!("this is no YAML: {yaml}"))?;
        match (document["kind"].as_str(), document["items"].as_array()) {
            (Some("List"), Some(items)) => all.extend(items.iter().cloned()),
            _ if document.is_null() => {}
            _ => all.push(document),
        }
    }
    Ok(all)
}

fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_items_of_lists_are_objects_and_empty_documents_none() {
        let yaml = "\n---\n{kind: A, metadata: {name: a}}\n---\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n---\n";
        let kinds: Vec<Value> = objects(yaml).unwrap().iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
    }
}
