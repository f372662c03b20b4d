//! Reads what an app makes that traffic is about: its Services, the pods of its workloads, and the policies of its chart.

use std::collections::BTreeMap;

use emco_crds::fields::LabelSelector;
use serde_json::{Map, Value};

use crate::identity::kind_of;
use crate::set::{ManifestSet, SetManifest};

/// The label that every pod of a Job has.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Contents of one set.
#[derive(Debug, Default)]
pub struct Made<'s> {
    /// Services.
    pub services: Vec<Service<'s>>,
    /// Everything that makes pods.
    pub workloads: Vec<Workload<'s>>,
    /// NetworkPolicies.
    pub policies: Vec<&'s SetManifest>,
    /// Policies of other kinds, which networks read besides: `CiliumNetworkPolicy open`.
    pub others: Vec<String>,
}

/// A Service.
#[derive(Debug)]
pub struct Service<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its namespace.
    pub namespace: &'s str,
    /// It stands for a name elsewhere.
    pub is_external: bool,
    /// Labels of the pods that answer; empty where others say who does.
    pub selector: BTreeMap<&'s str, &'s str>,
    /// Its ports.
    pub ports: Vec<ServicePort<'s>>,
}

/// A port of a Service.
#[derive(Debug)]
pub struct ServicePort<'s> {
    /// Its name, if it has one.
    pub name: &'s str,
    /// Its number.
    pub number: i64,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'s str,
    /// Name of the pods' port that it leads to, or `None` where that is a number.
    pub target_name: Option<&'s str>,
    /// Number of the pods' port that it leads to, where that has no name.
    pub target: i64,
}

/// Pods of one template.
#[derive(Debug)]
pub struct Workload<'s> {
    /// Kind of what makes them.
    pub kind: &'s str,
    /// Its name.
    pub name: &'s str,
    /// Their namespace.
    pub namespace: &'s str,
    /// A policy tells them by it; `None` where they have no label.
    pub selector: Option<LabelSelector>,
    /// Their labels.
    pub labels: BTreeMap<&'s str, &'s str>,
    /// Ports of their containers.
    pub ports: Vec<ContainerPort<'s>>,
    /// They have the addresses of their nodes, so that no policy holds for them.
    pub host_network: bool,
}

/// A port that a container names.
#[derive(Debug)]
pub struct ContainerPort<'s> {
    /// Its name, if it has one.
    pub name: &'s str,
    /// Its number.
    pub number: i64,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'s str,
}

impl<'s> Made<'s> {
    /// Reads a set.
    pub fn of(set: &'s ManifestSet) -> Self {
        let mut made = Self::default();
        for manifest in &set.manifests {
            match kind_of(&manifest.json) {
                ("", "Service") => made.services.push(service(&manifest.json)),
                ("networking.k8s.io", "NetworkPolicy") => made.policies.push(manifest),
                (_, kind) if kind.ends_with("NetworkPolicy") => {
                    made.others.push(format!("{kind} {}", text(&manifest.json, "/metadata/name")));
                }
                _ => made.workloads.extend(workload(&manifest.json)),
            }
        }
        made
    }
}

impl Workload<'_> {
    /// For messages: `Deployment r1-ui`.
    pub fn described(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// True where a Service of its namespace leads to them.
    pub fn is_behind(&self, namespace: &str, selector: &BTreeMap<String, String>) -> bool {
        self.namespace == namespace
            && selector.iter().all(|(key, value)| self.labels.get(key.as_str()) == Some(&value.as_str()))
    }
}

fn text<'v>(json: &'v Value, pointer: &str) -> &'v str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn items<'v>(json: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    json.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn texts(map: Option<&Value>) -> BTreeMap<&str, &str> {
    let all = map.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

fn protocol(json: &Value) -> &str {
    json.get("protocol").and_then(Value::as_str).unwrap_or("TCP")
}

fn service(json: &Value) -> Service<'_> {
    let port = |port| {
        let number = port_number(port, "port");
        let target = port_number(port, "targetPort");
        ServicePort {
            name: text(port, "/name"),
            number,
            protocol: protocol(port),
            target_name: port.get("targetPort").and_then(Value::as_str),
            // Absent, and 0 of old clients, is the same port.
            target: if target == 0 { number } else { target },
        }
    };
    Service {
        name: text(json, "/metadata/name"),
        namespace: text(json, "/metadata/namespace"),
        is_external: text(json, "/spec/type") == "ExternalName",
        selector: texts(json.pointer("/spec/selector")),
        ports: items(json, "/spec/ports").map(port).collect(),
    }
}

fn port_number(json: &Value, field: &str) -> i64 {
    json.get(field).and_then(Value::as_i64).unwrap_or_default()
}

/// The pod template of everything that has one, kinds of others too; a Pod is its own.
fn template(json: &Value) -> Option<&Value> {
    let template = match kind_of(json) {
        ("", "Pod") => Some(json),
        ("batch", "CronJob") => json.pointer("/spec/jobTemplate/spec/template"),
        _ => json.pointer("/spec/template"),
    };
    template.filter(|template| template.pointer("/spec/containers").is_some_and(Value::is_array))
}

fn workload(json: &Value) -> Option<Workload<'_>> {
    let template = template(json)?;
    let mut labels = texts(template.pointer("/metadata/labels"));
    if kind_of(json) == ("batch", "Job") {
        labels.insert(JOB_NAME, text(json, "/metadata/name"));
    }
    let containers = items(template, "/spec/containers").chain(items(template, "/spec/initContainers"));
    let port = |port| ContainerPort {
        name: text(port, "/name"),
        number: port_number(port, "containerPort"),
        protocol: protocol(port),
    };
    Some(Workload {
        kind: text(json, "/kind"),
        name: text(json, "/metadata/name"),
        namespace: text(json, "/metadata/namespace"),
        selector: selector(json, &labels),
        ports: containers.flat_map(|container| items(container, "/ports")).map(port).collect(),
        host_network: template.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)),
        labels,
    })
}

/// The workload itself tells its pods by it: unlike the template it stays the same when the chart changes, so that old pods and new ones
/// are let in side by side. Where it says nothing, all labels.
fn selector(json: &Value, labels: &BTreeMap<&str, &str>) -> Option<LabelSelector> {
    let by_labels = |labels: &BTreeMap<&str, &str>| LabelSelector {
        match_labels: Some(
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ),
        match_expressions: None,
    };
    let stated = json.pointer("/spec/selector");
    let stated = match kind_of(json) {
        // A selector of a Job is the API server's, which adds the Job's own uid.
        ("", "Pod") | ("batch", _) => None,
        ("", "ReplicationController") => Some(by_labels(&texts(stated))),
        _ => stated.and_then(|stated| serde_json::from_value::<LabelSelector>(stated.clone()).ok()),
    };
    let says = |selector: &LabelSelector| {
        selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
            || selector.match_expressions.as_ref().is_some_and(|all| !all.is_empty())
    };
    stated.filter(says).or_else(|| Some(by_labels(labels)).filter(says))
}
