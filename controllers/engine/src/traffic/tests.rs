use emco_crds::fields::LabelSelector;
use serde_json::{Value, json};

use super::*;

fn spec(yaml: &str) -> TrafficGroupIntentSpec {
    serde_yaml::from_str(yaml).unwrap()
}

#[test]
fn a_name_of_63_bytes_stays_and_a_longer_one_ends_in_a_digest() {
    let server = "s".repeat(63 - "r1-front-".len());
    assert_eq!(policy::name("r1", "front", &server), format!("r1-front-{server}"));
    let name = policy::name("r1", "front", &format!("{server}x"));
    assert_eq!(name.len(), 63);
    let (kept, digits) = name.rsplit_once('-').unwrap();
    assert_eq!((kept.len(), digits.len()), (54, 8));
    assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_ne!(name, policy::name("r1", "front", &format!("{server}y")), "the rest counts");
}

#[test]
fn what_no_rule_of_the_kind_sees_is_a_fault_with_its_cure() {
    let fault = |server: &str| fault(&spec(&format!("servers: [{server}]")));
    assert_eq!(
        fault("{name: web, app: web, service: '{{ release }}-web', clients: [{name: a, app: a}]}"),
        None
    );
    assert_eq!(
        fault("{name: web, app: web, service: '{{cluster.name}}-web', clients: []}").unwrap(),
        "spec.servers[web].service: {{cluster.name}} is not known here: {{release}} is the only variable, write the rest out"
    );
    assert_eq!(
        fault("{name: web, app: web, clients: [{name: net, cidrs: [10.1.0.7/16]}]}").unwrap(),
        "spec.servers[web].clients[net].cidrs: 10.1.0.7/16 has bits beyond its prefix: write 10.1.0.0/16 for the whole network, or \
         10.1.0.7/32 for the one address"
    );
    let v6 = "{name: web, app: web, clients: [{name: net, cidrs: ['2001:db8::1/48']}]}";
    assert!(fault(v6).unwrap().contains("2001:db8::1/128 for the one address"));
    let nothing = "{name: web, app: web, clients: [{name: net, cidrs: [10.1]}]}";
    assert!(fault(nothing).unwrap().starts_with("spec.servers[web].clients[net].cidrs: 10.1 is no CIDR"));
}

#[test]
fn a_cluster_enforces_policies_where_that_is_stated_or_seen() {
    use PolicySupport::{Enforced, NotEnforced};
    let facts = |groups: &[&str], stated| {
        let resource = |group: &&str| crate::apis::ApiResource {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            kind: "Any".to_owned(),
            plural: "anys".to_owned(),
            namespaced: true,
            listable: true,
            watchable: true,
        };
        let apis = crate::apis::ApiList { resources: groups.iter().map(resource).collect() };
        ClusterFacts {
            id: crate::identity::ClusterId::new("acme", "a"),
            labels: std::collections::BTreeMap::new(),
            properties: std::collections::BTreeMap::new(),
            scheduling: crate::snapshot::Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: None,
            kubernetes_version: None,
            apis: Some(std::sync::Arc::new(apis)),
            nodes: None,
            network_policy: stated,
        }
    };
    for group in ENFORCING {
        assert_eq!(enforcement(&facts(&["apps", group], None)), Some(Enforced), "{group}");
    }
    assert_eq!(enforcement(&facts(&["apps"], None)), None);
    assert_eq!(enforcement(&facts(&["apps"], Some(Enforced))), Some(Enforced));
    assert_eq!(enforcement(&facts(&["cilium.io"], Some(NotEnforced))), Some(NotEnforced));
    assert!(!is_without(&facts(&["apps"], None)), "unknown is not without");
}

fn server(clients: Vec<Client>) -> Server {
    Server {
        name: "catalog".to_owned(),
        app: "catalog".to_owned(),
        service: "r1-catalog".to_owned(),
        namespace: "retail".to_owned(),
        selector: [("app".to_owned(), "catalog".to_owned())].into(),
        ports: vec![Port { protocol: "TCP".to_owned(), target: Target::Number(8080) }],
        clients,
    }
}

fn client(from: Vec<Peer>) -> Client {
    Client { name: "one".to_owned(), app: None, from }
}

fn labels(key: &str, value: &str) -> LabelSelector {
    LabelSelector { match_labels: Some([(key.to_owned(), value.to_owned())].into()), match_expressions: None }
}

fn ingress(clients: Vec<Client>) -> Value {
    policy::object("p", &server(clients))["spec"]["ingress"].clone()
}

#[test]
fn a_port_and_its_protocol_are_one_entry() {
    let from = client(vec![Peer::Pods(Within::Own, labels("app", "ui"))]);
    assert_eq!(
        policy::object("r1-front-catalog", &server(vec![from])),
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "r1-front-catalog", "namespace": "retail"},
            "spec": {
                "podSelector": {"matchLabels": {"app": "catalog"}},
                "policyTypes": ["Ingress"],
                "ingress": [{
                    "from": [{"podSelector": {"matchLabels": {"app": "ui"}}}],
                    "ports": [{"protocol": "TCP", "port": 8080}],
                }],
            },
        })
    );
}

#[test]
fn a_server_whose_clients_are_all_elsewhere_lets_nobody_in() {
    let made = policy::object("p", &server(Vec::new()));
    assert_eq!(made["spec"]["policyTypes"], json!(["Ingress"]));
    assert!(made["spec"].get("ingress").is_none(), "an empty list of clients would be everybody");
}

#[test]
fn pods_of_other_namespaces_are_told_by_the_name_of_theirs() {
    let named = |names: &[&str]| Within::Named(names.iter().map(|name| (*name).to_owned()).collect());
    let rules = ingress(vec![
        client(vec![Peer::Pods(named(&["batch"]), labels("app", "report"))]),
        client(vec![Peer::Pods(named(&["a", "b"]), LabelSelector::default())]),
        client(vec![Peer::Block("2001:db8::/48".to_owned()), Peer::Block("2001:db8::/48".to_owned())]),
    ]);
    assert_eq!(
        rules[0]["from"],
        json!([
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "batch"}},
                "podSelector": {"matchLabels": {"app": "report"}},
            },
            {
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
                ]},
                "podSelector": {},
            },
            {"ipBlock": {"cidr": "2001:db8::/48"}},
        ])
    );
}
