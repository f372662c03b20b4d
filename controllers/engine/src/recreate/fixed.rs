//! Knows which fields of Kubernetes' own kinds cannot be changed, so that a plan can say it before a cluster is asked.
//!
//! Of other kinds, and where a value is a default or was given by the cluster, only its API server knows.

use serde_json::{Value, json};

/// Judges whether an API server would refuse the change of an object from one manifest to another because a field cannot be changed.
pub fn changes_fixed_field(kind: (&str, &str), before: &Value, now: &Value) -> bool {
    let differs = |pointer: &str, default: Value| of(before, pointer, &default) != of(now, pointer, &default);
    let null = || Value::Null;
    match kind {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") => differs("/spec/selector", null()),
        ("apps", "StatefulSet") => stateful_set(before) != stateful_set(now),
        ("batch", "Job") => job(before, now),
        ("", "Pod") => pod(before) != pod(now),
        ("", "Service") => address(before, now),
        ("", "ConfigMap") => frozen(before, now),
        ("", "Secret") => frozen(before, now) || differs("/type", json!("Opaque")),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            differs("/roleRef/kind", null()) || differs("/roleRef/name", null())
        }
        ("storage.k8s.io", "StorageClass") => {
            differs("/provisioner", null())
                || differs("/parameters", null())
                || differs("/reclaimPolicy", json!("Delete"))
                || differs("/volumeBindingMode", json!("Immediate"))
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            differs("/value", json!(0)) || differs("/preemptionPolicy", json!("PreemptLowerPriority"))
        }
        ("networking.k8s.io", "IngressClass") => differs("/spec/controller", null()),
        ("node.k8s.io", "RuntimeClass") => differs("/handler", null()),
        _ => false,
    }
}

/// The value at a pointer; nothing counts as its default.
fn of<'a>(object: &'a Value, pointer: &str, default: &'a Value) -> &'a Value {
    object.pointer(pointer).filter(|value| !value.is_null()).unwrap_or(default)
}

/// The part of a `StatefulSet` that an update must not change.
fn stateful_set(object: &Value) -> Value {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|field, value| !FREE.contains(&field.as_str()) && !value.is_null());
        fields.entry("podManagementPolicy").or_insert_with(|| json!("OrderedReady"));
    }
    let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        if let Some(fields) = claim.as_object_mut() {
            fields.retain(|field, _| matches!(field.as_str(), "metadata" | "spec"));
        }
        if let Some(fields) = claim.get_mut("spec").and_then(Value::as_object_mut) {
            fields.entry("volumeMode").or_insert_with(|| json!("Filesystem"));
        }
    }
    spec
}

fn job(before: &Value, now: &Value) -> bool {
    let differs = |pointer: &str, default: &Value| of(before, pointer, default) != of(now, pointer, default);
    // One that waits may be given other resources and nodes.
    let waits = of(before, "/spec/suspend", &Value::Null) == &json!(true);
    let indexed = of(now, "/spec/completionMode", &Value::Null) == &json!("Indexed");
    let fixed = ["selector", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
    !waits && differs("/spec/template", &Value::Null)
        || !indexed && differs("/spec/completions", &json!(1))
        || differs("/spec/completionMode", &json!("NonIndexed"))
        || fixed.iter().any(|field| differs(&format!("/spec/{field}"), &Value::Null))
}

/// The part of a Pod that an update must not change.
fn pod(object: &Value) -> Value {
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    for field in ["tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates"]
    {
        spec.as_object_mut().and_then(|fields| fields.remove(field));
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            container.as_object_mut().and_then(|fields| fields.remove("image"));
        }
    }
    spec
}

/// Judges whether a Service would lose the address that it has. No manifest says which one a cluster gave it.
fn address(before: &Value, now: &Value) -> bool {
    let text = |object: &Value, pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (kind, had, has) = ("/spec/type", text(before, "/spec/clusterIP"), text(now, "/spec/clusterIP"));
    if [before, now].iter().any(|object| text(object, kind) == "ExternalName") {
        return false;
    }
    match (had.as_str(), has.as_str()) {
        (had, has) if had == has => false,
        // It keeps that it has none, which these types do not bear.
        ("None", "") => matches!(text(now, kind).as_str(), "NodePort" | "LoadBalancer"),
        (_, "") => false,
        ("", has) => has == "None",
        _ => true,
    }
}

