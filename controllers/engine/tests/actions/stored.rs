//! What was rendered is stored beside what intents made of it: a changed intent renders no chart, and nothing is edited twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::ClusterId;
use emco_engine::plan::{self, Plan};
use emco_engine::refusal::Refusal;
use emco_engine::set::{Assigned, deployed};
use emco_engine::snapshot::{Leaving, Running, Snapshot};
use serde_json::{Value, json};

use super::common::{self, Case};
use super::{WEB, banner, case, on, plain, replicas};

/// The revision that runs after the first plan.
fn first(case: &Case) -> (Plan, Running) {
    let plan = plan::plan(&case.snapshot(None)).unwrap_or_else(|refusal| panic!("{refusal}"));
    let running = case.run(&plan);
    (plan, running)
}

/// The plan of a case where every rendering fails.
fn without_rendering(case: &Case, running: Running) -> Result<Plan, Box<Refusal>> {
    let mut snapshot = case.snapshot(Some(running));
    for app in ["web", "db"] {
        sabotage(&mut snapshot, app);
    }
    plan::plan(&snapshot)
}

fn sabotage(snapshot: &mut Snapshot, app: &str) {
    let files = BTreeMap::from([("templates/a.yaml".to_owned(), "{{ .Values.not.there }}".to_owned())]);
    snapshot.charts.get_mut(app).unwrap().compiled = common::chart(app, &files).compiled;
}

fn cell<'p>(plan: &'p Plan, app: &str) -> &'p Assigned {
    &plan.assignment[&ClusterId::new("acme", "a")][app]
}

/// A chart that prints a Deployment only where there is none, and marks it to be kept.
fn keeping(one: &Value) -> Case {
    let mut case = case(one, &json!([]));
    let kept = r#"
{{- if not (lookup "apps/v1" "Deployment" .Release.Namespace "kept") }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
spec: {template: {spec: {containers: [{name: main, args: [a]}]}}}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: text}
data: {text: "{{ .Values.text }}"}
"#;
    let files = [("values.yaml", "text: one"), ("templates/web.yaml", kept)];
    case.charts.insert("web".to_owned(), files.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    case
}

/// One more argument for it.
fn argument() -> Value {
    json!({
        "name": "more", "app": "web", "type": "JSONPatch", "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kept"},
        "jsonPatch": [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "b"}],
    })
}

fn saying(mut case: Case, text: &str) -> Case {
    case.dig["overrideValues"] = json!([{"app": "web", "values": {"text": text}}]);
    case
}

fn arguments(plan: &Plan) -> Value {
    on(plan, "acme/a", "web")["Deployment/kept"]["spec"]["template"]["spec"]["containers"][0]["args"].clone()
}

#[test]
fn what_a_chart_keeps_is_edited_once_and_loses_the_edit_with_its_intent() {
    let case = keeping(&json!([argument()]));
    let (plan, mut running) = first(&case);
    assert_eq!(arguments(&plan), json!(["a", "b"]));
    for text in ["two", "three"] {
        let next = plan::plan(&saying(case.clone(), text).snapshot(Some(running)));
        let next = next.unwrap_or_else(|refusal| panic!("an update: {refusal}"));
        assert_eq!(on(&next, "acme/a", "web")["ConfigMap/text"]["data"]["text"], text, "it was rendered");
        assert_eq!(arguments(&next), json!(["a", "b"]), "the chart prints it no more, and it is edited once");
        running = case.run(&next);
    }
    let mut without = saying(keeping(&json!([])), "four");
    let next = plan::plan(&without.snapshot(Some(running.clone()))).unwrap();
    assert_eq!(arguments(&next), json!(["a"]), "chart and intent change at once");
    without.dig["overrideValues"] = json!([{"app": "web", "values": {"text": "three"}}]);
    let next = without_rendering(&without, running).unwrap();
    assert_eq!(arguments(&next), json!(["a"]), "the intent alone changes");
}

