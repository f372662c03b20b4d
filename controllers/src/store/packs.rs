//! Writes packs as ConfigMaps and Secrets, and reads them back.

use emco_crds::app_context::{PackKind, PackRef};
use emco_engine::pack::{self, Pack, PackObject};
use emco_engine::path::ApiPath;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::context::StoreContext;
use crate::api::{ApiResult, ApiServerExt};
use crate::object::Owner;

pub(crate) fn pack_collection(namespace: &str, kind: PackKind) -> ApiPath {
    let plural = if kind == PackKind::Secret { "secrets" } else { "configmaps" };
    ApiPath::core(namespace, plural)
}

pub(crate) async fn read_pack(ctx: &StoreContext, reference: &PackRef) -> ApiResult<Result<Pack, String>> {
    let path = pack_collection(&ctx.namespace, reference.kind).then(&reference.name);
    let Some(object) = ctx.hub().get_opt(&path).await? else {
        return Ok(Err(format!("{} {} is missing", reference.kind.as_str(), reference.name)));
    };
    let what = format!("{} {}", reference.kind.as_str(), reference.name);
    let Some(bytes) = pack_bytes(&object) else { return Ok(Err(format!("{what} has no pack"))) };
    if hex::encode(Sha256::digest(&bytes)) != reference.digest {
        return Ok(Err(format!("{what} has another content than it was stored with")));
    }
    Ok(Pack::read(&bytes).map_err(|error| format!("{what}: {error}")))
}

/// The bytes in a pack's object, under `binaryData` of a ConfigMap or `data` of a Secret.
pub(crate) fn pack_bytes(object: &Value) -> Option<Vec<u8>> {
    use base64::Engine;
    let text = object.pointer("/binaryData/pack").or_else(|| object.pointer("/data/pack"))?.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// The object that stores a pack.
pub(crate) fn pack_object(owner: &Owner, object: &PackObject) -> Value {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&object.bytes);
    let mut value = json!({
        "apiVersion": "v1", "kind": object.kind.as_str(), "immutable": true,
        "metadata": {"name": object.name, "labels": owner.labels()},
    });
    if let Some(map) = value.as_object_mut() {
        if object.kind == PackKind::Secret {
            map.insert("type".to_owned(), json!(pack::SECRET_TYPE));
            map.insert("data".to_owned(), json!({"pack": text}));
        } else {
            map.insert("binaryData".to_owned(), json!({"pack": text}));
        }
    }
    value
}

pub(crate) fn reference(object: &PackObject) -> PackRef {
    PackRef {
        name: object.name.clone(),
        kind: object.kind,
        bytes: i64::try_from(object.bytes.len()).unwrap_or(i64::MAX),
        digest: object.digest.clone(),
    }
}
