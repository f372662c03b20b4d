//! A stored set is never rendered again by itself: what is reused, what is made again as it was, what becomes new.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::Case;
use emco_crds::deployment_intent_group::status::Cause;
use emco_engine::changes::Comparison;
use emco_engine::identity::ClusterId;
use emco_engine::plan::{self, Plan};
use emco_engine::snapshot::{Running, Snapshot};

/// Two charts on two clusters: `db` draws a password and asks what the cluster serves, `web` tells its revision.
const CASE: &str = r#"
about: ""
dig: {release: r1, placement: {allOf: [{selector: {}}]}}
charts:
  db:
    values.yaml: "size: 1"
    templates/a.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: db}
      data:
        password: "{{ randAlphaNum 16 }}"
        size: "{{ .Values.size }}"
        monitoring: "{{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}"
  web:
    values.yaml: "text: one"
    templates/a.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: web}
      data: {text: "{{ .Values.text }}", install: "{{ .Release.IsInstall }}", revision: "{{ .Release.Revision }}"}
clusters: {acme/a: {}, acme/b: {}}
"#;

fn case() -> Case {
    Case::parse(CASE).unwrap()
}

fn first(case: &Case) -> (Plan, Running) {
    let plan = plan::plan(&case.snapshot(None)).unwrap();
    let running = case.run(&plan);
    (plan, running)
}

fn overriding(app: &str, values: &str) -> Case {
    let mut case = case();
    let text = format!("[{{app: {app}, values: {values}}}]");
    case.dig["overrideValues"] = serde_yaml::from_str(&text).unwrap();
    case
}

fn id(name: &str) -> ClusterId {
    ClusterId::new("acme", name)
}

fn field<'p>(plan: &'p Plan, cluster: &str, app: &str, field: &str) -> &'p str {
    let set = &plan.assignment[&id(cluster)][app].set;
    plan.sets[set].manifests[0].json["data"][field].as_str().unwrap()
}

/// The same digest, but a chart that cannot be rendered: whoever renders it fails.
fn sabotage(snapshot: &mut Snapshot, app: &str) {
    let files = BTreeMap::from([("templates/a.yaml".to_owned(), "{{ .Values.not.there }}".to_owned())]);
    let broken = common::chart(app, &files);
    snapshot.charts.get_mut(app).unwrap().compiled = broken.compiled;
}

fn serve_more(case: &mut Case) {
    for cluster in case.clusters.values_mut() {
        cluster.serves = vec!["monitoring.coreos.com/v1/ServiceMonitor".to_owned()];
        cluster.version = Some("v1.37.0".to_owned());
    }
}

#[test]
fn what_did_not_change_is_not_rendered() {
    let mut case = case();
    let (plan, running) = first(&case);
    serve_more(&mut case);
    let mut snapshot = case.snapshot(Some(running));
    sabotage(&mut snapshot, "db");
    sabotage(&mut snapshot, "web");
    let again = plan::plan(&snapshot).unwrap();
    assert_eq!(again.assignment, plan.assignment);
    assert_eq!(again.plan_digest, plan.plan_digest);
    assert_eq!(again.change, None);
}

#[test]
fn sabotage_is_noticed_where_something_did_change() {
    let (_, running) = first(&case());
    let mut snapshot = overriding("web", "{text: two}").snapshot(Some(running));
    sabotage(&mut snapshot, "web");
    assert_eq!(plan::plan(&snapshot).unwrap_err().reason, "TemplateError");
}

#[test]
fn other_values_render_only_their_app_and_passwords_stay() {
    let (before, running) = first(&case());
    let mut snapshot = overriding("db", "{size: 2}").snapshot(Some(running));
    sabotage(&mut snapshot, "web");
    let after = plan::plan(&snapshot).unwrap();
    assert_eq!(field(&after, "a", "db", "size"), "2");
    for cluster in ["a", "b"] {
        assert_eq!(
            field(&before, cluster, "db", "password"),
            field(&after, cluster, "db", "password"),
            "an update keeps the password of {cluster}"
        );
    }
    assert_ne!(field(&after, "a", "db", "password"), field(&after, "b", "db", "password"));
    assert_eq!(after.change.unwrap().cause, Cause::Update);
}