#[test]
fn what_an_intent_adds_and_a_chart_finds_is_added_once() {
    let mut added = argument();
    added["type"] = json!("Add");
    for field in ["target", "jsonPatch"] {
        added.as_object_mut().unwrap().remove(field);
    }
    let annotations = json!({"helm.sh/resource-policy": "keep"});
    added["add"] = json!({"inline": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "annotations": annotations}}});
    let mut case = keeping(&json!([added]));
    let asks = "{{ lookup \"v1\" \"ConfigMap\" .Release.Namespace \"own\" | len }}";
    let chart = case.charts.get_mut("web").unwrap();
    let text =
        chart["templates/web.yaml"].replace("{{ .Values.text }}", &format!("{{{{ .Values.text }}}}{asks}"));
    chart.insert("templates/web.yaml".to_owned(), text);
    let (_, running) = first(&case);
    let next = plan::plan(&saying(case.clone(), "two").snapshot(Some(running.clone()))).unwrap();
    assert_eq!(on(&next, "acme/a", "web")["ConfigMap/text"]["data"]["text"], "two3", "the chart finds it");
    case.intents.insert("one".to_owned(), json!({"actions": []}));
    let next = plan::plan(&saying(case, "two").snapshot(Some(running))).unwrap();
    assert!(!on(&next, "acme/a", "web").contains_key("ConfigMap/own"), "it goes with its intent");
}

#[test]
fn a_changed_intent_renders_no_chart_and_gives_what_rendering_gives() {
    let edits = [json!([replicas("few", 1)]), json!([replicas("few", 3), banner()]), json!([])];
    for before in [plain(), case(&edits[0], &json!([])), case(&edits[1], &json!([]))] {
        let (_, running) = first(&before);
        for one in &edits {
            let after = case(one, &json!([]));
            let edited =
                without_rendering(&after, running.clone()).unwrap_or_else(|refusal| panic!("{refusal}"));
            let rendered = after.plan().unwrap();
            let sets = |plan: &Plan| deployed(&plan.assignment, &plan.sets);
            assert_eq!(sets(&edited), sets(&rendered), "{one}");
            assert_eq!(edited.plan_digest, rendered.plan_digest);
            assert_eq!(edited.sets, rendered.sets, "with what is kept beside them");
            let keys = |plan: &Plan| (cell(plan, "web").render_key.clone(), cell(plan, "web").edits.clone());
            assert_eq!(keys(&edited), keys(&rendered));
        }
    }
    let few = case(&edits[0], &json!([]));
    let (_, running) = first(&few);
    let refusal = without_rendering(&saying(few, "other"), running).unwrap_err();
    assert_eq!(refusal.reason, "TemplateError", "other values do render");
}

#[test]
fn edits_count_as_sets_and_what_was_rendered_keeps_its_revision() {
    let (_, mut running) = first(&plain());
    let mut counted = Vec::new();
    for one in [json!([replicas("few", 1)]), json!([replicas("few", 3)]), json!([])] {
        let case = case(&one, &json!([]));
        let next = without_rendering(&case, running).unwrap();
        counted.push((cell(&next, "web").release_revision, cell(&next, "web").rendered_revision()));
        running = case.run(&next);
    }
    assert_eq!(counted, [(2, 1), (3, 1), (4, 1)]);
}

#[test]
fn a_cell_without_edits_is_stored_as_ever() {
    let plan = case(&json!([replicas("few", 1)]), &json!([])).plan().unwrap();
    let unedited = plain().plan().unwrap();
    let stored = |plan: &Plan, app: &str| serde_json::to_value(cell(plan, app)).unwrap();
    assert_eq!(stored(&plan, "db"), stored(&unedited, "db"));
    let keys = |cell: &Value| cell.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&stored(&plan, "db")), ["now", "releaseRevision", "renderKey", "set", "tests"]);
    let edited = stored(&plan, "web");
    assert_eq!(keys(&edited), ["edits", "now", "releaseRevision", "renderKey", "set", "tests"]);
    assert_eq!(
        edited["edits"]["base"],
        cell(&unedited, "web").set.0,
        "the rendered set is the one without intents"
    );
    assert_eq!(plan.sets[cell(&plan, "web").base()], unedited.sets[&cell(&unedited, "web").set]);
}

/// A revision as an operator stored it that did not keep what was rendered.
fn of_before(mut running: Running) -> Running {
    for cell in running.assignment.values_mut().flat_map(BTreeMap::values_mut) {
        cell.edits = None;
    }
    running.sets = deployed(&running.assignment, &running.sets);
    running
}

#[test]
fn a_cell_of_before_stays_and_is_rendered_when_its_intent_changes() {
    let few = case(&json!([replicas("few", 1)]), &json!([]));
    let (now, running) = first(&few);
    let before = of_before(running.clone());
    let same = without_rendering(&few, before.clone()).unwrap();
    assert_eq!((&same.change, &same.plan_digest), (&None, &now.plan_digest));
    assert_eq!(same.assignment, before.assignment);
    let more = case(&json!([replicas("few", 3)]), &json!([]));
    assert_eq!(
        without_rendering(&more, before.clone()).unwrap_err().reason,
        "TemplateError",
        "it has to render"
    );
    let next = plan::plan(&more.snapshot(Some(before))).unwrap();
    assert_eq!(on(&next, "acme/a", "web")[WEB]["spec"]["replicas"], 3);
    assert_eq!(cell(&next, "web").base(), cell(&now, "web").base());
    // The same where the rendered set was lost.
    let lost = Running { sets: deployed(&running.assignment, &running.sets), ..running };
    let kept = without_rendering(&few, lost.clone()).unwrap();
    assert_eq!((&kept.change, &cell(&kept, "web").edits), (&None, &None));
    assert!(plan::plan(&more.snapshot(Some(lost))).is_ok());
}

