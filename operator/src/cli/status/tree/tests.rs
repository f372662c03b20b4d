use emco_engine::rollup::{self, Before, DigInputs};
use serde_json::{Value, json};

use super::*;
use crate::cli::pulse::Life;
use crate::cli::status::show;

/// The operator is there.
pub fn alive() -> Pulse {
    Pulse { operator: Life::Alive, message: String::new(), until: None }
}

fn silent() -> Pulse {
    Pulse { operator: Life::Silent, message: "the operator has been silent".to_owned(), until: None }
}

/// A deployment of which not all is ready.
pub fn group() -> DeploymentIntentGroup {
    serde_json::from_value(json!({
        "metadata": {"name": "till", "namespace": "shop", "generation": 2},
        "spec": {"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}},
        "status": {
            "observedGeneration": 2, "state": "Updating", "revision": 2, "summary": {"clusters": "1/3", "resources": "4/9"},
            "conditions": [{"type": "Ready", "status": "False", "reason": "Unreachable", "message": "1 of 3 clusters ready",
                "lastTransitionTime": "2026-11-21T07:00:00Z"}],
        },
    }))
    .unwrap()
}

/// `a` is as wanted, `b` has an object that was refused, `c` cannot be reached.
pub fn shard() -> SyncShard {
    let combination = |name: &str, db: &str| json!({"name": name, "revision": 1, "apps": [{"app": "db", "set": db}, {"app": "web", "set": "w1"}]});
    let row = |id: i64, name: &str| json!({"id": id, "cluster": format!("acme/{name}"), "target": "t1"});
    serde_json::from_value(json!({
        "metadata": {"name": "dig-till-1", "namespace": "shop", "generation": 5},
        "spec": {
            "format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": "till", "uid": "u"}, "slot": 0, "bits": 0,
            "epoch": 1, "nextId": 4, "combinations": [combination("t0", "d0"), combination("t1", "d1")],
            "clusters": [row(1, "a"), row(2, "b"), row(3, "c")],
        },
        "status": {
            "observedGeneration": 5,
            "asWanted": [{"ids": "1", "applied": "t1", "generation": 5, "ready": 3, "total": 3}],
            "clusters": [
                {"id": 2, "cluster": "acme/b", "connectivity": "Reachable", "state": "UpdateFailed",
                 "applied": {"combination": "t0", "generation": 3}, "total": 3, "ready": 2,
                 "apps": [{"app": "db", "state": "UpdateFailed", "ready": 0, "total": 1, "since": "2026-11-21T07:00:00Z"}],
                 "error": {"app": "db", "resource": "apps/StatefulSet/shop/db", "reason": "ImmutableField",
                           "message": "field is immutable", "attempts": 2},
                 "drift": {"reported": 1, "objects": [{"resource": "/ConfigMap/shop/db", "by": "kubectl-edit", "fields": "f"}]}},
                {"id": 3, "cluster": "acme/c", "connectivity": "Unreachable", "state": "Updating",
                 "applied": {"combination": "t1", "generation": 5}, "total": 3, "unknown": 3},
            ],
        },
    }))
    .unwrap()
}

fn tree(pulse: Pulse, filter: &Filter) -> Tree {
    Tree::of(&[group()], &[shard()], pulse, filter)
}

fn verdicts(tree: &Tree) -> Vec<String> {
    let apps = tree.groups.iter().flat_map(|group| &group.apps);
    apps.flat_map(|app| {
        app.clusters
            .iter()
            .map(move |there| format!("{} {} {}", app.name, there.cluster, there.verdict.as_str()))
    })
    .collect()
}

#[test]
fn each_app_is_judged_on_each_cluster() {
    assert_eq!(
        verdicts(&tree(alive(), &Filter::default())),
        [
            "db acme/a Ready",
            "db acme/b Failed",
            "db acme/c Unreachable",
            "web acme/a Ready",
            "web acme/b Ready",
            "web acme/c Unreachable"
        ]
    );
}

#[test]
fn objects_that_are_not_as_wanted_are_below_their_cluster() {
    let text = show::text(&tree(alive(), &Filter::default()), false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "shop/till  Updating  ready: False (Unreachable)  revision: 2  clusters: 1/3  objects: 4/9",
            "   1 of 3 clusters ready",
            "├─ db  1/3 clusters ready: acme/a",
            "│  ├─ acme/b  Failed  0/1 object ready  since 2026-11-21T07:00:00Z",
            "│  │     apps/StatefulSet/shop/db  ImmutableField: field is immutable",
            "│  │     /ConfigMap/shop/db  Drift: changed by kubectl-edit",
            "│  └─ acme/c  Unreachable",
            "└─ web  2/3 clusters ready: acme/a, acme/b",
            "   └─ acme/c  Unreachable",
        ]
    );
}

