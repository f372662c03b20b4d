//! Compares an object as Helm made it with the operator's, apart from what neither decides.
//!
//! Left out, and why:
//! * `status`, `metadata.uid`, `resourceVersion`, `generation`, `creationTimestamp`, `managedFields`, `selfLink`: the server
//!   sets them.
//! * labels and annotations `emco.io/...`, annotations `meta.helm.sh/...`: the marks of either side. The label
//!   `app.kubernetes.io/managed-by` is compared with what Helm renders: while it installs, Helm overwrites it with itself.
//! * addresses and ports of Services (`clusterIP`, `clusterIPs`, `nodePort`, `healthCheckNodePort`): the server draws them;
//!   `clusterIP: None` is compared.
//! * `nodeName` of Pods, the name of the volume with their token, `volumeName` of claims and the node chosen for them, ids of
//!   Jobs in labels and selectors, the contents of token Secrets: the plane's own controllers draw them.
//! * every leaf in which two renderings by Helm differ: passwords, certificates, checksums of these. Presence is compared.

use serde_json::Value;

use super::reference::Rendered;
use super::snapshot::Key;

/// Who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// In place of what is not compared.
const MASK: &str = "(not compared)";
/// How the API server calls the volume with a Pod's token, before five random letters.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// One step into an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A place in an object.
pub type Path = Vec<Step>;

/// Each difference as a sentence.
pub fn differences(key: &Key, wanted: &Value, found: &Value, rendered: &Rendered) -> Vec<String> {
    let (mut wanted, mut found) = (wanted.clone(), found.clone());
    let facts = rendered.of(&key.kind, &key.name);
    if let Some(facts) = facts
        && let Some(labels) = map_at(&mut wanted, "/metadata/labels")
    {
        match &facts.manager {
            Some(manager) => drop(labels.insert(MANAGED_BY.to_owned(), manager.clone())),
            None => drop(labels.remove(MANAGED_BY)),
        }
    }
    for object in [&mut wanted, &mut found] {
        strip(&key.kind, object);
        for path in facts.into_iter().flat_map(|facts| &facts.random) {
            mask(object, path);
        }
    }
    let mut out = Vec::new();
    walk(&wanted, &found, &mut Vec::new(), &mut |path, wanted, found| {
        let (found, wanted) = shown(found, wanted);
        out.push(format!("{} is {found}, Helm makes it {wanted}", text(path)));
    });
    out
}

/// Where two renderings of one object differ. A list of another length counts as a whole.
pub fn leaves(one: &Value, other: &Value) -> Vec<Path> {
    let mut out = Vec::new();
    walk(one, other, &mut Vec::new(), &mut |path, _, _| out.push(path.to_vec()));
    out
}

/// Where two renderings of one object differ, as the server keeps it: the text of a Secret in its other form.
pub fn differing_leaves(one: &Value, other: &Value) -> Vec<Path> {
    let mut out = leaves(one, other);
    for path in &mut out {
        if let Some(Step::Key(first)) = path.first_mut()
            && first == "stringData"
        {
            "data".clone_into(first);
        }
    }
    out
}

/// Where two renderings of one object differ apart from these places, each as a sentence.
pub fn rendered_differences(wanted: &Value, found: &Value, random: &[Path]) -> Vec<String> {
    let (mut wanted, mut found) = (wanted.clone(), found.clone());
    for path in random {
        mask(&mut wanted, path);
        mask(&mut found, path);
    }
    let mut out = Vec::new();
    walk(&wanted, &found, &mut Vec::new(), &mut |path, wanted, found| {
        let (found, wanted) = shown(found, wanted);
        out.push(format!("{} is {found}, Helm renders {wanted}", text(path)));
    });
    out
}

