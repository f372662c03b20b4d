//! Laws that hold for every fleet and every rule: placement is deterministic and sticky, nothing ends on no cluster, and
//! the digest of the inputs sees content and nothing else.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Case, ClusterCase};
use emco_engine::cloud::CloudFacts;
use emco_engine::hardware::Demands;
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::place::{self, Request};
use emco_engine::placement::AppPlacement;
use emco_engine::plan;
use emco_engine::role::Reach;
use emco_engine::set::{Assigned, Assignment};
use emco_engine::snapshot::{ClusterFacts, Scheduling};
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
struct Fleet(BTreeMap<ClusterId, (ClusterFacts, bool)>);

impl Fleet {
    fn facts(&self) -> BTreeMap<ClusterId, ClusterFacts> {
        self.0.iter().map(|(id, (facts, _))| (id.clone(), facts.clone())).collect()
    }

    fn cloud(&self) -> CloudFacts {
        CloudFacts {
            name: "edge".to_owned(),
            level: "Admin".to_owned(),
            namespace: "shop".to_owned(),
            reach: Reach { cluster: true, ..Reach::default() },
            derived: None,
            isolation: emco_crds::logical_cloud::Isolation::None,
            clusters: self.0.iter().filter(|(_, (_, inside))| *inside).map(|(id, _)| id.clone()).collect(),
        }
    }
}

fn label() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[ab]", "[xy]", 0..=2)
}

fn fleet() -> impl Strategy<Value = Fleet> {
    let one =
        (label(), 0..8u8, any::<bool>(), 0..10u8).prop_map(|(labels, scheduling, reachable, inside)| {
            let scheduling = match scheduling {
                0 => Scheduling::Cordoned,
                1 => Scheduling::Drained,
                _ => Scheduling::Enabled,
            };
            (labels, scheduling, reachable, inside > 0)
        });
    prop::collection::btree_map("[a-h]", one, 1..8).prop_map(|clusters| {
        let clusters = clusters.into_iter().map(|(name, (labels, scheduling, reachable, inside))| {
            let id = ClusterId::new("acme", &name);
            let facts = ClusterFacts {
                id: id.clone(),
                labels,
                properties: BTreeMap::new(),
                scheduling,
                reachable,
                by_git: false,
                uid: None,
                kubernetes_version: None,
                apis: None,
                nodes: None,
                network_policy: None,
            };
            (id, (facts, inside))
        });
        Fleet(clusters.collect())
    })
}

fn term() -> impl Strategy<Value = Value> {
    label().prop_map(|labels| json!({"selector": {"matchLabels": labels}}))
}

fn rule() -> impl Strategy<Value = Value> {
    let group = (1..4i32, 1..3i32, prop::collection::vec(term(), 1..3))
        .prop_map(|(count, min, from)| json!({"count": count, "min": min.min(count), "from": from}));
    let all_of = prop::collection::vec(term(), 0..2);
    let any_of = prop::collection::vec(group, 0..4);
    (all_of, any_of).prop_map(|(all_of, any_of)| json!({"allOf": all_of, "anyOf": any_of}))
}

fn assignment(clusters: impl IntoIterator<Item = ClusterId>) -> Assignment {
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
    clusters.into_iter().map(|id| (id, [("web".to_owned(), assigned.clone())].into())).collect()
}

fn choose(fleet: &Fleet, rule: &Value, running: Option<&Assignment>) -> Option<AppPlacement> {
    let (clusters, cloud) = (fleet.facts(), fleet.cloud());
    let placement = serde_json::from_value(rule.clone()).unwrap();
    let hardware = Demands::default();
    let request = Request {
        clusters: &clusters,
        cloud: &cloud,
        placement: &placement,
        hardware: &hardware,
        apps: &["web"],
        fenced: &std::collections::BTreeSet::new(),
        running,
        unchanged: false,
    };
    place::place(&request).ok().map(|mut placed| placed.remove(0).1)
}

