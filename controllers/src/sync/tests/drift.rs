//! Changes by others: undone, or reported; fought over with growing pauses; left alone where the owner says so.

use std::time::Duration;

use emco_crds::deployment_intent_group::sync::{DriftPolicy, IgnoreRule};
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiServer, ApiServerExt, Content, Method, Request};
use crate::reconcile_tests::Log;

const CONFIG: &str = "/api/v1/namespaces/shop/configmaps/c";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

async fn installed(manifests: Vec<Value>) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", manifests)])).await;
    rig.until_complete("a").await;
    // Its first look at what it applied is over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edge("a").take_seen();
    rig
}

fn corrected(rig: &Rig) -> i64 {
    rig.row("a").and_then(|row| row.drift).map_or(0, |drift| drift.corrected)
}

fn differing(rig: &Rig) -> i64 {
    rig.row("a").and_then(|row| row.drift).map_or(0, |drift| drift.reported)
}

fn value(rig: &Rig) -> Value {
    rig.edge("a").object(CONFIG).unwrap()["data"]["value"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_field_that_others_change_is_put_right_once_and_counted() {
    let rig = installed(vec![config("c", "1"), config("other", "1")]).await;
    rig.edge("a").put("kubectl-edit", &config("c", "theirs"));
    rig.until("it is counted", |rig| corrected(rig) == 1).await;
    assert_eq!(value(&rig), "1");
    assert_eq!(differing(&rig), 0);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(rig.edge("a").writes().len(), 1, "one apply, of this object alone");
    let row = rig.row("a").unwrap();
    let drift = row.drift.unwrap();
    assert_eq!((row.error, drift.corrected), (None, 1));
    assert_eq!(drift.restored, ["ConfigMap/shop/c"]);
    assert!(rig.complete("a"));
}

#[tokio::test(start_paused = true)]
async fn of_many_changes_by_others_ten_have_a_line_and_the_rest_is_counted() {
    let log = Log::begin();
    let names: Vec<String> = (0..25).map(|number| format!("c{number}")).collect();
    let rig = installed(names.iter().map(|name| config(name, "1")).collect()).await;
    log.take();
    for name in &names {
        rig.edge("a").put("kubectl-edit", &config(name, "theirs"));
    }
    rig.until("all are counted", |rig| corrected(rig) == 25).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let said = log.take();
    assert_eq!(said.matches("changed by others").count(), 10, "{said}");
    assert!(said.contains("INFO 15 lines left out within a minute: objects that others changed"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_field_that_others_remove_comes_back() {
    let rig = installed(vec![config("c", "1")]).await;
    let patch = json!({"data": {"value": null, "more": "x"}});
    rig.edge("a").merge(CONFIG, &patch).await.unwrap();
    rig.until("it is counted", |rig| corrected(rig) == 1).await;
    assert_eq!(value(&rig), "1");
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["more"], "x", "what is theirs stays theirs");
}

#[tokio::test(start_paused = true)]
async fn what_is_only_reported_is_put_right_the_moment_the_owner_says_so() {
    let rig = installed(vec![config("c", "1"), config("other", "1")]).await;
    rig.drift(DriftPolicy::Report);
    rig.edge("a").put("kubectl-edit", &config("c", "theirs"));
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/other");
    rig.until("both are reported", |rig| differing(rig) == 2).await;
    let objects = rig.row("a").unwrap().drift.unwrap().objects;
    let named: Vec<_> = objects.iter().map(|o| (o.resource.as_str(), o.by.as_str())).collect();
    assert_eq!(named, [("ConfigMap/shop/c", "kubectl-edit"), ("ConfigMap/shop/other", "deleted")]);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(rig.edge("a").writes().is_empty());
    // Also after a restart.
    rig.crash().await;
    rig.start().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((differing(&rig), rig.edge("a").writes().len()), (2, 0));
    rig.drift(DriftPolicy::Correct);
    rig.until("both are put right", |rig| corrected(rig) == 2 && differing(rig) == 0).await;
    assert_eq!(value(&rig), "1");
    assert_eq!(rig.ours("a").len(), 2);
}

/// Objects that were looked at since the last question, in order.
fn looks(rig: &Rig) -> Vec<String> {
    let seen = rig.edge("a").take_seen();
    let gets = seen.into_iter().filter(|seen| seen.method == Method::Get);
    let mut paths: Vec<String> = gets.map(|seen| seen.path).filter(|path| path.contains("/shop/")).collect();
    paths.sort();
    paths
}

#[tokio::test(start_paused = true)]
async fn what_differs_is_looked_at_again_only_when_it_changed() {
    const D: &str = "/api/v1/namespaces/shop/configmaps/d";
    let rig = installed(vec![config("c", "1"), config("d", "1"), config("e", "1")]).await;
    rig.drift(DriftPolicy::Report);
    let edge = rig.edge("a");
    for name in ["c", "d"] {
        edge.put("kubectl-edit", &config(name, "theirs"));
    }
    rig.until("both are reported", |rig| differing(rig) == 2).await;
    assert_eq!(looks(&rig), [CONFIG, D], "once each");
    // A pass for every change of another object of ours.
    for value in ["x", "y", "z"] {
        edge.merge("/api/v1/namespaces/shop/configmaps/e", &json!({"data": {"more": value}})).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!((looks(&rig), differing(&rig)), (vec![], 2));
    // What changed is looked at, and it alone: somebody else has the field now.
    edge.put("other-operator", &config("c", "another"));
    let by = |rig: &Rig| rig.row("a").unwrap().drift.unwrap().objects[0].by.clone();
    rig.until("the other one is named", |rig| by(rig) == "other-operator").await;
    assert_eq!(looks(&rig), [CONFIG]);
}

#[tokio::test(start_paused = true)]
async fn who_keeps_changing_a_field_is_named_and_met_with_long_pauses() {
    let rig = installed(vec![config("c", "1")]).await;
    for _ in 0..1800 {
        if value(&rig) == "1" {
            rig.edge("a").put("other-operator", &config("c", "theirs"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let writes = rig.edge("a").writes().len();
    assert!((5..=16).contains(&writes), "{writes} writes in half an hour");
    let error = rig.until_reason("a", "DriftFight").await.error.unwrap();
    let rule = r#"spec.sync.ignore: [{group: "", kind: ConfigMap, name: c, jsonPointers: [/data/value]}]"#;
    assert!(error.message.contains("other-operator") && error.message.ends_with(rule), "{error:?}");
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/shop/c"));
    rig.until("it ends as it was applied", |rig| value(rig) == "1").await;
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(rig.row("a").unwrap().error, None, "a fight that is over is not told any more");
}

#[tokio::test(start_paused = true)]
async fn replicas_of_what_our_own_autoscaler_scales_are_never_ours_again() {
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 9}});
    for (more, replicas) in [(vec![], 1), (vec![scaler], 3)] {
        let manifests = |image: &str| [vec![deployment("web", image)], more.clone()].concat();
        let rig = installed(manifests("nginx:1")).await;
        let mut scaled = deployment("web", "nginx:1");
        scaled["spec"]["replicas"] = json!(3);
        rig.edge("a").put("kube-controller-manager", &scaled);
        tokio::time::sleep(Duration::from_mins(2)).await;
        let live = |rig: &Rig| rig.edge("a").object(WEB).unwrap()["spec"]["replicas"].clone();
        assert_eq!(live(&rig), replicas);
        assert_eq!(corrected(&rig), i64::from(replicas == 1));
        // Neither by an update that says another image.
        rig.target(&on("a", &[app("web", manifests("nginx:2"))])).await;
        rig.until_complete("a").await;
        assert_eq!(live(&rig), replicas);
        assert_eq!(
            rig.edge("a").object(WEB).unwrap()["spec"]["template"]["spec"]["containers"][0]["image"],
            "nginx:2"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn fields_to_ignore_are_said_once_and_then_left_alone() {
    let rig = Rig::new(&["a"]);
    let rule = json!({"kind": "ConfigMap", "name": "c", "jsonPointers": ["/data/value"]});
    *rig.policy.ignore.lock() = vec![serde_json::from_value::<IgnoreRule>(rule).unwrap()];
    rig.start().await;
    let two = |value: &str, more: &str| {
        let mut c = config("c", value);
        c["data"]["more"] = json!(more);
        on("a", &[app("web", vec![c, config("other", value)])])
    };
    rig.target(&two("1", "x")).await;
    rig.until_complete("a").await;
    assert_eq!(value(&rig), "1", "the first apply says it");
    rig.target(&two("2", "x")).await;
    rig.until_complete("a").await;
    assert_eq!(value(&rig), "1", "left alone, and not lost");
    assert_eq!(
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/other").unwrap()["data"]["value"],
        "2"
    );
    let patch = json!({"data": {"value": "theirs"}});
    rig.edge("a").merge(CONFIG, &patch).await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((value(&rig), corrected(&rig), differing(&rig)), (json!("theirs"), 0, 0));
    rig.target(&two("3", "y")).await;
    rig.until_complete("a").await;
    let live = rig.edge("a").object(CONFIG).unwrap();
    assert_eq!((&live["data"]["value"], &live["data"]["more"]), (&json!("theirs"), &json!("y")));
    // All else of the object is kept as applied.
    let patch = json!({"data": {"more": "z"}});
    rig.edge("a").merge(CONFIG, &patch).await.unwrap();
    rig.until("the other field is put right", |rig| corrected(rig) == 1).await;
    let live = rig.edge("a").object(CONFIG).unwrap();
    assert_eq!((&live["data"]["value"], &live["data"]["more"]), (&json!("theirs"), &json!("y")));
}

/// Our entry has no field of the map any more, and says nothing of the map either.
#[tokio::test(start_paused = true)]
async fn the_only_field_of_a_map_is_left_to_others() {
    let rig = Rig::new(&["a"]);
    let rule = json!({"kind": "ConfigMap", "jsonPointers": ["/data/value"]});
    *rig.policy.ignore.lock() = vec![serde_json::from_value::<IgnoreRule>(rule).unwrap()];
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").merge(CONFIG, &json!({"data": {"value": "theirs"}})).await.unwrap();
    let entries = rig.edge("a").object(CONFIG).unwrap()["metadata"]["managedFields"].clone();
    let ours = entries.as_array().unwrap().iter().find(|entry| entry["operation"] == "Apply").unwrap();
    assert_eq!(ours["fieldsV1"].get("f:data"), None, "as on a real server");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((value(&rig), corrected(&rig), differing(&rig)), (json!("theirs"), 0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_others_changed_while_no_operator_ran_is_found_by_the_next() {
    let rig = installed(vec![config("c", "1"), config("d", "1"), config("e", "1"), config("f", "1")]).await;
    rig.crash().await;
    let edge = rig.edge("a");
    edge.put("kubectl-edit", &config("c", "theirs"));
    edge.merge(
        "/api/v1/namespaces/shop/configmaps/d",
        &json!({"metadata": {"annotations": {"emco.io/manifest": "x"}}}),
    )
    .await
    .unwrap();
    let forgotten = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]);
    let request = Request::new(Method::Patch, "/api/v1/namespaces/shop/configmaps/e");
    edge.send(request.body(Content::JsonPatch, &forgotten)).await.unwrap();
    edge.take_seen();
    rig.start().await;
    rig.until("all are put right", |rig| corrected(rig) == 3).await;
    assert_eq!(value(&rig), "1");
    let patched: Vec<String> =
        edge.writes().iter().filter(|w| w.method == Method::Patch).map(|w| w.path.clone()).collect();
    assert_eq!(patched.len(), 3, "{patched:?}");
    assert!(!patched.iter().any(|path| path.ends_with("/f")));
}

/// Another manager changes the field whenever it is put right, for so many seconds.
async fn fight(rig: &Rig, seconds: u32) {
    for _ in 0..seconds {
        if value(rig) != "theirs" {
            rig.edge("a").put("other-operator", &config("c", "theirs"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fight_goes_on_through_revisions_that_do_not_touch_its_object() {
    let rig = installed(vec![config("c", "1"), config("d", "1")]).await;
    fight(&rig, 600).await;
    rig.until_reason("a", "DriftFight").await;
    let writes = |rig: &Rig| {
        let all = rig.edge("a").writes().into_iter();
        all.filter(|write| write.path == CONFIG && write.manager.starts_with("emco-")).count()
    };
    for revision in ["2", "3", "4"] {
        let before = writes(&rig);
        rig.target(&on("a", &[app("web", vec![config("c", "1"), config("d", revision)])])).await;
        rig.until_complete("a").await;
        fight(&rig, 60).await;
        assert!(writes(&rig) <= before + 1, "it was answered at once");
        assert_eq!(rig.row("a").unwrap().error.unwrap().reason, "DriftFight");
    }
    // A revision's own change is applied at once, and counts as no round of the old fight.
    let changed = || on("a", &[app("web", vec![config("c", "2"), config("d", "4")])]);
    rig.target(&changed()).await;
    rig.until_complete("a").await;
    assert_eq!(value(&rig), "2");
    rig.until("the fight is forgotten", |rig| rig.row("a").unwrap().error.is_none()).await;
    // Nor is there one over what is gone.
    fight(&rig, 600).await;
    rig.until_reason("a", "DriftFight").await;
    rig.target(&on("a", &[app("web", vec![config("d", "4")])])).await;
    rig.until_complete("a").await;
    rig.until("nothing is told of it", |rig| rig.row("a").unwrap().error.is_none()).await;
}
