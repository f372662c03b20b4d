//! Apps that need hardware and are fenced as well: a cluster has to have both.

use serde_json::{Value, json};

use super::{Case, case, chosen, consumer, gpus, node, plan, refusal, rejected};

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

/// The shop whose app web needs a GPU and is a server; `acme/a` states that policies have no effect.
fn fenced(clusters: &[(&str, Value)]) -> Case {
    let mut case = case(&[consumer("web", &gpus(1))], clusters);
    case.clusters.get_mut("acme/a").unwrap().network_policy = Some("NotEnforced".to_owned());
    case.charts.get_mut("web").unwrap().insert("templates/service.yaml".to_owned(), SERVICE.to_owned());
    let server =
        json!({"name": "web", "app": "web", "clients": [{"name": "office", "cidrs": ["10.1.0.0/16"]}]});
    case.traffic = [("front".to_owned(), json!({"servers": [server]}))].into();
    // In the other order than they are carried out in.
    case.dig["intents"] =
        json!([{"kind": "TrafficGroupIntent", "name": "front"}, {"kind": "HardwareIntent", "name": "gpu"}]);
    case
}

#[test]
fn a_fenced_app_goes_where_the_hardware_is_and_policies_have_an_effect() {
    let plan = plan(&fenced(&[("a", node(4, 0)), ("b", node(0, 0)), ("c", node(1, 0))]));
    assert_eq!(chosen(&plan, "web"), ["acme/c"]);
    let rejected = rejected(&plan, "web");
    assert_eq!(rejected["HardwareMissing"], "1 more nvidia.com/gpu on one node");
    assert_eq!(
        rejected["BackendMissing"],
        "NetworkPolicy enforcement (spec.network.networkPolicy: Enforced)"
    );
    assert_eq!(chosen(&plan, "tgi.front"), ["acme/c"]);
    let all = plan.sets.values().flat_map(|set| &set.manifests);
    let web = all.map(|manifest| &manifest.json).find(|json| json["kind"] == "Deployment").unwrap();
    let resources = &web["spec"]["template"]["spec"]["containers"][0]["resources"];
    assert_eq!(resources["requests"], json!({"nvidia.com/gpu": "1"}));
}

#[test]
fn a_fenced_app_that_finds_no_cluster_is_told_what_lacks() {
    let hardware = refusal(&fenced(&[("a", node(4, 0)), ("b", node(0, 0))]));
    assert_eq!(hardware.reason, "HardwareUnsatisfiable", "{hardware}");
    let policies = refusal(&fenced(&[("a", node(4, 0))]));
    assert_eq!(policies.reason, "BackendMissing", "{policies}");
}
