//! What an action reaches of a chart: objects and hooks, whatever their version; no tests and no definitions.

use emco_engine::cloud::CloudFacts;
use emco_engine::identity::ClusterId;
use emco_engine::pin;
use emco_engine::plan::Plan;
use emco_engine::set::{ManifestSet, Phase, SetManifest};
use serde_json::{Value, json};

use super::common::Case;
use super::{WEB, banner, case, on, plan, refusal, replicas, with};

/// A chart with a hook, a test of the same kind, and a definition in its folder `crds`.
fn charted(one: &Value) -> Case {
    let mut case = case(one, &json!([]));
    let job = |name: &str, hook: &str| {
        format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {name}, labels: {{app: web}}, annotations: {{helm.sh/hook: {hook}, \
             helm.sh/hook-weight: '3'}}}}, spec: {{backoffLimit: 6}}}}"
        )
    };
    let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.org, labels: \
                      {app: web}}, spec: {group: example.org, scope: Namespaced, names: {kind: Thing}}}";
    let web = case.charts.get_mut("web").unwrap();
    web.insert("templates/hook.yaml".to_owned(), job("prepare", "pre-install"));
    web.insert("templates/test.yaml".to_owned(), job("check", "test"));
    web.insert("crds/thing.yaml".to_owned(), definition.to_owned());
    case
}

fn set(plan: &Plan) -> &ManifestSet {
    &plan.sets[&plan.assignment[&ClusterId::new("acme", "a")]["web"].set]
}

fn named<'p>(plan: &'p Plan, name: &str) -> &'p SetManifest {
    set(plan).manifests.iter().find(|manifest| manifest.identity().name == name).unwrap()
}

/// No more tries for Jobs.
fn tries(target: &Value) -> Value {
    json!({"name": "tries", "app": "web", "type": "JSONMerge", "target": target, "jsonMerge": {"spec": {"backoffLimit": 0}}})
}

#[test]
fn a_target_counts_whatever_version_it_names() {
    for version in ["apps/v1", "apps/v1beta2", "apps/v9"] {
        let target = json!({"apiVersion": version, "kind": "Deployment", "name": "shop-web"});
        let plan = plan(&json!([with(replicas("few", 1), "target", target)]));
        let made = &on(&plan, "acme/a", "web")[WEB];
        assert_eq!((&made["spec"]["replicas"], &made["apiVersion"]), (&json!(1), &json!("apps/v1")));
    }
    let target = json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "shop-web"});
    let refusal = refusal(&json!([with(replicas("few", 1), "target", target)]), &json!([]));
    assert_eq!(refusal.reason, "TargetMissing", "another group is another kind");
}

#[test]
fn a_patched_hook_stays_the_hook_it_was() {
    let target = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "prepare"});
    let (plain, edited) =
        (charted(&json!([])).plan().unwrap(), charted(&json!([tries(&target)])).plan().unwrap());
    let (before, after) = (named(&plain, "prepare"), named(&edited, "prepare"));
    assert_eq!(after.json["spec"]["backoffLimit"], 0);
    assert_eq!((after.phase, &after.hook), (Phase::PreHook, &before.hook));
    assert_ne!(after.digest, before.digest, "it runs again");
}

#[test]
fn tests_of_a_chart_are_no_target() {
    let target =
        json!({"apiVersion": "batch/v1", "kind": "Job", "selector": {"matchLabels": {"app": "web"}}});
    let (plain, edited) =
        (charted(&json!([])).plan().unwrap(), charted(&json!([tries(&target)])).plan().unwrap());
    let tests = |plan: &Plan| {
        let cell = &plan.assignment[&ClusterId::new("acme", "a")]["web"];
        plan.sets[cell.tests.as_ref().unwrap().set.as_ref().unwrap()].clone()
    };
    assert_eq!(tests(&plain), tests(&edited));
    assert_eq!(named(&edited, "prepare").json["spec"]["backoffLimit"], 0, "the hook beside it is one");
    let target = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "check"});
    let refusal = charted(&json!([tries(&target)])).plan().unwrap_err();
    assert_eq!(refusal.reason, "TargetMissing", "{refusal}");
}

#[test]
fn a_definition_is_no_target_and_the_folder_of_definitions_stays() {
    let target = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "things.example.org"});
    let refusal = charted(&json!([tries(&target)])).plan().unwrap_err();
    assert_eq!(refusal.reason, "IntentInvalid");
    assert!(refusal.message.contains("a CustomResourceDefinition is no target"), "{refusal}");
    let (plain, edited) =
        (charted(&json!([])).plan().unwrap(), charted(&json!([replicas("few", 1)])).plan().unwrap());
    assert_eq!(named(&plain, "things.example.org"), named(&edited, "things.example.org"));
    assert!(named(&edited, "things.example.org").crd_folder);
}

