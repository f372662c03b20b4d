use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::deployment_intent_group::status::{ChangeCounts, Pending, PendingApp};
use serde_json::{Value, json};

use super::*;
use crate::set::{HookSpec, Phase, SetManifest};

/// One cluster, and the set of each of its apps.
type Row = (&'static str, &'static [(&'static str, &'static str)]);

fn id(name: &str) -> ClusterId {
    ClusterId::new("acme", name)
}

fn manifest(kind: &str, name: &str, content: &Value, event: Option<&str>) -> SetManifest {
    let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let field = if kind == "Deployment" { "spec" } else { "data" };
    SetManifest {
        digest: format!("{kind}/{name}/{content}"),
        phase: if event.is_some() { Phase::PreHook } else { Phase::Main },
        hook: event.map(|event| HookSpec {
            events: event.split(',').map(str::to_owned).collect(),
            weight: 0,
            delete_policies: Vec::new(),
        }),
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json: json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, field: content}),
    }
}

fn sets(all: Vec<(&str, Vec<SetManifest>)>) -> BTreeMap<SetDigest, Arc<ManifestSet>> {
    let set = |(name, manifests): (&str, Vec<SetManifest>)| {
        let digest = SetDigest(name.to_owned());
        (digest.clone(), Arc::new(ManifestSet { digest, app: "web".to_owned(), manifests }))
    };
    all.into_iter().map(set).collect()
}

fn assignment(rows: &[Row]) -> Assignment {
    let assigned = |set: &str| Assigned {
        set: SetDigest(set.to_owned()),
        render_key: String::new(),
        now: 0,
        release_revision: 1,
        findings: None,
        provenance: None,
        rendered_revision: None,
        tests: None,
        edits: None,
    };
    let apps =
        |apps: &[(&str, &str)]| apps.iter().map(|(app, set)| ((*app).to_owned(), assigned(set))).collect();
    rows.iter().map(|(cluster, of)| (id(cluster), apps(of))).collect()
}

fn before() -> Running {
    let objects = |replicas: i64| {
        vec![
            manifest("Job", "migrate", &json!({}), Some("pre-install,pre-upgrade")),
            manifest("Job", "farewell", &json!({}), Some("pre-delete")),
            manifest("Deployment", "web", &json!({"replicas": replicas, "paused": false}), None),
            manifest("Secret", "key", &json!({"password": "b2xk", "user": "cm9vdA=="}), None),
            manifest("ConfigMap", "gone", &json!({"a": "b"}), None),
        ]
    };
    Running {
        revision: 3,
        assignment: assignment(&[
            ("a", &[("web", "one"), ("db", "d")]),
            ("b", &[("web", "one")]),
            ("c", &[("web", "small")]),
        ]),
        sets: sets(vec![("one", objects(2)), ("small", objects(1)), ("d", Vec::new())]),
        ..Running::default()
    }
}

fn after() -> (Assignment, BTreeMap<SetDigest, Arc<ManifestSet>>) {
    let objects = |replicas: i64| {
        vec![
            manifest("Job", "migrate", &json!({}), Some("pre-install,pre-upgrade")),
            manifest("Deployment", "web", &json!({"replicas": replicas, "paused": false}), None),
            manifest("Secret", "key", &json!({"password": "bmV3", "user": "cm9vdA=="}), None),
            manifest("ConfigMap", "fresh", &json!({"a": "b"}), None),
        ]
    };
    let rows: [Row; 3] = [("a", &[("web", "two")]), ("b", &[("web", "two")]), ("d", &[("web", "tiny")])];
    (assignment(&rows), sets(vec![("two", objects(5)), ("tiny", objects(1))]))
}

fn installed(names: &[&str]) -> BTreeSet<(ClusterId, String)> {
    names.iter().map(|name| (id(name), "web".to_owned())).collect()
}

fn changes(back: bool) -> Changes {
    let (assignment, sets) = after();
    let running = before();
    let installed = installed(&["a", "c"]);
    let apps = ["web".to_owned(), "unchanged".to_owned()];
    Comparison {
        running: Some(&running),
        apps: &apps,
        assignment: &assignment,
        sets: &sets,
        installed: &installed,
        back,
    }
    .changes()
}

#[test]
fn clusters_with_one_same_change_are_one_variant() {
    insta::assert_yaml_snapshot!(changes(false).details());
}

