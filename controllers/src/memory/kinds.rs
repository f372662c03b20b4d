//! The kinds an empty server has.

use std::sync::LazyLock;

use emco_engine::apis::ApiResource;
use kube::CustomResourceExt;

use crate::kinds::{self, each_kind};

/// `(group, version, kind, plural, namespaced)`
const KINDS: &[(&str, &str, &str, &str, bool)] = &[
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "Node", "nodes", false),
    ("", "v1", "PersistentVolume", "persistentvolumes", false),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "Service", "services", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("", "v1", "ResourceQuota", "resourcequotas", true),
    ("", "v1", "LimitRange", "limitranges", true),
    ("", "v1", "Event", "events", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("apps", "v1", "DaemonSet", "daemonsets", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("batch", "v1", "Job", "jobs", true),
    ("batch", "v1", "CronJob", "cronjobs", true),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", true),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", true),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("coordination.k8s.io", "v1", "Lease", "leases", true),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", false),
    ("events.k8s.io", "v1", "Event", "events", true),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices", false),
];

/// The kinds of the table.
static OURS: LazyLock<Vec<ApiResource>> = LazyLock::new(|| {
    macro_rules! definitions {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
            [$(<kinds::$kind as CustomResourceExt>::crd(),)*]
        };
    }
    let definitions = each_kind!(all => definitions);
    let definitions = definitions.iter().filter_map(|crd| serde_json::to_value(crd).ok());
    definitions.flat_map(|crd| of_definition(&crd)).collect()
});

/// What a fresh server serves.
pub(super) fn all() -> Vec<ApiResource> {
    KINDS
        .iter()
        .map(|(group, version, kind, plural, namespaced)| ApiResource {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
            plural: (*plural).to_owned(),
            namespaced: *namespaced,
            listable: true,
            watchable: true,
        })
        .chain(OURS.iter().cloned())
        .collect()
}

/// Reads a CustomResourceDefinition into the resources it makes the server serve.
pub(super) fn of_definition(definition: &serde_json::Value) -> Vec<ApiResource> {
    let text = |pointer: &str| {
        definition.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let versions = definition
        .pointer("/spec/versions")
        .and_then(serde_json::Value::as_array)
        .cloned()
        .unwrap_or_default();
    versions
        .iter()
        .filter_map(|version| version.get("name").and_then(serde_json::Value::as_str))
        .map(|version| ApiResource {
            group: text("/spec/group"),
            version: version.to_owned(),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: text("/spec/scope") == "Namespaced",
            listable: true,
            watchable: true,
        })
        .collect()
}
