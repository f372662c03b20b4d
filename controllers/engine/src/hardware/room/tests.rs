//! Rooms of small clusters. A node is written as `a cpu=4 memory=8Gi label:gpu=yes`, with `!closed` where it takes no Pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::demand::Needs;
use super::super::nodes::{Node, Nodes, Requested};
use super::super::quantity::thousandths;
use super::*;

fn words(line: &str) -> (Amounts, BTreeMap<String, String>) {
    let (mut amounts, mut labels) = (Amounts::new(), BTreeMap::new());
    for word in line.split(' ').filter(|word| word.contains('=')) {
        let (key, value) = word.split_once('=').unwrap();
        match key.strip_prefix("label:") {
            Some(key) => labels.extend([(key.to_owned(), value.to_owned())]),
            None => amounts.extend([(key.to_owned(), thousandths(value).unwrap())]),
        }
    }
    (amounts, labels)
}

fn name(line: &str) -> String {
    line.split(' ').next().unwrap().to_owned()
}

/// Nodes, and what their Pods request.
fn cluster(nodes: &[&str], used: &[&str]) -> NodeFacts {
    let node = |line: &&str| {
        let (allocatable, labels) = words(line);
        (name(line), Node { open: !line.contains("!closed"), labels, allocatable, ..Node::default() })
    };
    let nodes: Nodes = nodes.iter().map(node).collect();
    let requested: Requested = used.iter().map(|line| (name(line), words(line).0)).collect();
    NodeFacts {
        nodes: Read::Done(Arc::new(nodes)),
        requested: Read::Done(Arc::new(requested)),
        given: Vec::new(),
    }
}

/// Replicas that each need what the line says.
fn demand(replicas: usize, line: &str) -> Demand {
    let (resources, labels) = words(line);
    Demand { origin: name(line), replicas, required: Needs { resources, labels }, preferred: Vec::new() }
}

/// The resources that these replicas need, by name.
fn columns(demands: &[Demand]) -> Vec<&str> {
    let names = demands.iter().flat_map(|demand| demand.required.resources.keys().map(String::as_str));
    names.collect::<BTreeSet<&str>>().into_iter().collect()
}

fn takes(facts: &NodeFacts, demands: &[Demand]) -> Verdict {
    Room::new(Some(facts), &columns(demands)).takes(&demands.iter().collect::<Vec<_>>())
}

fn carries(facts: &NodeFacts, demands: &[Demand]) -> Verdict {
    Room::new(Some(facts), &columns(demands)).carries(&demands.iter().collect::<Vec<_>>())
}

fn lacks(verdict: &Verdict) -> (&str, &str) {
    let lack = verdict.lack().unwrap_or_else(|| panic!("{verdict:?}"));
    (&lack.origin, &lack.needs)
}

#[test]
fn each_replica_needs_one_node_that_has_all_of_it() {
    let two = cluster(&["a cpu=4 gpu/x=0", "b cpu=1 gpu/x=1"], &[]);
    let verdict = takes(&two, &[demand(1, "web cpu=2 gpu/x=1")]);
    assert_eq!(lacks(&verdict), ("web", "1 more cpu on one node"));
    assert_eq!(takes(&two, &[demand(1, "web cpu=1 gpu/x=1")]), Verdict::Fits);
    let verdict = takes(&two, &[demand(2, "web cpu=1 gpu/x=1")]);
    assert_eq!(lacks(&verdict), ("web", "1 more gpu/x on one node"), "the second replica");
}

#[test]
fn what_is_there_and_used_is_told_from_what_is_not_there() {
    let facts = cluster(&["a gpu/x=2 cpu=8"], &["a gpu/x=2"]);
    assert!(matches!(takes(&facts, &[demand(1, "web gpu/x=1")]), Verdict::InUse(_)));
    assert!(matches!(takes(&facts, &[demand(3, "web gpu/x=1")]), Verdict::Missing(_)));
    assert_eq!(carries(&facts, &[demand(2, "web gpu/x=1")]), Verdict::Fits, "when empty");
}

