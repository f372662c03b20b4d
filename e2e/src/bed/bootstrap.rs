//! Creates the objects that every edge has from the start: nodes, storage, and kwok's stages of our own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::spec::{NodeSpec, Parts, PlaneSpec};

/// Volumes of an edge.
pub(super) const VOLUMES: usize = 16;
const STORAGE_CLASS: &str = "standard";
const MANAGER: &str = "bed";

const STAGES: [(&str, &str); 3] = [
    ("emco-pod-never-complete.yaml", include_str!("../../stages/pod-never-complete.yaml")),
    ("emco-service-load-balancer.yaml", include_str!("../../stages/service-load-balancer.yaml")),
    ("emco-volume-reuse.yaml", include_str!("../../stages/volume-reuse.yaml")),
];

pub(super) fn stages_dir(plane: &Path) -> PathBuf {
    plane.join("stages")
}

pub(super) fn write_stages(plane: &Path) -> Result<()> {
    let dir = stages_dir(plane);
    fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for (name, text) in STAGES {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// Makes the objects, or makes them as they were.
pub(super) async fn apply(spec: &PlaneSpec, client: &Client) -> Result<()> {
    for node in &spec.nodes {
        apply_one::<Node>(client, &node.name, node_object(node)).await?;
    }
    if spec.parts == Parts::Full {
        apply_one::<StorageClass>(client, STORAGE_CLASS, storage_class()).await?;
        for number in 0..VOLUMES {
            let name = format!("volume-{number:02}");
            apply_one::<PersistentVolume>(client, &name, volume(&name)).await?;
        }
    }
    Ok(())
}

async fn apply_one<K>(client: &Client, name: &str, object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    api.patch(name, &params, &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot apply {} {name}", K::kind(&())))?;
    Ok(())
}

fn node_object(node: &NodeSpec) -> Value {
    let mut labels = node.labels.clone();
    for (key, value) in [
        ("kubernetes.io/hostname", node.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
    ] {
        labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": labels,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
        },
        "status": { "capacity": node.capacity.0, "allocatable": node.capacity.0 },
    })
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate",
    })
}

fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "100Gi" },
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
            // No kubelet mounts it.
            "hostPath": { "path": format!("/nowhere/{name}") },
        },
    })
}
