use serde_json::json;

use super::*;

#[allow(clippy::needless_pass_by_value)] // reads better where it is called
fn object(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status})
}

/// `R`, `P text` or `F text`.
fn short(object: &Value) -> String {
    match health(object) {
        Health::Ready => "R".to_owned(),
        Health::Progressing(text) => format!("P {text}"),
        Health::Failed(text) => format!("F {text}"),
        Health::Unknown(text) => format!("U {text}"),
    }
}

#[test]
fn a_deployment_is_ready_when_every_replica_is_new_and_available() {
    let deployment = |spec, status| short(&object("apps/v1", "Deployment", spec, status));
    let full = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3});
    assert_eq!(deployment(json!({"replicas": 3}), full.clone()), "R");
    let with = |field: &str, value: Value| {
        let mut status = full.clone();
        status[field] = value;
        deployment(json!({"replicas": 3}), status)
    };
    assert_eq!(with("observedGeneration", json!(1)), "P generation 2 is not observed yet, 1 is");
    assert_eq!(with("updatedReplicas", json!(2)), "P 2 of 3 replicas are updated");
    assert_eq!(with("replicas", json!(4)), "P 3 of 4 replicas are available");
    let mut leaving = full.clone();
    (leaving["replicas"], leaving["availableReplicas"]) = (json!(4), json!(4));
    assert_eq!(deployment(json!({"replicas": 3}), leaving), "P 1 old replica is still there");
    let none = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1});
    assert_eq!(deployment(json!({"replicas": 1}), none), "P 0 of 1 replica is available");
    assert_eq!(with("availableReplicas", json!(0)), "P 0 of 3 replicas are available");
    assert_eq!(
        with(
            "conditions",
            json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "slow"}])
        ),
        "F ProgressDeadlineExceeded: slow"
    );
    assert_eq!(
        with(
            "conditions",
            json!([{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}])
        ),
        "R",
        "nothing is missing any more"
    );
    let failure = json!([{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]);
    let status = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "conditions": failure});
    assert_eq!(deployment(json!({"replicas": 3}), status), "P pods cannot be made: exceeded quota");
    assert_eq!(deployment(json!({"replicas": 0}), json!({"observedGeneration": 2})), "R");
    assert_eq!(deployment(json!({"paused": true}), json!({"observedGeneration": 2})), "R");
}

/// The original called an app ready that had no resources to look at.
#[test]
fn a_workload_that_nobody_observed_is_not_ready() {
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
        assert_eq!(
            short(&object("apps/v1", kind, json!({"replicas": 0}), json!({}))),
            "P generation 2 is not observed yet, 0 is"
        );
    }
}

#[test]
fn a_stateful_set_waits_for_its_update_up_to_the_partition() {
    let set = |spec, status| short(&object("apps/v1", "StatefulSet", spec, status));
    let status = json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
    assert_eq!(set(json!({"replicas": 3}), status.clone()), "P its pods are being updated");
    assert_eq!(
        set(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}), status.clone()),
        "R"
    );
    assert_eq!(
        set(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}), status.clone()),
        "P 1 of 2 replicas are updated"
    );
    assert_eq!(set(json!({"replicas": 4}), status.clone()), "P 3 of 4 replicas are made");
    assert_eq!(set(json!({"replicas": 2}), status.clone()), "P 1 replica is too many");
    assert_eq!(set(json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), status), "R");
}