/// What stands at a place.
pub fn at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Why a workload is not ready, if it is one.
pub fn unready(object: &Value) -> Option<String> {
    let number = |at: &str| object.pointer(at).and_then(Value::as_i64);
    let (wanted, ready) = match object.get("kind").and_then(Value::as_str)? {
        "Deployment" | "StatefulSet" => (number("/spec/replicas"), number("/status/readyReplicas")),
        "DaemonSet" => (number("/status/desiredNumberScheduled"), number("/status/numberReady")),
        _ => return None,
    };
    let (wanted, ready) = (wanted.unwrap_or(1), ready.unwrap_or(0));
    (ready < wanted).then(|| format!("{ready} of {wanted} Pods are ready"))
}

fn strip(kind: &str, object: &mut Value) {
    if let Some(top) = object.as_object_mut() {
        top.remove("status");
        top.remove("apiVersion");
        top.remove("kind");
    }
    if let Some(metadata) = map_at(object, "/metadata") {
        for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"]
        {
            metadata.remove(key);
        }
    }
    for (at, prefixes) in [
        ("/metadata/labels", ["emco.io/", "emco.io/"]),
        ("/metadata/annotations", ["emco.io/", "meta.helm.sh/"]),
    ] {
        if let Some(map) = map_at(object, at) {
            map.retain(|key, _| !prefixes.iter().any(|prefix| key.starts_with(prefix)));
        }
        if map_at(object, at).is_some_and(|map| map.is_empty())
            && let Some(metadata) = map_at(object, "/metadata")
        {
            metadata.remove(at.rsplit('/').next().unwrap_or_default());
        }
    }
    match kind {
        "Service" => service(object),
        "Pod" => pod(object),
        "PersistentVolumeClaim" => {
            mask_at(object, "/spec/volumeName");
            mask_at(object, "/metadata/annotations/volume.kubernetes.io~1selected-node");
        }
        "Job" => job(object),
        "Secret"
            if object.get("type").and_then(Value::as_str) == Some("kubernetes.io/service-account-token") =>
        {
            mask_at(object, "/data/token");
            mask_at(object, "/data/ca.crt");
            mask_at(object, "/metadata/annotations/kubernetes.io~1service-account.uid");
        }
        _ => {}
    }
}

fn service(object: &mut Value) {
    if object.pointer("/spec/clusterIP").and_then(Value::as_str) != Some("None") {
        mask_at(object, "/spec/clusterIP");
        mask_at(object, "/spec/clusterIPs");
    }
    mask_at(object, "/spec/healthCheckNodePort");
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        mask_at(port, "/nodePort");
    }
}

fn pod(object: &mut Value) {
    mask_at(object, "/spec/nodeName");
    token_volumes(object);
}

fn token_volumes(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => TOKEN_VOLUME.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(token_volumes),
        Value::Object(map) => map.values_mut().for_each(token_volumes),
        _ => {}
    }
}

fn job(object: &mut Value) {
    for at in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        for key in ["controller-uid", "batch.kubernetes.io~1controller-uid"] {
            mask_at(object, &format!("{at}/{key}"));
        }
    }
}

fn map_at<'a>(object: &'a mut Value, at: &str) -> Option<&'a mut serde_json::Map<String, Value>> {
    object.pointer_mut(at).and_then(Value::as_object_mut)
}

fn mask_at(object: &mut Value, at: &str) {
    if let Some(value) = object.pointer_mut(at) {
        *value = MASK.into();
    }
}

fn mask(object: &mut Value, path: &[Step]) {
    let found = path.iter().try_fold(object, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    if let Some(value) = found {
        *value = MASK.into();
    }
}

/// Calls `tell` for every place where the two differ.
fn walk(one: &Value, other: &Value, path: &mut Path, tell: &mut impl FnMut(&[Step], &Value, &Value)) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let absent = Value::Null;
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                path.push(Step::Key(key.clone()));
                walk(left.get(key).unwrap_or(&absent), right.get(key).unwrap_or(&absent), path, tell);
                path.pop();
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                path.push(Step::Index(index));
                walk(left, right, path, tell);
                path.pop();
            }
        }
        _ if one != other => tell(path, one, other),
        _ => {}
    }
}