#[test]
fn a_revision_of_the_release_counts_different_sets() {
    let (_, running) = first(&case());
    let web = |plan: &Plan| plan.assignment[&id("a")]["web"].release_revision;
    let db = |plan: &Plan| plan.assignment[&id("a")]["db"].release_revision;
    let changed = overriding("web", "{text: two}");
    let second = plan::plan(&changed.snapshot(Some(running.clone()))).unwrap();
    assert_eq!((web(&second), db(&second)), (2, 1));
    assert_eq!(field(&second, "a", "web", "revision"), "2");
    assert_eq!(field(&second, "a", "web", "install"), "false");
    // A value that the chart does not use gives the same set: rendered, but no other revision of the release.
    let unused = plan::plan(&overriding("db", "{unused: 1}").snapshot(Some(running.clone()))).unwrap();
    assert_eq!(db(&unused), 1);
    assert_eq!(unused.assignment[&id("a")]["db"].set, running.assignment[&id("a")]["db"].set,);
}

#[test]
fn a_set_that_cannot_be_read_is_made_again_as_it_was() {
    let (plan, mut running) = first(&case());
    running.sets.clear();
    let again = plan::plan(&case().snapshot(Some(running))).unwrap();
    assert_eq!(again.assignment, plan.assignment);
    assert_eq!(again.sets, plan.sets);
    assert_eq!(again.change, None);
}

#[test]
fn the_set_of_an_upgrade_is_made_again_too() {
    let (_, running) = first(&case());
    let changed = overriding("web", "{text: two}");
    let second = plan::plan(&changed.snapshot(Some(running))).unwrap();
    let mut running = changed.run(&second);
    running.sets.clear();
    let again = plan::plan(&changed.snapshot(Some(running))).unwrap();
    assert_eq!(again.assignment, second.assignment);
    assert_eq!(again.sets, second.sets);
}

#[test]
fn a_set_that_cannot_be_made_again_becomes_a_new_one() {
    let mut case = case();
    let (_, mut running) = first(&case);
    running.sets.clear();
    serve_more(&mut case);
    let again = plan::plan(&case.snapshot(Some(running.clone()))).unwrap();
    let db = &again.assignment[&id("a")]["db"];
    assert_ne!(db.set, running.assignment[&id("a")]["db"].set);
    assert_eq!(db.release_revision, 2);
    assert_eq!(again.assignment[&id("a")]["web"], running.assignment[&id("a")]["web"]);
    assert_eq!(again.change.unwrap().cause, Cause::Placement);
}

#[test]
fn a_cluster_that_is_not_known_yet_keeps_what_it_has() {
    let (plan, running) = first(&case());
    let mut changed = overriding("web", "{text: two}");
    changed.clusters.get_mut("acme/b").unwrap().version = Some("never".to_owned());
    let after = plan::plan(&changed.snapshot(Some(running))).unwrap();
    assert_eq!(after.assignment[&id("b")], plan.assignment[&id("b")]);
    assert_eq!(after.waiting[&id("b")], ["web"]);
    assert_ne!(after.assignment[&id("a")]["web"], plan.assignment[&id("a")]["web"]);
}

#[test]
fn nothing_to_render_yet_makes_no_revision() {
    let mut case = case();
    for cluster in case.clusters.values_mut() {
        cluster.version = Some("never".to_owned());
    }
    let (plan, _) = first(&case);
    assert!(plan.assignment.is_empty());
    assert_eq!(plan.waiting.len(), 2);
    assert_eq!(plan.change, None);
}

