//! Makes a repository of its own, and the clusters that are written to through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, GitTarget, Project};
use emco_e2e::bed::Bed;
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{SOON, is, ours, secret, wait};
use emco_e2e::wait::wait_until_gone;
use kube::Api;
use serde_json::json;

use super::agent::Agent;
use super::{READER, stage};

/// The user of repositories with a login.
const USER: &str = "emco";
/// Between two looks at the branch.
const LOOK: Duration = Duration::from_millis(200);

/// A repository, and clusters that are written to through it.
pub struct Fleet {
    pub bed: &'static Bed,
    pub server: Arc<GitServer>,
    pub name: String,
    pub clusters: &'static [&'static str],
    agents: Vec<Agent>,
}

impl Fleet {
    /// A provider of its own, whose Clusters are planes with agents of ours at work. `password`: the repository asks for it.
    pub async fn start(
        name: &str,
        clusters: &'static [&'static str],
        password: Option<&str>,
    ) -> Result<Self> {
        let bed = stage().await?;
        let mut fleet = Box::pin(Self::register(bed, name, clusters, password)).await?;
        for edge in clusters {
            fleet.agents.push(Agent::follow(bed, &fleet.server, edge, &fleet.folder(edge))?);
        }
        fleet.reached().await?;
        Ok(fleet)
    }

    /// The same without agents.
    pub async fn register(
        bed: &'static Bed,
        name: &str,
        clusters: &'static [&'static str],
        password: Option<&str>,
    ) -> Result<Self> {
        let server = Arc::new(GitServer::bare(password.map(|password| (USER, password))).await?);
        // Logical clouds of other tests' projects would make commits, too.
        let provider = format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/provider: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {{name: {name}}}
spec:
  grants:
  - {{name: own, projects: [{name}-shop, {name}-life, {name}-moves, {name}-hooks, {name}-tenant], maxLevel: Admin}}
"
        );
        bed.hub().kubectl().apply(&provider).await?;
        let fleet = Self { bed, server, name: name.to_owned(), clusters, agents: Vec::new() };
        if let Some(password) = password {
            fleet.log_in(password).await?;
        }
        let login = if password.is_some() { ", secretRef: {name: fleet-login}" } else { "" };
        let target = format!(
            "
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {{name: fleet, namespace: {name}}}
spec: {{url: {}, branch: main, folder: hub, interval: 10s, edge: {{interval: 10s}}{login}}}
",
            fleet.server.url()
        );
        bed.hub().kubectl().apply(&target).await?;
        for edge in clusters {
            secret(bed, name, edge, &bed.edge(edge).kubeconfig_as(READER, None)?).await?;
            let cluster = format!(
                "
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {{name: {edge}, namespace: {name}, labels: {{tier: edge, edge: {edge}}}}}
spec:
  access: {{gitOps: {{targetRef: {{name: fleet}}, observe: {{kubeconfigSecretRef: {{name: {edge}-kubeconfig}}}}}}}}
"
            );
            bed.hub().kubectl().apply(&cluster).await?;
        }
        Ok(fleet)
    }

    /// Waits until the hub sees all clusters.
    pub async fn reached(&self) -> Result<()> {
        for edge in self.clusters {
            wait(self.bed, &self.name, edge, |cluster: &Cluster| {
                is(cluster.status.as_ref(), types::REACHABLE, "True")
            })
            .await?;
        }
        Ok(())
    }

    /// Gives the hub this password for the repository.
    pub async fn log_in(&self, password: &str) -> Result<()> {
        let login = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet-login", "namespace": self.name},
            "stringData": {"username": USER, "password": password, "ca.crt": self.server.ca()},
        });
        self.bed.hub().kubectl().apply(&login.to_string()).await.map(drop)
    }

    /// Asks the repository for this password from now on.
    pub fn change_password(&self, password: &str) {
        self.server.change_login((USER, password));
    }

    /// The folder of a cluster.
    pub fn folder(&self, edge: &str) -> String {
        format!("hub/clusters/{}/{edge}", self.name)
    }

    /// A placement on all of its clusters.
    pub fn everywhere(&self) -> String {
        format!("placement: {{allOf: [{{provider: {}, selector: {{}}}}]}}", self.name)
    }

    /// A placement on one of them.
    pub fn only(&self, edge: &str) -> String {
        format!("placement: {{allOf: [{{provider: {}, cluster: {edge}}}]}}", self.name)
    }

    /// Waits until the target says that the branch is as wanted, and answers its tip.
    pub async fn published(&self) -> Result<String> {
        wait(self.bed, &self.name, "fleet", |target: &GitTarget| {
            is(target.status.as_ref(), types::READY, "True")
        })
        .await?;
        self.server.tip().await
    }

    /// Waits until its agents have applied the tip of the branch.
    pub async fn followed(&self) -> Result<()> {
        let tip = self.server.tip().await?;
        for agent in &self.agents {
            agent.has(&tip).await?;
        }
        Ok(())
    }

    /// Has the hub look at the branch now, and waits until it did. `when` is any text that was not said before.
    pub async fn look(&self, when: &str) -> Result<()> {
        let request = format!("emco.io/requestedAt={when}");
        let args = ["annotate", "gitt", "fleet", "-n", &self.name, "--overwrite", &request];
        self.bed.hub().kubectl().run(&args).await?;
        wait(self.bed, &self.name, "fleet", |target: &GitTarget| {
            let handled = target.status.as_ref().and_then(|status| status.last_handled_request.as_deref());
            if handled == Some(when) { Ok(()) } else { Err(format!("handled: {handled:?}")) }
        })
        .await
    }

    /// Waits until the branch is so. Nothing tells of its commits.
    pub async fn until(&self, what: &str, check: impl AsyncFn() -> bool) -> Result<()> {
        let end = Instant::now() + SOON;
        while !check().await {
            ensure!(Instant::now() < end, "the branch is never so: {what}");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Waits until the branch has the hub's claim and a file whose path has these words.
    pub async fn has_again(&self, words: &str) -> Result<()> {
        let has = async || {
            let claim = self.server.text("hub/.emco/installation").await.unwrap_or_default();
            let files = self.server.files("main").await.unwrap_or_default();
            claim.contains("installation: ") && files.iter().any(|file| file.contains(words))
        };
        self.until(&format!("it has {words} again"), has).await
    }

    /// Commits of the branch by now.
    pub async fn commits(&self) -> Result<usize> {
        Ok(self.server.git(&["rev-list", "--count", "main"]).await?.parse()?)
    }

    /// The first and the last commit that touched files below a path.
    pub async fn touched(&self, path: &str) -> Result<(String, String)> {
        let commits = self.server.git(&["log", "--reverse", "--format=%H", "main", "--", path]).await?;
        let first = commits.lines().next().with_context(|| format!("nothing touched {path}"))?;
        Ok((first.to_owned(), commits.lines().last().unwrap_or(first).to_owned()))
    }

    /// Fails unless one commit came before another one.
    pub async fn in_order(&self, first: &str, then: &str) -> Result<()> {
        ensure!(first != then, "both came with {first}");
        self.server.git(&["merge-base", "--is-ancestor", first, then]).await.map(drop)
    }

    /// Deletes a project that has no deployment any more: branch and clusters have nothing of it afterwards.
    pub async fn is_left_by(&self, project: &str) -> Result<()> {
        self.bed.hub().kubectl().run(&["delete", "projects.emco.io", project, "--wait=false"]).await?;
        let projects: Api<Project> = Api::all(self.bed.hub().client().await?);
        wait_until_gone(projects, project, SOON).await?;
        let files = self.server.files("main").await?;
        ensure!(!files.iter().any(|file| file.contains(project)), "{files:?}");
        for edge in self.clusters {
            let spaces = self.bed.edge(edge).kubectl().run(&["get", "namespaces", "-o", "name"]).await?;
            ensure!(!spaces.lines().any(|name| name == format!("namespace/{project}")), "{edge}: {spaces}");
        }
        Ok(())
    }

    /// Takes the clusters and the target off the hub; nothing of the hub's is left on them.
    pub async fn end(self) -> Result<()> {
        let kubectl = self.bed.hub().kubectl();
        for edge in self.clusters {
            kubectl.run(&["delete", "clusters.emco.io", edge, "-n", &self.name, "--wait=false"]).await?;
            let clusters: Api<Cluster> = self.bed.hub().api(&self.name).await?;
            wait_until_gone(clusters, edge, SOON).await?;
            let left = ours(self.bed, edge, "namespaces,configmaps", None).await?;
            ensure!(left.is_empty(), "{edge}: {left:?}");
        }
        let files = self.server.files("main").await?;
        let is_object =
            |file: &&String| file.starts_with("hub/clusters/") && !file.ends_with("/sync/kustomization.yaml");
        let left: Vec<&String> = files.iter().filter(is_object).collect();
        ensure!(left.is_empty(), "{left:?}");
        // It may be on its way already, and go with its last cluster.
        let delete = ["delete", "gitt", "fleet", "-n", &self.name, "--wait=false", "--ignore-not-found"];
        kubectl.run(&delete).await?;
        let targets: Api<GitTarget> = self.bed.hub().api(&self.name).await?;
        wait_until_gone(targets, "fleet", SOON).await
    }
}