#[test]
fn a_status_has_all_counts_and_the_first_names() {
    let mut pending = Pending::default();
    changes(false).fill(&mut pending);
    assert_eq!(pending.clusters, ChangeCounts { added: 1, changed: 2, removed: 2 });
    assert_eq!(pending.resources, ChangeCounts { added: 6, changed: 4, removed: 9 });
    insta::assert_yaml_snapshot!(pending.apps);
}

#[test]
fn each_cluster_counts_once_whatever_changes_on_it() {
    let (assignment, _) = after();
    let counts = changes(false).counts(Some(&before()), &assignment);
    assert_eq!(counts.clusters, ChangeCounts { added: 1, changed: 2, removed: 1 });
    assert_eq!(counts.objects, ChangeCounts { added: 6, changed: 4, removed: 9 });
}

#[test]
fn a_sentence_leaves_out_what_is_zero() {
    let summary = "web on 3 clusters: 1 cluster added, 1 removed; 6 resources added, 4 changed, 9 removed. db on 0 clusters: 1 cluster removed";
    assert_eq!(changes(false).summary(), summary);
    assert_eq!(changes(false).removals(), BTreeMap::from([("web".to_owned(), 1), ("db".to_owned(), 1)]));
    assert_eq!(Changes::default().summary(), "no resource changed");
}

#[test]
fn the_way_back_runs_the_hooks_of_a_rollback() {
    let web = &changes(true).apps[0];
    let events: Vec<&str> = web.variants.iter().flat_map(|of| &of.hooks).map(|(event, _)| *event).collect();
    assert_eq!(events, ["pre-install", "pre-install", "pre-delete"], "this chart has no hook of a rollback");
}

