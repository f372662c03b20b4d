//! Writes one ConfigMap that says to members of a project which clusters there are, where it does not say so yet.

use emco_crds::Project;
use emco_crds::names::label;
use emco_engine::cluster_maps::KEY;
use emco_engine::path::ApiPath;
use kube::Resource;
use serde_json::{Value, json};

use crate::api::{ApiResult, ApiServerExt};
use crate::object::meta;
use crate::reconcile::context::Context;

/// It ends with its Project, whatever becomes of the namespace: the hub's garbage collector proves that end.
pub fn object(project: &Project, namespace: &str, map: &str, text: &str) -> Value {
    let of = json!({
        "apiVersion": Project::api_version(&()), "kind": Project::kind(&()), "name": meta::name(project), "uid": meta::uid(project),
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": map, "namespace": namespace, "labels": {(label::PROJECT): meta::name(project)}, "ownerReferences": [of],
        },
        "data": {KEY: text},
    })
}

/// What a look at the hub came to.
pub struct Done {
    /// `resourceVersion` of the ConfigMap; `None` where there is none.
    pub version: Option<String>,
    /// Whether it was written.
    pub written: bool,
}

impl Done {
    fn left(live: &Value) -> Self {
        Self { version: version(live), written: false }
    }

    fn wrote(live: &Value) -> Self {
        Self { version: version(live), written: true }
    }
}

fn text_at<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn version(object: &Value) -> Option<String> {
    text_at(object, "/metadata/resourceVersion").map(str::to_owned)
}

/// Makes, changes or removes it, as the hub has it now.
pub async fn put(ctx: &Context, namespace: &str, map: &str, wanted: Option<&Value>) -> ApiResult<Done> {
    let collection = ApiPath::core(namespace, "configmaps");
    let path = collection.clone().then(map);
    let Some(live) = ctx.hub().get_opt(&path).await? else {
        let Some(wanted) = wanted else { return Ok(Done { version: None, written: false }) };
        return ctx.hub().create(collection, wanted).await.map(|made| Done::wrote(&made));
    };
    if !is_ours(&live) {
        tracing::warn!(
            namespace,
            map,
            "a ConfigMap of another owner has the name of one that says to members of the project which clusters there are: \
             it stays as it is, and the members do not see these clusters until it is removed"
        );
        return Ok(Done::left(&live));
    }
    // One that is held while it goes is made again when it is gone.
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Ok(Done::left(&live));
    }
    let uid = text_at(&live, "/metadata/uid");
    let Some(wanted) = wanted else {
        ctx.hub().delete(&path, uid, None).await?;
        return Ok(Done { version: None, written: true });
    };
    if is_as(&live, wanted) {
        return Ok(Done::left(&live));
    }
    // Somebody made it one that nobody can change.
    if live.get("immutable").and_then(Value::as_bool) == Some(true) {
        ctx.hub().delete(&path, uid, None).await?;
        return ctx.hub().create(collection, wanted).await.map(|made| Done::wrote(&made));
    }
    ctx.hub().merge(path, &patch(&live, wanted)).await.map(|now| Done::wrote(&now))
}

/// By its label, or by its owner where somebody took the label away. Another's ConfigMap has neither.
fn is_ours(live: &Value) -> bool {
    let labels = live.pointer("/metadata/labels");
    let mut owners =
        live.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let of_project = |owner: &Value| {
        owner.get("kind").and_then(Value::as_str) == Some(&*Project::kind(&()))
            && owner.get("apiVersion").and_then(Value::as_str) == Some(&*Project::api_version(&()))
    };
    labels.is_some_and(|labels| labels.get(label::PROJECT).is_some()) || owners.any(of_project)
}

/// Whether it says what it should. Labels and annotations that others add are nobody's business.
fn is_as(live: &Value, wanted: &Value) -> bool {
    let same = |pointer: &str| live.pointer(pointer) == wanted.pointer(pointer);
    let project =
        |of: &Value| of.pointer("/metadata/labels").and_then(|labels| labels.get(label::PROJECT)).cloned();
    same("/data")
        && same("/binaryData")
        && same("/metadata/ownerReferences")
        && project(live) == project(wanted)
}

/// Keys that others put there go with it.
fn patch(live: &Value, wanted: &Value) -> Value {
    let keys = |of: &Value| of.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut data = serde_json::Map::new();
    data.extend(keys(live).into_iter().map(|(key, _)| (key, Value::Null)));
    data.extend(keys(wanted));
    json!({
        "metadata": {
            "labels": wanted.pointer("/metadata/labels"), "ownerReferences": wanted.pointer("/metadata/ownerReferences"),
        },
        "data": data, "binaryData": null,
    })
}
