//! Reads NetworkPolicies as Kubernetes does: whose pods they close, and whom their rules let through.

use emco_crds::fields::LabelSelector;
use ipnet::IpNet;
use serde_json::Value;

use super::pods::PodSet;

/// Highest port.
const LAST: i64 = 65_535;

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `NetworkPolicy retail/r1-catalog`.
    pub name: String,
    /// Its maker: `app catalog`.
    pub maker: String,
    /// The pods that it is for.
    pub pods: PodSet,
    /// Rules of incoming connections; `None` where it says nothing of these.
    pub ingress: Option<Vec<Rule>>,
    /// Rules of outgoing connections; `None` where it says nothing of these.
    pub egress: Option<Vec<Rule>>,
    /// False for that of a hook, which may be gone again: what it opens counts, what it closes does not.
    pub lasts: bool,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The other ends; `None`: all.
    pub ends: Option<Vec<End>>,
    /// The ports; `None`: all.
    pub ports: Option<Vec<Span>>,
}

/// The other end of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Pods.
    Pods(PodSet),
    /// Addresses, without some.
    Block(IpNet, Vec<IpNet>),
    /// Everybody: an end that cannot be read proves nothing.
    Anybody,
}

/// Ports of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// From one to another.
    Numbers(String, i64, i64),
    /// As containers name them.
    Name(String, String),
}

impl Policy {
    /// Reads a policy.
    pub fn read(maker: String, json: &Value) -> Self {
        let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace");
        let types = json.pointer("/spec/policyTypes").and_then(Value::as_array);
        let egress = json.pointer("/spec/egress").and_then(Value::as_array);
        let is_of = |type_: &str, absent: bool| match types {
            Some(types) if !types.is_empty() => types.iter().any(|of| of == type_),
            _ => absent,
        };
        let ingress = is_of("Ingress", true)
            .then(|| rules(json.pointer("/spec/ingress").and_then(Value::as_array), "from", namespace));
        let egress = is_of("Egress", egress.is_some_and(|rules| !rules.is_empty()))
            .then(|| rules(egress, "to", namespace));
        Self {
            name: format!("NetworkPolicy {namespace}/{}", text("/metadata/name")),
            maker,
            pods: PodSet::of_namespace(namespace, &selector(json.pointer("/spec/podSelector"))),
            ingress,
            egress,
            lasts: true,
        }
    }

    /// Number of its ends, their labels and holes, and its ports: the cost of a look at it.
    pub fn size(&self) -> usize {
        let end = |end: &End| match end {
            End::Anybody => 1,
            End::Pods(set) => 1 + set.size(),
            End::Block(_, except) => 1 + except.len(),
        };
        let of = |rule: &Rule| {
            1 + rule.ends.iter().flatten().map(end).sum::<usize>() + rule.ports.as_ref().map_or(0, Vec::len)
        };
        self.pods.size() + self.ingress.iter().chain(&self.egress).flatten().map(of).sum::<usize>()
    }

    /// One that would take too long to look at proves nothing: it lets everybody in, and nobody out.
    pub fn unread(&mut self) {
        self.ingress = self.ingress.take().map(|_| vec![Rule { ends: None, ports: None }]);
        self.egress = self.egress.take().map(|_| Vec::new());
    }
}

fn selector(json: Option<&Value>) -> LabelSelector {
    json.and_then(|json| serde_json::from_value(json.clone()).ok()).unwrap_or_default()
}

fn rules(rules: Option<&Vec<Value>>, ends: &str, namespace: &str) -> Vec<Rule> {
    let filled = |rule: &Value, field: &str| -> Option<Vec<Value>> {
        rule.get(field).and_then(Value::as_array).filter(|all| !all.is_empty()).cloned()
    };
    let rule = |rule: &Value| Rule {
        ends: filled(rule, ends).map(|all| all.iter().map(|one| end(one, namespace)).collect()),
        ports: filled(rule, "ports").map(|all| all.iter().map(span).collect()),
    };
    rules.into_iter().flatten().map(rule).collect()
}

fn end(json: &Value, namespace: &str) -> End {
    if let Some(block) = json.get("ipBlock") {
        let net = |json: &Value| json.as_str().and_then(|text| text.parse::<IpNet>().ok());
        let except = block.get("except").and_then(Value::as_array).into_iter().flatten();
        return match block.get("cidr").and_then(net) {
            Some(cidr) => End::Block(cidr.trunc(), except.filter_map(net).map(|net| net.trunc()).collect()),
            None => End::Anybody,
        };
    }
    let pods = json.get("podSelector");
    match (json.get("namespaceSelector"), pods) {
        (Some(namespaces), pods) => {
            End::Pods(PodSet::of_selected(&selector(Some(namespaces)), &selector(pods)))
        }
        (None, Some(pods)) => End::Pods(PodSet::of_namespace(namespace, &selector(Some(pods)))),
        (None, None) => End::Anybody,
    }
}

fn span(json: &Value) -> Span {
    let protocol = json.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned();
    match json.get("port") {
        Some(Value::String(name)) => Span::Name(protocol, name.clone()),
        Some(Value::Number(number)) => {
            let first = number.as_i64().unwrap_or_default();
            let last = json.get("endPort").and_then(Value::as_i64).unwrap_or(first);
            Span::Numbers(protocol, first, last)
        }
        _ => Span::Numbers(protocol, 1, LAST),
    }
}