#[test]
fn differences_have_lines_and_no_value_of_a_secret() {
    let (running, (_, sets)) = (before(), after());
    let found = differences(&changes(false), Some(&running), &sets, &[7; 32], "sha256:0");
    let texts: Vec<String> =
        found.objects.iter().map(|found| format!("{}\n{}", found.object, found.text)).collect();
    let text = texts.join("");
    for secret in ["b2xk", "bmV3", "cm9vdA"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(found.left_out, 0);
    insta::assert_snapshot!(text);
    let read = Differences::read(&serde_json::to_vec(&found).unwrap()).unwrap();
    assert_eq!(read, found);
}

#[test]
fn names_that_do_not_fit_are_counted() {
    let whole = changes(false).details();
    let part = changes(false).details_within(700);
    assert!(serde_json::to_string(&part).unwrap().len() <= 700, "{part:?}");
    let names = |details: &Details| {
        let variants = details.apps.iter().flat_map(|app| &app.variants);
        variants.map(|of| of.objects.len() + of.hooks.len() + of.clusters.len()).sum::<usize>()
    };
    assert!(names(&part) < names(&whole) && names(&part) > 0);
    for (whole, part) in whole.apps.iter().zip(&part.apps) {
        let counts = |of: &DetailsVariant| (of.total, of.added, of.changed, of.removed);
        assert!(
            part.variants.iter().map(counts).eq(whole.variants.iter().take(part.variants.len()).map(counts))
        );
        assert_eq!(part.variants.len() + part.left_out, whole.variants.len());
    }
    assert!(part.apps[1].left_out == 1 && whole.apps.iter().all(|app| app.left_out == 0));
    assert_ne!(digest(&whole), digest(&part));
}

/// From objects that have `lines` each to others.
fn rewritten(objects: usize, lines: usize) -> Differences {
    let content = |word: &str| -> Value {
        (0..lines).map(|number| (format!("{number:04}"), Value::from(word))).collect()
    };
    let set = |word: &str| {
        (0..objects)
            .map(|number| manifest("ConfigMap", &format!("c{number}"), &content(word), None))
            .collect()
    };
    let running = Running {
        assignment: assignment(&[("a", &[("web", "one")])]),
        sets: sets(vec![("one", set("old"))]),
        ..Running::default()
    };
    let (assignment, sets) = (assignment(&[("a", &[("web", "two")])]), sets(vec![("two", set("new"))]));
    let (apps, installed) = (["web".to_owned()], BTreeSet::new());
    let running = Some(&running);
    let comparison = Comparison {
        running,
        apps: &apps,
        assignment: &assignment,
        sets: &sets,
        installed: &installed,
        back: false,
    };
    differences(&comparison.changes(), running, &sets, &[7; 32], "sha256:0")
}

#[test]
fn differences_that_take_too_long_or_do_not_fit_are_counted() {
    let long = rewritten(1, 2000);
    assert_eq!((long.objects.len(), long.left_out), (0, 1), "4000 lines, and those around them");
    let many = rewritten(40, 500);
    assert!(!many.objects.is_empty() && many.left_out > 0, "{}", many.left_out);
    assert_eq!(many.objects.len() + many.left_out, 40);
    assert!(serde_json::to_vec(&many).unwrap().len() <= 512 * 1024);
}

#[test]
fn clusters_that_run_no_other_hooks_once_installed_are_one_variant() {
    let (assignment, mut sets) = after();
    let bare = |set: &Arc<ManifestSet>| {
        let mut set = set.as_ref().clone();
        set.manifests.retain(|manifest| manifest.hook.is_none());
        Arc::new(set)
    };
    for set in sets.values_mut() {
        *set = bare(set);
    }
    let (running, apps) = (before(), ["web".to_owned()]);
    let changes = |installed: &BTreeSet<(ClusterId, String)>| {
        let (running, assignment, sets) = (Some(&running), &assignment, &sets);
        Comparison { running, apps: &apps, assignment, sets, installed, back: false }.changes()
    };
    assert_eq!(changes(&installed(&["a"])), changes(&installed(&["a", "b"])));
    assert_eq!(changes(&installed(&["a"])).apps[0].variants[0].clusters, [id("a"), id("b")]);
}

#[test]
fn documents_of_a_later_format_are_refused() {
    let later = r#"{"format": 3, "apps": []}"#;
    assert!(Details::read(later).unwrap_err().contains("format 3"));
    let details = changes(false).details();
    assert_eq!(details.format, 1, "a version before reads what has no new part");
    assert_eq!(Details::read(&serde_json::to_string(&details).unwrap()), Ok(details));
}

#[test]
fn refusals_in_a_status_have_a_limit_for_all_apps() {
    let row = RefusedRow {
        object: "ConfigMap/shop/web".to_owned(),
        reason: "Invalid".to_owned(),
        message: "x".repeat(256),
    };
    let dry_run =
        DryRun { cluster: Some("acme/a".to_owned()), asked: 3, refused: vec![row; 3], ..DryRun::default() };
    let variant = DetailsVariant { dry_run: Some(dry_run), ..DetailsVariant::default() };
    let name = |number: usize| format!("app-{number}");
    let app =
        |number| DetailsApp { app: name(number), variants: vec![variant.clone()], ..DetailsApp::default() };
    let pending_app = |number| PendingApp { name: name(number), ..PendingApp::default() };
    let mut pending = Pending { apps: (0..32).map(pending_app).collect(), ..Pending::default() };
    Details { format: 1, apps: (0..32).map(app).collect(), ..Details::default() }.fill(&mut pending);
    let said: Vec<&String> = pending.apps.iter().flat_map(|app| &app.refused).collect();
    let bytes: usize = said.iter().map(|text| text.len()).sum();
    assert!(pending.apps[0].refused.len() == 3 && said.len() < 96 && bytes <= 8 * 1024, "{bytes}");
}

#[test]
fn objects_that_would_be_made_again_are_named_and_counted() {
    let row =
        |name: &str| RecreatedRow { object: format!("Service/shop/{name}"), lost: "its address".to_owned() };
    let run = |cluster: &str, recreated: Vec<RecreatedRow>, more_recreated| DryRun {
        cluster: Some(cluster.to_owned()),
        asked: 9,
        recreated,
        more_recreated,
        ..DryRun::default()
    };
    let of = |run| DetailsVariant { dry_run: Some(run), ..DetailsVariant::default() };
    let variants = vec![
        of(run("acme/a", vec![row("one"), row("two")], 0)),
        of(run("acme/b", vec![row("one"), row("two")], 3)),
    ];
    let app = DetailsApp { app: "web".to_owned(), variants, ..DetailsApp::default() };
    let of_app = |name: &str| PendingApp { name: name.to_owned(), ..PendingApp::default() };
    let mut pending = Pending { apps: vec![of_app("web"), of_app("db")], ..Pending::default() };
    Details { format: 1, apps: vec![app], ..Details::default() }.fill(&mut pending);
    assert_eq!(
        pending.apps[0].recreated,
        [
            "acme/a: Service/shop/one: its address",
            "acme/a: Service/shop/two: its address",
            "acme/b: Service/shop/one: its address",
            "4 more objects",
        ]
    );
    assert!(pending.apps[0].refused.is_empty() && pending.apps[1].recreated.is_empty());
}