#[test]
fn an_object_that_others_deleted_is_called_so() {
    let mut shard = serde_json::to_value(shard()).unwrap();
    shard["status"]["clusters"][0]["drift"]["objects"][0]["by"] = json!("deleted");
    let tree = Tree::of(&[group()], &[serde_json::from_value(shard).unwrap()], alive(), &Filter::default());
    let text = show::text(&tree, false);
    assert!(text.contains("/ConfigMap/shop/db  Drift: others deleted it\n"), "{text}");
}

/// What the operator reports of a deployment with these rows.
fn reported(shard: &SyncShard) -> DeploymentIntentGroup {
    let targets = rows(&shard.spec, shard.status.as_ref()).into_iter();
    let wanted = targets.filter_map(|row| Some((row.cluster, row.target?.apps))).collect();
    let rolled = rollup::dig(&DigInputs {
        shards: &[(&shard.spec, shard.status.as_ref())],
        wanted: &wanted,
        revision: Some(2),
        placement: &[],
        ready_clusters: None,
        before: &Before { state: State::Updating, revision: Some(2), ..Before::default() },
        approved: true,
        removing: false,
        suspended: false,
        abandoned: &[],
    });
    let mut group = group();
    let status = group.status.as_mut().unwrap();
    status.state = Some(rolled.state);
    status.summary = Some(rolled.summary);
    rolled.ready.reason.clone_into(&mut status.conditions[0].reason);
    status.conditions[0].message = rolled.ready.message;
    group
}

