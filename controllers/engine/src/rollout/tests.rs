use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::deployment_intent_group::rollout::{OnFailure, Rollout};
use proptest::prelude::*;

use super::*;
use crate::identity::{ClusterId, Combination, SetDigest};
use crate::snapshot::{ClusterFacts, Scheduling};

fn id(name: &str) -> ClusterId {
    ClusterId::new("acme", name)
}

fn ids(names: &[&str]) -> BTreeSet<ClusterId> {
    names.iter().map(|name| id(name)).collect()
}

fn rollout(yaml: &str) -> Rollout {
    serde_yaml::from_str(yaml).unwrap()
}

/// Without labels: terms name clusters.
fn frozen(yaml: &str, placed: &[&str], earlier: Option<&Waves>) -> Waves {
    let placed = ids(placed);
    let facts = |id: &ClusterId| {
        let facts = ClusterFacts {
            id: id.clone(),
            labels: BTreeMap::new(),
            properties: BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: None,
            kubernetes_version: None,
            apis: None,
            nodes: None,
            network_policy: None,
        };
        (id.clone(), facts)
    };
    Waves::freeze(&rollout(yaml), &placed, &placed.iter().map(facts).collect(), earlier)
}

/// A combination of one app.
fn having(set: &str) -> Combination {
    BTreeMap::from([("web".to_owned(), SetDigest(set.to_owned()))])
}

fn all_having(names: &[&str], set: &str) -> BTreeMap<ClusterId, Combination> {
    names.iter().map(|name| (id(name), having(set))).collect()
}

fn of(waves: &Waves) -> Vec<(&str, usize)> {
    waves.clusters().map(|(id, wave)| (id.cluster(), wave)).collect()
}

const TWO: &str =
    "{waves: [{name: half, size: 50%}, {name: canary, clusters: [{provider: acme, cluster: d}], soak: 10m}]}";

#[test]
fn who_is_named_goes_with_its_wave_and_sizes_take_from_the_rest() {
    let waves = frozen(TWO, &["a", "b", "c", "d", "e"], None);
    assert_eq!(of(&waves), [("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 2)]);
    assert_eq!(waves.waves[2].name, LAST);
    assert_eq!(waves.of(&id("gone")), 2);
}

#[test]
fn sizes_beyond_all_take_what_is_left() {
    let waves = frozen("{waves: [{name: one, size: 60%}, {name: two, size: 60%}]}", &["a", "b", "c"], None);
    assert_eq!(of(&waves), [("a", 0), ("b", 0), ("c", 1)]);
    assert_eq!(of(&frozen("{}", &["a"], None)), [("a", 0)], "without waves all are the rest");
}

#[test]
fn clusters_that_come_join_the_last_wave_of_a_rollout_that_goes_on() {
    let first = frozen(TWO, &["b", "c", "e"], None);
    let next = frozen(TWO, &["a", "b", "d", "e"], Some(&first));
    assert_eq!(of(&next), [("a", 2), ("b", 0), ("d", 2), ("e", 2)]);
    let other = frozen("{waves: [{name: one, size: 1}]}", &["a", "b"], Some(&first));
    assert_eq!(of(&other), [("a", 0), ("b", 1)], "other waves are others");
}

const BOUNDS: Bounds = Bounds { at_once: 9, failures: 0, beyond: OnFailure::Pause };

struct Trial {
    waves: Waves,
    bounds: Bounds,
    standing: BTreeMap<ClusterId, Standing>,
    progress: Progress,
    now: i64,
}

impl Trial {
    fn new(yaml: &str, placed: &[&str]) -> Self {
        let waves = frozen(yaml, placed, None).beside(&BTreeMap::new(), &all_having(placed, "new"), None);
        let standing = ids(placed).into_iter().map(|id| (id, Standing::Before)).collect();
        Self { waves, bounds: BOUNDS, standing, progress: Progress::default(), now: 1000 }
    }

    /// A step with nothing decided, after which the given clusters are on their way.
    fn go(&mut self) -> Phase {
        self.gated(Gate::Open)
    }

    fn gated(&mut self, gate: Gate) -> Phase {
        let Step { progress, phase, given } =
            step(&self.waves, self.bounds, &self.standing, &self.progress, |_| gate, self.now);
        self.progress = progress;
        for id in given {
            let standing = self.standing.get_mut(&id).unwrap();
            if *standing == Standing::Before {
                *standing = Standing::Underway;
            }
        }
        phase
    }

    fn all(&mut self, from: Standing, to: Standing) {
        self.standing.values_mut().filter(|standing| **standing == from).for_each(|standing| *standing = to);
    }

    fn given(&self) -> Vec<&str> {
        let given = self.standing.iter().filter(|(_, standing)| **standing != Standing::Before);
        given.map(|(id, _)| id.cluster()).collect()
    }
}

#[test]
fn a_wave_begins_when_the_one_before_is_done_and_was_watched() {
    let mut trial = Trial::new(
        "{waves: [{name: canary, clusters: [{provider: acme, cluster: b}], soak: 10m}]}",
        &["a", "b", "c"],
    );
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["b"]));
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!(trial.go(), Phase::Soaking(Duration::from_mins(10)));
    trial.now += 599;
    assert_eq!((trial.go(), trial.given()), (Phase::Soaking(Duration::from_secs(1)), vec!["b"]));
    trial.now += 1;
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b", "c"]));
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!(trial.go(), Phase::Done);
    assert_eq!(trial.go(), Phase::Done);
}

#[test]
fn what_is_watched_and_breaks_is_watched_anew() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1, soak: 10m}]}", &["a", "b"]);
    trial.go();
    trial.all(Standing::Underway, Standing::Ready);
    trial.go();
    trial.now += 300;
    trial.all(Standing::Ready, Standing::Underway);
    assert_eq!(trial.go(), Phase::Rolling);
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!(trial.go(), Phase::Soaking(Duration::from_mins(10)));
}

