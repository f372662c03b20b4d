//! Lists what the operator applied on a plane, and reads fields of objects there.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::bed::Bed;

/// Kinds that tests ask for again and again, which needs no program: as kubectl names them, where they are served, and their own name.
const SERVED: [(&[&str], &str, &str); 11] = [
    (&["configmaps", "configmap", "cm"], "/api/v1", "ConfigMap"),
    (&["secrets", "secret"], "/api/v1", "Secret"),
    (&["serviceaccounts", "serviceaccount"], "/api/v1", "ServiceAccount"),
    (&["services", "service", "svc"], "/api/v1", "Service"),
    (&["persistentvolumeclaims", "persistentvolumeclaim", "pvc"], "/api/v1", "PersistentVolumeClaim"),
    (&["namespaces", "namespace"], "/api/v1", NAMESPACE),
    (&["deployments", "deployment", "deploy", "deployments.apps"], "/apis/apps/v1", "Deployment"),
    (&["statefulsets", "statefulset"], "/apis/apps/v1", "StatefulSet"),
    (&["jobs", "job", "jobs.batch"], "/apis/batch/v1", "Job"),
    (&["rolebindings", "rolebinding"], "/apis/rbac.authorization.k8s.io/v1", "RoleBinding"),
    (&["storageclasses", "storageclass"], "/apis/storage.k8s.io/v1", STORAGE_CLASS),
];
/// Of the whole cluster.
const NAMESPACE: &str = "Namespace";
const STORAGE_CLASS: &str = "StorageClass";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The objects of some kinds on a plane that the operator applied there, as `KIND/NAMESPACE/NAME` (or `KIND/NAME`).
/// `kinds` is what kubectl takes, such as `configmaps,deployments`.
pub async fn ours(bed: &Bed, plane: &str, kinds: &str, namespace: Option<&str>) -> Result<Vec<String>> {
    let served: Option<Vec<(String, &str)>> = kinds.split(',').map(|kind| served(kind, namespace)).collect();
    let mut names = match served {
        Some(served) => listed(bed, plane, &served).await?,
        None => printed(bed, plane, kinds, namespace).await?,
    };
    names.sort();
    Ok(names)
}

/// Where the objects of a kind are, and the kind's own name.
fn served(kind: &str, namespace: Option<&str>) -> Option<(String, &'static str)> {
    let (names, at, own) = SERVED.iter().find(|(names, ..)| names.contains(&kind))?;
    let within = match namespace {
        Some(namespace) if ![NAMESPACE, STORAGE_CLASS].contains(own) => format!("namespaces/{namespace}/"),
        _ => String::new(),
    };
    Some((format!("{at}/{within}{}", names[0]), own))
}

async fn listed(bed: &Bed, plane: &str, served: &[(String, &str)]) -> Result<Vec<String>> {
    let client = bed.edge(plane).client().await?;
    let mut names = Vec::new();
    for (path, kind) in served {
        let request = http::Request::get(format!("{path}?labelSelector=emco.io%2Fowner"))
            .header(http::header::ACCEPT, METADATA)
            .body(Vec::new())?;
        let list: Value = client.request(request).await.with_context(|| format!("cannot list {path}"))?;
        let items = list["items"].as_array().with_context(|| format!("{path} is no list: {list}"))?;
        names.extend(items.iter().map(|item| name(kind, &item["metadata"])));
    }
    Ok(names)
}

/// What `kubectl get OBJECT -o jsonpath=PATH` prints on a plane; `object` is `KIND/NAME`.
///
/// # Errors
/// There is no such object.
pub async fn field(bed: &Bed, plane: &str, namespace: &str, object: &str, path: &str) -> Result<String> {
    let place = object.split_once('/').and_then(|(kind, name)| {
        let (place, _) = served(kind, Some(namespace))?;
        Some(format!("{place}/{name}"))
    });
    if let (Some(place), Some(keys)) = (place, keys(path)) {
        let request = http::Request::get(&place).body(Vec::new())?;
        let found: Value = bed.edge(plane).client().await?.request(request).await.context(place)?;
        match keys.iter().fold(&found, |value, key| &value[key.as_str()]) {
            Value::Null => return Ok(String::new()),
            Value::String(text) => return Ok(text.clone()),
            value if !value.is_object() && !value.is_array() => return Ok(value.to_string()),
            _ => {}
        }
    }
    let path = format!("jsonpath={path}");
    let get = ["get", object, "-n", namespace, "-o", &path];
    bed.edge(plane).kubectl().run(&get).await.context(object.to_owned())
}

/// The keys of a path that leads to one field.
fn keys(path: &str) -> Option<Vec<String>> {
    let keys = path.strip_prefix("{.")?.strip_suffix('}')?;
    if keys.contains(['{', '[', '*', '?']) {
        return None;
    }
    // A dot within a key is written with a backslash.
    let keys = keys.replace("\\.", "\0");
    Some(keys.split('.').map(|key| key.replace('\0', ".")).collect())
}

async fn printed(bed: &Bed, plane: &str, kinds: &str, namespace: Option<&str>) -> Result<Vec<String>> {
    let scope = namespace.map_or_else(|| vec!["--all-namespaces"], |namespace| vec!["-n", namespace]);
    let mut args = vec!["get", kinds, "-l", "emco.io/owner", "-o", "json"];
    args.extend(scope);
    let answer = bed.edge(plane).kubectl().run(&args).await?;
    let list: Value = serde_json::from_str(&answer).context("kubectl did not answer in JSON")?;
    let items = list["items"].as_array().with_context(|| format!("kubectl answered no list: {answer}"))?;
    Ok(items.iter().map(|item| name(item["kind"].as_str().unwrap_or_default(), &item["metadata"])).collect())
}

fn name(kind: &str, metadata: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match text(&metadata["namespace"]) {
        namespace if namespace.is_empty() => format!("{kind}/{}", text(&metadata["name"])),
        namespace => format!("{kind}/{namespace}/{}", text(&metadata["name"])),
    }
}

#[cfg(test)]
mod tests {
    use super::{keys, served};

    #[test]
    fn a_path_to_one_field_is_its_keys_and_any_other_is_kubectls() {
        let of = |path| keys(path).map(|keys| keys.join(" "));
        assert_eq!(
            of(r"{.metadata.annotations.emco\.io/adopted}").as_deref(),
            Some("metadata annotations emco.io/adopted")
        );
        assert_eq!(of("{.metadata.labels}{.metadata.name}"), None);
        assert_eq!(of("{.items[*].metadata.uid}"), None);
    }

    #[test]
    fn kinds_are_listed_where_they_are_served_and_others_by_kubectl() {
        let place = |kind, namespace| served(kind, namespace).map(|(path, _)| path);
        assert_eq!(place("configmaps", Some("a")).as_deref(), Some("/api/v1/namespaces/a/configmaps"));
        assert_eq!(place("jobs.batch", None).as_deref(), Some("/apis/batch/v1/jobs"));
        assert_eq!(place("namespaces", Some("a")).as_deref(), Some("/api/v1/namespaces"));
        assert_eq!(place("pvc", Some("a")).as_deref(), Some("/api/v1/namespaces/a/persistentvolumeclaims"));
        assert_eq!(place("things.example.com", None), None);
    }
}