#[test]
fn an_edited_set_that_cannot_be_read_is_edited_again() {
    let few = case(&json!([replicas("few", 1)]), &json!([]));
    let (now, running) = first(&few);
    let mut lost = running.clone();
    lost.sets.remove(&cell(&now, "web").set);
    let again = without_rendering(&few, lost).unwrap();
    assert_eq!((again.change, &again.sets, &again.assignment), (None, &now.sets, &now.assignment));
    let mut lost = running;
    lost.sets.clear();
    let again = plan::plan(&few.snapshot(Some(lost))).unwrap();
    assert_eq!(
        (again.change, &again.sets, &again.assignment),
        (None, &now.sets, &now.assignment),
        "all of it"
    );
}

#[test]
fn what_waits_for_an_approval_is_edited_without_rendering() {
    let (_, running) = first(&plain());
    let waits = saying(case(&json!([replicas("few", 1)]), &json!([])), "unused");
    let plan = plan::plan(&waits.snapshot(Some(running.clone()))).unwrap();
    let kept = Arc::new(Running { revision: running.revision, ..waits.run(&plan) });
    let other = saying(case(&json!([replicas("few", 3)]), &json!([])), "unused");
    let mut snapshot = other.snapshot(Some(running));
    snapshot.waiting = Some(kept);
    sabotage(&mut snapshot, "web");
    let next = plan::plan(&snapshot).unwrap();
    assert_eq!(on(&next, "acme/a", "web")[WEB]["spec"]["replicas"], 3);
    assert_ne!(next.plan_digest, plan.plan_digest);
}

#[test]
fn an_app_that_comes_back_before_it_was_removed_is_edited_once() {
    let case = keeping(&json!([argument()]));
    let (plan, _) = first(&case);
    let mut snapshot = case.snapshot(None);
    for (cluster, apps) in &plan.assignment {
        for (app, assigned) in apps {
            let base = plan.sets.get(assigned.base()).cloned();
            let left = Leaving { set: Arc::clone(&plan.sets[&assigned.set]), base };
            snapshot.leaving.insert((cluster.clone(), app.clone()), Some(left));
        }
    }
    let back = plan::plan(&snapshot).unwrap();
    assert_eq!(arguments(&back), json!(["a", "b"]));
}

#[test]
fn each_distinct_set_is_edited_once() {
    let mut case = case(&json!([replicas("few", 1)]), &json!([]));
    let cluster = case.clusters["acme/b"].clone();
    case.clusters.extend((0..50).map(|n| (format!("acme/c{n}"), cluster.clone())));
    let plan = case.plan().unwrap();
    let (mut sets, mut bases) = (BTreeSet::new(), BTreeSet::new());
    for apps in plan.assignment.values() {
        sets.insert(&apps["web"].set);
        bases.insert(apps["web"].base());
    }
    assert_eq!((sets.len(), bases.len(), plan.sets.len()), (1, 1, 3), "and the set of db");
}

#[test]
fn what_a_chart_may_not_make_may_be_left_out() {
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}}";
    let of = |one: &Value| {
        let mut case = case(one, &json!([]));
        case.level = Some("Standard".to_owned());
        case.charts.get_mut("web").unwrap().insert("templates/role.yaml".to_owned(), role.to_owned());
        case
    };
    let target = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "all"});
    let without = of(&json!([{"name": "none", "app": "web", "type": "Delete", "target": target}]));
    let (plan, running) = first(&without);
    assert!(!on(&plan, "acme/a", "web").contains_key("ClusterRole/all"));
    for (one, says) in [(json!([]), "the chart makes"), (json!([replicas("few", 1)]), "the chart makes")] {
        let refusal = without_rendering(&of(&one), running.clone()).unwrap_err();
        assert_eq!(refusal.reason, "NotAllowedByLevel", "{refusal}");
        assert!(refusal.message.contains(says), "{refusal}");
    }
    let refusal = of(&json!([replicas("few", 1)])).plan().unwrap_err();
    assert!(refusal.message.contains("web/templates/role.yaml makes"), "{refusal}");
}
