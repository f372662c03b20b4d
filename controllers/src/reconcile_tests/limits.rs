//! Limits of a Project, on deployments that come, run, change and go.

use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::{TENANT, objects, packed};

const TEMPLATE: &str = "
{{- range until (int .Values.count) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ . }}}
data: {say: {{ $.Values.say | quote }}}
{{- end }}
";

/// A hub without deployments, and a composite app that makes as many ConfigMaps as its values say.
fn begun(limits: &Value) -> Life {
    let own =
        |object: &Value| ["shop", "charts", "values"].iter().any(|name| object["metadata"]["name"] == *name);
    let all: Vec<Value> = objects().into_iter().filter(|object| !own(object)).collect();
    let life = Life::with(&all);
    let files = [("values.yaml", "count: 1\nsay: hello\n"), ("templates/notes.yaml", TEMPLATE)];
    life.put(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "team-a"},
        "binaryData": {"notes.tgz": packed("notes", "1.0.0", &files)}}),
    );
    let chart = json!({"configMapRef": {"name": "notes", "key": "notes.tgz"}});
    life.put(&emco(
        "CompositeApp",
        Some("team-a"),
        "notes",
        &json!({"apps": [{"name": "notes", "chart": chart}]}),
    ));
    limit(&life, limits);
    life
}

fn limit(life: &Life, limits: &Value) {
    life.put(&emco(
        "Project",
        None,
        "team-a",
        &json!({"logicalCloud": {"level": "Admin"}, "limits": limits}),
    ));
}

/// A deployment on the clusters of this selector. All are of one age here, so that their names count.
fn notes(name: &str, values: &Value, clusters: &Value) -> Value {
    emco(
        "DeploymentIntentGroup",
        Some("team-a"),
        name,
        &json!({
            "compositeAppRef": {"name": "notes"}, "logicalCloudRef": {"name": "default"},
            "placement": {"allOf": [{"selector": clusters}]},
            "overrideValues": [{"app": "notes", "values": values}],
        }),
    )
}