#[test]
fn a_cluster_that_lacks_a_later_requirement_does_not_qualify() {
    let facts = cluster(&["a cpu=8"], &[]);
    let verdict = takes(&facts, &[demand(1, "web cpu=1 hugepages-2Mi=64Mi")]);
    assert_eq!(lacks(&verdict), ("web", "64Mi more hugepages-2Mi on one node"));
}

#[test]
fn two_consumers_need_not_fit_on_one_node() {
    let facts = cluster(&["a cpu=2 label:disk=nvme", "b cpu=2 gpu/x=1"], &[]);
    let both = [demand(1, "db cpu=2 label:disk=nvme"), demand(1, "web cpu=2 gpu/x=1")];
    assert_eq!(takes(&facts, &both), Verdict::Fits);
}

#[test]
fn memory_is_debited_in_the_unit_that_it_is_counted_in() {
    let facts = cluster(&["a memory=4Gi"], &[]);
    assert_eq!(takes(&facts, &[demand(2, "web memory=2Gi")]), Verdict::Fits);
    let verdict = takes(&facts, &[demand(3, "web memory=2Gi")]);
    assert_eq!(lacks(&verdict), ("web", "2Gi more memory on one node"));
}

#[test]
fn a_try_that_fails_debits_nothing() {
    let facts = cluster(&["a cpu=2", "b cpu=1"], &[]);
    let columns = ["cpu"];
    let room = Room::new(Some(&facts), &columns);
    let (large, small) = (demand(2, "large cpu=2"), demand(3, "small cpu=1"));
    assert!(matches!(room.takes(&[&large]), Verdict::Missing(_)));
    assert_eq!(room.takes(&[&small]), Verdict::Fits);
}

#[test]
fn what_was_just_given_to_another_deployment_is_taken() {
    let mut facts = cluster(&["a gpu/x=1"], &[]);
    facts.given.push(Arc::new(demand(1, "theirs gpu/x=1")));
    let verdict = takes(&facts, &[demand(1, "ours gpu/x=1")]);
    assert_eq!(lacks(&verdict), ("ours", "1 more gpu/x on one node"));
    assert!(matches!(verdict, Verdict::InUse(_)));
    assert_eq!(carries(&facts, &[demand(1, "ours gpu/x=1")]), Verdict::Fits);
}

#[test]
fn what_was_given_counts_with_all_that_it_asks_for() {
    let mut facts = cluster(&["a cpu=8 gpu/x=1", "b cpu=2 gpu/x=1"], &[]);
    // It can only be on a.
    facts.given.push(Arc::new(demand(1, "theirs cpu=6 gpu/x=1")));
    assert_eq!(takes(&facts, &[demand(1, "ours gpu/x=1")]), Verdict::Fits);
    assert!(matches!(takes(&facts, &[demand(2, "ours gpu/x=1")]), Verdict::InUse(_)));
}

#[test]
fn nodes_that_take_no_pods_give_no_room_and_move_nothing() {
    let facts = cluster(&["a cpu=8 !closed"], &[]);
    let verdict = takes(&facts, &[demand(1, "web cpu=1")]);
    assert_eq!(lacks(&verdict), ("web", "a node that is ready and takes Pods"));
    assert_eq!(carries(&facts, &[demand(1, "web cpu=1")]), Verdict::Fits);
}

#[test]
fn a_device_plugin_that_restarts_gives_no_room_and_moves_nothing() {
    let mut facts = cluster(&["a cpu=8 gpu/x=0"], &[]);
    let mut nodes = facts.nodes.done().unwrap().as_ref().clone();
    nodes.get_mut("a").unwrap().away.insert("gpu/x".to_owned(), 1000);
    facts.nodes = Read::Done(Arc::new(nodes));
    assert!(matches!(takes(&facts, &[demand(1, "web gpu/x=1")]), Verdict::Missing(_)));
    assert_eq!(carries(&facts, &[demand(1, "web gpu/x=1")]), Verdict::Fits);
    assert!(matches!(carries(&facts, &[demand(2, "web gpu/x=1")]), Verdict::Missing(_)));
}