#[test]
fn the_sample_of_the_book_is_what_is_printed() {
    let mut shard = serde_json::to_value(shard()).unwrap();
    let rows = &mut shard["status"]["clusters"];
    rows[0]["since"] = json!("2026-11-21T07:00:00Z");
    rows[0]["counts"] = json!({"applied": 2, "failed": 1, "ready": 2});
    rows[0]["error"]["message"] = json!(
        "a field cannot be changed: take the change back, or delete the object on the cluster and it is made anew: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"
    );
    rows[0].as_object_mut().unwrap().remove("drift");
    rows[1]["since"] = json!("2026-11-21T07:12:00Z");
    let text = shard.to_string();
    let named = [("a", "porto"), ("b", "berlin"), ("c", "oslo")];
    let text = named.iter().fold(text, |text, (letter, name)| {
        text.replace(&format!("\"acme/{letter}\""), &format!("\"acme/{name}\""))
    });
    let shard: SyncShard = serde_json::from_str(&text).unwrap();
    let tree = Tree::of(&[reported(&shard)], &[shard], alive(), &Filter::default());
    let text = show::text(&tree, false);
    let book = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md")).unwrap();
    let (_, sample) = book.split_once("$ kubectl emco status shop/till\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    assert_eq!(text, sample);
}

#[test]
fn an_app_that_waits_for_another_one_says_so_as_the_book_shows() {
    let mut group = serde_json::to_value(group()).unwrap();
    group["metadata"]["generation"] = json!(1);
    let message = "0 of 1 cluster ready; acme/berlin (web): WaitingForDependency: waits until this revision of app db is Ready on acme/berlin";
    group["status"] = json!({
        "observedGeneration": 1, "state": "Instantiating", "revision": 1, "summary": {"clusters": "0/1", "resources": "0/2"},
        "conditions": [{"type": "Ready", "status": "False", "reason": "WaitingForDependency", "message": message,
            "lastTransitionTime": "2026-11-21T07:00:00Z"}],
    });
    let mut shard = serde_json::to_value(shard()).unwrap();
    shard["spec"]["clusters"] = json!([{"id": 1, "cluster": "acme/berlin", "target": "t1"}]);
    let app = |app: &str| json!({"app": app, "state": "Instantiating", "ready": 0, "total": 1, "since": "2026-11-21T07:00:00Z"});
    let mut web = app("web");
    web["waitsFor"] = json!("waits until this revision of app db is Ready on acme/berlin");
    shard["status"] = json!({"observedGeneration": 5, "clusters": [{
        "id": 1, "cluster": "acme/berlin", "connectivity": "Reachable", "state": "Instantiating", "total": 2,
        "apps": [app("db"), web],
        "unready": [{"app": "db", "resource": "apps/Deployment/shop/db", "message": "0 of 1 replica is available"}],
    }]});
    let (group, shard) = (serde_json::from_value(group).unwrap(), serde_json::from_value(shard).unwrap());
    let text = show::text(&Tree::of(&[group], &[shard], alive(), &Filter::default()), false);
    let book =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dependencies.md")).unwrap();
    let (_, sample) = book.split_once("$ kubectl emco status shop/till\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    assert_eq!(text, sample);
}

#[test]
fn an_app_on_a_lost_cluster_is_unreachable_since_the_loss() {
    let mut shard = serde_json::to_value(shard()).unwrap();
    let row = &mut shard["status"]["clusters"][1];
    row["since"] = json!("2026-11-22T09:00:00Z");
    row["apps"] =
        json!([{"app": "db", "state": "Updating", "ready": 0, "total": 1, "since": "2026-11-21T07:00:00Z"}]);
    let shard = serde_json::from_value(shard).unwrap();
    let tree = Tree::of(&[group()], &[shard], alive(), &Filter::default());
    let text = show::text(&tree, false);
    let lost: Vec<&str> = text.lines().filter(|line| line.contains("Unreachable  ")).collect();
    assert_eq!(lost.len(), 2, "{text}");
    assert!(lost.iter().all(|line| line.ends_with("since 2026-11-22T09:00:00Z")), "{text}");
}

#[test]
fn what_rendering_showed_is_said_below_the_first_line() {
    let noted = |status: &str| {
        let mut group = group();
        let rendered = json!({"type": "Rendered", "status": status, "reason": "Rendered", "lastTransitionTime": "2026-11-21T07:00:00Z",
            "message": "chart web of app web reads no value \"imgae\""});
        group.status.as_mut().unwrap().conditions.push(serde_json::from_value(rendered).unwrap());
        let tree = Tree::of(&[group], &[shard()], alive(), &Filter::default());
        show::text(&tree, false)
    };
    let line = "\n   note: chart web of app web reads no value \"imgae\"\n";
    assert!(noted("True").contains(line), "{}", noted("True"));
    assert!(!noted("False").contains("note:"), "a refusal is said with Ready");
}

#[test]
fn filters_take_what_they_name_and_leave_out_groups_without_it() {
    let filter = |clusters: &[&str], apps: &[&str], states: &[Verdict]| Filter {
        clusters: clusters.iter().map(|&text| text.to_owned()).collect(),
        apps: apps.iter().map(|&text| text.to_owned()).collect(),
        states: states.to_vec(),
        ..Filter::default()
    };
    assert_eq!(verdicts(&tree(alive(), &filter(&["acme/b"], &["db"], &[]))), ["db acme/b Failed"]);
    let unreachable = verdicts(&tree(alive(), &filter(&[], &[], &[Verdict::Unreachable])));
    assert_eq!(unreachable, ["db acme/c Unreachable", "web acme/c Unreachable"]);
    assert_eq!(tree(alive(), &filter(&["acme/z"], &[], &[])).groups, []);
}

#[test]
fn under_an_expired_lease_everything_is_unknown_and_says_what_was_last_reported() {
    let tree = tree(silent(), &Filter::default());
    assert!(verdicts(&tree).iter().all(|verdict| verdict.ends_with(" Unknown")));
    let group = &tree.groups[0];
    assert_eq!((group.state.as_str(), group.ready.as_str()), ("Unknown", "Unknown"));
    let text = show::text_with_warning(&tree, false);
    assert!(
        text.starts_with("warning: the operator has been silent\nshop/till  Unknown  ready: Unknown"),
        "{text}"
    );
    assert!(text.contains("acme/a  Unknown (last reported Ready)"), "{text}");
    assert!(!group.is_as_wanted(&Filter::default()));
}

#[test]
fn a_change_that_nobody_looked_at_is_not_ready_yet() {
    let mut group = group();
    group.metadata.generation = Some(3);
    let ready = |status: &mut Value| status["conditions"][0]["status"] = json!("True");
    let mut status = serde_json::to_value(group.status.clone()).unwrap();
    ready(&mut status);
    group.status = serde_json::from_value(status).unwrap();
    let tree = Tree::of(&[group], &[], alive(), &Filter::default());
    assert_eq!((tree.groups[0].ready.as_str(), tree.groups[0].reason.as_str()), ("Unknown", "NotLookedAt"));
}

#[test]
fn a_row_on_its_way_out_shows_what_leaves() {
    let mut shard = shard();
    for row in &mut shard.spec.clusters {
        row.target = None;
    }
    let tree = Tree::of(&[group()], &[shard], alive(), &Filter::default());
    let found = verdicts(&tree);
    assert!(found.contains(&"db acme/a Removing".to_owned()), "{found:?}");
    assert!(
        found.contains(&"web acme/b Failed".to_owned()) || found.contains(&"web acme/b Removing".to_owned())
    );
    assert!(found.contains(&"db acme/c Unreachable".to_owned()), "{found:?}");
}