#[test]
fn gates_wait_before_a_wave_and_after_it() {
    let yaml = "{waves: [{name: one, size: 1, approval: Before}, {name: two, size: 1, approval: After}]}";
    let mut trial = Trial::new(yaml, &["a", "b", "c"]);
    assert_eq!((trial.go(), trial.given()), (Phase::AwaitsBefore, vec![]));
    assert_eq!(trial.gated(Gate::Rejected), Phase::Paused(Halt::Rejected("one".to_owned())));
    assert_eq!((trial.gated(Gate::Approved), trial.given()), (Phase::Rolling, vec!["a"]));
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b"]));
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!((trial.go(), trial.given()), (Phase::AwaitsAfter, vec!["a", "b"]));
    assert_eq!((trial.gated(Gate::Approved), trial.given()), (Phase::Rolling, vec!["a", "b", "c"]));
}

#[test]
fn more_failures_than_are_borne_pause_or_take_back() {
    let mut trial = Trial::new("{waves: [{name: one, size: 2}]}", &["a", "b", "c"]);
    trial.go();
    *trial.standing.get_mut(&id("a")).unwrap() = Standing::Failed;
    assert_eq!((trial.go(), trial.given()), (Phase::Paused(Halt::Failures), vec!["a", "b"]));
    trial.bounds.beyond = OnFailure::Rollback;
    let back = step(&trial.waves, trial.bounds, &trial.standing, &trial.progress, |_| Gate::Open, 0);
    assert_eq!((back.phase, back.given), (Phase::TakenBack, BTreeSet::new()));
    let again = step(&trial.waves, BOUNDS, &BTreeMap::new(), &back.progress, |_| Gate::Approved, 0);
    assert_eq!(again.phase, Phase::TakenBack, "it is not tried again");
    trial.bounds = Bounds { failures: 1, ..BOUNDS };
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b", "c"]), "one is borne");
    trial.bounds = Bounds { beyond: OnFailure::Continue, ..BOUNDS };
    trial.all(Standing::Underway, Standing::Failed);
    assert_eq!(trial.go(), Phase::Done);
}

