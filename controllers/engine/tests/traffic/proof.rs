//! What is proved of who reaches servers, and what is refused.

use emco_crds::deployment_intent_group::reachability::{Reachability, ReachabilityVerdict as Verdict};
use emco_engine::plan;
use serde_json::{Value, json};

use super::common::Case;
use super::{case, chart, plan, refusal};

/// The case, with labels that only this release has: nothing has to be assumed.
pub fn proven() -> Case {
    let mut case = case(&json!({}));
    let own = |text: &str| {
        text.replace("app: ui", "app: ui, release: r1").replace("app: catalog", "app: catalog, release: r1")
    };
    for files in case.charts.values_mut() {
        for text in files.values_mut() {
            *text = own(text);
        }
    }
    let clients = json!([{"name": "ui", "app": "ui", "workload": {"kind": "Deployment", "name": "r1-ui"}}]);
    case.traffic.get_mut("front").unwrap()["servers"][0]["clients"] = clients;
    case
}

pub fn report(case: &mut Case) {
    case.traffic.get_mut("front").unwrap()["onViolation"] = json!("Report");
}

pub fn reachability(case: &Case) -> Reachability {
    plan(case).reachability.unwrap_or_else(|| panic!("nothing is proved"))
}

/// Adds an object to the chart of an app.
fn adding(case: &mut Case, app: &str, file: &str, object: &Value) {
    let files = case.charts.get_mut(app).unwrap();
    files.insert(format!("templates/{file}"), serde_json::to_string(object).unwrap());
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec})
}

/// A policy as charts ship it with `allowExternal: true`.
fn external() -> Value {
    policy(
        "open",
        &json!({"podSelector": {"matchLabels": {"app": "catalog"}}, "ingress": [{"ports": [{"port": 8080}]}]}),
    )
}

#[test]
fn what_the_graph_says_is_proved_where_nothing_says_more() {
    let proof = reachability(&proven());
    assert_eq!((proof.verdict, proof.violations.len()), (Verdict::Proven, 0), "{proof:?}");
    assert_eq!(proof.assumptions, Vec::<String>::new());
    // Of each cluster one port, for one client, three workloads and three strangers.
    assert_eq!(proof.pairs, 2 * (1 + 3 + 3));
    assert!(
        plan(&{
            let mut none = proven();
            none.dig["intents"] = json!([]);
            none
        })
        .reachability
        .is_none()
    );
}

#[test]
fn labels_that_others_may_have_are_an_assumption() {
    let proof = reachability(&case(&json!({})));
    assert_eq!(proof.verdict, Verdict::Assumed);
    assert_eq!(
        proof.assumptions,
        [
            "pods with app=ui of namespace shop are taken for app ui",
            "pods with job=warm of namespace shop are taken for app ui"
        ]
    );
}

#[test]
fn a_cluster_of_which_nothing_is_known_is_an_assumption() {
    let mut case = proven();
    case.clusters.get_mut("acme/b").unwrap().network_policy = None;
    let proof = reachability(&case);
    assert_eq!(proof.verdict, Verdict::Assumed);
    assert_eq!(proof.assumptions, ["acme/b: whether NetworkPolicies are enforced is not known"]);
    case.traffic.get_mut("front").unwrap()["unsupported"] = json!("Ignore");
    case.clusters.get_mut("acme/b").unwrap().network_policy = Some("NotEnforced".to_owned());
    let open = "acme/b: spec.network.networkPolicy is NotEnforced: its servers are open to everybody";
    assert_eq!(reachability(&case).assumptions, [open]);
}

#[test]
fn a_policy_of_a_chart_that_opens_more_refuses_the_plan_by_name() {
    let mut case = proven();
    adding(&mut case, "catalog", "networkpolicy.yaml", &external());
    let refused = refusal(&case);
    assert_eq!(
        (refused.condition, refused.reason, refused.stalled),
        ("Rendered", "ReachabilityViolated", true)
    );
    assert_eq!(
        refused.message,
        "catalog:8080 on 2 clusters is open to any pod of any namespace and any address: NetworkPolicy shop/open ingress[0] (app catalog, \
         catalog/templates/networkpolicy.yaml); turn it off in the chart's values, delete it with a GenericActionIntent, or set \
         onViolation: Report"
    );
}

