//! Intents that change what charts make: a change of one is a revision of the deployments that list it, and of no others.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::life::*;
use super::rig::{emco, namespace};
use super::shop::{TENANT, deployment, objects};

fn intent(within: &str, name: &str, text: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    emco(
        "GenericActionIntent",
        Some(within),
        name,
        &json!({"actions": [
            {"name": "banner", "app": "web", "type": "Add", "add": {"inline":
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "banner"}, "data": {"text": text}}}},
            {"name": "few", "app": "web", "type": "JSONPatch", "target": target,
                "jsonPatch": [{"op": "replace", "path": "/spec/replicas", "value": 1}],
                "deny": [{"provider": "acme", "cluster": "b"}]},
        ]}),
    )
}

/// The shop with this list of intents.
pub(super) fn listing(names: &[&str]) -> Value {
    let mut dig = deployment("edge");
    let listed = names.iter().map(|name| json!({"kind": "GenericActionIntent", "name": name}));
    dig["spec"]["intents"] = listed.collect();
    dig
}

fn path(name: &str) -> String {
    format!("{TENANT}/genericactionintents/{name}")
}

async fn acting() -> Life {
    let mut life = Life::with(&objects());
    life.put(&intent("team-a", "banner", "red"));
    life.put(&listing(&["banner"]));
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_changes_makes_a_revision_and_one_that_leaves_the_list_is_undone() {
    let mut life = acting().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    let (a, b) = (life.on("a"), life.on("b"));
    assert_eq!(a["configmaps./team-a/banner"]["data"]["text"], "red");
    assert_eq!(a["deployments.apps/team-a/web"]["spec"]["replicas"], 1);
    assert_eq!(b["deployments.apps/team-a/web"]["spec"]["replicas"], 2, "it is denied there");
    assert_eq!(life.rig.ready(&path("banner")).1, "Valid");
    let holders = &life.rig.hub.object(&path("banner")).unwrap()["status"]["inUse"]["holders"];
    assert_eq!(*holders, json!(["DeploymentIntentGroup/team-a/shop"]));
    life.put(&intent("team-a", "banner", "blue"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 2);
    assert_eq!(life.on("b")["configmaps./team-a/banner"]["data"]["text"], "blue");
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 3);
    for cluster in ["a", "b"] {
        let there = life.on(cluster);
        assert!(!there.contains_key("configmaps./team-a/banner"), "{cluster}");
        assert_eq!(there["deployments.apps/team-a/web"]["spec"]["replicas"], 2, "{cluster}");
    }
    assert!(life.rig.hub.object(&path("banner")).unwrap()["status"]["inUse"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_pinned_revision_brings_back_what_its_intent_did() {
    let mut life = acting().await;
    life.put(&intent("team-a", "banner", "blue"));
    life.settle().await;
    let says = |life: &Life| life.on("b")["configmaps./team-a/banner"]["data"]["text"].clone();
    for (pin, revision, text) in [(json!(1), 1, "red"), (Value::Null, 2, "blue")] {
        let mut dig = listing(&["banner"]);
        dig["spec"]["revision"] = pin;
        life.put(&dig);
        life.settle().await;
        assert_eq!(life.dig()["status"]["revision"], revision);
        assert_eq!(says(&life), text);
        assert_eq!(life.on("a")["deployments.apps/team-a/web"]["spec"]["replicas"], 1);
    }
}

/// Clusters and objects of the only intent that the status counts.
fn counted(life: &Life) -> Value {
    let intents = &life.dig()["status"]["intents"];
    assert_eq!((intents.as_array().map(Vec::len), &intents[0]["name"]), (Some(1), &json!("banner")));
    json!([intents[0]["clusters"], intents[0]["objects"]])
}

#[tokio::test(start_paused = true)]
async fn the_status_counts_what_intents_do_in_the_revision_that_runs() {
    let mut life = acting().await;
    assert_eq!(counted(&life), json!([2, 3]), "a ConfigMap on both, and a Deployment on one");
    let mut less = intent("team-a", "banner", "blue");
    less["spec"]["actions"].as_array_mut().unwrap().pop();
    life.put(&less);
    life.settle().await;
    assert_eq!(counted(&life), json!([2, 2]));
    let mut pinned = listing(&["banner"]);
    pinned["spec"]["revision"] = json!(1);
    life.put(&pinned);
    life.settle().await;
    assert_eq!(counted(&life), json!([2, 3]), "of the revision that is pinned");
    life.put(&listing(&["banner"]));
    life.settle().await;
    assert_eq!(counted(&life), json!([2, 2]));
    let mut refused = listing(&["banner"]);
    refused["spec"]["compositeAppRef"] = json!({"name": "none"});
    life.put(&refused);
    life.settle().await;
    assert_eq!(life.says("Resolved").0, "False");
    assert_eq!(counted(&life), json!([2, 2]), "beside a change that is refused");
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(life.dig()["status"].get("intents").is_none(), "it lists none");
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_nobody_lists_changes_no_deployment() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let before = life.dig();
    life.put(&intent("team-a", "banner", "red"));
    life.settle().await;
    assert_eq!(life.dig(), before);
    assert_eq!(life.rig.ready(&path("banner")).1, "Valid");
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_is_listed_is_held_until_it_is_no_more() {
    let mut life = acting().await;
    life.delete(&path("banner")).await;
    life.settle().await;
    let (_, reason, message) = life.rig.ready(&path("banner"));
    assert_eq!(reason, "Terminating");
    assert!(message.contains("deletion waits for 1 holder: DeploymentIntentGroup/team-a/shop"), "{message}");
    assert!(life.on("a").contains_key("configmaps./team-a/banner"), "what runs stays");
    life.put(&deployment("edge"));
    life.settle().await;
    assert!(life.rig.hub.object(&path("banner")).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_intent_is_waited_for_and_one_of_another_project_is_not_it() {
    let mut life = Life::with(&objects());
    life.put(&namespace("team-b", &json!({"emco.io/project": "team-b"})));
    life.put(&emco("Project", None, "team-b", &json!({})));
    life.put(&intent("team-b", "banner", "theirs"));
    life.put(&listing(&["banner"]));
    life.settle().await;
    let (_, reason, message) = life.says("Resolved");
    assert_eq!(reason, "IntentNotFound", "{message}");
    assert!(message.contains("GenericActionIntent banner does not exist in namespace team-a"), "{message}");
    life.put(&intent("team-a", "banner", "ours"));
    life.settle().await;
    assert_eq!(life.on("a")["configmaps./team-a/banner"]["data"]["text"], "ours");
}

#[tokio::test(start_paused = true)]
async fn a_listed_intent_of_an_unknown_kind_refuses_the_change_and_what_runs_stays() {
    let mut life = acting().await;
    let mut dig = listing(&["banner"]);
    dig["spec"]["intents"][0]["kind"] = json!("Net");
    life.put(&dig);
    life.settle().await;
    let (_, reason, message) = life.says("Resolved");
    assert_eq!(reason, "IntentKindUnknown", "{message}");
    assert!(message.contains("spec.intents[Net/banner]"), "{message}");
    assert!(life.on("a").contains_key("configmaps./team-a/banner"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_an_intent_reads_is_waited_for_followed_and_never_shown() {
    let mut life = Life::with(&objects());
    let from = json!({"kind": "Secret", "name": "login", "key": "login.yaml"});
    let actions = json!([{"name": "login", "app": "web", "type": "Add", "add": {"from": from}}]);
    life.put(&emco("GenericActionIntent", Some("team-a"), "login", &json!({"actions": actions})));
    life.put(&listing(&["login"]));
    life.settle().await;
    assert_eq!(life.rig.ready(&path("login")).1, "SecretNotFound");
    assert_eq!(life.says("Resolved").1, "SecretNotFound");
    let secret = |password: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: login}}, stringData: {{password: {password}}}}}"
        );
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "team-a"},
            "data": {"login.yaml": STANDARD.encode(text)}})
    };
    for (revision, password) in [(1, "0ne-hidden"), (2, "tw0-hidden")] {
        life.put(&secret(password));
        life.settle().await;
        assert_eq!(life.dig()["status"]["revision"], revision);
        let there = &life.on("a")["secrets./team-a/login"]["data"]["password"];
        assert_eq!(*there, json!(STANDARD.encode(password)));
        let shown = life.rig.hub.objects().into_iter().filter(|(_, object)| object["kind"] != "Secret");
        for (key, object) in shown {
            let text = object.to_string();
            let encoded = STANDARD.encode(password);
            assert!(!text.contains(password) && !text.contains(&encoded), "{key}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_intent_says_what_is_wrong_with_its_actions() {
    let mut life = Life::with(&objects());
    let mut broken = intent("team-a", "broken", "x");
    broken["spec"]["actions"][0]["add"]["inline"] = json!({"kind": "ConfigMap"});
    life.put(&broken);
    life.settle().await;
    let (status, reason, message) = life.rig.ready(&path("broken"));
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ResourceInvalid"));
    assert_eq!(message, "spec.actions[banner].add: the resource has no apiVersion: every resource needs one");
}
