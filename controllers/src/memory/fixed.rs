//! Fields that cannot be changed, by kind, with the words of a real API server.

use emco_engine::apis::ApiResource;
use serde_json::Value;

const PLAIN: &str = "Invalid value: (withheld): field is immutable";
const STATEFUL: &str = "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                        'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                        'minReadySeconds' are forbidden";
const CLAIM: &str = "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                     bound claims";

/// Group, kind, pointer; the field that is named and what is said of it.
const FIXED: [(&str, &str, &str, &str, &str); 10] = [
    ("apps", "Deployment", "/spec/selector", "spec.selector", PLAIN),
    ("apps", "DaemonSet", "/spec/selector", "spec.selector", PLAIN),
    ("apps", "StatefulSet", "/spec/serviceName", "spec", STATEFUL),
    ("apps", "StatefulSet", "/spec/volumeClaimTemplates", "spec", STATEFUL),
    ("batch", "Job", "/spec/template", "spec.template", PLAIN),
    ("", "PersistentVolumeClaim", "/spec/accessModes", "spec", CLAIM),
    ("", "Service", "/spec/clusterIP", "spec.clusterIP", PLAIN),
    ("", "Secret", "/type", "type", PLAIN),
    (
        "storage.k8s.io",
        "StorageClass",
        "/provisioner",
        "provisioner",
        "Forbidden: updates to provisioner are forbidden.",
    ),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        "/roleRef",
        "roleRef",
        "Invalid value: (withheld): cannot change roleRef",
    ),
];

/// The first such field that a new state has otherwise: `(field, what)`.
pub(super) fn refused(
    resource: &ApiResource,
    before: &Value,
    after: &Value,
) -> Option<(&'static str, &'static str)> {
    let changed = |pointer: &str| before.pointer(pointer) != after.pointer(pointer);
    let mut of_kind =
        FIXED.iter().filter(|(group, kind, ..)| resource.group == *group && resource.kind == *kind);
    let (_, _, _, field, what) = of_kind.find(|(_, _, pointer, ..)| changed(pointer))?;
    Some((field, what))
}
