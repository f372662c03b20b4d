//! Names for approvers the objects that `spec.sync.immutableFields: Recreate` would delete and make again.

use serde_json::{Value, json};

use super::approvals::{decide, manual};
use super::life::*;
use super::plans::{details, pending};
use super::rig::emco;
use super::shop::{deployment, objects, packed};

const WEB: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {app: {{ .Values.app }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: {{ .Values.app }}}}
  template:
    metadata: {labels: {app: {{ .Values.app }}}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

/// The deployment with this selector.
fn web(app: &str, immutable: &str) -> Value {
    let mut dig = deployment("edge");
    let spec = dig["spec"].as_object_mut().unwrap();
    spec.remove("compositeProfileRef");
    spec["placement"].as_object_mut().unwrap().remove("apps");
    spec.insert("overrideValues".to_owned(), json!([{"app": "web", "values": {"app": app}}]));
    spec.insert("sync".to_owned(), json!({"immutableFields": immutable}));
    dig
}

/// A deployment of this chart in a project.
fn life_of(chart: &str) -> Life {
    let all = objects();
    let life = Life::with(&all[..all.len() - 2]);
    life.put(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "team-a"},
        "binaryData": {"web.tgz": packed("web", "1.0.0", &[("templates/web.yaml", chart)])}}),
    );
    let chart = json!({"configMapRef": {"name": "web", "key": "web.tgz"}});
    let apps = json!({"apps": [{"name": "web", "chart": chart}]});
    life.put(&emco("CompositeApp", Some("team-a"), "shop", &apps));
    life
}

#[tokio::test(start_paused = true)]
async fn an_approver_sees_what_would_be_deleted_and_made_again() {
    let mut life = life_of(WEB);
    life.put(&manual("Plan"));
    life.put(&web("one", "Recreate"));
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["recreated"], Value::Null, "nothing is there yet");
    decide(&mut life, "first", "Approved").await;
    life.put(&web("two", "Recreate"));
    life.settle().await;
    let waits = pending(&life);
    assert_eq!(waits["requires"], "Approval", "{waits:#}");
    let said = json!(["acme/a: apps/Deployment/team-a/web: its Pods end and start anew"]);
    assert_eq!(waits["apps"][0]["recreated"], said, "{waits:#}");
    let variant = details(&life).apps[0].variants[0].clone();
    assert_eq!((variant.changed, variant.recreated.len(), variant.dry_run), (2, 1, None));
    // By default it is refused on the clusters.
    life.put(&web("two", "Fail"));
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["recreated"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_gives_way_is_no_refusal_of_a_plan() {
    let strategy = "  {{- if ne .Values.app \"one\" }}\n  strategy: {type: {{ .Values.app }}}\n  {{- end }}\n  selector: {matchLabels: {app: web}}\n";
    let chart = WEB.replace("  selector: {matchLabels: {app: {{ .Values.app }}}}\n", strategy);
    let mut life = life_of(&chart.replace("labels: {app: {{ .Values.app }}}", "labels: {app: web}"));
    life.put(&web("one", "Fail"));
    life.settle().await;
    for (strategy, refused) in [("Recreate", false), ("BlueGreen", true)] {
        let mut dig = web(strategy, "Fail");
        dig["spec"]["desiredState"] = json!("Planned");
        life.put(&dig);
        life.settle().await;
        let app = pending(&life)["apps"][0].clone();
        assert_eq!(app["refused"].is_array(), refused, "{app:#}");
        let run = details(&life).apps[0].variants[0].dry_run.clone().unwrap();
        assert_eq!((run.asked, run.unanswered), (2, 0));
    }
}