#[test]
fn the_file_is_named_also_where_the_chart_is_stored() {
    let mut before = proven();
    before.dig["intents"] = json!([]);
    adding(&mut before, "catalog", "networkpolicy.yaml", &external());
    let running = before.run(&plan(&before));
    let mut now = before.clone();
    now.dig["intents"] = json!([{"kind": "TrafficGroupIntent", "name": "front"}]);
    let refused = plan::plan(&now.snapshot(Some(running))).unwrap_err();
    assert!(
        refused.message.contains("(app catalog, catalog/templates/networkpolicy.yaml)"),
        "{}",
        refused.message
    );
}

#[test]
fn reported_it_is_in_the_status_and_runs() {
    let mut case = proven();
    adding(&mut case, "catalog", "networkpolicy.yaml", &external());
    report(&mut case);
    let proof = reachability(&case);
    assert_eq!((proof.verdict, proof.violations.len(), proof.more), (Verdict::Violated, 1, None));
    let violation = &proof.violations[0];
    assert_eq!((violation.to.as_str(), violation.port.as_str(), violation.clusters), ("catalog", "8080", 2));
    assert_eq!(
        (violation.from.as_str(), violation.example.as_str()),
        ("any pod of any namespace and any address", "acme/a")
    );
    assert_eq!(violation.by, "NetworkPolicy shop/open ingress[0] (app catalog)");
}

#[test]
fn a_generic_action_that_deletes_the_open_policy_makes_it_proven() {
    let mut case = proven();
    adding(&mut case, "catalog", "networkpolicy.yaml", &external());
    let target = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "name": "open"});
    let delete = json!({"name": "close", "app": "catalog", "type": "Delete", "target": target});
    case.intents = [("close".to_owned(), json!({"actions": [delete]}))].into();
    case.dig["intents"] = json!([{"kind": "GenericActionIntent", "name": "close"}, {"kind": "TrafficGroupIntent", "name": "front"}]);
    assert_eq!(reachability(&case).verdict, Verdict::Proven);
}

#[test]
fn a_namespace_open_to_itself_is_violated_and_a_closed_one_proven() {
    let mut case = proven();
    case.isolation = Some(json!("DefaultDeny"));
    let refused = refusal(&case);
    assert_eq!(refused.reason, "ReachabilityViolated");
    assert_eq!(
        refused.message,
        "every port of catalog on 2 clusters is open to any pod of namespace shop: NetworkPolicy shop/emco-isolation ingress[0] (its logical \
         cloud); set isolation: Closed in the LogicalCloud, or set onViolation: Report"
    );
    case.isolation = Some(json!("Closed"));
    assert_eq!(reachability(&case).verdict, Verdict::Proven);
}

#[test]
fn without_policies_of_its_own_a_server_is_open() {
    let mut case = proven();
    case.traffic.get_mut("front").unwrap()["networkPolicy"] = json!("None");
    let refused = refusal(&case);
    assert_eq!(
        refused.message,
        "every port of catalog on 2 clusters is open to any pod of any namespace and any address: no NetworkPolicy selects its pods; set \
         networkPolicy: Servers in the TrafficGroupIntent, or set onViolation: Report"
    );
}

