//! Makes the `NetworkPolicy` of a server: its clients reach its ports, and nobody reaches anything else.

use emco_crds::fields::LabelSelector;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::graph::{Peer, Port, Server, Target, Within};

/// The label that Kubernetes gives every namespace.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";
/// Longest name, in bytes: that of a label, for which it may be used.
const LONGEST: usize = 63;
/// Bytes that are kept of a longer one.
const KEPT: usize = 54;
/// Digits of the digest that stands for the rest.
const DIGITS: usize = 8;

/// `<release>-<intent>-<server>`; of a longer one the beginning and a digest.
pub fn name(release: &str, intent: &str, server: &str) -> String {
    let whole = format!("{release}-{intent}-{server}");
    if whole.len() <= LONGEST {
        return whole;
    }
    let digest = hex::encode(Sha256::digest(whole.as_bytes()));
    // All three are labels, which are ASCII.
    let (kept, digits) = (whole.get(..KEPT).unwrap_or(&whole), digest.get(..DIGITS).unwrap_or(&digest));
    format!("{kept}-{digits}")
}

/// The policy. Ports and clients are in one rule, and each port in one entry with its protocol: two entries would open all ports of the
/// protocol.
pub fn object(name: &str, server: &Server) -> Value {
    let from: Vec<Value> = distinct(server.clients.iter().flat_map(|client| &client.from).map(peer));
    let mut spec = json!({
        "podSelector": {"matchLabels": server.selector},
        "policyTypes": ["Ingress"],
    });
    // An empty list of clients would let everybody in; without a rule nobody is.
    if let Some(spec) = spec.as_object_mut().filter(|_| !from.is_empty()) {
        let ports: Vec<Value> = server.ports.iter().map(port).collect();
        spec.insert("ingress".to_owned(), json!([{"from": from, "ports": ports}]));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": server.namespace},
        "spec": spec,
    })
}

fn distinct(all: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

fn port(port: &Port) -> Value {
    match &port.target {
        Target::Number(number) => json!({"protocol": port.protocol, "port": number}),
        Target::Name(name) => json!({"protocol": port.protocol, "port": name}),
    }
}

fn peer(peer: &Peer) -> Value {
    match peer {
        Peer::Block(cidr) => json!({"ipBlock": {"cidr": cidr}}),
        Peer::Pods(Within::Own, selector) => json!({"podSelector": stated(selector)}),
        Peer::Pods(Within::Named(names), selector) => {
            json!({"namespaceSelector": named(names), "podSelector": stated(selector)})
        }
    }
}

fn named(names: &[String]) -> Value {
    match names {
        [name] => json!({"matchLabels": {NAMESPACE_LABEL: name}}),
        names => json!({"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": names}]}),
    }
}

/// A selector without what is empty in it.
fn stated(selector: &LabelSelector) -> Value {
    let LabelSelector { match_labels, match_expressions } = selector;
    let mut out = serde_json::Map::new();
    if let Some(labels) = match_labels.as_ref().filter(|labels| !labels.is_empty()) {
        out.insert("matchLabels".to_owned(), json!(labels));
    }
    if let Some(expressions) = match_expressions.as_ref().filter(|all| !all.is_empty()) {
        out.insert("matchExpressions".to_owned(), json!(expressions));
    }
    Value::Object(out)
}