/// Judges whether an object is changed that says of itself that it cannot be.
fn frozen(before: &Value, now: &Value) -> bool {
    let immutable = |object| of(object, "/immutable", &Value::Null) == &json!(true);
    let empty = json!({});
    let differs = |pointer: &str| of(before, pointer, &empty) != of(now, pointer, &empty);
    immutable(before)
        && (!immutable(now) || ["/data", "/binaryData", "/stringData"].iter().any(|part| differs(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value)] // written where it is called
    fn fixed(group: &str, kind: &str, before: Value, now: Value) -> bool {
        changes_fixed_field((group, kind), &before, &now)
    }

    #[allow(clippy::needless_pass_by_value)]
    fn spec(group: &str, kind: &str, before: Value, now: Value) -> bool {
        fixed(group, kind, json!({"spec": before}), json!({"spec": now}))
    }

    #[test]
    fn a_selector_is_fixed_and_a_template_is_not() {
        let of = |app: &str, image: &str| json!({"selector": {"matchLabels": {"app": app}}, "template": {"spec": image}});
        for kind in ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet"] {
            assert!(spec("apps", kind, of("a", "1"), of("b", "1")), "{kind}");
            assert!(!spec("apps", kind, of("a", "1"), of("a", "2")), "{kind}");
        }
        assert!(!spec("example.com", "Deployment", of("a", "1"), of("b", "1")));
    }

    #[test]
    fn claims_of_a_stateful_set_are_fixed_but_for_what_says_nothing() {
        let of = |claim: Value| json!({"serviceName": "db", "volumeClaimTemplates": [claim]});
        let size = |size: &str| json!({"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": size}}}});
        assert!(spec("apps", "StatefulSet", of(size("1Gi")), of(size("2Gi"))));
        let mut wordy = size("1Gi");
        wordy["kind"] = json!("PersistentVolumeClaim");
        wordy["apiVersion"] = json!("v1");
        wordy["spec"]["volumeMode"] = json!("Filesystem");
        assert!(!spec("apps", "StatefulSet", of(size("1Gi")), of(wordy)));
        let policy = |policy: Value| json!({"podManagementPolicy": policy, "replicas": 1});
        assert!(!spec("apps", "StatefulSet", json!({"replicas": 3}), policy(json!("OrderedReady"))));
        assert!(spec("apps", "StatefulSet", json!({"replicas": 1}), policy(json!("Parallel"))));
    }

    #[test]
    fn a_service_loses_its_address_only_where_both_manifests_show_it() {
        for (before, now, lost) in [
            (json!({}), json!({"clusterIP": "None"}), true),
            (json!({}), json!({"clusterIP": "10.0.0.1"}), false),
            (json!({"clusterIP": "10.0.0.1"}), json!({"clusterIP": "10.0.0.2"}), true),
            (json!({"clusterIP": "10.0.0.1"}), json!({}), false),
            (json!({"clusterIP": "None"}), json!({}), false),
            (json!({"clusterIP": "None"}), json!({"type": "NodePort"}), true),
            (json!({"type": "ExternalName"}), json!({"clusterIP": "None"}), false),
            (json!({"type": "ClusterIP"}), json!({"type": "LoadBalancer"}), false),
        ] {
            assert_eq!(spec("", "Service", before.clone(), now.clone()), lost, "{before} {now}");
        }
    }

    #[test]
    fn a_job_is_fixed_in_what_it_runs_unless_it_waits() {
        let of = |image: &str, suspend: bool| json!({"template": {"image": image}, "suspend": suspend, "completions": 1});
        assert!(spec("batch", "Job", of("1", false), of("2", false)));
        assert!(!spec("batch", "Job", of("1", true), of("2", true)));
        assert!(!spec("batch", "Job", json!({"template": {}}), json!({"template": {}, "completions": 1})));
        assert!(!spec("batch", "CronJob", of("1", false), of("2", false)));
    }

    #[test]
    fn an_immutable_map_a_role_and_a_type_are_fixed() {
        let map = |text: &str, immutable: bool| json!({"data": {"a": text}, "immutable": immutable});
        assert!(fixed("", "ConfigMap", map("1", true), map("2", true)));
        assert!(fixed("", "ConfigMap", map("1", true), map("1", false)));
        assert!(!fixed("", "ConfigMap", map("1", false), map("2", true)));
        let binding = |role: &str| json!({"roleRef": {"kind": "Role", "name": role}, "subjects": []});
        assert!(fixed("rbac.authorization.k8s.io", "RoleBinding", binding("a"), binding("b")));
        assert!(!fixed("", "Secret", json!({}), json!({"type": "Opaque"})));
        assert!(fixed("", "Secret", json!({}), json!({"type": "kubernetes.io/tls"})));
        let image = |image: &str| json!({"containers": [{"name": "a", "image": image}]});
        assert!(!spec("", "Pod", image("1"), image("2")));
        assert!(spec("", "Pod", image("1"), json!({"containers": []})));
    }
}
