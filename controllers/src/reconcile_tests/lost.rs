//! Stored content is lost: what needs it waits and says so, nothing is removed for it, and it comes back from the plan.

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, composite_app, deployment, objects, values};
use crate::api::ApiServerExt as _;

const SHOP: &str = "dig-shop-1";

async fn installed() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life
}

/// Paths of packs that a revision names.
pub(super) fn packs_of(life: &Life, context: &str) -> Vec<String> {
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/{context}")).unwrap();
    let path = |pack: &Value| {
        let plural = if pack["kind"] == "Secret" { "secrets" } else { "configmaps" };
        format!("/api/v1/namespaces/emco-system/{plural}/{}", pack["name"].as_str().unwrap())
    };
    context["spec"]["packs"].as_array().unwrap().iter().map(path).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pack_with_another_content_is_made_anew_from_the_plan() {
    let mut life = installed().await;
    let packs = packs_of(&life, SHOP);
    let assignment = life.rig.hub.object(&format!("{TENANT}/appcontexts/{SHOP}")).unwrap();
    let assignment = assignment["spec"]["assignment"]["pack"].as_str().unwrap().to_owned();
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    for path in packs.iter().filter(|path| !path.ends_with(&assignment)) {
        let whole = life.rig.hub.object(path).unwrap();
        for damaged in ["bm90IGEgcGFjaw==", "###", ""] {
            life.delete(path).await;
            let mut other = whole.clone();
            other["metadata"] =
                json!({"name": whole["metadata"]["name"], "labels": whole["metadata"]["labels"]});
            let data = if other["kind"] == "Secret" { "data" } else { "binaryData" };
            other[data]["pack"] = json!(damaged);
            let collection = path.rsplit_once('/').unwrap().0;
            life.rig.hub.create(collection, &other).await.unwrap();
            life.restart().await;
            life.settle().await;
            let now = life.rig.hub.object(path).unwrap();
            assert_eq!(now[data], whole[data], "{path} with {damaged}");
        }
    }
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    assert_eq!(life.dig()["status"]["revision"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_pack_stops_pruning_and_is_noticed_by_a_process_that_had_read_it() {
    let mut life = installed().await;
    let packs = packs_of(&life, SHOP);
    // The engine starts anew and has to read; the reconcilers remember.
    for path in &packs {
        life.delete(path).await;
    }
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    life.restart_engine().await;
    life.settle().await;
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>(), "nothing was done to the edges");
    // From here on everything works again.
    life.put(&values("blue"));
    life.settle().await;
    assert_eq!(life.on("a")["configmaps./team-a/page"]["data"]["text"], "blue");
}

#[tokio::test(start_paused = true)]
async fn a_removal_without_its_content_waits_and_removes_nothing() {
    let mut life = installed().await;
    let before: Vec<_> = EDGES.iter().map(|edge| life.names_on(edge)).collect();
    for path in packs_of(&life, SHOP) {
        life.delete(&path).await;
    }
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    life.put(&ended);
    life.restart().await;
    life.settle().await;
    let dig = life.dig();
    assert_eq!(life.says("Ready").1, "Terminating", "{dig:#}");
    assert!(dig["status"].to_string().contains("ContentLost"), "{dig:#}");
    assert_eq!(before, EDGES.iter().map(|edge| life.names_on(edge)).collect::<Vec<_>>());
    // The definition comes back, and with it the content; then it can be removed.
    life.put(&deployment("edge"));
    life.settle().await;
    life.put(&ended);
    life.settle().await;
    assert_eq!(life.says("Ready").1, "Terminated", "{:#}", life.dig());
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_deleted_by_hand_stays_readable_while_anybody_needs_it() {
    let mut life = installed().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    life.delete(&format!("{TENANT}/appcontexts/{SHOP}")).await;
    life.restart().await;
    life.settle().await;
    let context = life.rig.hub.object(&format!("{TENANT}/appcontexts/{SHOP}")).unwrap();
    assert!(context["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    for page in ["blue", "green"] {
        life.put(&values(page));
        life.settle().await;
    }
    assert!(
        life.rig.hub.object(&format!("{TENANT}/appcontexts/{SHOP}")).is_none(),
        "nobody names it any more"
    );
    assert_eq!(life.says("Ready").0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_gone_is_made_again_and_its_rows_read_it_there() {
    let mut life = installed().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let path = format!("{TENANT}/appcontexts/{SHOP}");
    let patch = json!({"metadata": {"finalizers": null}});
    life.rig.hub.merge(&path, &patch).await.unwrap();
    life.delete(&path).await;
    assert!(life.rig.hub.object(&path).is_none());
    life.restart().await;
    life.settle().await;
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>(), "the content is the same");
    assert_eq!(life.dig()["status"]["revision"], 2, "numbers are not used again");
    let shard = life.rig.hub.object(&format!("{TENANT}/syncshards/dig-shop-s0-1")).unwrap();
    for combination in shard["spec"]["combinations"].as_array().unwrap() {
        assert_eq!(combination["revision"], 2, "{shard:#}");
    }
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    for edge in EDGES {
        assert_eq!(life.names_on(edge), ["namespaces.//team-a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_would_store_too_much_is_refused_and_what_runs_stays() {
    let mut life = installed().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let project = |limit: &str| {
        emco(
            "Project",
            None,
            "team-a",
            &json!({"logicalCloud": {"level": "Admin"}, "limits": {"storedBytes": limit}}),
        )
    };
    life.put(&project("1Ki"));
    life.put(&values("blue"));
    life.settle().await;
    let (status, reason, message) = life.says("Rendered");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "OutputTooLarge"), "{message}");
    for part in
        ["Project team-a allows 1Ki", "spec.limits.storedBytes", "MiB", "spec.revisionHistoryLimit (now 10)"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(life.says("Stalled").0, "True");
    assert_eq!(life.says("Deployed").0, "True", "the running revision is as it was: {:#}", life.dig());
    let (ready, _, message) = life.says("Ready");
    assert_eq!(ready, "False");
    assert!(
        message.starts_with("revision 1 runs on 2 of 2 clusters; the last change is refused: "),
        "{message}"
    );
    assert_eq!(names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await, ["dig-shop-1", "lc-default-1"]);
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
    life.put(&project("1Mi"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 2);
    assert_eq!(life.on("a")["configmaps./team-a/page"]["data"]["text"], "blue");
}

/// Updated while clusters were away, of which b is back; meanwhile the content of the first revision is lost.
async fn an_update_that_forgot(away: &[&str]) -> Life {
    let mut life = installed().await;
    for edge in away {
        life.rig.fails(edge, "Timeout");
    }
    life.settle().await;
    life.put(&composite_app("1.1.0"));
    life.settle().await;
    let kept = packs_of(&life, "dig-shop-2");
    for pack in packs_of(&life, SHOP).iter().filter(|pack| !kept.contains(pack)) {
        life.delete(pack).await;
    }
    life.restart().await;
    life.settle().await;
    life.rig.returns("b", "uid-b");
    life.settle().await;
    life
}

/// Deletes the deployment and everything stored of it; what says how it goes on is returned.
async fn removed_without_content(life: &mut Life) -> String {
    for pack in packs_of(life, SHOP) {
        life.delete(&pack).await;
    }
    life.restart().await;
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    life.says("Ready").2
}

/// Annotates the deployment; null takes the annotation off.
async fn confirm(life: &Life, text: Value) {
    let annotated = json!({"metadata": {"annotations": {"emco.io/confirm": text}}});
    life.rig.hub.merge(&format!("{TENANT}/deploymentintentgroups/shop"), &annotated).await.unwrap();
}

fn command(message: &str) -> String {
    message.split("emco.io/confirm=").nth(1).unwrap_or_else(|| panic!("{message}")).trim().to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_revision_put_there_is_searched_by_label_when_somebody_confirms_exactly_that() {
    let mut life = an_update_that_forgot(&["b"]).await;
    let old = |life: &Life| life.names_on("b").iter().any(|name| name.ends_with("/old"));
    let (status, reason, message) = life.says("Deployed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ContentLost"), "{message}");
    assert!(message.contains("revision 1") && old(&life), "{message}");
    confirm(&life, json!("lost-000000000000")).await;
    life.settle().await;
    assert!(old(&life) && life.says("Deployed").1 == "ContentLost", "exactly this, or nothing");
    confirm(&life, json!(command(&message))).await;
    // What another owner has there, and what nobody labelled, is not found.
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "other", "namespace": "team-a", "labels": {"emco.io/owner": "somebody"}}});
    life.edges["b"].put("kubectl", &other);
    life.settle().await;
    assert!(!old(&life), "{:?}", life.names_on("b"));
    assert!(life.names_on("b").iter().any(|name| name.ends_with("/other")));
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert!(!life.says("Deployed").2.contains("emco.io/confirm"));
}

#[tokio::test(start_paused = true)]
async fn a_removal_whose_content_is_lost_goes_on_by_label_when_somebody_confirms() {
    let mut life = installed().await;
    let message = removed_without_content(&mut life).await;
    assert_eq!(life.says("Ready").1, "Terminating", "{message}");
    confirm(&life, json!(command(&message))).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
    for edge in EDGES {
        let left: Vec<_> =
            life.names_on(edge).into_iter().filter(|n| !n.starts_with("namespaces.")).collect();
        assert!(left.is_empty(), "{edge}: {left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_loss_confirms_nothing_for_a_deployment_made_again() {
    let mut life = installed().await;
    let first = command(&removed_without_content(&mut life).await);
    confirm(&life, json!(first)).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
    // Its definition in Git still has the annotation.
    let mut again = deployment("edge");
    again["metadata"]["annotations"] = json!({"emco.io/confirm": first});
    life.put(&again);
    life.settle().await;
    let there: Vec<_> = EDGES.iter().map(|edge| life.names_on(edge)).collect();
    let message = removed_without_content(&mut life).await;
    assert_eq!(there, EDGES.iter().map(|edge| life.names_on(edge)).collect::<Vec<_>>(), "{message}");
    let second = command(&message);
    assert_ne!(first, second);
    confirm(&life, json!(second)).await;
    life.settle().await;
    assert_eq!(life.dig(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_loss_holds_for_clusters_that_were_away_then() {
    let mut life = an_update_that_forgot(&EDGES).await;
    let message = life.says("Deployed").2;
    confirm(&life, json!(command(&message))).await;
    life.settle().await;
    let old = |life: &Life, edge: &str| life.names_on(edge).iter().any(|name| name.ends_with("/old"));
    assert!(!old(&life, "b") && old(&life, "a"), "a is away still");
    confirm(&life, Value::Null).await;
    life.rig.returns("a", "uid-a");
    life.settle().await;
    assert!(!old(&life, "a"), "{:#}", life.dig());
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}
