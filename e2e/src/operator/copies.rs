//! Copies the objects of a hub and creates them anew on an empty one, as tools do that back up objects and not etcd.

use anyhow::{Context as _, Result, ensure};
use emco_crds::names::label;
use serde_json::{Value, json};

use crate::bed::Bed;

/// What such tools keep of the metadata: the API server gives the rest anew.
const KEPT: [&str; 5] = ["name", "namespace", "labels", "annotations", "finalizers"];

/// Which statuses are copied.
#[derive(Clone, Copy, Debug)]
pub enum Statuses {
    /// Each with its object.
    All,
    /// As tools do that know no subresources.
    None,
    /// Without those of objects of this deployment.
    AllBut(&'static str),
}

impl Statuses {
    /// Whether an object of this owner has its own.
    pub fn has(self, owner: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::AllBut(without) => owner != without,
        }
    }
}

/// Objects as they were: namespaces, Secrets, ConfigMaps, and everything of emco.io.
pub struct Copies {
    spaces: Vec<Value>,
    others: Vec<Value>,
}

impl Copies {
    /// Reads all of them, but for what Kubernetes makes by itself.
    pub async fn of(bed: &Bed) -> Result<Self> {
        let kubectl = bed.hub().kubectl();
        let kinds = kubectl.run(&["api-resources", "--api-group=emco.io", "-o", "name"]).await?;
        let kinds = kinds.split_whitespace().collect::<Vec<_>>().join(",");
        ensure!(kinds.contains("syncshards"), "the hub has no kinds of emco.io: {kinds}");
        let spaces = list(bed, "namespaces").await?;
        let others = list(bed, &format!("secrets,configmaps,{kinds}")).await?;
        Ok(Self { spaces, others })
    }

    /// As a hub has them whose operator took over so many times.
    #[must_use]
    pub fn of_epoch(mut self, epoch: i64) -> Self {
        for object in self.others.iter_mut().filter(|object| object["kind"] == "SyncShard") {
            object["spec"]["epoch"] = json!(epoch);
        }
        self
    }

    /// Creates all of them with these statuses; the API server gives each another uid, and generation 1.
    pub async fn create(&self, bed: &Bed, statuses: Statuses) -> Result<()> {
        let kubectl = bed.hub().kubectl();
        // Namespaces may be there already.
        for (command, objects) in [("apply", &self.spaces), ("create", &self.others)] {
            let items: Vec<Value> = objects.iter().map(bare).collect();
            kubectl.run_with(&[command, "-f", "-"], &all(&items)).await?;
        }
        let status = |object: &Value| {
            let ours = object["apiVersion"].as_str().is_some_and(|version| version.starts_with("emco.io/"));
            let owner = object["metadata"]["labels"][label::OWNER_NAME].as_str().unwrap_or_default();
            let status = object.get("status").filter(|_| ours && statuses.has(owner))?;
            let mut bare = bare(object);
            bare.as_object_mut()?.insert("status".to_owned(), status.clone());
            Some(bare)
        };
        let items: Vec<Value> = self.others.iter().filter_map(status).collect();
        if !items.is_empty() {
            kubectl.run_with(&["replace", "--subresource=status", "-f", "-"], &all(&items)).await?;
        }
        Ok(())
    }
}

async fn list(bed: &Bed, kinds: &str) -> Result<Vec<Value>> {
    let answer = bed.hub().kubectl().run(&["get", kinds, "--all-namespaces", "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&answer).context("kubectl did not answer in JSON")?;
    let items = list["items"].as_array().cloned().context("kubectl answered no list")?;
    let own = |object: &Value| {
        let metadata = &object["metadata"];
        let of = |key: &str| metadata[key].as_str().unwrap_or_default();
        let space = if object["kind"] == "Namespace" { of("name") } else { of("namespace") };
        space == "default" || space.starts_with("kube-") || of("name") == "kube-root-ca.crt"
    };
    Ok(items.into_iter().filter(|object| !own(object)).collect())
}

/// An object as it is created: without status, and without what the API server says of it.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| KEPT.contains(&key.as_str()));
    }
    if object["kind"] == "Namespace" {
        object["spec"] = json!({});
    }
    object
}

fn all(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}
