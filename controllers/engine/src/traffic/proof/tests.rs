use emco_crds::fields::LabelSelector;
use serde_json::{Value, json};

use super::connection::{Connection, lets_through};
use super::ends::Union;
use super::pods::PodSet;
use super::rules::{End, Policy};

fn selector(json: &Value) -> LabelSelector {
    serde_json::from_value(json.clone()).unwrap()
}

fn pods(json: &Value) -> PodSet {
    PodSet::of_namespace("shop", &selector(json))
}

fn within(one: &Value, others: &[Value]) -> bool {
    let others: Vec<PodSet> = others.iter().map(pods).collect();
    pods(one).is_within(&others.iter().collect::<Vec<_>>())
}

fn needs(key: &str, operator: &str, values: &[&str]) -> Value {
    let mut need = json!({"key": key, "operator": operator});
    if !values.is_empty() {
        need["values"] = json!(values);
    }
    json!({"matchExpressions": [need]})
}

#[test]
fn a_set_of_pods_is_within_a_wider_one_and_not_within_a_narrower() {
    let (ui, both) =
        (json!({"matchLabels": {"app": "ui"}}), json!({"matchLabels": {"app": "ui", "tier": "web"}}));
    assert!(within(&both, std::slice::from_ref(&ui)) && within(&ui, std::slice::from_ref(&ui)));
    assert!(!within(&ui, std::slice::from_ref(&both)) && !within(&json!({}), std::slice::from_ref(&ui)));
    assert!(!within(&ui, &[]));
    // Nobody is in it.
    assert!(within(
        &json!({"matchLabels": {"app": "ui"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
        &[]
    ));
}

#[test]
fn several_sets_together_hold_what_none_of_them_does() {
    let parts = [needs("tier", "In", &["web"]), needs("tier", "NotIn", &["web"])];
    assert!(within(&json!({}), &parts));
    let parts = [needs("tier", "Exists", &[]), needs("tier", "DoesNotExist", &[])];
    assert!(within(&json!({}), &parts));
    assert!(!within(&json!({}), &[needs("tier", "In", &["web"]), needs("tier", "In", &["back"])]));
    assert!(within(
        &needs("tier", "In", &["web", "back"]),
        &[needs("tier", "In", &["web"]), needs("tier", "In", &["back"])]
    ));
}

#[test]
fn what_would_take_too_long_to_try_is_not_proved() {
    let label = |n: usize| {
        json!({"matchExpressions": [
            {"key": format!("k{n}"), "operator": "In", "values": (0..60).map(|v| format!("v{v}")).collect::<Vec<_>>()},
        ]})
    };
    let many: Vec<Value> = (0..16).map(label).collect();
    assert!(!within(&json!({}), &many));
}

#[test]
fn pods_of_other_namespaces_are_not_those_of_the_own() {
    let own = PodSet::of_namespace("shop", &LabelSelector::default());
    let all = PodSet::of_selected(&LabelSelector::default(), &LabelSelector::default());
    assert!(own.is_within(&[&all]) && !all.is_within(&[&own]));
    let named = selector(&json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}}));
    assert!(PodSet::of_selected(&named, &LabelSelector::default()).is_within(&[&own]));
    let labelled = selector(&json!({"matchLabels": {"team": "a"}}));
    assert!(!PodSet::of_selected(&labelled, &LabelSelector::default()).is_within(&[&own]));
    assert_eq!(own.described(), "any pod of namespace shop");
    assert_eq!(all.described(), "any pod of any namespace");
    assert_eq!(
        pods(&json!({"matchLabels": {"app": "ui"}})).described(),
        "pods with app=ui of namespace shop"
    );
}

fn block(cidr: &str, except: &[&str]) -> End {
    End::Block(cidr.parse().unwrap(), except.iter().map(|hole| hole.parse().unwrap()).collect())
}

fn is_within(end: &End, others: &[&End]) -> bool {
    Union::of(others.iter().copied()).holds(end)
}

#[test]
fn addresses_are_within_networks_that_hold_them_together() {
    let halves = [block("10.0.0.0/9", &[]), block("10.128.0.0/9", &[])];
    let halves: Vec<&End> = halves.iter().collect();
    assert!(is_within(&block("10.0.0.0/8", &[]), &halves));
    assert!(!is_within(&block("10.0.0.0/7", &[]), &halves));
    assert!(is_within(&block("10.0.0.0/7", &["11.0.0.0/8"]), &halves), "without what lies beyond");
    assert!(!is_within(&block("0.0.0.0/0", &["192.168.0.0/16"]), &halves));
    let holed = block("10.0.0.0/8", &["10.1.0.0/16"]);
    assert!(
        !is_within(&block("10.1.2.0/24", &[]), &[&holed]) && is_within(&block("10.2.0.0/16", &[]), &[&holed])
    );
    let v6 = block("2001:db8::/48", &[]);
    assert!(is_within(&block("2001:db8::/64", &[]), &[&v6]) && !is_within(&block("10.0.0.0/8", &[]), &[&v6]));
}

