//! Says what the account may do on a cluster that is written to through Git: read.

use serde_json::{Value, json};

/// Groups whose kinds a view lists: those that charts have, and the agent's own. Of the core group it lists all but Secrets.
const GROUPS: [&str; 15] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "kustomize.toolkit.fluxcd.io",
    "source.toolkit.fluxcd.io",
];
const CORE: [&str; 13] = [
    "configmaps",
    "endpoints",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "services",
];

/// What the account of such a cluster may do.
pub fn rules() -> Value {
    let verbs = ["get", "list", "watch"];
    json!([
        {"apiGroups": [""], "resources": CORE, "verbs": verbs},
        {"apiGroups": GROUPS, "resources": ["*"], "verbs": verbs},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_lists_no_secrets_and_changes_nothing() {
        let rules = rules();
        for rule in rules.as_array().unwrap() {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
            let core = rule["apiGroups"] == json!([""]);
            assert!(!core || !rule["resources"].to_string().contains("secrets"));
        }
    }
}
