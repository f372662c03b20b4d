//! Which fields of which objects are named as an intent's.

use std::collections::{BTreeMap, BTreeSet};

use emco_engine::act::touched;
use emco_engine::identity::SetDigest;
use emco_engine::pack::{self, Pack};
use emco_engine::plan::{self, Plan};
use emco_engine::set::Assigned;
use emco_engine::set::provenance::{Became, EditedObject, Provenance};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{banner, case, plan, replicas, with};

fn cell<'p>(plan: &'p Plan, cluster: &str, app: &str) -> &'p Assigned {
    let (_, apps) = plan.assignment.iter().find(|(id, _)| id.as_str() == cluster).unwrap();
    &apps[app]
}

/// Object, field and action of everything that is named.
fn named(provenance: &Provenance) -> Vec<(String, String, String)> {
    let fields = |object: &EditedObject| -> Vec<(String, String, String)> {
        let field = |(field, at): &(String, usize)| {
            (object.object.clone(), field.clone(), provenance.actions[*at].clone())
        };
        object.fields.iter().map(field).collect()
    };
    provenance.objects.iter().flat_map(fields).collect()
}

fn of(plan: &Plan, app: &str) -> Vec<(String, String, String)> {
    cell(plan, "acme/a", app).provenance.as_deref().map(named).unwrap_or_default()
}

fn row(object: &str, field: &str, intent: &str, action: &str) -> (String, String, String) {
    (object.to_owned(), field.to_owned(), format!("GenericActionIntent {intent}, spec.actions[{action}]"))
}

fn leave_out() -> Value {
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "page"});
    json!({"name": "out", "app": "web", "type": "Delete", "target": target})
}

#[test]
fn each_field_is_named_with_the_action_that_made_it_what_it_is() {
    let label = with(replicas("label", 0), "jsonMerge", json!({"metadata": {"labels": {"a/b": "x"}}}));
    let loud = json!({"name": "loud", "app": "web", "type": "JSONMerge",
        "target": {"apiVersion": "v1", "kind": "ConfigMap", "name": "banner"}, "jsonMerge": {"data": {"loud": "yes"}}});
    let one = json!([banner(), loud, replicas("few", 1), leave_out()]);
    let plan = case(&one, &json!([label])).plan().unwrap();
    let web = "apps/Deployment/shop/shop-web";
    let mut found = of(&plan, "web");
    found.sort();
    let mut expected = vec![
        row("ConfigMap/shop/banner", "", "one", "banner"),
        row("ConfigMap/shop/banner", "/data/loud", "one", "loud"),
        row("ConfigMap/shop/page", "", "one", "out"),
        row(web, "/metadata/labels/a~1b", "two", "label"),
        row(web, "/spec/replicas", "one", "few"),
    ];
    expected.sort();
    assert_eq!(found, expected);
    assert!(of(&plan, "db").is_empty());
    let provenance = cell(&plan, "acme/a", "web").provenance.as_deref().unwrap();
    let counts: Vec<(&str, usize)> =
        provenance.intents.iter().map(|(intent, objects)| (intent.as_str(), *objects)).collect();
    assert_eq!(counts, [("GenericActionIntent one", 3), ("GenericActionIntent two", 1)]);
}

#[test]
fn what_comes_back_to_what_the_chart_made_is_nobody_s() {
    let plan = plan(&json!([replicas("few", 1), replicas("as-before", 2)]));
    assert!(of(&plan, "web").is_empty());
}

#[test]
fn the_last_of_several_actions_is_named() {
    let plan = plan(&json!([replicas("one", 1), replicas("five", 5)]));
    assert_eq!(of(&plan, "web"), [row("apps/Deployment/shop/shop-web", "/spec/replicas", "one", "five")]);
}

#[test]
fn a_generated_app_names_what_its_intent_added() {
    let mut object = banner();
    object.as_object_mut().unwrap().remove("app");
    let plan = plan(&json!([object]));
    assert_eq!(of(&plan, "gai.one"), [row("ConfigMap/shop/banner", "", "one", "banner")]);
}

