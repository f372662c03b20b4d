//! Sets of manifests, and where they are wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_engine::canonical;
use emco_engine::identity::ClusterId;
use emco_engine::set::{HookSpec, ManifestSet, Phase, SetManifest};
use serde_json::{Value, json};

use super::{KEY, cluster};

fn set(app: &str, manifests: Vec<SetManifest>) -> Arc<ManifestSet> {
    let digest = canonical::set_digest(&KEY, &manifests);
    Arc::new(ManifestSet { digest, app: app.to_owned(), manifests })
}

/// A set of plain manifests.
pub fn app(name: &str, manifests: Vec<Value>) -> Arc<ManifestSet> {
    let mut all: Vec<SetManifest> = manifests.into_iter().map(|json| manifest(json, None)).collect();
    emco_engine::order::sort(&mut all);
    set(name, all)
}

/// A set of manifests that are made already.
pub fn app_of(name: &str, mut manifests: Vec<SetManifest>) -> Arc<ManifestSet> {
    emco_engine::order::sort(&mut manifests);
    set(name, manifests)
}

pub fn manifest(json: Value, hook: Option<HookSpec>) -> SetManifest {
    let digest = canonical::manifest_digest(&KEY, &json);
    let phase: Phase = emco_engine::order::phase_of(&json, hook.as_ref());
    SetManifest {
        digest,
        phase,
        hook,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json,
    }
}

pub fn hook(json: Value, events: &[&str], weight: i32, policies: &[&str]) -> SetManifest {
    let text = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect();
    manifest(json, Some(HookSpec { events: text(events), weight, delete_policies: text(policies) }))
}

pub fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"value": value}})
}

pub fn deployment(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
}

pub fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}})
}

/// The same sets on one cluster.
pub fn on(name: &str, sets: &[Arc<ManifestSet>]) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    BTreeMap::from([(cluster(name), sets.to_vec())])
}

pub fn nowhere() -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    BTreeMap::new()
}
