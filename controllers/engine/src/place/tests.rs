use std::collections::BTreeMap;

use emco_crds::cluster::PolicySupport;

use super::*;
use crate::identity::SetDigest;
use crate::set::Assigned;

/// `acme/a1 tier=edge disk=nvme`, with `!cordoned`, `!drained`, `!away`, `!open` and `!outside` as switches.
fn world(lines: &[&str]) -> (BTreeMap<ClusterId, ClusterFacts>, CloudFacts) {
    let mut clusters = BTreeMap::new();
    let mut inside = BTreeSet::new();
    for line in lines {
        let mut words = line.split(' ');
        let id = ClusterId::parse(words.next().unwrap()).unwrap();
        let mut facts = ClusterFacts {
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
        let mut outside = false;
        for word in words {
            match word {
                "!cordoned" => facts.scheduling = Scheduling::Cordoned,
                "!drained" => facts.scheduling = Scheduling::Drained,
                "!away" => facts.reachable = false,
                "!open" => facts.network_policy = Some(PolicySupport::NotEnforced),
                "!outside" => outside = true,
                label => {
                    let (key, value) = label.split_once('=').unwrap();
                    facts.labels.insert(key.to_owned(), value.to_owned());
                }
            }
        }
        if !outside {
            inside.insert(id.clone());
        }
        clusters.insert(id, facts);
    }
    let cloud = CloudFacts {
        name: "edge".to_owned(),
        level: "Admin".to_owned(),
        namespace: "shop".to_owned(),
        reach: crate::role::Reach::default(),
        derived: None,
        isolation: emco_crds::logical_cloud::Isolation::None,
        clusters: inside,
    };
    (clusters, cloud)
}

fn running(app: &str, clusters: &[&str]) -> Assignment {
    let assigned = Assigned {
        set: SetDigest("s".to_owned()),
        render_key: String::new(),
        now: 0,
        release_revision: 1,
        findings: None,
        provenance: None,
        rendered_revision: None,
        tests: None,
        edits: None,
    };
    clusters
        .iter()
        .map(|c| (ClusterId::parse(c).unwrap(), [(app.to_owned(), assigned.clone())].into()))
        .collect()
}

fn choose_of(
    lines: &[&str],
    placement: &str,
    used: &[&str],
    unchanged: bool,
) -> Result<AppPlacement, Refusal> {
    let (clusters, cloud) = world(lines);
    let placement: Placement = serde_yaml::from_str(placement).unwrap();
    let running = running("web", used);
    let request = Request {
        clusters: &clusters,
        cloud: &cloud,
        placement: &placement,
        hardware: &Demands::default(),
        apps: &["web"],
        fenced: &BTreeSet::new(),
        running: Some(&running),
        unchanged,
    };
    place(&request).map(|mut placed| placed.remove(0).1).map_err(|refusal| *refusal)
}

fn choose(lines: &[&str], placement: &str, used: &[&str]) -> Vec<String> {
    let placed = choose_of(lines, placement, used, false).unwrap();
    placed.chosen.iter().map(ToString::to_string).collect()
}

fn refusal(lines: &[&str], placement: &str, used: &[&str]) -> (&'static str, String) {
    let refusal = choose_of(lines, placement, used, false).unwrap_err();
    assert_eq!(refusal.condition, "Placed");
    assert!(!refusal.stalled);
    (refusal.reason, refusal.message)
}

const EDGE: &str = "allOf: [{selector: {matchLabels: {tier: edge}}}]";
const ANY: &str = "anyOf: [{from: [{selector: {}}]}]";

#[test]
fn all_of_takes_every_match_and_a_cluster_matched_twice_counts_once() {
    let lines = ["acme/a tier=edge hot=yes", "acme/b tier=edge", "acme/c tier=core"];
    let twice = "allOf: [{selector: {matchLabels: {tier: edge}}}, {selector: {matchLabels: {hot: 'yes'}}}]";
    assert_eq!(choose(&lines, twice, &[]), ["acme/a", "acme/b"]);
}

#[test]
fn a_cluster_in_all_of_and_any_of_stays_and_counts_for_the_group() {
    let lines = ["acme/a tier=edge", "acme/b"];
    let both =
        "{allOf: [{selector: {matchLabels: {tier: edge}}}], anyOf: [{count: 1, from: [{selector: {}}]}]}";
    assert_eq!(choose(&lines, both, &[]), ["acme/a"]);
}

#[test]
fn any_of_candidates_outside_the_logical_cloud_are_not_chosen() {
    assert_eq!(choose(&["acme/a !outside", "acme/b"], ANY, &[]), ["acme/b"]);
}

#[test]
fn a_new_choice_prefers_the_reachable_and_then_the_name() {
    assert_eq!(choose(&["acme/a !away", "acme/c", "acme/b"], ANY, &[]), ["acme/b"]);
}

#[test]
fn a_choice_stays_though_a_cluster_with_an_earlier_name_comes() {
    assert_eq!(choose(&["acme/a", "acme/b"], ANY, &["acme/b"]), ["acme/b"]);
}

#[test]
fn a_cluster_that_is_unreachable_keeps_what_was_chosen_for_it() {
    assert_eq!(choose(&["acme/a", "acme/b !away"], ANY, &["acme/b"]), ["acme/b"]);
    assert_eq!(choose(&["acme/a tier=edge !away"], EDGE, &[]), ["acme/a"]);
}

#[test]
fn a_choice_that_no_longer_qualifies_is_replaced() {
    let nvme = "anyOf: [{from: [{selector: {matchLabels: {disk: nvme}}}]}]";
    assert_eq!(choose(&["acme/a", "acme/b disk=nvme"], nvme, &["acme/a"]), ["acme/b"]);
}

#[test]
fn a_cordoned_cluster_keeps_what_it_has_and_takes_nothing_new() {
    let lines = ["acme/a tier=edge !cordoned", "acme/b tier=edge"];
    assert_eq!(choose(&lines, EDGE, &[]), ["acme/b"]);
    assert_eq!(choose(&lines, EDGE, &["acme/a"]), ["acme/a", "acme/b"]);
}

#[test]
fn a_drained_cluster_loses_what_it_has_where_another_can_take_it() {
    assert_eq!(choose(&["acme/a !drained", "acme/b"], ANY, &["acme/a"]), ["acme/b"]);
    let (reason, message) = refusal(&["acme/a tier=edge !drained"], EDGE, &["acme/a"]);
    assert_eq!(reason, "NoClusterMatches");
    assert_eq!(
        message,
        "app web: no cluster matches spec.placement.allOf; nearest is acme/a, which needs scheduling: Enabled (1 cluster \
         considered)"
    );
}

#[test]
fn no_match_names_the_nearest_cluster_and_what_it_needs() {
    let lines = ["acme/bonn tier=core", "acme/oslo-2 tier=core zone=n", "other/x"];
    let rule = "allOf: [{provider: acme, selector: {matchLabels: {tier: edge, zone: n}}}]";
    let (reason, message) = refusal(&lines, rule, &[]);
    assert_eq!(reason, "NoClusterMatches");
    assert_eq!(
        message,
        "app web: no cluster matches spec.placement.allOf; nearest is acme/oslo-2, which needs label tier=edge (3 clusters \
         considered)"
    );
}

#[test]
fn a_group_that_would_get_too_few_is_refused() {
    let rule = "anyOf: [{count: 2, from: [{selector: {matchLabels: {disk: nvme}}}]}]";
    let (reason, message) = refusal(&["acme/a disk=nvme", "acme/b disk=ssd"], rule, &[]);
    assert_eq!(reason, "NotEnoughClusters");
    assert_eq!(
        message,
        "app web: spec.placement.anyOf[0] needs at least 2 clusters and 1 qualify; nearest is acme/b, which needs label \
         disk=nvme (2 clusters considered)"
    );
    let lenient = "anyOf: [{count: 2, min: 1, from: [{selector: {matchLabels: {disk: nvme}}}]}]";
    assert_eq!(choose(&["acme/a disk=nvme", "acme/b disk=ssd"], lenient, &[]), ["acme/a"]);
}

#[test]
fn a_cluster_named_by_all_of_must_exist_and_be_in_the_cloud() {
    let rule = "allOf: [{selector: {}}, {provider: acme, cluster: gone}]";
    let (reason, message) = refusal(&["acme/a"], rule, &[]);
    assert_eq!(reason, "ClusterNotFound");
    assert_eq!(
        message,
        "app web: spec.placement.allOf names cluster acme/gone, which does not exist: register that Cluster or remove the \
         term"
    );
    let (reason, message) = refusal(&["acme/a", "acme/gone !outside"], rule, &[]);
    assert_eq!(reason, "ClusterNotInLogicalCloud");
    assert!(message.contains("acme/gone, which is not a cluster of logical cloud edge"), "{message}");
}

#[test]
fn a_cluster_named_by_a_group_that_does_not_exist_is_one_candidate_less() {
    let rule = "anyOf: [{from: [{provider: acme, cluster: gone}, {provider: acme, cluster: a}]}]";
    let placed = choose_of(&["acme/a"], rule, &[], false).unwrap();
    assert_eq!(placed.chosen, [ClusterId::new("acme", "a")]);
    assert_eq!(placed.rejected[0].reason, "ClusterNotFound");
}

#[test]
fn every_rejected_cluster_is_counted_under_one_reason_with_the_nearest_as_example() {
    let lines = [
        "acme/a tier=edge",
        "acme/b tier=edge !cordoned",
        "acme/c tier=edge !outside",
        "acme/d",
        "acme/e",
        "other/f tier=edge",
    ];
    let rule = "allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]";
    let placed = choose_of(&lines, rule, &[], false).unwrap();
    let rejected: Vec<_> = placed
        .rejected
        .iter()
        .map(|r| format!("{} {} {}: {}", r.reason, r.clusters, r.example, r.needs))
        .collect();
    assert_eq!(
        rejected,
        [
            "LabelMissing 2 acme/d: label tier=edge",
            "Cordoned 1 acme/b: scheduling: Enabled",
            "NotInLogicalCloud 1 acme/c: to be a cluster of logical cloud edge",
            "NotSelected 1 other/f: provider acme",
        ]
    );
}

#[test]
fn an_exception_replaces_the_rule_as_a_whole() {
    let (clusters, cloud) = world(&["acme/a tier=edge", "acme/b"]);
    let placement: Placement = serde_yaml::from_str(
        "{allOf: [{selector: {matchLabels: {tier: edge}}}], apps: [{app: db, anyOf: [{from: [{provider: acme, cluster: b}]}]}]}",
    )
    .unwrap();
    let request = Request {
        clusters: &clusters,
        cloud: &cloud,
        placement: &placement,
        hardware: &Demands::default(),
        apps: &["web", "db"],
        fenced: &BTreeSet::new(),
        running: None,
        unchanged: false,
    };
    let placed = place(&request).unwrap();
    let names: Vec<_> = placed.iter().map(|(app, p)| format!("{app} {}", p.chosen[0])).collect();
    assert_eq!(names, ["web acme/a", "db acme/b"]);
}

#[test]
fn an_app_that_no_rule_speaks_of_is_refused_with_the_cure() {
    let (reason, message) = refusal(&["acme/a"], "apps: [{app: db, allOf: [{selector: {}}]}]", &["acme/a"]);
    assert_eq!(reason, "NoClusterMatches");
    assert_eq!(
        message,
        "app web: spec.placement says no clusters for it: add allOf or anyOf there, or an entry for web to \
         spec.placement.apps"
    );
}

#[test]
fn a_frozen_choice_ignores_labels_until_the_spec_changes() {
    let frozen = "{allOf: [{selector: {matchLabels: {tier: edge}}}], membership: Frozen}";
    let lines = ["acme/a", "acme/b tier=edge"];
    let chosen = |unchanged| {
        let placed = choose_of(&lines, frozen, &["acme/a"], unchanged).unwrap();
        (placed.chosen[0].to_string(), placed.rejected[0].reason.clone())
    };
    assert_eq!(chosen(true), ("acme/a".to_owned(), "Frozen".to_owned()));
    assert_eq!(chosen(false), ("acme/b".to_owned(), "LabelMissing".to_owned()));
}

#[test]
fn a_lowered_count_lets_the_least_wanted_go() {
    let one = "anyOf: [{count: 1, from: [{selector: {}}]}]";
    assert_eq!(choose(&["acme/a !away", "acme/b"], one, &["acme/a", "acme/b"]), ["acme/b"]);
}

#[test]
fn overlapping_groups_keep_both_their_choices() {
    // b was taken while it was the only reachable one of the first group.
    let rule = "anyOf: [{from: [{provider: acme}]}, {from: [{provider: acme, cluster: a}]}]";
    assert_eq!(choose(&["acme/a", "acme/b"], rule, &["acme/a", "acme/b"]), ["acme/a", "acme/b"]);
}

#[test]
fn every_cluster_has_a_verdict_and_a_reason() {
    let (clusters, cloud) = world(&[
        "acme/a tier=edge",
        "acme/b tier=edge !cordoned",
        "acme/c",
        "acme/d tier=edge !outside",
        "acme/e disk=nvme",
    ]);
    let placement: Placement = serde_json::from_value(serde_json::json!({
        "allOf": [{"selector": {"matchLabels": {"tier": "edge"}}}],
        "anyOf": [{"from": [{"selector": {"matchLabels": {"disk": "nvme"}}}, {"provider": "acme", "cluster": "ghost"}]}],
    }))
    .unwrap();
    let request = Request {
        clusters: &clusters,
        cloud: &cloud,
        placement: &placement,
        hardware: &Demands::default(),
        apps: &["web"],
        fenced: &BTreeSet::new(),
        running: None,
        unchanged: false,
    };
    let explained = explain(&request, &place(&request).unwrap());
    let rows: Vec<String> = explained[0]
        .clusters
        .iter()
        .map(|row| format!("{} {:?} {} [{}]", row.cluster, row.verdict, row.reason, row.needs))
        .collect();
    assert_eq!(explained[0].app, "web");
    assert_eq!(
        rows,
        [
            "acme/a Chosen allOf []",
            "acme/b Rejected Cordoned [scheduling: Enabled]",
            "acme/c Rejected LabelMissing [label tier=edge]",
            "acme/d Rejected NotInLogicalCloud [to be a cluster of logical cloud edge]",
            "acme/e Chosen anyOf[0] []",
            "acme/ghost Rejected ClusterNotFound [a Cluster of that name]",
        ]
    );
}

/// The choice of an app that needs NetworkPolicies.
fn fenced(lines: &[&str], placement: &str, used: &[&str]) -> Result<AppPlacement, Refusal> {
    let (clusters, cloud) = world(lines);
    let placement: Placement = serde_yaml::from_str(placement).unwrap();
    let running = running("web", used);
    let request = Request {
        clusters: &clusters,
        cloud: &cloud,
        placement: &placement,
        hardware: &Demands::default(),
        apps: &["web"],
        fenced: &["web"].into(),
        running: Some(&running),
        unchanged: false,
    };
    place(&request).map(|mut placed| placed.remove(0).1).map_err(|refusal| *refusal)
}

#[test]
fn a_fenced_app_goes_to_no_cluster_that_states_to_enforce_nothing() {
    let placed = fenced(&["acme/a", "acme/b !open"], "allOf: [{selector: {}}]", &[]).unwrap();
    assert_eq!(placed.chosen, [ClusterId::new("acme", "a")]);
    let rejected = &placed.rejected[0];
    assert_eq!((rejected.reason.as_str(), rejected.clusters), ("BackendMissing", 1));
    assert_eq!(rejected.needs, "NetworkPolicy enforcement (spec.network.networkPolicy: Enforced)");
}

#[test]
fn a_fenced_app_stays_where_it_runs() {
    let lines = ["acme/a", "acme/b !open", "acme/c !open"];
    let placed = fenced(&lines, "allOf: [{selector: {}}]", &["acme/b"]).unwrap();
    assert_eq!(placed.chosen, [ClusterId::new("acme", "a"), ClusterId::new("acme", "b")]);
}

#[test]
fn a_fenced_app_without_any_cluster_is_told_what_clusters_lack() {
    let refusal = fenced(&["acme/b !open"], "anyOf: [{from: [{selector: {}}]}]", &[]).unwrap_err();
    assert_eq!(refusal.reason, "BackendMissing");
    assert!(
        refusal.message.contains(
            "nearest is acme/b, which needs NetworkPolicy enforcement (spec.network.networkPolicy: Enforced)"
        ),
        "{}",
        refusal.message
    );
    let others = fenced(&["acme/b !open tier=core"], "allOf: [{selector: {matchLabels: {tier: edge}}}]", &[]);
    assert_eq!(others.unwrap_err().reason, "NoClusterMatches");
}
