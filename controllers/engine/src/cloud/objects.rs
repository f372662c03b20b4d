//! Makes the objects of a logical cloud: its namespace, and what confines the pods in it.

use emco_crds::logical_cloud::{Isolation, PodSecurity};
use emco_crds::names::label;
use serde_json::{Value, json};

use super::{APP, Request};
use crate::canonical;
use crate::set::{ManifestSet, Phase, SetManifest};

/// The `NetworkPolicy` of `isolation: DefaultDeny`.
pub const ISOLATION: &str = "emco-isolation";

/// The set of all of them.
pub fn set(request: &Request<'_>) -> ManifestSet {
    let key = &request.installation.digest_key;
    // A namespace that is there already is used as it is, and is not removed. One that confines pods has to be the
    // cloud's own: pods of others in it would be refused and cut off, too.
    let confined = request.spec.pod_security.is_some() || request.spec.isolation != Isolation::None;
    let policy = (request.spec.isolation == Isolation::DefaultDeny).then(|| isolation(request.namespace));
    let objects = [(Phase::Foundation, namespace(request), !confined)]
        .into_iter()
        .chain(policy.map(|policy| (Phase::Main, policy, false)));
    let manifests = objects
        .map(|(phase, json, take_existing)| SetManifest {
            digest: canonical::manifest_digest(key, &json),
            phase,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing,
            json,
        })
        .collect::<Vec<_>>();
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
