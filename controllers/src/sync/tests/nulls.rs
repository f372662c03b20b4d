//! Fields of custom resources that are said to be nothing, by the schema of their definition.

use std::time::Duration;

use serde_json::{Value, json};

use super::rig::*;
use crate::api::Method;

const WIDGET: &str = "/apis/example.com/v1/namespaces/shop/widgets/w";

fn definition() -> Value {
    let list = json!({"type": "array", "items": {"type": "object", "properties": {
        "mounts": {"type": "array", "items": {"type": "string"}}}}});
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer"}, "volumes": list, "note": {"type": "string", "nullable": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}, "spec": spec})
}

async fn rig() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("test", &definition());
    let apis = std::sync::Arc::new(rig.edge("a").apis());
    rig.edges.link(&cluster("a"), |link| link.apis = Some(std::sync::Arc::clone(&apis)));
    rig.start().await;
    rig
}

fn spec(rig: &Rig) -> Value {
    rig.edge("a").object(WIDGET).unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_nothing_is_left_out_and_is_no_drift() {
    let rig = rig().await;
    let said = json!({"size": 1, "note": null, "labels": {"a": "x", "example.com/b": null},
        "volumes": [{"mounts": null}, {"mounts": ["m"]}]});
    rig.target(&on("a", &[app("web", vec![widget(&said)])])).await;
    rig.until_complete("a").await;
    let kept = json!({"size": 1, "note": null, "labels": {"a": "x"}, "volumes": [{}, {"mounts": ["m"]}]});
    assert_eq!(spec(&rig), kept, "what may be nothing is");
    rig.edge("a").take_seen();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let row = rig.row("a").unwrap();
    assert_eq!((row.drift, row.error, row.left_out), (None, None, None));
    assert!(rig.edge("a").writes().is_empty());
    let said = json!({"size": 1, "note": "x", "volumes": null, "labels": null});
    rig.target(&on("a", &[app("web", vec![widget(&said)])])).await;
    rig.until_complete("a").await;
    assert_eq!(spec(&rig), json!({"size": 1, "note": "x"}), "what was said before goes");
    let patches = rig.edge("a").writes().iter().filter(|write| write.method == Method::Patch).count();
    assert_eq!(patches, 2, "one is refused");
}

#[tokio::test(start_paused = true)]
async fn a_required_field_that_is_nothing_is_refused_and_named() {
    let rig = rig().await;
    rig.target(&on("a", &[app("web", vec![widget(&json!({"size": null}))])])).await;
    let error = rig.until_reason("a", "Invalid").await.error.unwrap();
    assert!(error.message.contains("spec.size: Required value"), "{error:?}");
    assert_eq!(error.resource.as_deref(), Some("example.com/Widget/shop/w"));
}