proptest! {
    #[test]
    fn the_order_of_terms_does_not_matter(fleet in fleet(), rule in rule()) {
        let mut turned = rule.clone();
        turned["allOf"].as_array_mut().unwrap().reverse();
        for group in turned["anyOf"].as_array_mut().unwrap() {
            group["from"].as_array_mut().unwrap().reverse();
        }
        let chosen = |rule| choose(&fleet, rule, None).map(|placed| placed.chosen);
        prop_assert_eq!(chosen(&rule), chosen(&turned));
    }

    #[test]
    fn a_choice_stays_whatever_becomes_unreachable_or_joins(
        before in fleet(),
        rule in rule(),
        after in prop::collection::vec(any::<bool>(), 8),
        joins in fleet(),
    ) {
        let Some(first) = choose(&before, &rule, None) else { return Ok(()) };
        let mut fleet = before.clone();
        for (facts, reachable) in fleet.0.values_mut().zip(after) {
            facts.0.reachable = reachable;
        }
        for (id, newcomer) in joins.0 {
            fleet.0.entry(id).or_insert(newcomer);
        }
        let running = assignment(first.chosen.clone());
        let second = choose(&fleet, &rule, Some(&running)).expect("what was enough stays enough");
        let lost: Vec<_> = first.chosen.iter().filter(|id| !second.chosen.contains(id)).collect();
        prop_assert!(lost.is_empty(), "{lost:?} left");
    }

    #[test]
    fn deciding_again_changes_nothing(fleet in fleet(), rule in rule(), used in fleet()) {
        let used = assignment(used.0.into_keys());
        let Some(first) = choose(&fleet, &rule, Some(&used)) else { return Ok(()) };
        let again = choose(&fleet, &rule, Some(&assignment(first.chosen.clone())));
        prop_assert_eq!(again.map(|placed| placed.chosen), Some(first.chosen));
    }

    #[test]
    fn no_app_ends_on_no_cluster_and_none_on_one_it_may_not_have(
        fleet in fleet(),
        rule in rule(),
        used in fleet(),
    ) {
        let used: BTreeSet<_> = used.0.into_keys().collect();
        let Some(placed) = choose(&fleet, &rule, Some(&assignment(used.clone()))) else { return Ok(()) };
        prop_assert!(!placed.chosen.is_empty());
        let cloud = fleet.cloud();
        for id in &placed.chosen {
            prop_assert!(cloud.clusters.contains(id));
            match fleet.0[id].0.scheduling {
                Scheduling::Enabled => {}
                Scheduling::Cordoned => prop_assert!(used.contains(id)),
                Scheduling::Drained => prop_assert!(false, "{id} is drained"),
            }
        }
        let rejected: usize = placed.rejected.iter().map(|rejected| rejected.clusters).sum();
        prop_assert_eq!(placed.chosen.len() + rejected, fleet.0.len(), "every cluster has one verdict");
    }

    #[test]
    fn every_group_has_its_least_number(fleet in fleet(), rule in rule()) {
        let Some(placed) = choose(&fleet, &rule, None) else { return Ok(()) };
        for group in rule["anyOf"].as_array().unwrap() {
            let only = json!({"allOf": group["from"]});
            let fitting = choose(&fleet, &only, None).map(|placed| placed.chosen).unwrap_or_default();
            let has = placed.chosen.iter().filter(|id| fitting.contains(id)).count();
            prop_assert!(has >= usize::try_from(group["min"].as_u64().unwrap()).unwrap());
        }
    }
}

fn base() -> Case {
    let mut clusters = BTreeMap::new();
    clusters.insert("acme/a".to_owned(), ClusterCase::default());
    let chart = |text: &str| BTreeMap::from([("values.yaml".to_owned(), format!("a: {text}"))]);
    Case {
        about: String::new(),
        app_status: None,
        dig: json!({
            "placement": {"allOf": [{"selector": {}}], "anyOf": [{"from": [{"provider": "acme"}]}]},
            "overrideValues": [{"app": "web", "values": {"x": 1}}],
        }),
        charts: [("web".to_owned(), chart("1")), ("db".to_owned(), chart("2"))].into(),
        intents: BTreeMap::new(),
        profile: Some(json!({"apps": [
            {"app": "web", "valuesFrom": [
                {"kind": "ConfigMap", "name": "c"}, {"kind": "Secret", "name": "s"},
            ]},
        ]})),
        clusters,
        sources: [
            ("ConfigMap/c/values.yaml".to_owned(), "k: 1".to_owned()),
            ("Secret/s/values.yaml".to_owned(), "k: 2".to_owned()),
        ]
        .into(),
        namespace: None,
        objects_per_app: None,
        reaches: BTreeSet::new(),
        unchecked: BTreeSet::new(),
        hardware: BTreeMap::new(),
        traffic: BTreeMap::new(),
        isolation: None,
        level: None,
        derived: false,
        before: None,
        missing: BTreeSet::new(),
    }
}

fn digest(change: impl FnOnce(&mut Case)) -> String {
    let mut case = base();
    change(&mut case);
    plan::inputs_digest(&case.snapshot(None)).unwrap()
}