#[test]
fn clusters_go_a_few_at_a_time() {
    let mut trial = Trial::new("{}", &["a", "b", "c", "d"]);
    trial.bounds.at_once = 2;
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b"]));
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b"]));
    *trial.standing.get_mut(&id("a")).unwrap() = Standing::Ready;
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b", "c"]));
}

#[test]
fn a_wave_that_selects_nothing_is_done_at_once_without_gate_or_soak() {
    let yaml = "{waves: [{name: none, clusters: [{cluster: nowhere}], soak: 1h, approval: After}]}";
    let mut trial = Trial::new(yaml, &["a"]);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a"]));
}

const CANARY: &str = "{waves: [{name: canary, clusters: [{provider: acme, cluster: b}], approval: After}]}";

#[test]
fn a_canary_that_goes_opens_no_gate() {
    let mut trial = Trial::new(CANARY, &["a", "b"]);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["b"]));
    trial.standing.remove(&id("b"));
    assert_eq!((trial.go(), trial.given()), (Phase::AwaitsAfter, vec![]));
    // The revision without it has the same inputs.
    let now = all_having(&["a"], "new");
    let gave = all_having(&["a", "b"], "new");
    let earlier = Earlier { waves: &trial.waves, wanted: &gave, same_inputs: true };
    trial.waves = frozen(CANARY, &["a"], Some(&trial.waves)).beside(&BTreeMap::new(), &now, Some(earlier));
    assert_eq!((trial.go(), trial.given()), (Phase::AwaitsAfter, vec![]));
    assert_eq!((trial.gated(Gate::Approved), trial.given()), (Phase::Rolling, vec!["a"]));
}

#[test]
fn who_comes_or_changes_after_the_end_gets_it_too() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1}]}", &["a", "b"]);
    for _ in 0..3 {
        trial.go();
        trial.all(Standing::Underway, Standing::Ready);
    }
    assert_eq!((trial.go(), trial.progress.wave), (Phase::Done, 2));
    trial.standing.insert(id("c"), Standing::Before);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b", "c"]));
    trial.all(Standing::Underway, Standing::Ready);
    assert_eq!(trial.go(), Phase::Done);
    trial.standing.insert(id("a"), Standing::Before);
    assert_eq!((trial.go(), trial.progress.wave), (Phase::Rolling, 0));
}

#[test]
fn what_breaks_after_the_end_is_no_rollouts() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1}]}", &["a", "b"]);
    trial.bounds.beyond = OnFailure::Rollback;
    for _ in 0..3 {
        trial.go();
        trial.all(Standing::Underway, Standing::Ready);
    }
    trial.all(Standing::Ready, Standing::Failed);
    assert_eq!((trial.go(), trial.progress.taken_back), (Phase::Done, false));
}

#[test]
fn a_cluster_that_leaves_begins_no_wave() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1, approval: After}]}", &["a", "b"]);
    // It left an earlier revision, and is not done with that.
    trial.standing.insert(id("gone"), Standing::Ready);
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "gone"]));
}

#[test]
fn a_gate_is_asked_while_one_of_its_clusters_has_the_revision() {
    let mut trial = Trial::new("{waves: [{name: one, size: 2, approval: Before}]}", &["a", "b", "c"]);
    trial.standing.insert(id("a"), Standing::Ready);
    assert_eq!((trial.go(), trial.given()), (Phase::AwaitsBefore, vec!["a"]));
}

#[test]
fn a_rejection_of_a_wave_that_is_over_pauses_too() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1}, {name: two, size: 1}]}", &["a", "b", "c"]);
    trial.go();
    trial.all(Standing::Underway, Standing::Ready);
    trial.go();
    trial.all(Standing::Underway, Standing::Ready);
    let one = |name: &str| if name == "one" { Gate::Rejected } else { Gate::Open };
    let paused = step(&trial.waves, trial.bounds, &trial.standing, &trial.progress, one, trial.now);
    assert_eq!(paused.phase, Phase::Paused(Halt::Rejected("one".to_owned())));
}

