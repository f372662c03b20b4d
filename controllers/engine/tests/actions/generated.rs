//! What intents add to no chart is an app of its own: where it goes, what it is made of, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use emco_engine::explain::{self, Verdict};
use emco_engine::identity::ClusterId;
use emco_engine::plan::{self, Plan};
use emco_engine::resolve::Supervisor;
use emco_engine::set::Assigned;
use serde_json::{Value, json};

use super::common::Case;
use super::{banner, case, on, plain, plan, refusal, replicas, with};

const ONE: &str = "gai.one";
const TWO: &str = "gai.two";

/// An action that adds a ConfigMap to no chart.
fn own(name: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    json!({"name": name, "type": "Add", "add": {"inline": object}})
}

fn saying(name: &str, text: &str) -> Value {
    let mut action = own(name);
    action["add"]["inline"]["data"] = json!({"text": text});
    action
}

/// Counts renderings.
struct Counted(AtomicUsize);

impl Supervisor for Counted {
    fn rendering(&self, render: &mut dyn FnMut()) {
        self.0.fetch_add(1, Ordering::Relaxed);
        render();
    }
}

/// The cells of charts, without those of generated apps.
fn charts(plan: &Plan) -> BTreeMap<(ClusterId, String), Assigned> {
    let cells = plan
        .assignment
        .iter()
        .flat_map(|(id, apps)| apps.iter().map(move |(app, cell)| ((id.clone(), app.clone()), cell.clone())));
    cells.filter(|((_, app), _)| !app.contains('.')).collect()
}

fn has(plan: &Plan, app: &str) -> Vec<String> {
    let having = plan.assignment.iter().filter(|(_, apps)| apps.contains_key(app));
    having.map(|(id, _)| id.to_string()).collect()
}

fn next(case: &Case, before: &Case) -> Plan {
    let first = before.plan().unwrap_or_else(|refusal| panic!("{refusal}"));
    let running = before.run(&first);
    plan::plan(&case.snapshot(Some(running))).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn an_object_of_no_app_goes_to_every_cluster_of_the_deployment() {
    let mut case = case(&json!([own("closed")]), &json!([]));
    case.dig["placement"] = json!({"allOf": [{"provider": "acme", "cluster": "a"}],
        "apps": [{"app": "db", "allOf": [{"provider": "acme", "cluster": "b"}]}]});
    let plan = case.plan().unwrap();
    assert_eq!(has(&plan, ONE), ["acme/a", "acme/b"], "where any app is, and nowhere else");
    assert_eq!(on(&plan, "acme/b", ONE)["ConfigMap/closed"]["metadata"]["namespace"], "shop");
    assert_eq!(has(&plan, TWO), Vec::<String>::new());
    let placed: Vec<&str> = plan.placement.iter().map(|(app, _)| app.as_str()).collect();
    assert_eq!(placed, ["db", "web", ONE], "an intent that adds nothing is no app");
}

#[test]
fn allow_and_deny_say_where_the_objects_of_an_intent_are() {
    let edge = json!([{"selector": {"matchLabels": {"tier": "edge"}}}]);
    let plan = plan(&json!([with(own("here"), "allow", edge.clone()), with(own("there"), "deny", edge)]));
    assert_eq!(has(&plan, ONE), ["acme/a", "acme/b", "other/a"]);
    let names = |cluster| on(&plan, cluster, ONE).into_keys().collect::<Vec<_>>();
    assert_eq!(names("acme/a"), ["ConfigMap/here"]);
    assert_eq!(names("acme/b"), ["ConfigMap/there"]);
    assert_eq!(plan.assignment.values().map(|apps| &apps[ONE].set).collect::<BTreeSet<_>>().len(), 2);
}

#[test]
fn an_intent_that_every_cluster_denies_is_nowhere_and_said_to_be() {
    let action = with(own("closed"), "deny", json!([{"selector": {}}]));
    let plan = plan(&json!([action]));
    assert!(has(&plan, ONE).is_empty());
    let (app, placed) = plan.placement.last().unwrap();
    assert_eq!((app.as_str(), placed.chosen.len(), placed.rejected[0].clusters), (ONE, 0, 3));
    assert_eq!(
        placed.rejected[0].needs,
        "an action of GenericActionIntent one that counts there: change its allow and deny"
    );
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning.starts_with("GenericActionIntent one adds its own objects to no cluster")),
        "{:?}",
        plan.warnings
    );
    let gone = next(
        &case(&json!([with(own("closed"), "deny", json!([{"selector": {}}]))]), &json!([])),
        &case(&json!([own("closed")]), &json!([])),
    );
    assert!(has(&gone, ONE).is_empty() && gone.change.is_some(), "it leaves where it was");
}