#[test]
fn the_inputs_digest_ignores_lifecycle_fields_and_written_defaults() {
    let plain = digest(|_| {});
    let ignored: [(&str, Value); 9] = [
        ("/desiredState", json!("Terminated")),
        ("/suspend", json!(false)),
        ("/renderSerial", json!(0)),
        ("/release", json!("shop")),
        ("/readyClusters", json!("95%")),
        ("/revisionHistoryLimit", json!(3)),
        ("/sync", json!({"drift": "Correct"})),
        ("/progressDeadline", json!("1h")),
        ("/intents", json!([])),
    ];
    for (pointer, value) in ignored {
        let field = pointer.trim_start_matches('/').to_owned();
        assert_eq!(digest(|case| case.dig[&field] = value), plain, "{field}");
    }
    let written_out = json!({
        "allOf": [{"selector": {"matchLabels": {}, "matchExpressions": []}}],
        "anyOf": [{"count": 1, "min": 1, "from": [{"provider": "acme"}]}],
        "membership": "Follow",
    });
    assert_eq!(digest(|case| case.dig["placement"] = written_out), plain);
    assert_eq!(digest(|case| case.dig["overrideValues"][0]["templating"] = json!("None")), plain);
    assert_eq!(
        digest(|case| {
            let entry = &mut case.profile.as_mut().unwrap()["apps"][0];
            entry["templating"] = json!("None");
            entry["values"] = json!({});
            entry["valuesFrom"][0]["key"] = json!("values.yaml");
        }),
        plain
    );
    let renamed = json!({"apps": [{"app": "web", "valuesFrom": [
        {"kind": "ConfigMap", "name": "other"}, {"kind": "Secret", "name": "s"},
    ]}]});
    let content = digest(|case| {
        case.profile = Some(renamed);
        case.sources.insert("ConfigMap/other/values.yaml".to_owned(), "# the same\nk:   1".to_owned());
    });
    assert_eq!(content, plain, "content counts, not where it is kept");
    assert_eq!(digest(|case| case.clusters.get_mut("acme/a").unwrap().unreachable = true), plain);
}

#[test]
fn the_inputs_digest_sees_every_input() {
    let set = |field: &'static str, value: Value| digest(move |case| case.dig[field] = value);
    let source = |key: &'static str, text: &'static str| {
        digest(move |case| drop(case.sources.insert(key.to_owned(), text.to_owned())))
    };
    let digests = [
        digest(|_| {}),
        set("release", json!("r2")),
        set("placement", json!({"allOf": [{"provider": "acme"}]})),
        set("placement", json!({"allOf": [{"selector": {}}]})),
        set("placement", json!({"anyOf": [{"from": [{"selector": {}}]}]})),
        set("placement", json!({"anyOf": [{"count": 2, "from": [{"selector": {}}]}]})),
        set("placement", json!({"anyOf": [{"count": 2, "min": 1, "from": [{"selector": {}}]}]})),
        set("placement", json!({"allOf": [{"selector": {}}], "membership": "Frozen"})),
        set("overrideValues", json!([{"app": "web", "values": {"x": 2}}])),
        set("overrideValues", json!([{"app": "web", "values": {"x": null}}])),
        set("overrideValues", json!([{"app": "web", "values": {}}])),
        set("overrideValues", json!([{"app": "db", "values": {"x": 1}}])),
        set("overrideValues", json!([{"app": "web", "values": {"x": 1}, "templating": "Handlebars"}])),
        set("overrideValues", json!([{"app": "web", "values": {"x": 1}, "clusters": [{"selector": {}}]}])),
        source("ConfigMap/c/values.yaml", "k: 3"),
        source("Secret/s/values.yaml", "k: 3"),
        digest(|case| drop(case.charts.get_mut("web").unwrap().insert("x".to_owned(), String::new()))),
        digest(|case| drop(case.charts.remove("db"))),
        digest(|case| case.unchecked = BTreeSet::from(["web".to_owned()])),
        digest(|case| case.profile.as_mut().unwrap()["apps"][0]["values"] = json!({"y": 1})),
        digest(|case| case.profile = None),
        digest(|case| case.namespace = Some("other".to_owned())),
        digest(|case| case.level = Some("Standard".to_owned())),
    ];
    let distinct: BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len(), "{digests:#?}");
}

#[test]
fn the_inputs_digest_does_not_move_between_releases() {
    // Stored approvals name it. A failure here means that every approval of every hub would be void.
    assert_eq!(digest(|_| {}), "sha256:aff01e6c52f78db91a718f2d14c2732d55226691667a4ce44d47a036548c463c");
}

#[test]
fn the_inputs_digest_does_not_help_to_guess_a_secret() {
    let with = |key: u8| {
        let case = base();
        let mut snapshot = case.snapshot(None);
        let mut installation = snapshot.installation.as_ref().clone();
        installation.digest_key = [key; 32];
        snapshot.installation = std::sync::Arc::new(installation);
        plan::inputs_digest(&snapshot).unwrap()
    };
    assert_ne!(with(1), with(2), "without the key of the installation nobody can test a guess");
}
