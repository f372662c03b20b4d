//! Many objects in one app, and one more than there may be.

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, objects, packed};

const TEMPLATE: &str = "
{{- range until (int .Values.count) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: note-{{ . }}}
{{- end }}
";

fn many(count: usize) -> Vec<Value> {
    let chart = packed("many", "1.0.0", &[("values.yaml", "count: 1\n"), ("templates/many.yaml", TEMPLATE)]);
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many", "namespace": "team-a"},
            "binaryData": {"many.tgz": chart}}),
        emco(
            "CompositeApp",
            Some("team-a"),
            "shop",
            &json!({"apps": [{"name": "many", "chart": {"configMapRef": {"name": "many", "key": "many.tgz"}}}]}),
        ),
        emco(
            "DeploymentIntentGroup",
            Some("team-a"),
            "shop",
            &json!({
                "compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "default"},
                "placement": {"allOf": [{"provider": "acme", "cluster": "a"}]},
                "overrideValues": [{"app": "many", "values": {"count": count}}],
            }),
        ),
    ]
}

/// So many are deployed, 5001 are refused while they run, and they are removed.
async fn come_and_go(count: usize) {
    let own =
        |object: &Value| ["shop", "charts", "values"].iter().any(|name| object["metadata"]["name"] == *name);
    let mut all: Vec<Value> = objects().into_iter().filter(|object| !own(object)).collect();
    all.extend(many(count));
    let mut life = Life::with(&all);
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(life.dig()["status"]["ready"]["ready"], count, "{:#}", life.dig());
    assert_eq!(life.names_on("a").len(), count + 1, "with the namespace");
    for object in many(5001) {
        life.put(&object);
    }
    life.settle().await;
    let (status, _, message) = life.says("Rendered");
    assert_eq!(status, "False");
    assert!(message.contains("makes 5001 objects for one cluster, more than 5000"), "{message}");
    assert_eq!(life.names_on("a").len(), count + 1, "what runs stays");
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
}

// Lists come in pages of 500, and four requests are in flight at once: of five thousand, only more of the same follows.
#[tokio::test(start_paused = true)]
async fn many_objects_are_deployed_and_removed_and_too_many_are_refused() {
    Box::pin(come_and_go(1000)).await;
}

mod soak {
    #[tokio::test(start_paused = true)]
    async fn as_many_objects_as_there_may_be_are_deployed_and_removed() {
        Box::pin(super::come_and_go(5000)).await;
    }
}