#[test]
fn equal_objects_are_one_set_and_texts_of_clusters_one_each() {
    let sets = |plan: &Plan| {
        plan.assignment.values().map(|apps| apps[ONE].set.clone()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!(sets(&plan(&json!([own("closed")]))), 1);
    let named = with(saying("closed", "{{cluster.name}}"), "templating", json!("Handlebars"));
    assert_eq!(sets(&plan(&json!([named]))), 2, "two clusters are called a");
}

#[test]
fn an_intent_that_comes_changes_and_leaves_touches_no_cell_of_a_chart() {
    let without = plain();
    let edited = json!([replicas("few", 1)]);
    let steps = [
        case(&json!([]), &edited),
        case(&json!([own("closed")]), &edited),
        case(&json!([saying("closed", "new"), own("more")]), &edited),
        case(&json!([]), &edited),
    ];
    for pair in steps.windows(2) {
        let first = pair[0].plan().unwrap();
        let running = pair[0].run(&first);
        let counted = Counted(AtomicUsize::new(0));
        let second = plan::supervised(&pair[1].snapshot(Some(running)), &counted).unwrap();
        assert_eq!(charts(&first), charts(&second));
        assert_eq!(counted.0.load(Ordering::Relaxed), 0, "no chart is rendered");
        assert!(second.change.is_some());
    }
    let first = without.plan().unwrap();
    let mut own_alone = without;
    own_alone.dig["intents"] = json!([{"kind": "GenericActionIntent", "name": "one"}]);
    own_alone.intents = BTreeMap::from([("one".to_owned(), json!({"actions": [own("closed")]}))]);
    assert_eq!(charts(&first), charts(&own_alone.plan().unwrap()));
}

#[test]
fn a_set_counts_on_when_it_changes_and_stays_when_it_does_not() {
    let cell = |plan: &Plan| plan.assignment[&ClusterId::new("acme", "a")][ONE].clone();
    let first = case(&json!([saying("closed", "old")]), &json!([]));
    let renamed = case(&json!([with(saying("closed", "old"), "name", json!("other"))]), &json!([]));
    let changed = case(&json!([saying("closed", "new")]), &json!([]));
    let before = cell(&first.plan().unwrap());
    assert_eq!(
        (before.release_revision, before.tests.as_ref().map(|tests| tests.set.is_none())),
        (1, Some(true))
    );
    let same = cell(&next(&renamed, &first));
    assert_eq!((same.set.clone(), same.release_revision), (before.set.clone(), 1));
    let other = cell(&next(&changed, &first));
    assert!(other.set != before.set && other.release_revision == 2);
    assert_eq!(next(&first, &first).change, None);
}

#[test]
fn a_set_that_was_lost_is_made_again_as_it_was() {
    let case = case(&json!([own("closed")]), &json!([]));
    let plan = case.plan().unwrap();
    let mut running = case.run(&plan);
    let lost = plan.assignment[&ClusterId::new("acme", "a")][ONE].set.clone();
    running.sets.remove(&lost);
    let again = plan::plan(&case.snapshot(Some(running))).unwrap();
    assert_eq!((&again.assignment, again.change.is_none()), (&plan.assignment, true));
    assert!(again.sets.contains_key(&lost));
}

#[test]
fn a_cluster_that_nobody_knows_yet_waits_for_generated_apps_too() {
    let mut case = case(&json!([own("closed")]), &json!([]));
    case.clusters.get_mut("acme/b").unwrap().version = Some("never".to_owned());
    let plan = case.plan().unwrap();
    assert_eq!(plan.waiting[&ClusterId::new("acme", "b")], ["db", "web", ONE]);
    assert_eq!(has(&plan, ONE), ["acme/a", "other/a"]);
}

#[test]
fn explain_says_which_intent_took_a_cluster() {
    let action = with(own("closed"), "allow", json!([{"provider": "acme"}]));
    let plan = plan(&json!([action]));
    let parts: Vec<&[u8]> = plan.explanation.iter().map(Vec::as_slice).collect();
    let read = explain::read(&parts).unwrap();
    let rows = &read.apps.iter().find(|app| app.app == ONE).unwrap().clusters;
    let said: Vec<_> =
        rows.iter().map(|row| (row.cluster.as_str(), row.verdict, row.reason.as_str())).collect();
    assert_eq!(
        said,
        [
            ("acme/a", Verdict::Chosen, "intent gai/one"),
            ("acme/b", Verdict::Chosen, "intent gai/one"),
            ("other/a", Verdict::Rejected, "NotSelected"),
        ]
    );
}

#[test]
fn an_object_that_a_chart_has_too_is_refused_with_app_and_intent() {
    let refusal = refusal(&json!([own("page")]), &json!([]));
    assert_eq!((refusal.condition, refusal.reason), ("Rendered", "DuplicateResource"));
    assert_eq!(
        refusal.message,
        "apps gai.one (GenericActionIntent one, spec.actions[page]) and web both make ConfigMap/shop/page on acme/a: let the action name the \
         app and change what its chart makes, or rename the object"
    );
}

#[test]
fn two_intents_with_one_object_are_refused_with_both_names() {
    let refusal = refusal(&json!([own("closed")]), &json!([own("closed")]));
    assert_eq!(refusal.reason, "DuplicateResource");
    for part in
        ["gai.one (GenericActionIntent one, spec.actions[closed])", "gai.two (GenericActionIntent two"]
    {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn an_object_outside_the_level_of_the_cloud_is_refused() {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"}});
    let mut outside = own("closed");
    outside["add"]["inline"]["metadata"]["namespace"] = json!("kube-system");
    for action in [outside, with(own("all"), "add", json!({"inline": role}))] {
        let mut case = case(&json!([action]), &json!([]));
        case.level = Some("Standard".to_owned());
        let refusal = case.plan().unwrap_err();
        assert_eq!(refusal.reason, "NotAllowedByLevel", "{refusal}");
        assert!(
            refusal.message.starts_with("app gai.one: GenericActionIntent one, spec.actions["),
            "{refusal}"
        );
    }
}

#[test]
fn a_definition_and_a_resource_of_its_kind_in_one_intent_are_refused() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x.example.com"}});
    let custom = json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "x"}});
    let actions = [("crd", crd), ("custom", custom)]
        .map(|(name, object)| with(own(name), "add", json!({"inline": object})));
    let refusal = refusal(&json!(actions), &json!([]));
    assert_eq!(refusal.reason, "IntentInvalid");
    assert!(
        refusal.message.contains("a CustomResourceDefinition belongs to everybody on the cluster"),
        "{refusal}"
    );
}

