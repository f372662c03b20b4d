//! A pinned revision: its stored content comes back as it was, what is the same costs nothing, and what cannot be had is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, composite_app, deployment, labelled, objects, values};

pub(super) fn pinned(revision: i64) -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["revision"] = json!(revision);
    dig
}

/// Revision 1 has a red page and an object more than revision 2, whose page is blue.
pub(super) async fn two_revisions() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.put(&composite_app("1.1.0"));
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 2);
    life
}

fn page(life: &Life) -> Vec<Value> {
    EDGES.iter().map(|edge| life.on(edge)["configmaps./team-a/page"]["data"]["text"].clone()).collect()
}

/// What was written to an edge since the last look, by the last part of the path.
fn written(life: &Life) -> Vec<String> {
    let mut all: Vec<String> = life
        .edges
        .values()
        .flat_map(crate::memory::MemoryServer::writes)
        .map(|seen| format!("{:?} {}", seen.method, seen.path.rsplit('/').next().unwrap()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// As [`Life::settle`], and what was written to edges on the way: an object that did not change is not among it.
async fn changed(life: &mut Life) -> BTreeMap<String, usize> {
    let before: Vec<_> = life.edges.values().map(versions).collect();
    life.settle().await;
    let mut all = BTreeMap::new();
    for (before, edge) in before.into_iter().zip(life.edges.values()) {
        let now = versions(edge);
        let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for key in keys.into_iter().filter(|key| before.get(*key) != now.get(*key)) {
            *all.entry(key.rsplit('/').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_comes_back_as_stored_and_unpinning_brings_the_newest() {
    let mut life = two_revisions().await;
    let newest: Vec<_> = EDGES.iter().map(|edge| life.on(edge)).collect();
    life.put(&pinned(1));
    let changes = changed(&mut life).await;
    assert_eq!(changes, [("old".to_owned(), 2), ("page".to_owned(), 2)].into(), "and no other object");
    assert_eq!(page(&life), ["red", "red"]);
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["appContext"]), (&json!(1), &json!("dig-shop-1")), "{status:#}");
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("True", "Pinned"), "{message}");
    assert!(message.contains("spec.revision pins revision 1; without it comes revision 2: "), "{message}");
    assert_eq!((life.says("Pinned").0, life.says("Reconciling").0), ("True".into(), String::new()));
    assert_eq!(status["pending"]["revision"], 2);
    life.restart().await;
    assert!(changed(&mut life).await.is_empty(), "another process finds all as it is to be");
    life.put(&deployment("edge"));
    let mut changes = changed(&mut life).await;
    assert_eq!(changes.remove("prepare"), Some(2), "the hook of an upgrade ran");
    assert_eq!(changes, [("old".to_owned(), 2), ("page".to_owned(), 2)].into());
    assert_eq!(newest, EDGES.iter().map(|edge| life.on(edge)).collect::<Vec<_>>());
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["pending"]), (&json!(2), &Value::Null));
    assert_eq!((life.says("Ready").1, life.says("Pinned").0), ("Ready".into(), String::new()));
}

#[tokio::test(start_paused = true)]
async fn pinning_the_newest_revision_and_unpinning_it_writes_nothing_to_edges() {
    let mut life = two_revisions().await;
    for edge in life.edges.values() {
        edge.take_seen();
    }
    life.put(&pinned(2));
    life.next().await;
    life.next().await;
    assert_eq!((life.says("Ready").1, &life.dig()["status"]["pending"]), ("Pinned".into(), &Value::Null));
    life.put(&deployment("edge"));
    life.next().await;
    life.next().await;
    assert_eq!(life.says("Ready").1, "Ready");
    assert!(written(&life).is_empty(), "{:?}", written(&life));
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_stays_beside_an_edit_that_comes_with_unpinning() {
    let mut life = two_revisions().await;
    life.put(&pinned(1));
    life.settle().await;
    life.put(&values("green"));
    assert!(changed(&mut life).await.is_empty());
    assert_eq!(page(&life), ["red", "red"]);
    let pending = life.dig()["status"]["pending"].clone();
    assert_eq!((&pending["revision"], &pending["requires"]), (&json!(3), &json!("Nothing")), "{pending}");
    // What can be worked out no more keeps nothing from running.
    life.put(&composite_app("9.9.9"));
    assert!(changed(&mut life).await.is_empty());
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("True", "Pinned"));
    assert!(message.contains("; without it the newest plan is refused: "), "{message}");
    life.put(&composite_app("1.1.0"));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life), &life.dig()["status"]["revision"]), (vec!["green".into(); 2], &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn a_pin_needs_no_composite_app_and_no_chart() {
    let mut life = two_revisions().await;
    life.delete("/api/v1/namespaces/team-a/configmaps/charts").await;
    life.put(&composite_app("9.9.9"));
    life.rig.forget_charts();
    life.restart().await;
    life.put(&pinned(1));
    life.settle().await;
    assert_eq!((page(&life), life.says("Ready").1), (vec!["red".into(); 2], "Pinned".into()));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_cannot_be_had_is_refused_and_what_runs_stays() {
    let mut life = two_revisions().await;
    let mut short = deployment("edge");
    short["spec"]["revisionHistoryLimit"] = json!(1);
    life.put(&short);
    life.put(&values("green"));
    life.settle().await;
    for (revision, says) in [
        (
            9,
            "spec.revision 9: there is no such revision, the newest is 3: pin one of 3, 2 instead, or remove spec.revision",
        ),
        (
            1,
            "spec.revision 1: revision 1 is not stored any more (spec.revisionHistoryLimit is 1): pin one of 3, 2 instead, or remove spec.revision",
        ),
    ] {
        short["spec"]["revision"] = json!(revision);
        life.put(&short);
        assert!(changed(&mut life).await.is_empty());
        let (ready, reason, message) = life.says("Ready");
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "RevisionUnavailable"));
        assert_eq!(
            message,
            format!("revision 3 runs on 2 of 2 clusters; the last change is refused: {says}")
        );
        assert_eq!((life.says("Stalled").0, life.says("Pinned").0), ("True".into(), "False".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_whose_pack_is_lost_is_refused_until_it_is_back() {
    let mut life = two_revisions().await;
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/dig-shop-1")).unwrap();
    let mut lost = Vec::new();
    for pack in context["spec"]["packs"].as_array().unwrap() {
        if pack["kind"] == "ConfigMap" && pack["name"] != context["spec"]["assignment"]["pack"] {
            let path =
                format!("/api/v1/namespaces/emco-system/configmaps/{}", pack["name"].as_str().unwrap());
            lost.push(life.rig.hub.object(&path).unwrap());
            life.delete(&path).await;
        }
    }
    life.restart().await;
    life.put(&pinned(1));
    assert!(changed(&mut life).await.is_empty());
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "ContentLost"), "{message}");
    assert!(message.contains("the content of revision 1 is lost (ConfigMap "), "{message}");
    assert!(message.contains("restore it from a backup, pin one of 2 instead"), "{message}");
    assert_eq!((life.says("Stalled").0, page(&life)), (String::new(), vec!["blue".into(); 2]));
    for mut pack in lost {
        pack["metadata"] = json!({"name": pack["metadata"]["name"], "namespace": "emco-system",
            "labels": pack["metadata"]["labels"]});
        life.put(&pack);
    }
    life.restart().await;
    life.settle().await;
    assert_eq!((page(&life), life.says("Ready").1), (vec!["red".into(); 2], "Pinned".into()));
}

#[tokio::test(start_paused = true)]
async fn what_refuses_a_pin_leaves_the_earlier_pin_in_effect() {
    let mut life = two_revisions().await;
    life.put(&pinned(1));
    life.settle().await;
    life.put(&pinned(7));
    assert!(changed(&mut life).await.is_empty());
    let message = life.says("Ready").2;
    assert!(
        message.starts_with("revision 1 runs on 2 of 2 clusters; the last change is refused: "),
        "{message}"
    );
    assert_eq!(life.dig()["status"]["revision"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_is_kept_however_many_come_after_it() {
    let mut life = two_revisions().await;
    let mut pinned = pinned(1);
    pinned["spec"]["revisionHistoryLimit"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    life.collect().await;
    life.restart().await;
    life.settle().await;
    let names = names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await;
    assert!(names.contains(&"dig-shop-1".to_owned()), "{names:?}");
    assert_eq!((page(&life), life.says("Ready").1), (vec!["red".into(); 2], "Pinned".into()));
}

#[tokio::test(start_paused = true)]
async fn a_pin_holds_against_labels_and_not_against_grants() {
    let mut life = two_revisions().await;
    life.put(&pinned(1));
    life.settle().await;
    life.put(&labelled("b", &json!({"disk": "fast"})));
    assert!(changed(&mut life).await.is_empty(), "the newest plan would leave b");
    let grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin", "clusters": [{"provider": "acme", "cluster": "b"}]});
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Pinned", "{:#}", life.dig());
    assert_eq!(life.dig()["status"]["clusters"]["total"], 1);
    assert!(!life.names_on("a").iter().any(|name| name.ends_with("/web")), "a is not the project's any more");
    let grant = json!({"name": "all", "projects": ["team-a"], "maxLevel": "Admin", "clusters": [{"provider": "acme", "cluster": "a"}]});
    life.put(&emco("ClusterProvider", None, "acme", &json!({"grants": [grant]})));
    life.settle().await;
    let (ready, reason, message) = life.says("Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "ClusterNotInLogicalCloud"), "{message}");
    assert!(
        message.contains("app db was on acme/b, and is on no cluster that logical cloud default has today"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pin_of_a_suspended_deployment_waits_until_it_is_resumed() {
    let mut life = two_revisions().await;
    let mut both = pinned(1);
    both["spec"]["suspend"] = json!(true);
    life.put(&both);
    assert!(changed(&mut life).await.is_empty());
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["pending"]["revision"]), (&json!(2), &json!(1)), "{status:#}");
    assert_eq!((life.says("Ready").1, life.says("Pinned").0), ("Suspended".into(), "False".into()));
    life.put(&pinned(1));
    life.settle().await;
    assert_eq!((page(&life), life.says("Ready").1), (vec!["red".into(); 2], "Pinned".into()));
    // The other way round: what runs while it is suspended is the pinned one, and unpinning waits.
    life.put(&both);
    life.settle().await;
    both["spec"].as_object_mut().unwrap().remove("revision");
    life.put(&both);
    assert!(changed(&mut life).await.is_empty());
    let status = life.dig()["status"].clone();
    assert_eq!((&status["revision"], &status["pending"]["revision"]), (&json!(1), &json!(2)), "{status:#}");
    life.restart().await;
    assert!(changed(&mut life).await.is_empty());
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((page(&life), life.says("Ready").1), (vec!["blue".into(); 2], "Ready".into()));
}

#[tokio::test(start_paused = true)]
async fn another_render_serial_renders_again_and_writes_only_what_differs() {
    let mut life = two_revisions().await;
    let mut again = deployment("edge");
    again["spec"]["renderSerial"] = json!(1);
    life.put(&again);
    assert!(changed(&mut life).await.is_empty(), "the charts give what they gave before");
    let status = life.dig()["status"].clone();
    assert_eq!(status["revision"], 3, "{status:#}");
    life.restart().await;
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 3, "once for a number");
}