#[test]
fn a_chart_that_lets_its_client_not_out_is_a_missing_pair() {
    let mut case = proven();
    let spec = json!({"podSelector": {"matchLabels": {"app": "ui"}}, "policyTypes": ["Egress"],
        "egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]});
    adding(&mut case, "ui", "egress.yaml", &policy("dns", &spec));
    let refused = refusal(&case);
    assert_eq!(
        refused.message,
        "ui does not reach catalog:8080 on 2 clusters: no rule of NetworkPolicy shop/dns egress (app ui, ui/templates/egress.yaml) lets it \
         out; let the client in or out in the chart's values, delete it with a GenericActionIntent, or set onViolation: Report"
    );
}

#[test]
fn a_client_that_a_closed_namespace_keeps_out_is_a_missing_pair() {
    let mut case = proven();
    case.isolation = Some(json!("Closed"));
    case.traffic.get_mut("front").unwrap()["networkPolicy"] = json!("None");
    let refused = refusal(&case);
    assert!(
        refused.message.starts_with(
            "ui does not reach catalog:8080 on 2 clusters: no rule of NetworkPolicy shop/emco-isolation lets it in"
        ),
        "{}",
        refused.message
    );
}

#[test]
fn a_workload_of_the_deployment_that_looks_like_a_client_is_no_client() {
    let mut case = proven();
    let double = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "double"}, "spec": {
        "selector": {"matchLabels": {"app": "ui", "release": "r1", "two": "yes"}},
        "template": {"metadata": {"labels": {"app": "ui", "release": "r1", "two": "yes"}},
            "spec": {"containers": [{"name": "c", "image": "example.com/c"}]}}}});
    adding(&mut case, "catalog", "double.yaml", &double);
    let refused = refusal(&case);
    assert!(
        refused.message.starts_with(
            "catalog:8080 on 2 clusters is open to Deployment double of app catalog (it looks like a client): NetworkPolicy \
             shop/r1-front-catalog ingress[0] (TrafficGroupIntent front)"
        ),
        "{}",
        refused.message
    );
}

#[test]
fn pods_on_the_network_of_their_node_are_an_assumption() {
    let mut case = proven();
    for files in case.charts.values_mut() {
        for text in files.values_mut() {
            *text = text.replace("spec: {containers:", "spec: {hostNetwork: true, containers:");
        }
    }
    let proof = reachability(&case);
    assert_eq!(proof.verdict, Verdict::Assumed);
    assert_eq!(
        proof.assumptions,
        [
            "pods of Deployment r1-ui of app ui have the addresses of their nodes, by which no policy tells them"
        ]
    );
}

#[test]
fn a_range_of_ports_is_open_as_far_as_it_goes() {
    for (ports, port) in [
        (json!([{"port": 8080, "endPort": 8080}]), None),
        (json!([{"port": 8080, "endPort": 9000}]), Some("TCP ports 8080 to 9000")),
        (json!([{"port": "web"}]), None),
        (json!([{"port": "ssh"}]), Some("22")),
        (json!([{"protocol": "UDP", "port": 53}]), Some("UDP 53")),
        (json!([{"protocol": "TCP"}, {"port": 8080}]), Some("every TCP port")),
        (
            json!([{"port": i64::MIN, "endPort": i64::MAX}]),
            Some("TCP ports -9223372036854775808 to 9223372036854775807"),
        ),
    ] {
        let mut case = proven();
        let client = json!([{"podSelector": {"matchLabels": {"app": "ui", "release": "r1"}}}]);
        let spec = json!({"podSelector": {}, "ingress": [{"from": client, "ports": ports}]});
        adding(&mut case, "catalog", "more.yaml", &policy("more", &spec));
        report(&mut case);
        let proof = reachability(&case);
        let found = proof.violations.iter().find(|violation| violation.by.contains("shop/more"));
        assert_eq!(found.map(|violation| violation.port.as_str()), port, "{ports} {proof:?}");
    }
}

#[test]
fn two_intents_allow_what_either_says() {
    let mut case = proven();
    let mut back = case.traffic["front"].clone();
    back["servers"][0]["clients"] = json!([{"name": "corp", "cidrs": ["10.1.0.0/16"]}]);
    case.traffic.insert("back".to_owned(), back);
    case.dig["intents"] = json!([{"kind": "TrafficGroupIntent", "name": "front"}, {"kind": "TrafficGroupIntent", "name": "back"}]);
    assert_eq!(reachability(&case).verdict, Verdict::Proven);
}

#[test]
fn pods_that_others_make_are_an_assumption() {
    let mut case = proven();
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {selector: {app: operator-made}, ports: [{name: http, port: 80}]}\n";
    chart(&mut case, "catalog", service);
    let proof = reachability(&case);
    assert_eq!(
        proof.assumptions,
        ["pods of Service db of app catalog, which others make, have the labels of its selector and no more"]
    );
}

