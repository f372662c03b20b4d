//! Judges one connection by policies, where all is known of both of its ends. The proof itself knows less; with this, how it reads
//! policies is compared with another implementation.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pods::Key;
use super::rules::{End, Policy, Rule, Span};

/// A connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// The end that begins it.
    pub from: Endpoint,
    /// The end that is asked.
    pub to: Endpoint,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The port of the one that is asked.
    pub port: i64,
    /// The name that its container has for that.
    #[serde(default)]
    pub port_name: String,
}

/// An end of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its address.
    pub ip: IpAddr,
    /// Absent outside of the cluster.
    #[serde(default)]
    pub pod: Option<Pod>,
}

/// A pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Labels of that.
    pub namespace_labels: BTreeMap<String, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// True where these policies let it through: out of the one pod and into the other.
pub fn lets_through(policies: &[Value], connection: &Connection) -> bool {
    let policies: Vec<Policy> = policies.iter().map(|json| Policy::read(String::new(), json)).collect();
    let Connection { from, to, .. } = connection;
    let lets = |own: &Endpoint, other: &Endpoint, rules: fn(&Policy) -> Option<&Vec<Rule>>| {
        let Some(pod) = &own.pod else { return true };
        // A policy is for pods of its own namespace, whatever labels that has.
        let closing: Vec<&Vec<Rule>> = policies
            .iter()
            .filter(|policy| policy.pods.holds(|key| named(pod, key)))
            .filter_map(rules)
            .collect();
        let opens = |rule: &Rule| is_end(rule, other) && is_port(rule, connection);
        closing.is_empty() || closing.into_iter().flatten().any(opens)
    };
    lets(from, to, |policy| policy.egress.as_ref()) && lets(to, from, |policy| policy.ingress.as_ref())
}

/// A label of a pod or its namespace, whose name is a label, too.
fn named<'p>(pod: &'p Pod, key: &Key) -> Option<&'p str> {
    match key {
        Key::Namespace(name) if name == crate::traffic::policy::NAMESPACE_LABEL => {
            Some(pod.namespace.as_str())
        }
        Key::Namespace(name) => pod.namespace_labels.get(name).map(String::as_str),
        Key::Pod(name) => pod.labels.get(name).map(String::as_str),
    }
}

fn is_end(rule: &Rule, other: &Endpoint) -> bool {
    let Some(ends) = &rule.ends else { return true };
    ends.iter().any(|end| match end {
        End::Anybody => true,
        End::Pods(set) => other.pod.as_ref().is_some_and(|pod| set.holds(|key| named(pod, key))),
        End::Block(cidr, except) => {
            cidr.contains(&other.ip) && !except.iter().any(|hole| hole.contains(&other.ip))
        }
    })
}

fn is_port(rule: &Rule, connection: &Connection) -> bool {
    let Some(spans) = &rule.ports else { return true };
    let Connection { protocol, port, port_name, .. } = connection;
    spans.iter().any(|span| match span {
        Span::Numbers(of, first, last) => of == protocol && (first..=last).contains(&port),
        Span::Name(of, name) => of == protocol && name == port_name,
    })
}
