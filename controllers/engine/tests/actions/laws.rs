//! Laws of edits: those that do nothing leave every byte, and the order in which inputs are given never matters.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_engine::pack::{self, PackObject};
use emco_engine::plan::{self, Plan};
use emco_engine::set::deployed;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CLUSTERS, banner, case, plain, replicas, some_clusters};

/// All that a plan stores.
fn stored(plan: &Plan) -> Vec<PackObject> {
    let sets: Vec<_> = plan.sets.values().cloned().collect();
    let mut all = pack::write_sets("uid", &sets).unwrap();
    all.extend(pack::write_assignment("uid", &plan.assignment).unwrap());
    all
}

fn terms(clusters: &[&str]) -> Value {
    let term = |cluster: &&str| {
        let (provider, name) = cluster.split_once('/').unwrap();
        json!({"provider": provider, "cluster": name})
    };
    clusters.iter().map(term).collect()
}

/// Actions of one intent that touch different things, each on some clusters.
fn actions() -> impl Strategy<Value = Vec<Value>> {
    let annotation = |name: &str| {
        let mut action = replicas(name, 0);
        action["jsonMerge"] = json!({"metadata": {"annotations": {name: "x"}}});
        action
    };
    let all = vec![banner(), replicas("few", 1), annotation("one"), annotation("two")];
    let len = all.len();
    let chosen = prop::sample::subsequence(all, 0..=len);
    (chosen, prop::collection::vec(some_clusters(), len)).prop_map(|(mut actions, allowed)| {
        for (action, allow) in actions.iter_mut().zip(allowed) {
            if let Some(clusters) = allow {
                action["allow"] = terms(&clusters);
            }
        }
        actions
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn intents_without_an_edit_give_the_bytes_of_no_intent(actions in actions()) {
        let denied: Vec<Value> = actions
            .into_iter()
            .map(|mut action| {
                action["deny"] = terms(&CLUSTERS);
                action
            })
            .collect();
        let with = case(&json!(denied), &json!([])).plan().unwrap();
        prop_assert_eq!(stored(&with), stored(&plain().plan().unwrap()));
    }

    #[test]
    fn an_edit_on_one_cluster_leaves_the_bytes_of_all_others(on in 0..CLUSTERS.len()) {
        let mut action = replicas("few", 1);
        action["allow"] = terms(&CLUSTERS[on..=on]);
        let with = case(&json!([action]), &json!([])).plan().unwrap();
        let without = plain().plan().unwrap();
        for (cluster, apps) in &with.assignment {
            let bytes = |apps| serde_json::to_vec(apps).unwrap();
            prop_assert_eq!(
                bytes(apps) == bytes(&without.assignment[cluster]),
                cluster.as_str() != CLUSTERS[on],
                "{}", cluster
            );
        }
    }

    #[test]
    fn the_order_of_actions_and_of_intents_that_do_not_meet_never_matters(
        one in actions(),
        turned in any::<bool>(),
        split in 0..5usize,
    ) {
        let plan = case(&json!(one), &json!([])).plan().unwrap();
        let mut rest = one;
        let mut first = rest.split_off(split.min(rest.len()));
        if turned {
            std::mem::swap(&mut rest, &mut first);
        }
        rest.reverse();
        let mut other = case(&json!(first), &json!(rest));
        if turned {
            other.dig["intents"].as_array_mut().unwrap().reverse();
        }
        let other = other.plan().unwrap();
        let objects = |plan: &Plan| {
            let sets = deployed(&plan.assignment, &plan.sets);
            let of = |apps: &BTreeMap<String, _>| {
                let set = |assigned: &emco_engine::set::Assigned| {
                    let manifests = &sets[&assigned.set].manifests;
                    manifests.iter().map(|manifest| manifest.digest.clone()).collect::<Vec<_>>()
                };
                apps.values().map(set).collect::<Vec<_>>()
            };
            plan.assignment.values().map(of).collect::<Vec<_>>()
        };
        prop_assert_eq!(objects(&plan), objects(&other));
    }

    #[test]
    fn where_an_edit_comes_from_never_matters(before in actions(), after in actions()) {
        let (before, after) = (case(&json!(before), &json!([])), case(&json!(after), &json!([])));
        let anew = after.plan().unwrap();
        let running = before.run(&before.plan().unwrap());
        let edited = plan::plan(&after.snapshot(Some(running.clone()))).unwrap();
        prop_assert_eq!(&edited.plan_digest, &anew.plan_digest);
        prop_assert_eq!(&edited.sets, &anew.sets);
        // Beside another plan that waits.
        let mut snapshot = after.snapshot(Some(running));
        snapshot.waiting = Some(Arc::new(after.run(&edited)));
        prop_assert_eq!(plan::plan(&snapshot).unwrap().sets, anew.sets);
    }
}
