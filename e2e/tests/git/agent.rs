//! Plays the agent of a cluster: applies the folder of the branch with `kubectl apply -k`, and removes what left it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use emco_e2e::bed::Bed;
use emco_e2e::git_server::GitServer;
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::SOON;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two looks at the tip.
const LOOK: Duration = Duration::from_millis(200);

/// The kinds of Flux as far as their objects are looked at: with them the root's objects can be applied.
pub const KINDS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: Kustomization, plural: kustomizations}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
";

/// An agent at work. It ends when it is dropped.
pub struct Agent {
    work: JoinHandle<()>,
    /// The commit that it applied last.
    done: watch::Receiver<String>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Resource, namespace and name of an object.
type Named = (String, String, String);

struct Edge {
    kubectl: Kubectl,
    server: Arc<GitServer>,
    /// The folder in which it has the branch.
    tree: PathBuf,
    /// The folder of its cluster.
    folder: String,
    has: BTreeSet<Named>,
}

impl Agent {
    /// Begins to follow the folder of a cluster.
    pub fn follow(bed: &Bed, server: &Arc<GitServer>, edge: &str, folder: &str) -> Result<Self> {
        let kubeconfig = bed.dir().join(format!("agent-{edge}.kubeconfig"));
        std::fs::write(&kubeconfig, bed.edge(edge).kubeconfig_as("agent", Some("system:masters"))?)?;
        let mut edge = Edge {
            kubectl: bed.edge(edge).kubectl().with_kubeconfig(&kubeconfig),
            server: Arc::clone(server),
            tree: bed.dir().join(format!("agent-{edge}")),
            folder: folder.to_owned(),
            has: BTreeSet::new(),
        };
        let (sender, done) = watch::channel(String::new());
        let work = async move {
            loop {
                let tip = edge.server.tip().await.unwrap_or_default();
                if !tip.is_empty() && tip != *sender.borrow() {
                    match edge.apply(&tip).await {
                        Ok(()) => drop(sender.send_replace(tip)),
                        // As with Flux: it is tried again, and said in the end by what is missing.
                        Err(error) => eprintln!("the agent of {}: {error:#}", edge.folder),
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        Ok(Self { work: tokio::spawn(work), done })
    }

    /// Waits until it has applied this commit.
    pub async fn has(&self, commit: &str) -> Result<()> {
        let mut done = self.done.clone();
        let has = tokio::time::timeout(SOON, done.wait_for(|it| it == commit)).await;
        has.with_context(|| format!("the agent does not come to {commit}"))?
            .map(drop)
            .context("the agent ended")
    }
}

impl Edge {
    async fn apply(&mut self, commit: &str) -> Result<()> {
        self.server.check_out(commit, &self.tree).await?;
        let root = self.tree.join(&self.folder);
        let sync = root.join("sync");
        if !sync.exists() {
            // An error to Flux, which then removes nothing.
            return Ok(());
        }
        let mut found = Vec::new();
        self.apply_folder(&sync, &mut found).await?;
        let folders = found.iter().filter(|object| object["kind"] == "Kustomization");
        let folders: Vec<PathBuf> = folders
            .filter_map(|object| Some(self.tree.join(object.pointer("/spec/path")?.as_str()?)))
            .collect();
        for folder in folders {
            self.apply_folder(&folder, &mut found).await?;
        }
        let stays = "/metadata/annotations/kustomize.toolkit.fluxcd.io~1prune";
        let now: BTreeSet<Named> =
            found.iter().filter(|object| object.pointer(stays).is_none()).map(named).collect();
        // Namespaces go last.
        let mut gone: Vec<&Named> = self.has.difference(&now).collect();
        gone.sort_by_key(|(resource, ..)| resource.starts_with("Namespace"));
        for (resource, namespace, name) in gone {
            let args = ["delete", resource, name, "-n", namespace, "--ignore-not-found", "--wait=false"];
            self.kubectl.run(&args).await?;
        }
        self.has = now;
        Ok(())
    }

    /// Applies what the list of a folder names.
    async fn apply_folder(&self, folder: &Path, found: &mut Vec<Value>) -> Result<()> {
        let list = folder.join("kustomization.yaml");
        let Ok(text) = std::fs::read_to_string(&list) else { return Ok(()) };
        let list: Value = serde_yaml::from_str(&text).with_context(|| list.display().to_string())?;
        let files: Vec<&str> =
            list["resources"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if files.is_empty() {
            return Ok(());
        }
        for file in files {
            let text = std::fs::read_to_string(folder.join(file)).with_context(|| file.to_owned())?;
            for document in serde_yaml::Deserializer::from_str(&text) {
                found.push(Value::deserialize(document)?);
            }
        }
        let folder = folder.display().to_string();
        let manager = "--field-manager=kustomize-controller";
        self.kubectl.run(&["apply", "--server-side", "--force-conflicts", manager, "-k", &folder]).await?;
        Ok(())
    }
}

fn named(object: &Value) -> Named {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("/apiVersion"), text("/kind"));
    let resource = match version.split_once('/') {
        Some((group, version)) => format!("{kind}.{version}.{group}"),
        None => kind,
    };
    let namespace = text("/metadata/namespace");
    let namespace = if namespace.is_empty() { "default".to_owned() } else { namespace };
    (resource, namespace, text("/metadata/name"))
}