#[test]
fn a_status_counts_clusters_and_objects_of_each_listed_intent() {
    let few = with(replicas("few", 1), "allow", json!([{"provider": "acme", "cluster": "a"}]));
    let plan = case(&json!([banner(), few]), &json!([])).plan().unwrap();
    let intents: Vec<_> = plan.intents.iter().map(|of| (of.name.as_str(), of.clusters, of.objects)).collect();
    assert_eq!(intents, [("one", 3, 4), ("two", 0, 0)]);
}

#[test]
fn an_intent_that_does_nothing_on_a_cluster_hides_no_other_intent() {
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "none"});
    let idle = with(with(replicas("idle", 1), "target", target), "onMissing", json!("Ignore"));
    let few = with(replicas("few", 1), "allow", json!([{"provider": "acme", "cluster": "a"}]));
    let plan = case(&json!([idle]), &json!([few])).plan().unwrap();
    let intents: Vec<_> = plan.intents.iter().map(|of| (of.name.as_str(), of.clusters, of.objects)).collect();
    assert_eq!(intents, [("one", 0, 0), ("two", 1, 1)]);
    assert!(cell(&plan, "acme/b", "web").provenance.as_deref().unwrap().is_empty());
}

#[test]
fn what_a_version_before_did_not_keep_stays_so_until_something_changes() {
    let case = case(&json!([replicas("few", 1)]), &json!([]));
    let mut running = case.run(&case.plan().unwrap());
    for cell in running.assignment.values_mut().flat_map(BTreeMap::values_mut) {
        cell.provenance = None;
    }
    let same = plan::plan(&case.snapshot(Some(running.clone()))).unwrap();
    assert_eq!((&same.change, &same.assignment), (&None, &running.assignment));
    assert!(same.intents.is_empty(), "what is not known is not said");
    // A set that was lost is made again, and stored as it was.
    running.sets.remove(&cell(&same, "acme/a", "web").set);
    let again = plan::plan(&case.snapshot(Some(running))).unwrap();
    assert_eq!((&again.change, &again.assignment), (&None, &same.assignment));
}

#[test]
fn a_plan_names_the_intent_of_an_object_that_its_chart_makes_as_before() {
    let before = case(&json!([replicas("few", 1)]), &json!([]));
    let mut after = case(&json!([replicas("few", 3), banner()]), &json!([]));
    let chart = after.charts.get_mut("web").unwrap();
    let text = chart["templates/web.yaml"].replace("text: plain", "text: other");
    chart.insert("templates/web.yaml".to_owned(), text);
    let running = before.run(&before.plan().unwrap());
    let plan = plan::plan(&after.snapshot(Some(running.clone()))).unwrap();
    let details = plan.changes(Some(&running), &BTreeSet::new()).details();
    let web = details.apps.iter().find(|app| app.app == "web").unwrap();
    let rows = web.variants.iter().flat_map(|variant| &variant.objects);
    let said: BTreeSet<(&str, String)> = rows.map(|row| (row.object.as_str(), row.only_by())).collect();
    let by = || " (only by GenericActionIntent one)".to_owned();
    let expected = [
        ("ConfigMap/shop/banner", by()),
        ("ConfigMap/shop/page", String::new()),
        ("apps/Deployment/shop/shop-web", by()),
    ];
    assert_eq!(said, BTreeSet::from(expected));
    assert_eq!(details.format, 2, "a version before would take it for another document");
}

#[test]
fn a_renamed_action_is_named_though_no_manifest_differs() {
    let before = case(&json!([replicas("few", 1)]), &json!([]));
    let after = case(&json!([replicas("fewer", 1)]), &json!([]));
    let running = before.run(&before.plan().unwrap());
    let again = plan::plan(&after.snapshot(Some(running))).unwrap();
    assert_eq!(of(&again, "web"), [row("apps/Deployment/shop/shop-web", "/spec/replicas", "one", "fewer")]);
    let set = |plan: &Plan| cell(plan, "acme/a", "web").set.clone();
    assert_eq!(set(&again), set(&before.plan().unwrap()));
}