fn text(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Index(index) => format!("[{index}]"),
    };
    path.iter().map(step).collect()
}

/// Both values for a message; of long texts the first lines that differ.
fn shown(one: &Value, other: &Value) -> (String, String) {
    let (Some(left), Some(right)) = (one.as_str(), other.as_str()) else { return (short(one), short(other)) };
    let same = left.lines().zip(right.lines()).take_while(|(left, right)| left == right).count();
    let rest = |text: &str| match (same, text.lines().nth(same)) {
        (0, _) => short(&text.into()),
        (_, Some(line)) => format!("{} in line {}", short(&line.into()), same + 1),
        (_, None) => format!("at its end after {same} lines, {} bytes", text.len()),
    };
    (rest(left), rest(right))
}

/// Enough of a value for a message.
fn short(value: &Value) -> String {
    const MOST: usize = 160;
    let text = if value.is_null() { "absent".to_owned() } else { value.to_string() };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(kind: &str) -> Key {
        Key {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: Some("n".to_owned()),
            name: "x".to_owned(),
        }
    }

    fn compared(kind: &str, wanted: &Value, found: &Value) -> Vec<String> {
        differences(&key(kind), wanted, found, &Rendered::default())
    }

    #[test]
    fn marks_and_what_the_server_sets_do_not_count() {
        let wanted = json!({"metadata": {"uid": "1", "annotations": {"meta.helm.sh/release-name": "x"}}, "data": {"a": "b"}});
        let found = json!({"metadata": {"uid": "2", "labels": {"emco.io/owner": "o"}}, "data": {"a": "b"}, "status": {}});
        assert_eq!(compared("ConfigMap", &wanted, &found), Vec::<String>::new());
    }

    #[test]
    fn every_other_field_counts_and_is_named() {
        let wanted = json!({"spec": {"ports": [{"port": 80}]}, "metadata": {"labels": {"a": "b"}}});
        let found = json!({"spec": {"ports": [{"port": 81}]}, "metadata": {}});
        let told = compared("Service", &wanted, &found);
        let wanted = [
            ".metadata.labels is absent, Helm makes it {\"a\":\"b\"}",
            ".spec.ports[0].port is 81, Helm makes it 80",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn addresses_do_not_count_but_having_none_does() {
        let with = |address: &str| json!({"spec": {"clusterIP": address, "clusterIPs": [address]}});
        assert!(compared("Service", &with("10.0.0.1"), &with("10.0.0.2")).is_empty());
        assert_eq!(compared("Service", &with("None"), &with("10.0.0.2")).len(), 2);
    }

    #[test]
    fn random_text_is_found_by_rendering_twice_and_only_its_presence_counts() {
        let secret = |password: &str| json!({"stringData": {"user": "u", "password": password}});
        let random = differing_leaves(&secret("a"), &secret("b"));
        let path = vec![Step::Key("data".to_owned()), Step::Key("password".to_owned())];
        assert_eq!(random, std::slice::from_ref(&path));
        let mut object = json!({"data": {"user": "u", "password": "xyz"}});
        mask(&mut object, &path);
        assert_eq!(object, json!({"data": {"user": "u", "password": MASK}}));
        let mut without = json!({"data": {"user": "u"}});
        mask(&mut without, &path);
        assert_eq!(without, json!({"data": {"user": "u"}}));
    }

    #[test]
    fn a_workload_without_its_pods_is_told() {
        let set = |ready: i64| json!({"kind": "StatefulSet", "spec": {"replicas": 3}, "status": {"readyReplicas": ready}});
        assert_eq!(unready(&set(2)).as_deref(), Some("2 of 3 Pods are ready"));
        assert_eq!(unready(&set(3)), None);
    }
}
