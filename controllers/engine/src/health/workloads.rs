//! Judges the health of workloads.

use serde_json::Value;

use super::{Health, condition, number, text};
use crate::text::counted;

/// Kinds whose controllers always write `observedGeneration`: without one, nothing was observed.
pub fn must_observe(group: &str, kind: &str) -> bool {
    matches!((group, kind), ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet"))
}

fn status(object: &Value, field: &str) -> i64 {
    number(object, &format!("/status/{field}")).unwrap_or(0)
}

/// The first of these numbers that is below what is wanted becomes the explanation.
fn short(wanted: i64, have: &[(&str, i64)]) -> Option<Health> {
    let (what, number) = have.iter().find(|(_, number)| *number < wanted)?;
    Some(Health::progressing(format!("{number} of {} {what}", replicas(wanted, "replica"))))
}

/// So many replicas with their verb: `1 replica is`, `2 replicas are`.
fn replicas(number: i64, noun: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(usize::try_from(number).unwrap_or_default(), noun))
}

pub fn deployment(object: &Value) -> Health {
    // As in Helm: a paused one is as far as it will get.
    if object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true) {
        return Health::Ready;
    }
    if let Some((_, said)) = condition(object, "Progressing")
        && said.reason == "ProgressDeadlineExceeded"
    {
        return Health::failed(said.to_string());
    }
    match (rolled_out(object), condition(object, "ReplicaFailure")) {
        (Health::Ready, _) => Health::Ready,
        // It says why something is missing.
        (_, Some(("True", said))) => Health::progressing(format!("pods cannot be made: {said}")),
        (missing, _) => missing,
    }
}

fn rolled_out(object: &Value) -> Health {
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let (all, updated) = (status(object, "replicas"), status(object, "updatedReplicas"));
    if let Some(short) = short(wanted, &[("made", all), ("updated", updated)]) {
        return short;
    }
    let available = status(object, "availableReplicas");
    if all > updated {
        // Old ones are kept until the new ones are available: what these lack comes first.
        return short(all, &[("available", available)]).unwrap_or_else(|| {
            Health::progressing(format!("{} still there", replicas(all - updated, "old replica")))
        });
    }
    let ready = [("available", available), ("ready", status(object, "readyReplicas"))];
    short(wanted, &ready).unwrap_or(Health::Ready)
}

pub fn stateful_set(object: &Value) -> Health {
    if text(object, "/spec/updateStrategy/type") == Some("OnDelete") {
        return Health::Ready;
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    let have = [("made", status(object, "replicas")), ("ready", status(object, "readyReplicas"))];
    if let Some(short) = short(wanted, &have) {
        return short;
    }
    if status(object, "replicas") > wanted {
        return too_many(status(object, "replicas") - wanted);
    }
    if partition > 0 {
        let moved = [("updated", status(object, "updatedReplicas"))];
        return short((wanted - partition).max(0), &moved).unwrap_or(Health::Ready);
    }
    let revisions = (text(object, "/status/currentRevision"), text(object, "/status/updateRevision"));
    if revisions.0 != revisions.1 {
        return Health::progressing("its pods are being updated");
    }
    Health::Ready
}

fn too_many(number: i64) -> Health {
    Health::progressing(format!("{} too many", replicas(number, "replica")))
}

pub fn daemon_set(object: &Value) -> Health {
    if text(object, "/spec/updateStrategy/type") == Some("OnDelete") {
        return Health::Ready;
    }
    let have = [
        ("scheduled", status(object, "currentNumberScheduled")),
        ("updated", status(object, "updatedNumberScheduled")),
        ("available", status(object, "numberAvailable")),
        ("ready", status(object, "numberReady")),
    ];
    short(status(object, "desiredNumberScheduled"), &have).unwrap_or(Health::Ready)
}

pub fn replica_set(object: &Value) -> Health {
    if let Some(("True", said)) = condition(object, "ReplicaFailure") {
        return Health::progressing(format!("pods cannot be made: {said}"));
    }
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let have = [
        ("made", status(object, "replicas")),
        ("available", status(object, "availableReplicas")),
        ("ready", status(object, "readyReplicas")),
    ];
    if status(object, "replicas") > wanted {
        return too_many(status(object, "replicas") - wanted);
    }
    short(wanted, &have).unwrap_or(Health::Ready)
}

/// As kstatus: a Job that runs is as it should be; how it ends is another question.
pub fn job(object: &Value) -> Health {
    match job_outcome(object) {
        Some(Ok(())) => Health::Ready,
        Some(Err(message)) => Health::failed(message),
        None if object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true) => Health::Ready,
        None if text(object, "/status/startTime").is_some() => Health::Ready,
        None => Health::progressing("it did not start yet"),
    }
}

pub fn job_outcome(object: &Value) -> Option<Result<(), String>> {
    if let Some(("True", said)) = condition(object, "Failed") {
        return Some(Err(format!("the job failed: {said}")));
    }
    matches!(condition(object, "Complete"), Some(("True", _))).then_some(Ok(()))
}

pub fn pod(object: &Value) -> Health {
    match pod_outcome(object) {
        Some(Ok(())) => return Health::Ready,
        Some(Err(message)) => return Health::failed(message),
        None => {}
    }
    let ready = condition(object, "Ready");
    if !matches!(ready, Some(("True", _)))
        && let Some(message) = crash_loop(object)
    {
        return Health::failed(message);
    }
    match ready {
        Some(("True", _)) => Health::Ready,
        Some((_, said)) => Health::progressing(format!("it is not ready: {said}")),
        None => match condition(object, "PodScheduled") {
            Some(("False", said)) => Health::progressing(format!("it is not scheduled: {said}")),
            _ => Health::progressing("it did not start yet"),
        },
    }
}

/// A container that is started again and again.
fn crash_loop(object: &Value) -> Option<String> {
    ["initContainerStatuses", "containerStatuses"]
        .iter()
        .filter_map(|list| object.pointer(&format!("/status/{list}"))?.as_array())
        .flatten()
        .find(|container| text(container, "/state/waiting/reason") == Some("CrashLoopBackOff"))
        .map(|container| {
            let name = container["name"].as_str().unwrap_or_default();
            let message = text(container, "/state/waiting/message").unwrap_or("no message");
            format!("container {name} ends again and again: {message}")
        })
}

pub fn pod_outcome(object: &Value) -> Option<Result<(), String>> {
    match text(object, "/status/phase")? {
        "Succeeded" => Some(Ok(())),
        "Failed" => {
            let said = |path| text(object, path).filter(|text| !text.is_empty());
            let why = said("/status/message").or_else(|| said("/status/reason"));
            Some(Err(format!("the pod failed: {}", why.unwrap_or("a container ended with an error"))))
        }
        _ => None,
    }
}