#[test]
fn a_daemon_set_is_ready_when_all_its_nodes_are() {
    let set = |status| short(&object("apps/v1", "DaemonSet", json!({}), status));
    let status = json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 1});
    assert_eq!(set(status), "P 1 of 2 replicas are ready");
    assert_eq!(set(json!({"observedGeneration": 2, "desiredNumberScheduled": 0})), "R");
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn the_other_kinds_have_their_own_rules() {
    let cases = [
        ("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Bound"}), "R"),
        ("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Pending"}), "P its phase is Pending"),
        ("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Lost"}), "F its phase is Lost"),
        ("v1", "Namespace", json!({}), json!({"phase": "Terminating"}), "P its phase is Terminating"),
        ("v1", "Service", json!({"clusterIP": "10.0.0.1"}), json!({}), "R"),
        ("v1", "Service", json!({}), json!({}), "P it has no cluster IP yet"),
        ("v1", "Service", json!({"type": "ExternalName"}), json!({}), "R"),
        (
            "v1",
            "Service",
            json!({"type": "LoadBalancer", "clusterIP": "1"}),
            json!({}),
            "P its load balancer has no address yet",
        ),
        (
            "v1",
            "Service",
            json!({"type": "LoadBalancer", "clusterIP": "1"}),
            json!({"loadBalancer": {"ingress": [{"ip": "9"}]}}),
            "R",
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"observedGeneration": 2, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 0,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods"}]}),
            "R",
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"observedGeneration": 2,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]}),
            "F what it allows cannot be told: SyncFailed: no scale",
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": 1}),
            json!({"observedGeneration": 2, "replicas": 1, "availableReplicas": 1, "readyReplicas": 1}),
            "R",
        ),
        ("batch/v1", "Job", json!({}), json!({}), "P it did not start yet"),
        ("batch/v1", "Job", json!({}), json!({"startTime": "t"}), "R"),
        (
            "batch/v1",
            "Job",
            json!({}),
            json!({"conditions": [{"type": "Failed", "status": "True", "message": "backoff"}]}),
            "F the job failed: backoff",
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
            "R",
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]}),
            "P it is not scheduled: no node",
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}]}),
            "F container c ends again and again: back-off",
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            json!({"conditions": [{"type": "Established", "status": "True"}]}),
            "R",
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            json!({"conditions": [{"type": "NamesAccepted", "status": "False", "message": "taken"}]}),
            "F its names are not accepted: taken",
        ),
        (
            "apiregistration.k8s.io/v1",
            "APIService",
            json!({}),
            json!({}),
            "P it has no condition Available yet",
        ),
        ("networking.k8s.io/v1", "Ingress", json!({}), json!({}), "R"),
        ("v1", "ConfigMap", json!({}), json!({}), "R"),
        (
            "cert-manager.io/v1",
            "Certificate",
            json!({}),
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Issuing"}]}),
            "P Ready is not True: Issuing",
        ),
        (
            "cert-manager.io/v1",
            "Certificate",
            json!({}),
            json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}),
            "P generation 2 is not observed yet, 1 is",
        ),
        (
            "example.com/v1",
            "Thing",
            json!({}),
            json!({"conditions": [{"type": "Stalled", "status": "True", "message": "no"}]}),
            "F Stalled: no",
        ),
        ("example.com/v1", "Thing", json!({}), json!({}), "R"),
        // Other conditions mean different things to different kinds.
        (
            "example.com/v1",
            "Thing",
            json!({}),
            json!({"conditions": [{"type": "Available", "status": "False", "message": "scaled to zero"}]}),
            "R",
        ),
        // It says so on every cluster without a metrics server.
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({}),
            json!({"conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]}),
            "R",
        ),
    ];
    for (api, kind, spec, status, expected) in cases {
        assert_eq!(short(&object(api, kind, spec, status)), expected, "{kind}");
    }
}

#[test]
fn what_is_being_deleted_is_not_ready() {
    let mut map = object("v1", "ConfigMap", json!({}), json!({}));
    map["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(short(&map), "P it is being deleted");
}

#[test]
fn explanations_are_bounded() {
    let ready = |reason: &str, message: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": reason, "message": message});
        short(&object("example.com/v1", "Thing", json!({}), json!({"conditions": [condition]})))
    };
    assert!(ready("", &"x".repeat(5000)).len() <= LONGEST + 2);
    let long = ready(&"R".repeat(5000), &"x".repeat(5000));
    assert!(long.len() <= LONGEST + 2 && long.contains("RR...: xx"), "{long}");
}

#[test]
fn a_condition_is_told_by_its_reason_and_its_message() {
    let ready = |reason: &str, message: &str| {
        let condition = json!({"type": "Ready", "status": "False", "reason": reason, "message": message});
        short(&object("example.com/v1", "Thing", json!({}), json!({"conditions": [condition]})))
    };
    for (reason, message, told) in [
        ("Issuing", "waiting for the issuer", "Issuing: waiting for the issuer"),
        ("Issuing", "", "Issuing"),
        ("", "waiting for the issuer", "waiting for the issuer"),
        ("Issuing", "Issuing the certificate", "Issuing the certificate"),
        ("", "", "no message"),
    ] {
        assert_eq!(ready(reason, message), format!("P Ready is not True: {told}"));
    }
}

/// The original took a failed Job or Pod for a hook that succeeded.
#[test]
fn a_failed_hook_is_a_failure() {
    let job =
        |conditions| hook_outcome(&object("batch/v1", "Job", json!({}), json!({"conditions": conditions})));
    assert_eq!(job(json!([])), None);
    assert_eq!(job(json!([{"type": "Complete", "status": "True"}])), Some(Ok(())));
    assert_eq!(
        job(json!([{"type": "Failed", "status": "True", "message": "deadline"}])),
        Some(Err("the job failed: deadline".to_owned()))
    );
    let pod = |phase| hook_outcome(&object("v1", "Pod", json!({}), json!({"phase": phase})));
    assert_eq!(pod("Running"), None);
    assert_eq!(pod("Succeeded"), Some(Ok(())));
    assert_eq!(pod("Failed"), Some(Err("the pod failed: a container ended with an error".to_owned())));
    assert_eq!(hook_outcome(&object("v1", "Pod", json!({}), json!({}))), None);
}

/// The original waited for ever for a DaemonSet that was a hook.
#[test]
fn a_hook_that_is_no_job_or_pod_is_done_by_being_there() {
    assert_eq!(hook_outcome(&object("apps/v1", "DaemonSet", json!({}), json!({}))), Some(Ok(())));
}

#[test]
fn kinds_without_a_rule_are_watched_as_metadata() {
    assert!(has_rule("apps", "Deployment") && has_rule("cert-manager.io", "Certificate"));
    for (group, kind) in [
        ("", "ConfigMap"),
        ("", "Secret"),
        ("networking.k8s.io", "Ingress"),
        ("rbac.authorization.k8s.io", "Role"),
        ("batch", "CronJob"),
    ] {
        assert!(!has_rule(group, kind), "{kind}");
    }
}