#[test]
fn what_is_added_comes_in_the_order_of_installing() {
    let add = |name: &str, kind: &str, version: &str| {
        let inline = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        json!({"name": name, "app": "web", "type": "Add", "add": {"inline": inline}})
    };
    let plan = charted(&json!([
        add("thing", "Thing", "example.org/v1"),
        add("account", "ServiceAccount", "v1"),
        add("place", "Namespace", "v1"),
    ]))
    .plan()
    .unwrap();
    let order: Vec<(String, Phase)> =
        set(&plan).manifests.iter().map(|manifest| (manifest.identity().name, manifest.phase)).collect();
    let wanted = [
        ("place", Phase::Foundation),
        ("things.example.org", Phase::Foundation),
        ("prepare", Phase::PreHook),
        ("account", Phase::Main),
        ("page", Phase::Main),
        ("shop-web", Phase::Main),
        ("thing", Phase::Main),
    ];
    assert_eq!(order, wanted.map(|(name, phase)| (name.to_owned(), phase)));
    assert_eq!(named(&plan, "thing").json["metadata"]["namespace"], "shop", "the chart defines its kind");
}

#[test]
fn what_is_added_counts_for_the_objects_of_an_app() {
    let mut limited = case(&json!([banner()]), &json!([]));
    limited.objects_per_app = Some(2);
    let refusal = limited.plan().unwrap_err();
    assert_eq!(refusal.reason, "OutputTooLarge");
    assert!(refusal.message.contains("app web makes 3 objects for acme/a"), "{refusal}");
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "page"});
    let delete = json!({"name": "no-page", "app": "web", "type": "Delete", "target": target});
    let mut fits = case(&json!([banner(), delete]), &json!([]));
    fits.objects_per_app = Some(2);
    fits.plan().unwrap();
    // What was rendered is no more than that, though it is stored.
    fits.intents = case(&json!([delete]), &json!([])).intents;
    fits.objects_per_app = Some(1);
    fits.plan().unwrap();
}

#[test]
fn a_test_that_does_not_hold_refuses_the_plan_and_names_all() {
    let patch = json!([{"op": "test", "path": "/spec/replicas", "value": 7}, {"op": "remove", "path": "/spec/replicas"}]);
    let mut action = with(replicas("few", 1), "type", json!("JSONPatch"));
    action.as_object_mut().unwrap().remove("jsonMerge");
    let refusal = refusal(&json!([with(action, "jsonPatch", patch)]), &json!([]));
    assert_eq!((refusal.condition, refusal.reason, refusal.stalled), ("Rendered", "PatchFailed", true));
    for part in [
        "app web on acme/a: GenericActionIntent one, spec.actions[few]: apps/Deployment/shop/shop-web: ",
        "operation 0 of the JSON patch, path \"/spec/replicas\": the object has another value there than the one to test for",
    ] {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn an_address_in_a_patch_is_a_text_and_nothing_is_fetched() {
    let patch = json!({"metadata": {"annotations": {"from": "$(http://127.0.0.1:1/{cluster})"}}});
    let plan = plan(&json!([with(replicas("x", 1), "jsonMerge", patch)]));
    let made = &on(&plan, "acme/a", "web")[WEB]["metadata"]["annotations"]["from"];
    assert_eq!(made, "$(http://127.0.0.1:1/{cluster})");
}

#[test]
fn a_pinned_revision_has_what_its_intents_did_and_what_was_rendered() {
    let case = case(&json!([replicas("few", 1), banner()]), &json!([]));
    let plan = case.plan().unwrap();
    let snapshot = case.snapshot(None);
    let Some(CloudFacts { clusters, .. }) = &snapshot.cloud else { panic!("there is a cloud") };
    let pinned = pin::pinned(&plan.assignment, clusters, &snapshot.clusters, clusters);
    assert_eq!(pinned.assignment, plan.assignment);
    let cell = &pinned.assignment[&ClusterId::new("acme", "a")]["web"];
    let replicas = |set| -> Value {
        let manifests: &Vec<SetManifest> = &plan.sets[set].manifests;
        manifests.iter().find(|one| one.identity().name == "shop-web").unwrap().json["spec"]["replicas"]
            .clone()
    };
    assert_eq!((replicas(&cell.set), replicas(cell.base())), (json!(1), json!(2)));
}
