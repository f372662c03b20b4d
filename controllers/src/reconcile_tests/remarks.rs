//! Misspelt values and charts that render nothing: said where people look, once, and for as long as it is so.

use serde_json::{Value, json};

use super::life::*;
use super::shop::{composite_app, deployment, objects, packed};

const SAID: &str = "chart web of app web reads no value \"replicsa\" (did you mean \"replicas\"?)";

fn with(values: &Value) -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["overrideValues"] = json!([{"app": "web", "values": values}]);
    dig
}

fn warnings(life: &Life) -> Vec<String> {
    let events = life.rig.hub.objects().into_values();
    let own = events.filter(|event| event["kind"] == "Event" && event["reason"] == "RenderWarning");
    let said = |event: Value| {
        assert_eq!(event["type"], "Warning");
        event["message"].as_str().unwrap().to_owned()
    };
    own.map(said).collect()
}

fn unread(life: &Life) -> Value {
    let dig = life.dig();
    let apps = dig["status"]["apps"].as_array().unwrap().clone();
    apps.into_iter().find(|app| app["name"] == "web").unwrap()["unreadValues"].take()
}

/// The deployment has this value of `web`, besides the profile's.
async fn misspelt() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    assert_eq!(life.says("Rendered"), ("True".into(), "Rendered".into(), String::new()));
    assert!(warnings(&life).is_empty() && unread(&life).is_null());
    life.put(&with(&json!({"replicsa": 3})));
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_misspelt_value_is_named_and_refuses_nothing() {
    let mut life = misspelt().await;
    assert_eq!(life.says("Rendered"), ("True".into(), "Rendered".into(), SAID.into()));
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(life.dig()["status"]["revision"], 2);
    assert_eq!(unread(&life), json!(["replicsa"]));
    assert_eq!(warnings(&life), [SAID]);
    // Another change of the same deployment says nothing new.
    life.put(&with(&json!({"replicsa": 3, "page": "new"})));
    life.settle().await;
    assert_eq!((life.says("Rendered").2, life.dig()["status"]["revision"].clone()), (SAID.into(), json!(3)));
    assert_eq!(warnings(&life), [SAID]);
    life.put(&with(&json!({"replicas": 3})));
    life.settle().await;
    assert_eq!(life.says("Rendered").2, "");
    assert!(unread(&life).is_null());
    assert_eq!(warnings(&life), [SAID]);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_says_the_same_and_writes_nothing() {
    let mut life = misspelt().await;
    let before: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    for _ in 0..2 {
        life.restart().await;
        life.settle().await;
    }
    let after: Vec<_> = life.edges.values().chain([&life.rig.hub]).map(versions).collect();
    assert_eq!(before, after);
    assert_eq!(life.says("Rendered").2, SAID);
    // A cluster leaves: the app is not rendered, and what was said of it is kept.
    life.put(&{
        let mut dig = with(&json!({"replicsa": 3}));
        dig["spec"]["placement"] = json!({"allOf": [{"provider": "acme", "cluster": "a"}]});
        dig
    });
    life.settle().await;
    assert_eq!(life.dig()["status"]["revision"], 3);
    assert_eq!(life.says("Rendered").2, SAID);
    assert_eq!(unread(&life), json!(["replicsa"]));
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_that_is_taken_back_leaves_what_was_said_before() {
    let mut life = misspelt().await;
    let edges: Vec<_> = life.edges.values().map(versions).collect();
    let mut refused = with(&json!({"replicsa": 3}));
    refused["spec"]["overrideValues"][0]["app"] = json!("wep");
    life.put(&refused);
    life.settle().await;
    assert_eq!(life.says("Resolved").1, "AppNotFound");
    assert_eq!(life.says("Ready").0, "False");
    assert_eq!(life.says("Rendered").0, "Unknown");
    assert_eq!(unread(&life), json!(["replicsa"]), "it is what runs");
    life.put(&with(&json!({"replicsa": 3})));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(life.says("Rendered").2, SAID);
    let dig = life.dig();
    assert_eq!(dig["status"]["revision"], 2, "what runs is what is wanted again");
    let types: Vec<&Value> =
        dig["status"]["conditions"].as_array().unwrap().iter().map(|condition| &condition["type"]).collect();
    assert!(!types.contains(&&json!("Stalled")) && !types.contains(&&json!("Reconciling")), "{types:?}");
    assert_eq!(edges, life.edges.values().map(versions).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_renders_nothing_is_named_with_the_value_that_turns_it_on() {
    let mut all = objects();
    let template =
        "{{ if .Values.web.enabled }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\n{{ end }}";
    for object in &mut all {
        if object["kind"] == "ConfigMap" && object["metadata"]["name"] == "charts" {
            let files = [("values.yaml", "web: {enabled: false}"), ("templates/a.yaml", template)];
            object["binaryData"]["web-1.1.0.tgz"] = json!(packed("web", "1.1.0", &files));
        }
    }
    let mut life = Life::with(&all);
    life.settle().await;
    let mut dig = deployment("edge");
    dig["spec"].as_object_mut().unwrap().remove("compositeProfileRef");
    life.put(&composite_app("1.1.0"));
    life.put(&dig);
    life.settle().await;
    let said = "chart web of app web renders no object: value \"web.enabled\" turns it on";
    assert_eq!(life.says("Rendered"), ("True".into(), "Rendered".into(), said.into()));
    assert!(warnings(&life).contains(&said.to_owned()), "{:?}", warnings(&life));
    life.restart().await;
    life.settle().await;
    assert_eq!(life.says("Rendered").2, said);
    dig["spec"]["overrideValues"] = json!([{"app": "web", "values": {"web": {"enabled": true}}}]);
    life.put(&dig);
    life.settle().await;
    assert_eq!(life.says("Rendered").2, "");
    assert!(life.names_on("a").iter().any(|name| name.ends_with("/shown")), "{:?}", life.names_on("a"));
}