#[test]
fn clusters_that_a_revision_does_not_change_are_no_part_of_its_rollout() {
    let names = ["a", "b", "c"];
    let (mut wanted, mut had) = (all_having(&names, "new"), all_having(&names, "old"));
    had.insert(id("a"), having("new"));
    let yaml = "{waves: [{name: one, size: 1, approval: After}, {name: two, size: 1, approval: After}]}";
    let first = frozen(yaml, &names, None).beside(&had, &wanted, None);
    assert_eq!(names.map(|name| first.is_unchanged(&id(name))), [true, false, false]);
    assert_eq!(first.waves.iter().map(|wave| wave.counts).collect::<Vec<_>>(), [false, true, true]);
    // Under way: what was given and not judged yet stays in, whatever the next one changes.
    let gave = wanted.clone();
    had.insert(id("b"), having("new"));
    wanted.insert(id("d"), having("new"));
    let all = ["a", "b", "c", "d"];
    for same_inputs in [true, false] {
        let earlier = Some(Earlier { waves: &first, wanted: &gave, same_inputs });
        let next = frozen(yaml, &all, Some(&first)).beside(&had, &wanted, earlier);
        assert_eq!(all.map(|name| next.is_unchanged(&id(name))), [true, false, false, false]);
    }
    let anew = frozen(yaml, &all, Some(&first)).beside(&had, &wanted, None);
    assert_eq!(all.map(|name| anew.is_unchanged(&id(name))), [true, true, false, false]);
    // What goes back to what it had was never given anything.
    let back = all_having(&all, "old");
    let earlier = Some(Earlier { waves: &first, wanted: &gave, same_inputs: false });
    let next = frozen(yaml, &all, Some(&first)).beside(&had, &back, earlier);
    assert_eq!(all.map(|name| next.is_unchanged(&id(name))), [false, false, true, false]);
}

#[test]
fn what_was_given_and_not_judged_stays_in_over_edits() {
    let names = ["a", "b"];
    let yaml = "{waves: [{name: one, size: 1}, {name: two, size: 1, approval: After}]}";
    let red = all_having(&names, "red");
    let [blue, green] = ["blue", "green"].map(|text| all_having(&names, text));
    let first = frozen(yaml, &names, None).beside(&red, &blue, None);
    // Both have blue and nobody has judged b; the next one reaches a alone before it is taken back by an edit.
    let earlier = Earlier { waves: &first, wanted: &blue, same_inputs: false };
    let second = frozen(yaml, &names, Some(&first)).beside(&blue, &green, Some(earlier));
    let mut had = blue.clone();
    had.insert(id("a"), having("green"));
    let earlier = Earlier { waves: &second, wanted: &green, same_inputs: false };
    let third = frozen(yaml, &names, Some(&second)).beside(&had, &blue, Some(earlier));
    assert_eq!(names.map(|name| third.is_unchanged(&id(name))), [false, false]);
    assert!(third.waves.iter().take(2).all(|wave| wave.counts), "the gate of b counts");
}

#[test]
fn a_rollout_that_ended_as_older_versions_said_is_over() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1}, {name: two, size: 1}]}", &["a", "b"]);
    trial.bounds.beyond = OnFailure::Rollback;
    trial.all(Standing::Before, Standing::Failed);
    trial.progress = Progress { wave: 1, done_at: Some(trial.now), ..Progress::default() };
    assert_eq!((trial.go(), trial.progress.wave, trial.progress.taken_back), (Phase::Done, 3, false));
}

#[test]
fn what_is_cured_after_a_pause_is_watched_anew() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1, soak: 10m}]}", &["a", "b"]);
    trial.go();
    trial.all(Standing::Underway, Standing::Ready);
    trial.go();
    trial.all(Standing::Ready, Standing::Failed);
    assert_eq!(trial.go(), Phase::Paused(Halt::Failures));
    trial.now += 3600;
    trial.all(Standing::Failed, Standing::Ready);
    assert_eq!(trial.go(), Phase::Soaking(Duration::from_mins(10)));
}