/// The first words of the refusal by a policy that the chart of the server makes.
fn refused_by(file: &str, object: &Value) -> String {
    let mut case = proven();
    case.charts.get_mut("catalog").unwrap().insert(file.to_owned(), serde_json::to_string(object).unwrap());
    let refused = refusal(&case);
    assert_eq!(refused.reason, "ReachabilityViolated", "{}", refused.message);
    refused.message
}

#[test]
fn a_policy_for_labels_that_kubernetes_adds_counts_as_open() {
    for label in ["pod-template-hash", "statefulset.kubernetes.io/pod-name"] {
        let some = json!({"matchExpressions": [{"key": label, "operator": "Exists"}]});
        let message = refused_by(
            "templates/some.yaml",
            &policy("some", &json!({"podSelector": some, "ingress": [{}]})),
        );
        assert!(message.contains("NetworkPolicy shop/some ingress[0] (app catalog"), "{message}");
    }
}

#[test]
fn a_policy_for_some_pods_of_a_workload_closes_none_of_them() {
    let mut case = proven();
    case.traffic.get_mut("front").unwrap()["networkPolicy"] = json!("None");
    let some = json!({"matchExpressions": [{"key": "pod-template-hash", "operator": "DoesNotExist"}]});
    adding(&mut case, "catalog", "some.yaml", &policy("some", &json!({"podSelector": some})));
    assert!(refusal(&case).message.contains("no NetworkPolicy selects its pods"));
}

#[test]
fn a_policy_among_the_definitions_of_a_chart_is_judged_too() {
    let message = refused_by("crds/open.yaml", &external());
    assert!(message.contains("NetworkPolicy shop/open ingress[0] (app catalog"), "{message}");
}

#[test]
fn a_policy_of_a_hook_opens_and_does_not_close() {
    let hook = |mut object: Value| {
        object["metadata"]["annotations"] = json!({"helm.sh/hook": "pre-install,pre-upgrade"});
        object
    };
    let mut case = proven();
    // The main part makes one of the same name, which says less.
    adding(&mut case, "catalog", "hook.yaml", &hook(external()));
    let closed = policy("open", &json!({"podSelector": {"matchLabels": {"app": "catalog"}}}));
    adding(&mut case, "catalog", "main.yaml", &closed);
    let message = refusal(&case).message;
    assert!(message.contains("NetworkPolicy shop/open ingress[0] (app catalog"), "{message}");
    let mut case = proven();
    case.traffic.get_mut("front").unwrap()["networkPolicy"] = json!("None");
    adding(&mut case, "catalog", "hook.yaml", &hook(closed));
    assert!(refusal(&case).message.contains("no NetworkPolicy selects its pods"));
}

#[test]
fn policies_of_other_kinds_are_an_assumption() {
    let mut case = proven();
    for cluster in case.clusters.values_mut() {
        cluster.serves.push("cilium.io/v2/CiliumNetworkPolicy".to_owned());
    }
    let other = json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": "open"}, "spec": {}});
    adding(&mut case, "ui", "cilium.yaml", &other);
    let proof = reachability(&case);
    assert_eq!(proof.verdict, Verdict::Assumed);
    assert_eq!(
        proof.assumptions,
        ["CiliumNetworkPolicy open of app ui lets nobody in: policies of its kind are not judged"]
    );
}

#[test]
fn a_lookalike_is_found_on_every_port() {
    let mut case = proven();
    let ui = case.traffic["front"]["servers"][0]["clients"].clone();
    let server = |name: &str, port: &str, clients: &Value| json!({"name": name, "app": "catalog", "ports": [port], "clients": clients});
    let corp = json!([{"name": "corp", "cidrs": ["10.1.0.0/16"]}]);
    case.traffic.get_mut("front").unwrap()["servers"] =
        json!([server("catalog", "http", &corp), server("numbers", "metrics", &ui)]);
    let labels = json!({"app": "ui", "release": "r1"});
    let double = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "double", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "example.com/c"}]}});
    adding(&mut case, "catalog", "double.yaml", &double);
    let message = refusal(&case).message;
    let begin =
        "UDP 9100 of numbers on 2 clusters is open to Pod double of app catalog (it looks like a client)";
    assert!(message.starts_with(begin), "{message}");
}