#[test]
fn a_policy_is_read_as_kubernetes_reads_it() {
    let read = |spec: &Value| {
        Policy::read(
            "app a".to_owned(),
            &json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec}),
        )
    };
    let closed = read(&json!({"podSelector": {}}));
    assert!(
        closed.ingress.unwrap().is_empty() && closed.egress.is_none(),
        "absent types: what there are rules of"
    );
    let both = read(&json!({"podSelector": {}, "egress": [{}]}));
    assert!(both.ingress.unwrap().is_empty() && both.egress.unwrap()[0].ends.is_none());
    let out = read(&json!({"podSelector": {}, "policyTypes": ["Egress"], "ingress": [{}]}));
    assert!(out.ingress.is_none() && out.egress.unwrap().is_empty());
    // A list without entries is for everybody, as an absent one.
    let open = read(&json!({"podSelector": {}, "ingress": [{"from": [], "ports": []}]}));
    let rule = &open.ingress.unwrap()[0];
    assert!(rule.ends.is_none() && rule.ports.is_none());
    let strange = read(&json!({"podSelector": {}, "ingress": [{"from": [{}, {"ipBlock": {"cidr": "x"}}]}]}));
    assert_eq!(strange.ingress.unwrap()[0].ends, Some(vec![End::Anybody, End::Anybody]), "it proves nothing");
}

fn connection(json: &Value) -> Connection {
    serde_json::from_value(json.clone()).unwrap()
}

fn pod(ip: &str, labels: &Value) -> Value {
    json!({"ip": ip, "pod": {"namespace": "shop", "namespaceLabels": {}, "labels": labels}})
}

/// Of the original: one entry for the protocol, one for the port.
#[test]
fn the_original_policy_opens_every_port_and_ours_does_not() {
    let policy = |ports: Value| {
        json!({"metadata": {"name": "p", "namespace": "shop"}, "spec": {"podSelector": {"matchLabels": {"app": "http-server"}},
            "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": ports}]}})
    };
    let to = |port: i64| {
        connection(
            &json!({"from": pod("10.0.0.1", &json!({"app": "client"})), "to": pod("10.0.0.2", &json!({"app": "http-server"})),
            "protocol": "TCP", "port": port}),
        )
    };
    let theirs = [policy(json!([{"protocol": "TCP"}, {"port": 5000}]))];
    let ours = [policy(json!([{"protocol": "TCP", "port": 5000}]))];
    assert!(lets_through(&theirs, &to(22)) && lets_through(&theirs, &to(5000)));
    assert!(!lets_through(&ours, &to(22)) && lets_through(&ours, &to(5000)));
}

#[test]
fn a_network_with_too_many_holes_holds_nothing_and_is_taken_for_whole() {
    let holed = |holes: usize| {
        let holes: Vec<String> = (0..holes).map(|n| format!("10.{n}.0.0/16")).collect();
        block("10.0.0.0/8", &holes.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (few, many) = (holed(64), holed(65));
    let inside = block("10.200.0.0/16", &[]);
    assert!(is_within(&inside, &[&few]) && !is_within(&inside, &[&many]));
    let rest = [block("10.64.0.0/10", &[]), block("10.128.0.0/9", &[])];
    let rest: Vec<&End> = rest.iter().collect();
    assert!(is_within(&few, &rest) && !is_within(&many, &rest));
}

#[test]
fn a_policy_that_is_not_looked_into_lets_all_in_and_nobody_out() {
    let spec = json!({"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [], "egress": [{"to": [{"podSelector": {}}]}]});
    let mut policy =
        Policy::read("app a".to_owned(), &json!({"metadata": {"namespace": "shop"}, "spec": spec}));
    // Pods of a namespace by a label, and one rule for pods of that.
    assert_eq!(policy.size(), 4 + 1 + 3);
    policy.unread();
    let rules = policy.ingress.unwrap();
    assert!(rules.len() == 1 && rules[0].ends.is_none() && rules[0].ports.is_none());
    assert_eq!(policy.egress.unwrap().len(), 0);
}

#[test]
fn many_sets_that_hold_one_together_are_not_tried() {
    let parts = |number: usize| -> Vec<Value> {
        let values: Vec<String> = (0..number).map(|n| format!("v{n}")).collect();
        values.iter().map(|value| needs("tier", "In", &[value])).collect()
    };
    let values: Vec<String> = (0..65).map(|n| format!("v{n}")).collect();
    let all =
        |number: usize| needs("tier", "In", &values[..number].iter().map(String::as_str).collect::<Vec<_>>());
    assert!(within(&all(64), &parts(64)) && !within(&all(65), &parts(65)));
    assert!(within(&all(2), &parts(500)), "those that hold none of it do not count");
}