#[test]
fn a_rollout_without_a_rest_ends_too() {
    let mut trial = Trial::new("{waves: [{name: one, size: 1}, {name: two, size: 1}]}", &["a", "b"]);
    for _ in 0..2 {
        trial.go();
        trial.all(Standing::Underway, Standing::Ready);
    }
    assert_eq!((trial.go(), trial.progress.wave), (Phase::Done, 3));
    trial.all(Standing::Ready, Standing::Failed);
    assert_eq!(trial.go(), Phase::Done, "that is an outage");
}

#[test]
fn a_lost_memory_takes_nothing_back_and_begins_no_wave_early() {
    let mut trial = Trial::new(
        "{waves: [{name: one, size: 1, soak: 1m}, {name: two, size: 1, soak: 1m}]}",
        &["a", "b", "c"],
    );
    trial.go();
    trial.all(Standing::Underway, Standing::Ready);
    trial.go();
    trial.now += 60;
    assert_eq!((trial.go(), trial.given()), (Phase::Rolling, vec!["a", "b"]));
    trial.progress = Progress::default();
    assert_eq!((trial.go(), trial.given()), (Phase::Soaking(Duration::from_mins(1)), vec!["a", "b"]));
}

fn standings() -> impl Strategy<Value = Standing> {
    prop_oneof![
        Just(Standing::Before),
        Just(Standing::Underway),
        Just(Standing::Ready),
        Just(Standing::Failed)
    ]
}

proptest! {
    /// Whatever is seen and remembered: nobody loses the revision by a step that takes none back, no more are on their way than may be,
    /// and nobody has it whose wave has not begun.
    #[test]
    fn no_step_gives_too_much_or_takes_anything(
        seen in proptest::collection::vec(standings(), 1..8),
        (wave, done_at, at_once, failures) in (0usize..5, proptest::option::of(0i64..2000), 1usize..4, 0usize..3),
        approved in any::<bool>(),
    ) {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let yaml = "{waves: [{name: one, size: 2, soak: 10s}, {name: two, size: 2, approval: Before}]}";
        let trial = Trial::new(yaml, &names[..seen.len()]);
        let standing: BTreeMap<ClusterId, Standing> =
            names.iter().map(|name| id(name)).zip(seen).collect();
        let bounds = Bounds { at_once, failures, beyond: OnFailure::Pause };
        let gate = if approved { Gate::Approved } else { Gate::Open };
        let step = step(&trial.waves, bounds, &standing, &Progress { wave, done_at, ..Progress::default() }, |_| gate, 1000);
        let had: BTreeSet<_> = standing.iter().filter(|(_, s)| **s != Standing::Before).map(|(id, _)| id.clone()).collect();
        prop_assert!(had.is_subset(&step.given));
        let fresh: Vec<_> = step.given.difference(&had).collect();
        let underway = standing.values().filter(|s| **s == Standing::Underway).count();
        prop_assert!(fresh.is_empty() || underway + fresh.len() <= at_once);
        prop_assert!(fresh.iter().all(|id| trial.waves.of(id) <= step.progress.wave));
        let is_before = |id: &&ClusterId| standing[*id] == Standing::Before && !step.given.contains(*id);
        let first = standing.keys().filter(is_before).map(|id| trial.waves.of(id)).min();
        prop_assert!(step.phase != Phase::Done || first.is_none());
        prop_assert!(fresh.iter().all(|id| first.is_none_or(|first| trial.waves.of(id) <= first)));
        prop_assert!(approved || fresh.iter().all(|id| trial.waves.of(id) != 1));
        let failed = standing.values().filter(|s| **s == Standing::Failed).count();
        prop_assert!(failed <= failures || fresh.is_empty());
    }
}