#[test]
fn an_object_that_needs_what_a_chart_makes_has_to_name_its_app() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec:\n  group: example.com\n  names: {kind: X, plural: xs}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true}]\n";
    let space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: logs}\n";
    let custom = json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "x"}});
    let mut inside = own("closed");
    inside["add"]["inline"]["metadata"]["namespace"] = json!("logs");
    for (file, action, what) in [
        (crd, with(own("x"), "add", json!({"inline": custom})), "its kind"),
        (space, inside, "its namespace"),
    ] {
        let mut case = case(&json!([action]), &json!([]));
        case.charts.get_mut("db").unwrap().insert("templates/more.yaml".to_owned(), file.to_owned());
        let refusal = case.plan().unwrap_err();
        assert_eq!(refusal.reason, "IntentInvalid", "{refusal}");
        let part =
            format!("app db makes {what}, which comes after it: let the action name that app (app: db)");
        assert!(refusal.message.contains(&part), "{refusal}");
        let mut named = action_of(&case);
        named["app"] = json!("db");
        case.intents.insert("one".to_owned(), json!({"actions": [named]}));
        assert!(case.plan().is_ok(), "with the app it is of its set");
    }
}

fn action_of(case: &Case) -> Value {
    case.intents["one"]["actions"][0].clone()
}

#[test]
fn only_what_is_added_may_belong_to_no_app() {
    let mut action = replicas("few", 1);
    action.as_object_mut().unwrap().remove("app");
    let refusal = refusal(&json!([action]), &json!([]));
    assert_eq!(refusal.reason, "IntentInvalid");
    assert!(refusal.message.contains("spec.actions[few]: app is needed by every type but Add"), "{refusal}");
}

#[test]
fn a_variable_that_is_not_known_names_the_generated_app() {
    let action = with(saying("closed", "{{cluster.properties.rack}}"), "templating", json!("Handlebars"));
    let refusal = refusal(&json!([action]), &json!([]));
    assert_eq!(refusal.reason, "VariableUnknown");
    assert!(
        refusal
            .message
            .starts_with("app gai.one: GenericActionIntent one, spec.actions[closed]: add.data.text line 1"),
        "{refusal}"
    );
}

#[test]
fn sixty_four_intents_with_the_longest_names_are_as_many_apps() {
    let mut case = plain();
    let names: Vec<String> = (0..64).map(|n| format!("{n:0>53}")).rev().collect();
    case.dig["intents"] =
        names.iter().map(|name| json!({"kind": "GenericActionIntent", "name": name})).collect();
    let intent = |name: &String| (name.clone(), json!({"actions": [own(&name[40..])]}));
    case.intents = names.iter().map(intent).collect();
    let plan = case.plan().unwrap();
    let placed: Vec<&str> = plan.placement.iter().skip(2).map(|(app, _)| app.as_str()).collect();
    let wanted: Vec<String> = names.iter().map(|name| format!("gai.{name}")).collect();
    assert_eq!(placed, wanted, "in the order of the intents");
    assert!(plan.assignment.values().all(|apps| apps.len() == 66));
}

#[test]
fn objects_of_an_intent_count_for_the_limit_of_an_app() {
    let mut case = case(&json!([own("a"), own("b"), own("c")]), &json!([]));
    case.objects_per_app = Some(2);
    let refusal = case.plan().unwrap_err();
    assert_eq!(refusal.reason, "OutputTooLarge");
    assert!(refusal.message.contains("app gai.one makes 3 objects"), "{refusal}");
    assert!(refusal.message.contains("divide its actions between several intents"), "{refusal}");
}

#[test]
fn an_intent_may_edit_a_chart_and_add_objects_of_its_own() {
    let plan = plan(&json!([banner(), own("closed")]));
    assert!(on(&plan, "acme/a", "web").contains_key("ConfigMap/banner"));
    assert_eq!(on(&plan, "acme/a", ONE).into_keys().collect::<Vec<_>>(), ["ConfigMap/closed"]);
}
