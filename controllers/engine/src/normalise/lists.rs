//! Merges entries of one key in lists that the API server merges by key.
//!
//! POST takes such lists (two `env` entries of one name: the last wins in the container); server-side apply answers them
//! with 500.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::identity::split_api_version;

/// Lists of a pod spec, with the fields that make their keys.
const POD: [(&str, &[&str]); 5] = [
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("resourceClaims", &["name"]),
];
/// Lists of containers in a pod spec.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Lists of a container.
const CONTAINER: [(&str, &[&str]); 4] = [
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
];

/// Where a kind keeps the spec of its pods.
pub fn pod_spec_path(group: &str, kind: &str) -> Option<&'static str> {
    Some(match (group, kind) {
        ("", "Pod") => "/spec",
        ("", "PodTemplate") => "/template/spec",
        ("", "ReplicationController")
        | ("apps" | "extensions", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet")
        | ("batch", "Job") => "/spec/template/spec",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => return None,
    })
}

/// Makes the lists of one manifest unique: the last entry of a key wins and keeps its place.
pub fn unique(manifest: &mut Value, name: &str, warnings: &mut Vec<String>) {
    let (group, _) = split_api_version(manifest["apiVersion"].as_str().unwrap_or_default());
    let (group, kind) = (group.to_owned(), manifest["kind"].as_str().unwrap_or_default().to_owned());
    finalizers(manifest, name, warnings);
    match (group.as_str(), kind.as_str()) {
        ("", "Service") => {
            each(manifest.pointer_mut("/spec"), &[("ports", &["port", "protocol"])], name, warnings);
        }
        ("", "ServiceAccount") => each(Some(manifest), &[("secrets", &["name"])], name, warnings),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => {
            each(Some(manifest), &[("webhooks", &["name"])], name, warnings);
        }
        _ => {}
    }
    let Some(spec) = pod_spec_path(&group, &kind).and_then(|path| manifest.pointer_mut(path)) else { return };
    for list in CONTAINERS {
        each(Some(&mut *spec), &[(list, &["name"])], name, warnings);
        let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else { continue };
        for container in containers {
            each(Some(container), &CONTAINER, name, warnings);
        }
    }
    each(Some(spec), &POD, name, warnings);
}

/// Finalizers are a set; server-side apply refuses the same text twice.
fn finalizers(manifest: &mut Value, name: &str, warnings: &mut Vec<String>) {
    let Some(list) = manifest.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    let before = list.len();
    let mut seen = Vec::new();
    list.retain(|item| {
        let new = !seen.contains(item);
        seen.push(item.clone());
        new
    });
    if list.len() < before {
        warnings.push(format!("{name}: metadata.finalizers names one finalizer twice; it is kept once"));
    }
}

fn each(parent: Option<&mut Value>, lists: &[(&str, &[&str])], name: &str, warnings: &mut Vec<String>) {
    let Some(parent) = parent else { return };
    for (field, keys) in lists {
        let Some(list) = parent.get_mut(*field).and_then(Value::as_array_mut) else { continue };
        for key in last_wins(list, keys) {
            warnings.push(format!("{name}: {field} has two entries of {key}; the last one is used"));
        }
    }
}

/// Drops all but the last entry of each key; returns the keys that had more than one.
fn last_wins(list: &mut Vec<Value>, keys: &[&str]) -> Vec<String> {
    let names: Vec<Option<Vec<String>>> = list.iter().map(|item| key_of(item, keys)).collect();
    let mut winner: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(name) = name {
            winner.insert(name, index);
        }
    }
    let mut doubled = std::collections::BTreeSet::new();
    let mut index = 0;
    list.retain(|_| {
        let name = names.get(index).and_then(Option::as_ref);
        let keep = name.is_none_or(|name| winner.get(name) == Some(&index));
        if let (false, Some(name)) = (keep, name) {
            doubled.insert(name.join(" "));
        }
        index += 1;
        keep
    });
    doubled.into_iter().collect()
}

/// The key of an entry; `None` where a part is missing that has no default: the API server has words for it.
fn key_of(item: &Value, keys: &[&str]) -> Option<Vec<String>> {
    keys.iter()
        .map(|key| match item.get(*key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            None | Some(Value::Null) if *key == "protocol" => Some("TCP".to_owned()),
            _ => None,
        })
        .collect()
}
