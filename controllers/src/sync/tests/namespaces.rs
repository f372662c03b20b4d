//! Objects in namespaces that are not there.

use std::time::Duration;

use emco_crds::State;
use serde_json::{Value, json};

use super::rig::*;

fn elsewhere() -> Value {
    let mut object = config("far", "1");
    object["metadata"]["namespace"] = json!("elsewhere");
    object
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_nobody_makes_fails_at_once_with_its_cure() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), elsewhere()])])).await;
    let row = rig.until_reason("a", "NamespaceMissing").await;
    assert_eq!(row.state, State::InstantiateFailed);
    let error = row.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("ConfigMap/elsewhere/far"));
    assert_eq!(
        error.message,
        "namespace elsewhere does not exist there: change the chart or value that names it, or make it with a chart of this \
         CompositeApp or a LogicalCloud; it is tried again"
    );
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"], "the rest is applied");
    // Tried again with growing pauses, of a minute at most.
    tokio::time::sleep(Duration::from_mins(30)).await;
    rig.edge("a").put("somebody", &namespace("elsewhere"));
    tokio::time::sleep(Duration::from_secs(90)).await;
    let row = rig.row("a").unwrap();
    assert_eq!((row.state, row.error), (State::Instantiated, None));
}

#[tokio::test(start_paused = true)]
async fn the_namespace_of_the_logical_cloud_is_waited_for() {
    let rig = Rig::new(&["a"]);
    *rig.policy.namespace.lock() = Some("elsewhere".to_owned());
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![elsewhere()])])).await;
    let row = rig.until_reason("a", "Progressing").await;
    assert_eq!(row.state, State::Instantiating);
    rig.edge("a").put("somebody", &namespace("elsewhere"));
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_another_app_of_the_target_makes_is_waited_for() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    // The apps go on side by side: the one with the namespace comes second.
    let apps = [app("a", vec![elsewhere()]), app("b", vec![namespace("elsewhere")])];
    rig.target(&on("a", &apps)).await;
    rig.until_complete("a").await;
    let refusals = rig.sync.lock().as_ref().unwrap().metrics().refusals();
    assert!(
        refusals.contains_key("Progressing"),
        "it is refused before its namespace is there: {refusals:?}"
    );
    assert!(!refusals.contains_key("NamespaceMissing"), "{refusals:?}");
}
