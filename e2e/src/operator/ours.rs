//! Lists what the operator applied on a plane, and reads fields of objects there.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::bed::Bed;
use crate::kubectl::kinds::served;

const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The objects of some kinds on a plane that the operator applied there, as `KIND/NAMESPACE/NAME` (or `KIND/NAME`).
/// `kinds` is what kubectl takes, such as `configmaps,deployments`.
pub async fn ours(bed: &Bed, plane: &str, kinds: &str, namespace: Option<&str>) -> Result<Vec<String>> {
    let served: Option<Vec<(String, &str)>> = kinds.split(',').map(|kind| served(kind, namespace)).collect();
    let mut names = match served {
        Some(served) => Box::pin(listed(bed, plane, &served)).await?,
        None => printed(bed, plane, kinds, namespace).await?,
    };
    names.sort();
    Ok(names)
}

async fn listed(bed: &Bed, plane: &str, served: &[(String, &str)]) -> Result<Vec<String>> {
    let client = bed.edge(plane).client().await?;
    let mut names = Vec::new();
    for (path, kind) in served {
        let request = http::Request::get(format!("{path}?labelSelector=emco.io%2Fowner"))
            .header(http::header::ACCEPT, METADATA)
            .body(Vec::new())?;
        let list: Value = client.request(request).await.with_context(|| format!("cannot list {path}"))?;
        // A list of none may say so with null.
        let is_list = list["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        ensure!(is_list, "{path} is no list: {list}");
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
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
        let asked =
            async { Ok::<Value, anyhow::Error>(bed.edge(plane).client().await?.request(request).await?) };
        let found = Box::pin(asked).await.context(place)?;
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
    use super::keys;

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
}
