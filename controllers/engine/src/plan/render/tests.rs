//! Which renderings are shared.

use super::*;
use crate::apis::ApiResource;
use crate::identity::{ClusterId, SetDigest};
use crate::plan::lookup::Completeness;
use crate::plan::work::Class;
use crate::set::{ManifestSet, Phase, SetManifest};
use crate::snapshot::Scheduling;

fn cluster(name: &str, version: &str, kind: &str) -> ClusterFacts {
    let api = ApiResource {
        group: "x".to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: String::new(),
        namespaced: true,
        listable: true,
        watchable: true,
    };
    ClusterFacts {
        id: ClusterId::new("acme", name),
        labels: BTreeMap::new(),
        properties: BTreeMap::new(),
        scheduling: Scheduling::Enabled,
        reachable: true,
        by_git: false,
        uid: None,
        kubernetes_version: Some(version.to_owned()),
        apis: Some(Arc::new(ApiList { resources: vec![api] })),
        nodes: None,
        network_policy: None,
    }
}

fn fleet() -> [ClusterFacts; 4] {
    [
        cluster("a", "v1.36.3", "One"),
        cluster("b", "v1.36.3", "One"),
        cluster("c", "v1.35.0", "One"),
        cluster("d", "v1.36.3", "Two"),
    ]
}

/// Which clusters are rendered, wave after wave, by a chart that asks what `reads` says.
fn waves(reads: &Reads) -> Vec<Vec<usize>> {
    waves_with(reads, |_| Arc::new(Holdings::new(None, Completeness::All, false)))
}

/// The same, for clusters that have something.
fn waves_with(reads: &Reads, holdings: impl Fn(usize) -> Arc<Holdings>) -> Vec<Vec<usize>> {
    let fleet = fleet();
    let class = Arc::new(Class {
        values: serde_json::Map::new(),
        chart_key: String::new(),
        edits: None,
        render_key: String::new(),
    });
    let jobs: Vec<_> = fleet
        .iter()
        .enumerate()
        .map(|(position, cluster)| Job {
            item: Item { app: 0, cluster, class: Arc::clone(&class), previous: None, waiting: None },
            is_install: true,
            revision: 1,
            now: 0,
            holdings: holdings(position),
            tentative: false,
        })
        .collect();
    let mut slots = vec![Slot::Pending; jobs.len()];
    let mut group = Group { pending: (0..jobs.len()).collect(), outcomes: Vec::new() };
    let mut waves = Vec::new();
    loop {
        let picks = group.picks(&jobs);
        if picks.is_empty() {
            return waves;
        }
        for &position in &picks {
            let draft = Arc::new(Draft::new("web", Vec::new(), Vec::new()).unwrap());
            slots[position] = Slot::Done(Arc::clone(&draft));
            group.outcomes.push(Outcome { draft, reads: reads.clone(), job: &jobs[position] });
        }
        group.share(&jobs, &mut slots);
        waves.push(picks);
    }
}

#[test]
fn a_chart_that_asks_nothing_is_rendered_once_for_all_clusters() {
    assert_eq!(waves(&Reads::default()), [vec![0]]);
}

#[test]
fn a_chart_that_asks_the_version_is_rendered_once_for_each_version() {
    assert_eq!(waves(&Reads { kube_version: true, ..Reads::default() }), [vec![0], vec![2]]);
}

#[test]
fn a_chart_that_asks_for_an_api_is_rendered_once_for_each_answer() {
    let asks = |what: &str| Reads { api_versions: [what.to_owned()].into(), ..Reads::default() };
    assert_eq!(waves(&asks("x/v1/Two")), [vec![0], vec![3]]);
    assert_eq!(waves(&asks("x/v1")), [vec![0]]);
}

#[test]
fn a_chart_that_draws_random_values_is_rendered_for_each_cluster() {
    assert_eq!(waves(&Reads { random: true, ..Reads::default() }), [vec![0], vec![1, 2, 3]]);
}

/// A set with one Secret.
fn password(text: &str) -> Arc<Holdings> {
    let json = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "data": {"password": text},
    });
    let manifest = SetManifest {
        digest: text.to_owned(),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json,
    };
    let digest = SetDigest(text.to_owned());
    let set = ManifestSet { digest, app: "web".to_owned(), manifests: vec![manifest] };
    Arc::new(Holdings::new(Some(Arc::new(set)), Completeness::All, false))
}

fn looks_up(names: &[&str]) -> Reads {
    let read = |name: &&str| LookupRead {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: "shop".to_owned(),
        name: (*name).to_owned(),
    };
    Reads { lookups: names.iter().map(read).collect(), ..Reads::default() }
}

#[test]
fn clusters_with_equal_answers_to_lookups_share_a_rendering() {
    let each = |position: usize| password(["same", "same", "same", "same"][position]);
    assert_eq!(waves_with(&looks_up(&["db"]), each), [vec![0]]);
}

#[test]
fn clusters_with_passwords_of_their_own_are_rendered_in_one_wave() {
    let each = |position: usize| password(["one", "two", "three", "two"][position]);
    assert_eq!(waves_with(&looks_up(&["db"]), each), [vec![0], vec![1, 2, 3]]);
    let shared = [password("one"), password("two")];
    let each = |position: usize| Arc::clone(&shared[usize::from(position > 0)]);
    assert_eq!(waves_with(&looks_up(&["db"]), each), [vec![0], vec![1, 2, 3]], "three kinds of cluster");
}

#[test]
fn a_lookup_of_what_no_cluster_has_is_rendered_once() {
    let each = |position: usize| password(["one", "two", "three", "four"][position]);
    assert_eq!(waves_with(&looks_up(&["other"]), each), [vec![0]]);
}

#[test]
fn what_cannot_be_read_shares_no_rendering() {
    let each = |position: usize| {
        let known = if position == 2 { Completeness::Part } else { Completeness::All };
        Arc::new(Holdings::new(None, known, false))
    };
    assert_eq!(waves_with(&looks_up(&["db"]), each), [vec![0], vec![2]]);
}

#[test]
fn a_thousand_lookups_are_not_compared() {
    let names: Vec<String> = (0..=MOST_COMPARED).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let each = |position: usize| password(["one", "two", "three", "four"][position]);
    assert_eq!(waves_with(&looks_up(&names), each), [vec![0], vec![1, 2, 3]]);
}