#[test]
fn equal_clusters_share_one_set_and_different_ones_do_not() {
    let mut case = case();
    for number in 0..300 {
        case.clusters.insert(format!("acme/n{number}"), common::ClusterCase::default());
    }
    let (plan, _) = first(&case);
    let sets = |app: &str| plan.sets.values().filter(|set| set.app == app).count();
    assert_eq!(sets("web"), 1);
    assert_eq!(sets("db"), 302, "every cluster has its own password");
    let kept: Vec<_> = plan.sets.values().map(Arc::strong_count).collect();
    assert!(kept.iter().all(|count| *count == 1));
}

#[test]
fn another_composite_app_is_a_migration() {
    let (_, running) = first(&case());
    let mut moved = overriding("web", "{text: two}");
    moved.dig["compositeAppRef"] = serde_json::json!({"name": "shop-v2"});
    let plan = plan::plan(&moved.snapshot(Some(running))).unwrap();
    assert_eq!(plan.change.unwrap().cause, Cause::Migrate);
}

#[test]
fn an_app_that_left_the_composite_app_is_counted_as_removed() {
    let (_, running) = first(&case());
    let mut smaller = case();
    smaller.charts.remove("db");
    let change = plan::plan(&smaller.snapshot(Some(running))).unwrap().change.unwrap();
    assert_eq!(change.removals, BTreeMap::from([("db".to_owned(), 2)]));
    assert!(change.summary.contains("db on 0 clusters: 2 clusters removed"), "{}", change.summary);
}

#[test]
fn what_was_rendered_for_a_plan_that_waits_is_not_rendered_again() {
    let (_, running) = first(&case());
    let case = overriding("web", "{text: two}");
    let waits = plan::plan(&case.snapshot(Some(running.clone()))).unwrap();
    let kept = Arc::new(Running { revision: running.revision, ..case.run(&waits) });
    let mut snapshot = case.snapshot(Some(running.clone()));
    snapshot.waiting = Some(Arc::clone(&kept));
    sabotage(&mut snapshot, "db");
    sabotage(&mut snapshot, "web");
    let again = plan::plan(&snapshot).unwrap();
    assert_eq!((again.plan_digest, again.assignment), (waits.plan_digest, waits.assignment));
    assert_eq!(again.change, waits.change);
    // Another edit is another rendering.
    let mut snapshot = overriding("web", "{text: three}").snapshot(Some(running));
    snapshot.waiting = Some(kept);
    sabotage(&mut snapshot, "web");
    assert!(plan::plan(&snapshot).is_err());
}

#[test]
fn what_a_plan_changes_is_told_against_any_stored_revision() {
    let (first, running) = first(&case());
    let apps = ["db".to_owned(), "web".to_owned()];
    let installed = BTreeSet::new();
    let changes = |plan: &Plan| {
        let Plan { assignment, sets, .. } = plan;
        let (running, installed) = (Some(&running), &installed);
        Comparison { running, apps: &apps, assignment, sets, installed, back: false }.changes()
    };
    assert_eq!(changes(&first).summary(), "no resource changed");
    let next = plan::plan(&overriding("web", "{text: two}").snapshot(Some(running.clone()))).unwrap();
    let back = changes(&next).summary();
    assert_eq!(back, "web on 2 clusters: 2 resources changed");
    assert_eq!(Some(back), next.change.map(|change| change.summary));
}

#[test]
fn another_render_serial_renders_all_and_draws_the_same_passwords() {
    let mut case = case();
    let (plan, running) = first(&case);
    serve_more(&mut case);
    case.dig["renderSerial"] = 1.into();
    let again = plan::plan(&case.snapshot(Some(running))).unwrap();
    assert_eq!(again.change.as_ref().map(|change| change.cause), Some(Cause::Update));
    assert_eq!(field(&again, "a", "db", "monitoring"), "true", "the cluster serves more than it did");
    assert_eq!(field(&again, "a", "db", "password"), field(&plan, "a", "db", "password"));
}