fn on_a(name: &str, values: &Value) -> Value {
    notes(name, values, &json!({"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}))
}

fn path(name: &str) -> String {
    format!("{TENANT}/deploymentintentgroups/{name}")
}

/// A condition of a deployment: status, reason, message.
fn says(life: &Life, name: &str, condition: &str) -> (String, String, String) {
    condition_of(&life.rig.hub.object(&path(name)).unwrap(), condition)
}

fn condition_of(object: &Value, condition: &str) -> (String, String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == condition).unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn ready(life: &Life, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| says(life, name, "Ready").0 == "True").collect()
}

#[tokio::test(start_paused = true)]
async fn the_oldest_deployments_come_first_in_whatever_order_they_are_seen() {
    let all = ["third", "first", "second"];
    for turn in 0..all.len() {
        let mut life = begun(&json!({"deploymentIntentGroups": 2}));
        life.settle().await;
        let mut all = all;
        all.rotate_left(turn);
        for name in all {
            life.put(&on_a(name, &json!({})));
        }
        life.settle().await;
        assert_eq!(ready(&life, &["first", "second", "third"]), [true, true, false], "turn {turn}");
        let (status, reason, message) = says(&life, "third", "Resolved");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "TooManyDeployments"));
        assert_eq!(
            message,
            "Project team-a allows 2 deployment intent groups in namespace team-a \
             (spec.limits.deploymentIntentGroups), of which the oldest come first: delete others, or have the limit raised"
        );
        assert_eq!(says(&life, "third", "Stalled").0, "True");
        assert_eq!(
            life.names_on("a"),
            ["configmaps./team-a/first-0", "configmaps./team-a/second-0", "namespaces.//team-a"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_when_a_deployment_goes_or_the_limit_is_raised() {
    let mut life = begun(&json!({"deploymentIntentGroups": 1}));
    for name in ["first", "second", "third"] {
        life.put(&on_a(name, &json!({})));
    }
    life.settle().await;
    assert_eq!(ready(&life, &["first", "second", "third"]), [true, false, false]);
    life.delete(&path("first")).await;
    life.settle().await;
    assert_eq!(ready(&life, &["second", "third"]), [true, false]);
    limit(&life, &json!({"deploymentIntentGroups": 2}));
    life.settle().await;
    assert_eq!(ready(&life, &["second", "third"]), [true, true]);
    // What it only remembers makes no difference.
    life.restart().await;
    life.settle().await;
    assert_eq!(ready(&life, &["second", "third"]), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_without_a_place_is_not_written_when_others_come_or_go() {
    let mut life = begun(&json!({"deploymentIntentGroups": 1}));
    for name in ["first", "second"] {
        life.put(&on_a(name, &json!({})));
    }
    life.settle().await;
    let version =
        |life: &Life| life.rig.hub.object(&path("second")).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&life);
    life.put(&on_a("third", &json!({})));
    life.settle().await;
    assert_eq!(says(&life, "third", "Resolved").1, "TooManyDeployments");
    life.delete(&path("third")).await;
    life.settle().await;
    assert_eq!(version(&life), before);
}

#[tokio::test(start_paused = true)]
async fn deployments_that_run_stay_and_may_change_below_a_lower_limit() {
    let mut life = begun(&json!({}));
    for name in ["first", "second"] {
        life.put(&on_a(name, &json!({})));
    }
    life.settle().await;
    let before = versions(&life.edges["a"]);
    limit(&life, &json!({"deploymentIntentGroups": 0}));
    life.settle().await;
    assert_eq!(ready(&life, &["first", "second"]), [true, true]);
    assert_eq!(versions(&life.edges["a"]), before, "nothing is written");
    let project = life.rig.hub.object("/apis/emco.io/v1alpha1/projects/team-a").unwrap();
    let (status, _, message) = condition_of(&project, "Ready");
    assert_eq!(status, "True");
    assert!(
        message.ends_with(
            "it has 2 deployment intent groups, and spec.limits.deploymentIntentGroups allows 0: those that run stay"
        ),
        "{message}"
    );
    life.restart().await;
    life.put(&on_a("second", &json!({"say": "again"})));
    life.put(&on_a("third", &json!({})));
    life.settle().await;
    assert_eq!(ready(&life, &["first", "second", "third"]), [true, true, false]);
    assert_eq!(life.on("a")["configmaps./team-a/second-0"]["data"]["say"], "again");
}

#[tokio::test(start_paused = true)]
async fn an_app_beyond_the_limit_of_objects_is_refused_and_what_runs_stays() {
    let mut life = begun(&json!({"objectsPerApp": 2}));
    life.put(&on_a("many", &json!({"count": 3})));
    life.settle().await;
    let (status, reason, message) = says(&life, "many", "Rendered");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "OutputTooLarge"));
    assert_eq!(
        message,
        "app notes makes 3 objects for acme/a, and Project team-a allows 2 (spec.limits.objectsPerApp): split the app, \
         change its values, or have the limit raised"
    );
    limit(&life, &json!({"objectsPerApp": 3}));
    life.settle().await;
    assert_eq!(ready(&life, &["many"]), [true], "{}", says(&life, "many", "Ready").2);
    let before = versions(&life.edges["a"]);
    limit(&life, &json!({"objectsPerApp": 1}));
    life.settle().await;
    life.restart().await;
    life.settle().await;
    assert_eq!(ready(&life, &["many"]), [true]);
    assert_eq!(versions(&life.edges["a"]), before, "what runs stays");
    // It may change and shrink, and not grow.
    for (count, say, allowed) in
        [(3, "other", true), (4, "more", false), (2, "less", true), (3, "more", false)]
    {
        life.put(&on_a("many", &json!({"count": count, "say": say})));
        life.settle().await;
        assert_eq!(ready(&life, &["many"]), [allowed], "{count}");
        let said = life.on("a")["configmaps./team-a/many-0"]["data"]["say"] == say;
        assert_eq!(said, allowed, "{count}");
    }
    assert!(says(&life, "many", "Ready").2.contains("the last change is refused: "));
}

#[tokio::test(start_paused = true)]
async fn an_app_beyond_the_limit_of_objects_goes_to_no_other_cluster() {
    let mut life = begun(&json!({}));
    life.put(&on_a("many", &json!({"count": 2})));
    life.settle().await;
    limit(&life, &json!({"objectsPerApp": 1}));
    life.put(&notes("many", &json!({"count": 2}), &json!({})));
    life.settle().await;
    let (_, reason, message) = says(&life, "many", "Rendered");
    assert_eq!(reason, "OutputTooLarge", "{message}");
    assert!(message.starts_with("app notes makes 2 objects for acme/b, and Project"), "{message}");
    assert_eq!(life.names_on("b"), ["namespaces.//team-a"]);
    // With room, it moves.
    life.put(&notes("many", &json!({"count": 2}), &json!({"matchLabels": {"disk": "fast"}})));
    limit(&life, &json!({"objectsPerApp": 2}));
    life.settle().await;
    assert_eq!(life.names_on("a"), ["namespaces.//team-a"]);
    assert_eq!(life.names_on("b").len(), 3);
}

/// Text of 64 signs that compresses to three quarters: more than one pack, and an object that an API server takes.
fn noise() -> String {
    use base64::Engine as _;
    use sha2::{Digest, Sha256};
    let blocks = (0..32_400_u64).flat_map(|block| Sha256::digest(block.to_le_bytes()));
    base64::engine::general_purpose::STANDARD.encode(blocks.collect::<Vec<u8>>())
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_pack_can_hold_alone_is_deployed_and_read_again() {
    let noise = noise();
    let mut life = begun(&json!({}));
    life.put(&on_a("fat", &json!({"say": noise})));
    life.settle().await;
    assert_eq!(ready(&life, &["fat"]), [true], "{}", says(&life, "fat", "Ready").2);
    let said = |life: &Life| life.on("a")["configmaps./team-a/fat-0"]["data"]["say"] == noise;
    assert!(said(&life));
    // What is stored is all that the next process has.
    life.edges["a"].remove("/api/v1/namespaces/team-a/configmaps/fat-0");
    life.restart().await;
    life.settle().await;
    assert!(said(&life));
    life.put(&on_a("fat", &json!({"say": "little"})));
    life.settle().await;
    assert_eq!(ready(&life, &["fat"]), [true]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_api_server_stores_is_refused_by_name_and_limit() {
    let mut life = begun(&json!({}));
    life.put(&on_a("fat", &json!({})));
    life.settle().await;
    life.put(&on_a("fat", &json!({"say": "x".repeat(1_400_000)})));
    life.settle().await;
    let (status, reason, message) = says(&life, "fat", "Rendered");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "OutputTooLarge"), "{message}");
    assert!(message.contains("/fat-0 of 14") && message.contains("more than 1400000"), "{message}");
    assert_eq!(life.on("a")["configmaps./team-a/fat-0"]["data"]["say"], "hello", "what runs stays");
}

/// Room for a part of what one more deployment takes.
const LITTLE: u64 = 64;

/// Of two deployments that store as much, the second finds no room until the first goes; `whose` bound it is, its message says.
async fn waits_for_room(mut life: Life, whose: &str) {
    life.put(&on_a("third", &json!({})));
    life.settle().await;
    let (_, reason, message) = says(&life, "third", "Rendered");
    assert_eq!(reason, "OutputTooLarge", "{message}");
    assert!(message.contains(whose), "{message}");
    assert_eq!(ready(&life, &["first", "third"]), [true, false], "what runs stays");
    life.delete(&path("first")).await;
    life.settle().await;
    assert_eq!(ready(&life, &["third"]), [true], "{}", says(&life, "third", "Ready").2);
}

#[tokio::test(start_paused = true)]
async fn what_a_whole_project_stores_is_bounded_and_what_runs_stays() {
    let mut life = begun(&json!({}));
    life.put(&on_a("first", &json!({})));
    life.settle().await;
    let stored = life.rig.ctx.stores.stored_bytes.within("team-a");
    assert!(stored > LITTLE, "{stored}");
    limit(&life, &json!({"totalStoredBytes": stored + LITTLE}));
    waits_for_room(life, "(spec.limits.totalStoredBytes)").await;
}

#[tokio::test(start_paused = true)]
async fn what_all_projects_store_is_bounded_and_room_wakes_what_waits() {
    let mut life = begun(&json!({}));
    life.put(&on_a("first", &json!({})));
    life.settle().await;
    life.rig.settings.stored_bytes = life.rig.ctx.stores.stored_bytes.all() + LITTLE;
    life.restart().await;
    waits_for_room(life, "(--stored-mebibytes)").await;
}

#[tokio::test(start_paused = true)]
async fn a_project_that_says_nothing_may_have_fifty_deployments() {
    let mut life = begun(&json!({}));
    let names: Vec<String> = (0..51).map(|number| format!("d{number:02}")).collect();
    for name in &names {
        let mut planned = on_a(name, &json!({}));
        planned["spec"]["desiredState"] = json!("Planned");
        life.put(&planned);
    }
    life.settle().await;
    let waits = |name: &&String| says(&life, name, "Resolved").1 == "TooManyDeployments";
    assert_eq!(names.iter().filter(waits).collect::<Vec<_>>(), ["d50"]);
}
