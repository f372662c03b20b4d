//! Every way in which a policy of ours could be weaker is found, and blamed on the rule that is.

use emco_engine::identity::SetDigest;
use emco_engine::set::{ManifestSet, SetManifest};
use emco_engine::snapshot::Snapshot;
use emco_engine::traffic::Group;
use emco_engine::traffic::proof::{Proof, Question};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

use super::common::Case;
use super::plan;
use super::proof::proven;

type Weaken = fn(&mut Value);

/// Ten ways to let in more, or fewer, than the graph says.
const WAYS: [(&str, Weaken); 10] = [
    ("no clients: everybody", |spec| {
        spec["ingress"][0].as_object_mut().unwrap().remove("from");
    }),
    ("no ports: all", |spec| {
        spec["ingress"][0].as_object_mut().unwrap().remove("ports");
    }),
    ("the protocol alone", |spec| {
        spec["ingress"][0]["ports"][0].as_object_mut().unwrap().remove("port");
    }),
    ("an entry of the protocol beside", |spec| {
        spec["ingress"][0]["ports"].as_array_mut().unwrap().push(json!({"protocol": "TCP"}));
    }),
    ("a range of ports", |spec| {
        spec["ingress"][0]["ports"][0] = json!({"protocol": "TCP", "port": 1024, "endPort": 65535});
    }),
    ("another port beside", |spec| {
        spec["ingress"][0]["ports"].as_array_mut().unwrap().push(json!({"protocol": "TCP", "port": 22}));
    }),
    ("all pods of the namespace", |spec| {
        spec["ingress"][0]["from"].as_array_mut().unwrap().push(json!({"podSelector": {}}));
    }),
    ("all namespaces", |spec| {
        let first = &mut spec["ingress"][0]["from"][0];
        first["namespaceSelector"] = json!({});
    }),
    ("an address of everybody", |spec| {
        spec["ingress"][0]["from"].as_array_mut().unwrap().push(json!({"ipBlock": {"cidr": "0.0.0.0/0"}}));
    }),
    ("one label less", |spec| {
        spec["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
            .as_object_mut()
            .unwrap()
            .remove("release");
    }),
];

/// The proof of a plan in which the policy of the server was changed by hand.
fn proof(case: &Case, weaken: Weaken) -> Proof {
    let snapshot: Snapshot = case.snapshot(None);
    let mut plan = plan(case);
    let weakened = |manifest: &SetManifest| {
        let mut manifest = manifest.clone();
        weaken(&mut manifest.json["spec"]);
        manifest
    };
    for apps in plan.assignment.values_mut() {
        let assigned = apps.get_mut("tgi.front").unwrap();
        let set = plan.sets[&assigned.set].clone();
        assigned.set = SetDigest(format!("{}-weakened", set.digest));
        let manifests = set.manifests.iter().map(weakened).collect();
        let changed = ManifestSet { digest: assigned.set.clone(), app: set.app.clone(), manifests };
        plan.sets.insert(assigned.set.clone(), Arc::new(changed));
    }
    let groups: Vec<Group<'_>> =
        snapshot.traffic.iter().map(|(name, intent)| Group { name, spec: &intent.spec }).collect();
    let question = Question {
        groups: &groups,
        clusters: &snapshot.clusters,
        assignment: &plan.assignment,
        waiting: &plan.waiting,
        sets: &plan.sets,
        namespace: "shop",
        isolation: emco_crds::logical_cloud::Isolation::Closed,
        release: "r1",
    };
    question.proof().unwrap()
}

#[test]
fn a_policy_as_it_was_made_is_proved() {
    assert!(proof(&proven(), |_| {}).violations.is_empty());
}

#[test]
fn a_policy_that_is_weakened_in_any_of_ten_ways_is_found() {
    for (way, weaken) in WAYS {
        let found = proof(&proven(), weaken).violations;
        assert!(!found.is_empty(), "{way}");
        for violation in &found {
            assert_eq!(
                (violation.found.is_extra, violation.found.by.as_str()),
                (true, "NetworkPolicy shop/r1-front-catalog ingress[0] (TrafficGroupIntent front)"),
                "{way}: {violation:?}"
            );
            assert_eq!(violation.clusters.len(), 2, "{way}");
        }
    }
}

#[test]
fn a_policy_that_leaves_a_client_out_is_found_as_well() {
    let none: Weaken = |spec| {
        spec.as_object_mut().unwrap().remove("ingress");
    };
    let found = proof(&proven(), none).violations;
    assert!(
        found.iter().all(|violation| !violation.found.is_extra && violation.found.from == "ui"),
        "{found:?}"
    );
    assert!(!found.is_empty());
}

/// Ports and clients of an intent in which every server differs.
fn servers() -> impl Strategy<Value = Vec<Value>> {
    let client = prop_oneof![
        Just(json!({"name": "ui", "app": "ui", "workload": {"kind": "Deployment", "name": "r1-ui"}})),
        Just(json!({"name": "net", "cidrs": ["10.1.0.0/16"]})),
        Just(json!({"name": "far", "podSelector": {"matchLabels": {"app": "far"}}, "namespaces": ["batch"]})),
        Just(json!({"name": "all", "podSelector": {}, "namespaces": ["batch", "nightly"]})),
    ];
    let server = (prop::collection::vec(client, 1..4), 0..3_usize).prop_map(|(clients, ports)| {
        let ports = [json!(["http"]), json!(["metrics"]), json!(["http", "metrics"])][ports].clone();
        let mut clients = clients;
        clients.sort_by_key(ToString::to_string);
        clients.dedup();
        json!({"app": "catalog", "ports": ports, "clients": clients})
    });
    prop::collection::vec(server, 1..4).prop_map(|mut servers| {
        for (at, server) in servers.iter_mut().enumerate() {
            server["name"] = json!(format!("s{at}"));
        }
        servers
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_made_of_any_intent_is_proved_by_itself(servers in servers()) {
        let mut case = proven();
        case.traffic.get_mut("front").unwrap()["servers"] = json!(servers);
        let found = proof(&case, |_| {}).violations;
        prop_assert!(found.is_empty(), "{found:?}");
    }
}