#[test]
fn no_value_of_a_resource_is_stored_with_an_assignment() {
    let from = json!([{"name": "login", "app": "web", "type": "Add", "add": {"from": {"kind": "Secret", "name": "login", "key": "k"}}}]);
    let mut case = case(&from, &json!([]));
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: hidden}}";
    case.sources.insert("Secret/login/k".to_owned(), secret.to_owned());
    let plan = case.plan().unwrap();
    assert_eq!(of(&plan, "web"), [row("Secret/shop/login", "", "one", "login")]);
    let text = serde_json::to_string(cell(&plan, "acme/a", "web").provenance.as_deref().unwrap()).unwrap();
    assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{text}");
}

#[test]
fn what_is_named_is_stored_with_the_assignment() {
    let planned = plan(&json!([banner(), replicas("few", 1)]));
    let packs = pack::write_assignment("uid", &planned.assignment).unwrap();
    let packs: Vec<Pack> = packs.iter().map(|pack| Pack::read(&pack.bytes).unwrap()).collect();
    let stored = pack::assignment(&packs.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(stored, planned.assignment);
    assert!(stored.values().all(|apps| apps["web"].provenance.is_some()));
}

/// Changes, some of which undo others.
fn changes() -> impl Strategy<Value = Vec<Value>> {
    let annotation = |name: &str, value: Value| {
        with(replicas(name, 0), "jsonMerge", json!({"metadata": {"annotations": {"x": value}}}))
    };
    let container = |name: &str, fields: Value| {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
        let patch = json!({"spec": {"template": {"spec": {"containers": [fields]}}}});
        json!({"name": name, "app": "web", "type": "StrategicMerge", "target": target, "strategicMerge": patch})
    };
    prop::sample::subsequence(
        vec![
            banner(),
            replicas("one", 1),
            replicas("two", 2),
            annotation("x", json!("y")),
            annotation("gone", Value::Null),
            container("side", json!({"name": "side", "image": "example.com/side"})),
            container("args", json!({"name": "web", "args": ["b"]})),
            container("no-side", json!({"name": "side", "$patch": "delete"})),
            leave_out(),
        ],
        0..=9,
    )
    .prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn exactly_the_fields_that_differ_from_the_rendered_set_are_named(changes in changes()) {
        let plan = plan(&json!(changes));
        let found: BTreeSet<(String, String)> =
            of(&plan, "web").into_iter().map(|(object, field, _)| (object, field)).collect();
        let Some(edits) = &cell(&plan, "acme/a", "web").edits else {
            prop_assert!(found.is_empty());
            return Ok(());
        };
        let objects = |set: &SetDigest| -> BTreeMap<String, Value> {
            let manifests = plan.sets[set].manifests.iter();
            manifests.map(|manifest| (manifest.identity().to_string(), manifest.json.clone())).collect()
        };
        let (rendered, edited) = (objects(&edits.base), objects(&cell(&plan, "acme/a", "web").set));
        let mut expected = BTreeSet::new();
        for object in rendered.keys().chain(edited.keys()) {
            let fields = match (rendered.get(object), edited.get(object)) {
                (Some(before), Some(after)) => touched(before, after),
                _ => vec![String::new()],
            };
            expected.extend(fields.into_iter().map(|field| (object.clone(), field)));
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn what_became_of_an_object_is_said() {
    let plan = plan(&json!([banner(), replicas("few", 1), leave_out()]));
    let provenance = cell(&plan, "acme/a", "web").provenance.as_deref().unwrap();
    let became: BTreeMap<&str, Became> =
        provenance.objects.iter().map(|edited| (edited.object.as_str(), edited.became)).collect();
    let expected = [
        ("ConfigMap/shop/banner", Became::Added),
        ("ConfigMap/shop/page", Became::LeftOut),
        ("apps/Deployment/shop/shop-web", Became::Changed),
    ];
    assert_eq!(became, expected.into());
}