#[test]
fn a_label_that_no_node_has_is_named() {
    let facts = cluster(&["a cpu=8", "b cpu=8 label:avx512=false"], &[]);
    let verdict = takes(&facts, &[demand(1, "web cpu=1 label:avx512=true")]);
    assert_eq!(lacks(&verdict), ("web", "a node with avx512=true"));
    let verdict = takes(&facts, &[demand(1, "web cpu=9 label:avx512=false")]);
    assert_eq!(lacks(&verdict), ("web", "1 more cpu on one node with avx512=false"));
}

#[test]
fn labels_alone_need_no_list_of_pods_and_are_met_by_one_node() {
    let mut facts = cluster(&["a label:avx512=true"], &[]);
    facts.requested = Read::Forbidden;
    assert_eq!(takes(&facts, &[demand(5, "web label:avx512=true")]), Verdict::Fits);
}

#[test]
fn what_is_not_known_is_said_and_what_is_not_there_is_known() {
    let mut facts = cluster(&["a cpu=4"], &[]);
    facts.requested = Read::Forbidden;
    assert_eq!(takes(&facts, &[demand(1, "web cpu=1")]), Verdict::Unknown("the right to list its Pods"));
    assert!(matches!(takes(&facts, &[demand(1, "web cpu=5")]), Verdict::Missing(_)));
    facts.requested = Read::Not;
    assert_eq!(takes(&facts, &[demand(1, "web cpu=1")]), Verdict::Unknown("its Pods to be listed"));
    facts.nodes = Read::Forbidden;
    assert_eq!(takes(&facts, &[demand(1, "web cpu=1")]), Verdict::Unknown("the right to list its nodes"));
    let room = Room::new(None, &["cpu"]);
    let web = demand(1, "web cpu=1");
    assert_eq!(room.carries(&[&web]), Verdict::Unknown("its nodes to be listed"));
}

#[test]
fn the_largest_come_first_whatever_their_order() {
    let facts = cluster(&["a cpu=4", "b cpu=4"], &[]);
    let (large, small) = (demand(1, "large cpu=4"), demand(4, "small cpu=1"));
    for order in [[small.clone(), large.clone()], [large, small]] {
        assert_eq!(takes(&facts, &order), Verdict::Fits);
    }
}

#[test]
fn what_is_preferred_counts_where_one_node_has_it_beside_what_is_required() {
    let facts = cluster(&["a cpu=4", "b cpu=1 label:avx512=true"], &[]);
    let preferred = |cpu: &str| {
        let (resources, labels) = words(&format!("x cpu={cpu} label:avx512=true"));
        let web = demand(1, &format!("web cpu={cpu}"));
        Demand { preferred: vec![(20, Needs { resources, labels })], ..web }
    };
    let room = Room::new(Some(&facts), &["cpu"]);
    assert_eq!(room.weight(&[&preferred("1")]), 20);
    assert_eq!(room.weight(&[&preferred("2")]), 0);
}

#[test]
fn five_thousand_nodes_are_judged_at_once() {
    let lines: Vec<String> = (0..5000).map(|number| format!("n{number} cpu=8 gpu/x=1")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let facts = cluster(&lines, &[]);
    assert_eq!(takes(&facts, &[demand(100, "web cpu=4 gpu/x=1")]), Verdict::Fits);
}

#[test]
fn a_thousand_replicas_on_five_thousand_nodes_are_no_product() {
    let lines: Vec<String> = (0..5000).map(|number| format!("n{number} cpu=8 gpu/x=1")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let facts = cluster(&lines, &[]);
    let all: Vec<Demand> = (0..32).map(|number| demand(1000, &format!("web{number} cpu=1"))).collect();
    let began = std::time::Instant::now();
    assert_eq!(takes(&facts, &all), Verdict::Fits);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn amounts_that_no_node_can_have_are_judged_without_a_fault() {
    let (most, least) = ("9".repeat(35), format!("-{}", "9".repeat(35)));
    let facts = cluster(&[&format!("a cpu={least} gpu/x={most}")], &[&format!("a cpu={most} gpu/x={least}")]);
    let web = demand(2, &format!("web cpu={most} gpu/x={most}"));
    assert!(matches!(takes(&facts, std::slice::from_ref(&web)), Verdict::Missing(_)));
    assert!(matches!(carries(&facts, &[web]), Verdict::Missing(_)));
}
