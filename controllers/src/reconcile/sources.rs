//! Reads keys of ConfigMaps and Secrets, and which version was read. Always read live: values are not kept in memory,
//! and Secrets are nowhere but in the objects that hold them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use emco_engine::conditions::truncate;
use emco_engine::path::{ApiPath, is_data_key, is_dns_subdomain};
use emco_engine::snapshot::{Source, SourceKey};
use futures::future::try_join_all;
use serde_json::Value;

use crate::api::{ApiResult, ApiServerExt};
use crate::reconcile::context::Context;
use crate::tenancy::namespace_access;

/// What was behind a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The text, or what is missing.
    pub source: Source,
    /// The object's resourceVersion; empty where it does not exist.
    pub version: String,
}

/// Reads every key; each object once.
pub async fn read(
    ctx: &Context,
    namespace: &str,
    keys: &BTreeSet<SourceKey>,
) -> ApiResult<BTreeMap<SourceKey, Read>> {
    let wanted: BTreeSet<(&str, &str)> = keys
        .iter()
        .filter(|key| is_possible(key))
        .map(|key| (key.kind.as_str(), key.name.as_str()))
        .collect();
    let fetch = wanted.into_iter().map(|(kind, name)| async move {
        let object = ctx.hub().get_opt(path(namespace, kind, name)).await?;
        Ok::<_, crate::api::ApiError>(((kind, name), object))
    });
    let objects: BTreeMap<(&str, &str), Option<Value>> = match try_join_all(fetch).await {
        Ok(objects) => objects.into_iter().collect(),
        Err(error) => {
            namespace_access::refused(ctx, namespace, &error).await;
            return Err(error);
        }
    };
    Ok(keys
        .iter()
        .map(|key| {
            let object = objects.get(&(key.kind.as_str(), key.name.as_str())).and_then(Option::as_ref);
            (key.clone(), judge(key, object))
        })
        .collect())
}

/// One object; `None` where it does not exist, which is so of a name that none can have.
pub async fn object(ctx: &Context, namespace: &str, kind: &str, name: &str) -> ApiResult<Option<Value>> {
    if is_dns_subdomain(name) { ctx.hub().get_opt(path(namespace, kind, name)).await } else { Ok(None) }
}

/// URL path of a ConfigMap or Secret.
fn path(namespace: &str, kind: &str, name: &str) -> ApiPath {
    let plural = if kind == "Secret" { "secrets" } else { "configmaps" };
    ApiPath::core(namespace, plural).then(name)
}

/// Says that no object can have this name and key, where that is so.
pub fn impossible(kind: &str, name: &str, key: &str) -> Option<String> {
    let shown = |text: &str| truncate(&text.escape_debug().to_string(), 64);
    let possible = is_dns_subdomain(name) && is_data_key(key);
    (!possible)
        .then(|| format!("no {kind} can have the name \"{}\" and the key \"{}\"", shown(name), shown(key)))
}

/// The schema refuses other names, but not in objects that were stored before it did.
fn is_possible(key: &SourceKey) -> bool {
    impossible(&key.kind, &key.name, &key.key).is_none()
}

fn judge(key: &SourceKey, object: Option<&Value>) -> Read {
    if !is_possible(key) {
        return Read { source: Source::NotAName, version: String::new() };
    }
    let Some(object) = object else { return Read { source: Source::ObjectMissing, version: String::new() } };
    let version =
        object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let in_map = |map: &str| object.get(map).and_then(|data| data.get(&key.key)).and_then(Value::as_str);
    let decoded = |text: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        String::from_utf8(bytes).ok()
    };
    let text = match key.kind.as_str() {
        "Secret" => in_map("data").and_then(decoded),
        _ => in_map("data").map(str::to_owned).or_else(|| in_map("binaryData").and_then(decoded)),
    };
    Read { source: text.map_or(Source::KeyMissing, Source::Found), version }
}

/// Bytes of one key of an object that was read.
pub fn bytes(object: &Value, key: &str) -> Option<Vec<u8>> {
    let in_map = |map: &str| object.get(map).and_then(|data| data.get(key)).and_then(Value::as_str);
    let secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    let encoded = if secret { in_map("data") } else { in_map("binaryData") };
    match encoded {
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text).ok(),
        None if secret => None,
        None => in_map("data").map(|text| text.as_bytes().to_vec()),
    }
}
