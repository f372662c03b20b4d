//! Makes the objects of a logical cloud: its namespace, what confines the pods in it, and the rights of its account.

use emco_crds::fields::Level;
use emco_crds::logical_cloud::{Isolation, LimitRange, PodSecurity, Quota};
use emco_crds::names::label;
use serde_json::{Value, json};

use super::{APP, Request, rights};
use crate::canonical;
use crate::role::Rights;
use crate::set::{ManifestSet, Phase, SetManifest};

/// The `NetworkPolicy` of `isolation`.
const ISOLATION: &str = "emco-isolation";

/// The set of all of them, in Helm's order of kinds but for the operator's own bindings, by which it may make the rest. `derived` are the
/// rights of permissions that are derived.
pub fn set(request: &Request<'_>, derived: &Rights) -> ManifestSet {
    let key = &request.installation.digest_key;
    let mut objects = Vec::new();
    if request.spec.level != Level::Admin {
        objects.extend(rights::of_hub(request));
    }
    objects.extend(isolation(request.namespace, request.spec.isolation));
    objects.extend(request.spec.quotas.iter().map(|one| quota(request.namespace, one)));
    objects.extend(request.spec.limit_ranges.iter().map(|one| limit_range(request.namespace, one)));
    if request.spec.level != Level::Admin {
        objects.extend(rights::objects(request, derived));
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
        edited_by: Vec::new(),
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

/// Connections come from pods of the namespace alone, or from nobody.
pub fn isolation(namespace: &str, isolation: Isolation) -> Option<Value> {
    let spec = match isolation {
        Isolation::None => return None,
        Isolation::DefaultDeny => json!({
            "podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}],
        }),
        Isolation::Closed => json!({"podSelector": {}, "policyTypes": ["Ingress"]}),
    };
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": ISOLATION, "namespace": namespace},
        "spec": spec,
    }))
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

/// Admins of a namespace may read it and not write it, as with quotas.
fn limit_range(namespace: &str, range: &LimitRange) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": format!("emco-{}", range.name), "namespace": namespace},
        "spec": {"limits": range.limits},
    })
}
