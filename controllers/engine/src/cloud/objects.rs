//! Makes the objects of a logical cloud: its namespace, what confines the pods in it, and the account that its deployments are applied as.

use emco_crds::fields::Level;
use emco_crds::logical_cloud::{Isolation, Permission, PodSecurity, Quota};
use emco_crds::names::label;
use serde_json::{Value, json};

use super::{APP, Request};
use crate::canonical;
use crate::set::{ManifestSet, Phase, SetManifest};

/// The `NetworkPolicy` of `isolation: DefaultDeny`.
const ISOLATION: &str = "emco-isolation";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Name of the `ServiceAccount` that deployments of a logical cloud are applied as.
fn account_name(cloud: &str) -> String {
    format!("emco-{cloud}")
}

/// The user that clusters see while something of a logical cloud is written to its namespace.
pub fn account(namespace: &str, cloud: &str) -> String {
    format!("system:serviceaccount:{namespace}:{}", account_name(cloud))
}

/// The set of all of them, in Helm's order of kinds.
pub fn set(request: &Request<'_>) -> ManifestSet {
    let key = &request.installation.digest_key;
    let mut objects = Vec::new();
    if request.spec.isolation == Isolation::DefaultDeny {
        objects.push(isolation(request.namespace));
    }
    objects.extend(request.spec.quotas.iter().map(|one| quota(request.namespace, one)));
    if request.spec.level == Level::Standard {
        objects.extend(rights(request));
    }
    // A namespace that is there already is used as it is, and is not removed. One that confines pods, or in which an account has rights, has
    // to be the cloud's own: pods of others in it would be refused, cut off, or open to the account.
    let taken =
        request.spec.level == Level::Admin && request.spec.pod_security.is_none() && objects.is_empty();
    let namespace = [(Phase::Foundation, namespace(request), taken)];
    let rest = objects.into_iter().map(|json| (Phase::Main, json, false));
    let manifests = namespace.into_iter().chain(rest).map(|(phase, json, take_existing)| SetManifest {
        digest: canonical::manifest_digest(key, &json),
        phase,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing,
        account: None,
        json,
    });
    let manifests = manifests.collect::<Vec<_>>();
    ManifestSet { digest: canonical::set_digest(key, &manifests), app: APP.to_owned(), manifests }
}

/// Pods below the level are refused; who makes them is warned, too.
fn namespace(request: &Request<'_>) -> Value {
    let mut json = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": request.namespace, "labels": {label::PROJECT: request.project}},
    });
    if let (Some(level), Some(labels)) = (request.spec.pod_security, json.pointer_mut("/metadata/labels")) {
        let level = match level {
            PodSecurity::Privileged => "privileged",
            PodSecurity::Baseline => "baseline",
            PodSecurity::Restricted => "restricted",
        };
        for mode in ["enforce", "warn"] {
            labels[format!("pod-security.kubernetes.io/{mode}")] = json!(level);
        }
    }
    json
}

/// Connections come from pods of the namespace alone.
fn isolation(namespace: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": ISOLATION, "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]},
    })
}

/// `ClusterRole` admin of a cluster may read quotas and not write them: no deployment lifts its own.
fn quota(namespace: &str, quota: &Quota) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": format!("emco-{}", quota.name), "namespace": namespace},
        "spec": {"hard": quota.hard},
    })
}

/// The account, and what it may do: in its namespace and nowhere else.
fn rights(request: &Request<'_>) -> Vec<Value> {
    let (namespace, account) = (request.namespace, account_name(request.name));
    // No pod that a chart makes gets its token by itself.
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": account, "namespace": namespace},
        "automountServiceAccountToken": false,
    })];
    let bind = |name: &str, kind: &str, role: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        })
    };
    if request.spec.permissions.is_empty() {
        objects.push(bind(&account, "ClusterRole", "admin"));
    }
    let mut bindings = Vec::new();
    for Permission { name, cluster_role, rules, scope: _, namespaces: _ } in &request.spec.permissions {
        let own = format!("{account}-{name}");
        if let Some(rules) = rules {
            objects.push(json!({
                "apiVersion": format!("{RBAC}/v1"),
                "kind": "Role",
                "metadata": {"name": own, "namespace": namespace},
                "rules": rules,
            }));
        }
        bindings.push(match cluster_role {
            Some(role) => bind(&own, "ClusterRole", role),
            None => bind(&own, "Role", &own),
        });
    }
    objects.extend(bindings);
    objects
}
