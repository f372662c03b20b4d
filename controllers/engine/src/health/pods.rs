//! Finds what keeps the Pods of a workload from running, in the words of the cluster.

use serde_json::Value;

use super::{condition, text};
use crate::conditions::truncate;

/// Longest cause, in bytes.
const LONGEST: usize = 200;

/// The cause of the first Pod that does not run, such as `Pod web-1: Unschedulable: 0/1 nodes are available`. A Pod that says
/// why counts before one that only is not ready. `None` where all run.
pub fn cause(pods: &[Value]) -> Option<String> {
    let found = |of: fn(&Value) -> Option<String>| {
        pods.iter().find_map(|pod| Some((text(pod, "/metadata/name").unwrap_or_default(), of(pod)?)))
    };
    let (name, why) = found(failed)
        .or_else(|| found(waiting))
        .or_else(|| found(unscheduled))
        .or_else(|| found(not_ready))?;
    Some(truncate(&format!("Pod {name}: {why}"), LONGEST))
}

fn failed(pod: &Value) -> Option<String> {
    if text(pod, "/status/phase") != Some("Failed") {
        return None;
    }
    let said = |path| text(pod, path).filter(|text| !text.is_empty());
    Some(match (said("/status/reason"), said("/status/message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (reason, message) => {
            reason.or(message).map_or_else(|| "a container ended with an error".to_owned(), str::to_owned)
        }
    })
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    lists.into_iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten()
}

/// A container that waits for something else than its turn, or that ended.
fn waiting(pod: &Value) -> Option<String> {
    containers(pod).find_map(|container| {
        let name = text(container, "/name").unwrap_or_default();
        let reason = text(container, "/state/waiting/reason").unwrap_or_default();
        if !matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            let message = text(container, "/state/waiting/message").map(|text| format!(": {text}"));
            let last = ended(container, "/lastState/terminated").map(|last| format!(" (last {last})"));
            return Some(format!(
                "container {name}: {reason}{}{}",
                last.unwrap_or_default(),
                message.unwrap_or_default()
            ));
        }
        let ended = ended(container, "/state/terminated")?;
        Some(format!("container {name}: {ended}"))
    })
}

/// The first container of a Pod that ended with an error, such as `container check: exit code 1`.
pub fn ended_badly(pod: &Value) -> Option<String> {
    containers(pod).find_map(|container| {
        let ended = ended(container, "/state/terminated")?;
        Some(format!("container {}: {ended}", text(container, "/name").unwrap_or_default()))
    })
}

/// How a container ended, unless it ended well.
fn ended(container: &Value, pointer: &str) -> Option<String> {
    let code = container.pointer(pointer)?.get("exitCode")?.as_i64().filter(|code| *code != 0)?;
    let reason = text(container, &format!("{pointer}/reason")).filter(|reason| *reason != "Error");
    Some(reason.map_or_else(|| format!("exit code {code}"), |reason| format!("exit code {code}, {reason}")))
}

fn unscheduled(pod: &Value) -> Option<String> {
    let (status, said) = condition(pod, "PodScheduled")?;
    (status == "False").then(|| said.to_string())
}

fn not_ready(pod: &Value) -> Option<String> {
    if text(pod, "/status/phase") == Some("Succeeded") {
        return None;
    }
    match condition(pod, "Ready") {
        Some(("True", _)) => None,
        Some((_, said)) => Some(format!("not ready: {said}")),
        None => Some("it did not start yet".to_owned()),
    }
}

/// The newest Warning among Events about a workload that has no Pods, such as `FailedCreate: exceeded quota`.
pub fn warning(events: &[Value]) -> Option<String> {
    let at = |event: &&Value| {
        let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime"];
        times.iter().find_map(|path| text(event, path)).unwrap_or_default().to_owned()
    };
    let newest = events.iter().filter(|event| text(event, "/type") == Some("Warning")).max_by_key(at)?;
    let reason = text(newest, "/reason").unwrap_or_default();
    let message = text(newest, "/message").unwrap_or_default();
    Some(truncate(&format!("{reason}: {message}"), LONGEST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"metadata": {"name": "web-1"}, "status": status})
    }

    #[test]
    fn each_cause_is_said_in_the_words_of_the_cluster() {
        let scheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available"}]);
        for (status, said) in [
            (
                json!({"phase": "Pending", "conditions": scheduled}),
                "Pod web-1: Unschedulable: 0/1 nodes are available",
            ),
            (
                json!({"phase": "Pending", "containerStatuses": [{"name": "app", "state": {"waiting": {
                    "reason": "ImagePullBackOff", "message": "no such image"}}}]}),
                "Pod web-1: container app: ImagePullBackOff: no such image",
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{"name": "app",
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
                "Pod web-1: container app: CrashLoopBackOff (last exit code 137, OOMKilled): back-off",
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{"name": "app",
                    "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
                "Pod web-1: container app: exit code 1",
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "init", "state": {"waiting": {
                    "reason": "CreateContainerConfigError", "message": "secret \"key\" not found"}}}]}),
                "Pod web-1: container init: CreateContainerConfigError: secret \"key\" not found",
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
                "Pod web-1: Evicted: low on memory",
            ),
            (
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False",
                    "reason": "ContainersNotReady", "message": "containers with unready status: [app]"}]}),
                "Pod web-1: not ready: ContainersNotReady: containers with unready status: [app]",
            ),
            (json!({}), "Pod web-1: it did not start yet"),
        ] {
            assert_eq!(cause(&[pod(&status)]).as_deref(), Some(said), "{status}");
        }
    }

    #[test]
    fn a_pod_that_says_why_counts_before_one_that_only_is_not_ready() {
        let quiet = json!({"metadata": {"name": "web-0"}, "status": {"phase": "Pending"}});
        let ready = json!({"metadata": {"name": "web-2"}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}});
        let loud =
            pod(&json!({"phase": "Pending", "containerStatuses": [{"name": "app", "state": {"waiting": {
            "reason": "ErrImagePull"}}}]}));
        assert_eq!(
            cause(&[ready.clone(), quiet, loud]).as_deref(),
            Some("Pod web-1: container app: ErrImagePull")
        );
        assert_eq!(cause(&[ready]), None);
        assert_eq!(cause(&[]), None);
    }

    #[test]
    fn long_words_of_a_pod_are_cut() {
        let long = pod(&json!({"phase": "Failed", "message": "x".repeat(5000)}));
        assert!(cause(&[long]).unwrap().len() <= LONGEST);
    }

    #[test]
    fn the_newest_warning_says_why_there_are_no_pods() {
        let event = |type_: &str, at: &str, message: &str| json!({"type": type_, "reason": "FailedCreate", "message": message, "lastTimestamp": at});
        let events = [
            event("Warning", "2026-01-01T00:00:02Z", "exceeded quota: pods"),
            event("Warning", "2026-01-01T00:00:01Z", "older"),
            event("Normal", "2026-01-01T00:00:03Z", "fine"),
        ];
        assert_eq!(warning(&events).as_deref(), Some("FailedCreate: exceeded quota: pods"));
        assert_eq!(warning(&events[2..]), None);
    }
}
