use super::super::show;
use super::super::tree::Tree;
use super::super::tree::tests::{alive, group, shard};
use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn of_kind(kind: &str) -> ObjectArgs {
    ObjectArgs { kind: vec![kind.parse().unwrap()], ..ObjectArgs::default() }
}

fn tree(objects: ObjectArgs) -> Tree {
    Tree::of(&[group()], &[shard()], alive(), &Filter { objects, ..Filter::default() })
}

/// `app cluster`, and the objects that are named there.
fn shown(tree: &Tree) -> Vec<String> {
    let apps = tree.groups.iter().flat_map(|group| &group.apps);
    let there = apps.flat_map(|app| app.clusters.iter().map(move |there| (app, there)));
    there
        .map(|(app, there)| {
            let objects: Vec<&str> = there.objects.iter().map(|thing| thing.object.as_str()).collect();
            format!("{} {} {}", app.name, there.cluster, objects.join(" ")).trim_end().to_owned()
        })
        .collect()
}

#[test]
fn objects_are_selected_by_kind_and_name() {
    let found = tree(of_kind("configmap"));
    assert_eq!(shown(&found), ["db acme/b /ConfigMap/shop/db"]);
    let both = ObjectArgs { object: texts(&["db"]), ..of_kind("StatefulSet.apps") };
    assert_eq!(shown(&tree(both)), ["db acme/b apps/StatefulSet/shop/db"]);
    let other = ObjectArgs { object: texts(&["web"]), ..of_kind("StatefulSet") };
    assert_eq!(tree(other).groups, []);
}

#[test]
fn ready_and_not_ready_select_apps_on_clusters() {
    let ready = tree(ObjectArgs { ready: true, ..ObjectArgs::default() });
    assert_eq!(shown(&ready), ["db acme/a", "web acme/a", "web acme/b"]);
    let not_ready = tree(ObjectArgs { not_ready: true, ..ObjectArgs::default() });
    assert_eq!(
        shown(&not_ready),
        ["db acme/b apps/StatefulSet/shop/db /ConfigMap/shop/db", "db acme/c", "web acme/c"]
    );
}

fn of_states(states: &[Verdict]) -> Filter {
    Filter { states: states.to_vec(), ..Filter::default() }
}

#[test]
fn a_state_takes_deployments_that_are_so_and_apps_on_clusters() {
    let failed = of_states(&[Verdict::Failed]);
    let found = Tree::of(&[group()], &[shard()], alive(), &failed);
    assert_eq!(shown(&found), ["db acme/b apps/StatefulSet/shop/db /ConfigMap/shop/db"]);
    assert_eq!(Tree::of(&[group()], &[], alive(), &failed).groups, [], "it cannot be reached");
    let mut late = group();
    late.status.as_mut().unwrap().state = Some(emco_crds::State::UpdateFailed);
    let found = Tree::of(&[late.clone()], &[], alive(), &failed);
    assert_eq!((found.groups.len(), found.groups[0].verdict), (1, Verdict::Failed));
    assert!(!found.groups[0].is_as_wanted(&failed));
    let ready = of_states(&[Verdict::Ready]);
    assert_eq!(Tree::of(&[late.clone()], &[], alive(), &ready).groups, []);
    let app = Filter { apps: texts(&["web"]), ..failed };
    assert_eq!(Tree::of(&[late], &[shard()], alive(), &app).groups, [], "the app has not failed");
}

#[test]
fn parts_that_are_not_asked_about_decide_nothing() {
    let mut group = group();
    let part = |app: &str| Filter { apps: texts(&[app]), clusters: texts(&["acme/b"]), ..Filter::default() };
    let as_wanted = |group: &DeploymentIntentGroup, filter: &Filter| {
        let tree = Tree::of(std::slice::from_ref(group), &[shard()], alive(), filter);
        tree.groups.iter().all(|group| group.is_as_wanted(filter))
    };
    assert!(!as_wanted(&group, &Filter::default()));
    assert!(as_wanted(&group, &part("web")) && !as_wanted(&group, &part("db")));
    assert!(as_wanted(&group, &of_states(&[Verdict::Ready])));
    assert!(!as_wanted(&group, &of_states(&[Verdict::Failed])));
    let refused = serde_json::json!({"type": "Placed", "status": "False", "reason": "NoClusterMatches", "message": "",
        "lastTransitionTime": "2026-11-21T07:00:00Z"});
    group.status.as_mut().unwrap().conditions.push(serde_json::from_value(refused).unwrap());
    assert!(!as_wanted(&group, &part("web")), "a refused change concerns every part");
}

#[test]
fn counts_say_what_is_shown_of_how_many() {
    let all = tree(ObjectArgs::default());
    assert_eq!(all.counts.text(), None);
    assert_eq!(all.counts.apps_on_clusters, Share { shown: 6, of: 6 });
    let found = tree(of_kind("ConfigMap"));
    let counts = serde_json::to_value(&found).unwrap()["counts"].clone();
    assert_eq!(
        counts,
        serde_json::json!({
            "deployments": {"shown": 1, "of": 1}, "appsOnClusters": {"shown": 1, "of": 6},
            "objects": {"shown": 1, "of": 2}, "undecided": 2,
        })
    );
    let text = show::text(&found, false);
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with(
            "shown: 1 of 6 apps on clusters, 1 of 2 objects that are reported not to be as wanted; left out are 2 apps on clusters"
        ),
        "{text}"
    );
}

#[test]
fn what_is_ready_hides_no_object_that_is_not() {
    let filter = Filter { clusters: texts(&["acme/a"]), objects: of_kind("Job"), ..Filter::default() };
    let tree = Tree::of(&[group()], &[shard()], alive(), &filter);
    assert_eq!((tree.groups.len(), tree.counts.undecided), (0, 0));
}

#[test]
fn an_app_or_a_cluster_that_nothing_has_is_said_with_those_there_are() {
    let said = |apps: &[&str], clusters: &[&str]| {
        let filter = Filter { apps: texts(apps), clusters: texts(clusters), ..Filter::default() };
        absent(&[group()], &[shard()], &filter)
    };
    assert_eq!(said(&["db", "api"], &[]).unwrap(), "shop/till has no app api: there are db, web");
    let nowhere = "shop/till has nothing on cluster acme/z: there are acme/a, acme/b, acme/c";
    assert_eq!(said(&[], &["acme/z"]).unwrap(), nowhere);
    assert_eq!(said(&["db"], &["acme/a"]), None);
    let two = [group(), DeploymentIntentGroup::new("other", group().spec)];
    let filter = Filter { apps: texts(&["api"]), ..Filter::default() };
    let text = absent(&two, &[shard()], &filter).unwrap();
    assert_eq!(text, "none of 2 deployments has an app api: there are db, web");
    assert_eq!(absent(&two, &[], &filter), None, "nothing is anywhere yet");
}
