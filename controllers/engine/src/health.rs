//! Judges whether a live object does what it is for: per kind as kstatus and Helm judge it, by the conditions of the
//! object itself for other kinds, or by a user's rule. Stale data is not judged here: who has none, has no health.

pub mod agent;
mod cel;
pub mod pods;
pub mod rules;
mod workloads;

use std::fmt;

use serde_json::Value;

use crate::conditions::truncate;
use crate::identity::Identity;
use crate::order;

/// Longest explanation, in bytes.
const LONGEST: usize = 256;
/// Longest reason of a condition within it, so that its message has room.
const LONGEST_REASON: usize = 64;

/// Whether an object does what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ready,
    /// Not yet; with what is missing.
    Progressing(String),
    /// Not, and by itself hardly ever; with the reason.
    Failed(String),
    /// Nobody can tell, for this reason. Never counts as ready.
    Unknown(String),
}

impl Health {
    /// Whether it is ready.
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Progressing, with a bounded explanation.
    fn progressing(text: impl AsRef<str>) -> Self {
        Self::Progressing(truncate(text.as_ref(), LONGEST))
    }

    /// Failed, with a bounded explanation.
    fn failed(text: impl AsRef<str>) -> Self {
        Self::Failed(truncate(text.as_ref(), LONGEST))
    }

    /// Unknown, with a bounded explanation.
    fn unknown(text: impl AsRef<str>) -> Self {
        Self::Unknown(truncate(&format!("its health is unknown: {}", text.as_ref()), LONGEST))
    }
}

/// The health of a live object (with spec and status) by the built-in rules.
pub fn health(object: &Value) -> Health {
    checks(object).unwrap_or_else(|| by_kind(object))
}

/// What holds for every kind, before its own rule is asked.
fn checks(object: &Value) -> Option<Health> {
    let id = Identity::of(object);
    if text(object, "/metadata/deletionTimestamp").is_some() {
        return Some(Health::progressing("it is being deleted"));
    }
    behind(object, workloads::must_observe(&id.group, &id.kind))
}

fn by_kind(object: &Value) -> Health {
    let id = Identity::of(object);
    match (id.group.as_str(), id.kind.as_str()) {
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::replica_set(object),
        ("batch", "Job") => workloads::job(object),
        ("", "Pod") => workloads::pod(object),
        ("", "PersistentVolumeClaim") => phase(object, "Bound"),
        ("", "Namespace") => phase(object, "Active"),
        ("", "Service") => service(object),
        ("policy", "PodDisruptionBudget") => disruption_budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => needs_condition(object, "Available"),
        _ => by_conditions(object),
    }
}

/// Whether the health of a kind depends on more than being there. The others can be watched as metadata alone.
pub fn has_rule(group: &str, kind: &str) -> bool {
    let known = matches!(
        (group, kind),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job")
            | ("", "ReplicationController" | "Pod" | "PersistentVolumeClaim" | "Namespace" | "Service")
            | ("policy", "PodDisruptionBudget")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("apiregistration.k8s.io", "APIService")
    );
    let id = Identity {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: String::new(),
    };
    // A custom resource may state its own readiness.
    known || order::is_custom(&id)
}

/// How a hook object ended: `None` while it runs. As in Helm, Jobs and Pods are waited for; anything else has done its work
/// by being there.
pub fn hook_outcome(object: &Value) -> Option<Result<(), String>> {
    let id = Identity::of(object);
    match (id.group.as_str(), id.kind.as_str()) {
        ("batch", "Job") => workloads::job_outcome(object),
        ("", "Pod") => workloads::pod_outcome(object),
        _ => Some(Ok(())),
    }
}

/// A controller that has not seen the present spec cannot have carried it out.
fn behind(object: &Value, required: bool) -> Option<Health> {
    let generation = number(object, "/metadata/generation")?;
    let observed = match number(object, "/status/observedGeneration") {
        None if required => 0,
        observed => observed?,
    };
    (observed < generation)
        .then(|| Health::progressing(format!("generation {generation} is not observed yet, {observed} is")))
}

fn phase(object: &Value, wanted: &str) -> Health {
    match text(object, "/status/phase") {
        Some(phase) if phase == wanted => Health::Ready,
        Some("Lost") => Health::failed("its phase is Lost"),
        Some(phase) => Health::progressing(format!("its phase is {phase}")),
        None => Health::progressing("it has no phase yet"),
    }
}

fn service(object: &Value) -> Health {
    let kind = text(object, "/spec/type").unwrap_or("ClusterIP");
    if kind == "ExternalName" {
        return Health::Ready;
    }
    if text(object, "/spec/clusterIP").is_none_or(str::is_empty) {
        return Health::progressing("it has no cluster IP yet");
    }
    let given = |path| object.pointer(path).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if kind == "LoadBalancer" && !given("/spec/externalIPs") && !given("/status/loadBalancer/ingress") {
        return Health::progressing("its load balancer has no address yet");
    }
    Health::Ready
}

/// As kstatus: how many of its Pods are healthy is the matter of what makes them, and it may have none.
fn disruption_budget(object: &Value) -> Health {
    match condition(object, "DisruptionAllowed") {
        Some(("False", said)) if said.reason == "SyncFailed" => {
            Health::failed(format!("what it allows cannot be told: {said}"))
        }
        _ => Health::Ready,
    }
}

fn definition(object: &Value) -> Health {
    if let Some(("False", said)) = condition(object, "NamesAccepted") {
        return Health::failed(format!("its names are not accepted: {said}"));
    }
    needs_condition(object, "Established")
}

fn needs_condition(object: &Value, type_: &str) -> Health {
    match condition(object, type_) {
        Some(("True", _)) => Health::Ready,
        Some((_, said)) => Health::progressing(format!("{type_} is not True: {said}")),
        None => Health::progressing(format!("it has no condition {type_} yet")),
    }
}

/// What an object of any kind says of itself; without a word of that kind it is ready by being there.
fn by_conditions(object: &Value) -> Health {
    if let Some(("True", said)) = condition(object, "Stalled") {
        return Health::failed(format!("Stalled: {said}"));
    }
    if let Some(("True", said)) = condition(object, "Reconciling") {
        return Health::progressing(format!("Reconciling: {said}"));
    }
    match condition(object, "Ready") {
        Some(("True", _)) | None => Health::Ready,
        Some((_, said)) => Health::progressing(format!("Ready is not True: {said}")),
    }
}

/// What a condition says: its reason and its message, where it has both.
struct Said<'a> {
    reason: &'a str,
    message: &'a str,
}

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, message } = self;
        match (reason.is_empty(), message.is_empty()) {
            (true, true) => f.write_str("no message"),
            (false, true) => f.write_str(&truncate(reason, LONGEST_REASON)),
            // Some controllers begin their messages with the reason.
            (false, false) if !message.starts_with(reason) => {
                write!(f, "{}: {message}", truncate(reason, LONGEST_REASON))
            }
            _ => f.write_str(message),
        }
    }
}

/// Status of a condition, and what it says.
fn condition<'a>(object: &'a Value, type_: &str) -> Option<(&'a str, Said<'a>)> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|c| c.get("type").and_then(Value::as_str) == Some(type_))?;
    let field = |name| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let status = Some(field("status")).filter(|status| !status.is_empty())?;
    Some((status, Said { reason: field("reason"), message: field("message") }))
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer)?.as_str()
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer)?.as_i64()
}

#[cfg(test)]
mod tests;
