//! An app stays where it is while the nodes could carry it when nothing else runs there.

use serde_json::{Value, json};

use super::{Case, case, chosen, consumer, gpus, node, plan};

/// A case that ran on the first cluster of these, with the nodes that they have now.
fn runs(before: &[(&str, Value)], now: &[(&str, Value)]) -> Case {
    let first = case(&[consumer("web", &gpus(1))], before);
    let mut after = case(&[consumer("web", &gpus(1))], now);
    let clusters: Value =
        before.iter().map(|(name, nodes)| (format!("acme/{name}"), json!({"nodes": nodes}))).collect();
    after.before = Some(json!({"clusters": clusters}));
    assert_eq!(chosen(&plan(&first), "web"), ["acme/a"]);
    after
}

fn where_it_is(case: &Case) -> Vec<String> {
    chosen(&plan(case), "web")
}

#[test]
fn use_by_itself_and_by_others_moves_nothing() {
    let before = [("a", node(1, 0)), ("b", node(1, 0))];
    for used in [1, 2, 5] {
        let now = runs(&before, &[("a", node(1, used)), ("b", node(1, 0))]);
        assert_eq!(where_it_is(&now), ["acme/a"], "{used} in use");
    }
}

#[test]
fn it_leaves_when_the_nodes_could_carry_it_no_more() {
    let before = [("a", node(1, 0)), ("b", node(1, 0))];
    let now = runs(&before, &[("a", node(0, 0)), ("b", node(1, 0))]);
    assert_eq!(where_it_is(&now), ["acme/b"]);
}

#[test]
fn a_node_that_flaps_moves_nothing() {
    let mut flapping = node(1, 1);
    flapping["n"]["closed"] = json!(true);
    let now = runs(&[("a", node(1, 0)), ("b", node(1, 0))], &[("a", flapping), ("b", node(1, 0))]);
    assert_eq!(where_it_is(&now), ["acme/a"]);
}

#[test]
fn nodes_that_are_not_listed_move_nothing() {
    let mut now = runs(&[("a", node(1, 0)), ("b", node(1, 0))], &[("a", node(1, 0)), ("b", node(1, 0))]);
    now.clusters.get_mut("acme/a").unwrap().nodes = None;
    assert_eq!(where_it_is(&now), ["acme/a"], "after a start");
}

#[test]
fn a_cluster_that_comes_with_more_of_what_is_preferred_moves_nothing() {
    let mut requirements = gpus(1);
    let preferred =
        json!({"name": "avx", "nodeSelector": {"matchLabels": {"avx": "yes"}}, "importance": "Preferred"});
    requirements.as_array_mut().unwrap().push(preferred);
    let mut better = node(1, 0);
    better["n"]["labels"] = json!({"avx": "yes"});
    let mut now = case(&[consumer("web", &requirements)], &[("a", node(1, 1)), ("b", better)]);
    now.before = Some(json!({"clusters": {"acme/a": {"nodes": node(1, 0)}}}));
    assert_eq!(where_it_is(&now), ["acme/a"]);
}
