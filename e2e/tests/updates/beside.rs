//! Helm beside the operator: the same chart with the same values in a namespace of its own on edge `a`, and what became of its
//! objects there.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::SOON;
use emco_e2e::package::Package;
use emco_e2e::programs::Program;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::apps::v1::Deployment;
use tokio::process::Command;

use super::field;

/// A release of the chart by Helm.
pub struct Beside {
    bed: &'static Bed,
    pub namespace: String,
    archive: PathBuf,
}

impl Beside {
    /// Writes the archive where Helm finds it. The namespace is named after the operator's.
    pub async fn new(bed: &'static Bed, namespace: &str, chart: &Package) -> Result<Self> {
        let archive = bed.dir().join(format!("{namespace}-{}", chart.file_name()));
        tokio::fs::write(&archive, &chart.bytes).await?;
        Ok(Self { bed, namespace: format!("{namespace}-helm"), archive })
    }

    /// Installs the release `shop`, or upgrades it, with one value.
    pub async fn upgrade(&self, value: &str) -> Result<()> {
        let archive = self.archive.display().to_string();
        self.helm(&["upgrade", "shop", &archive, "--install", "--create-namespace", "--set", value]).await
    }

    /// Removes the release.
    pub async fn uninstall(&self) -> Result<()> {
        self.helm(&["uninstall", "shop"]).await
    }

    async fn helm(&self, args: &[&str]) -> Result<()> {
        let output = Command::new(self.bed.programs().path(Program::Helm)?)
            .args(args)
            .args(["--namespace", &self.namespace])
            .env("KUBECONFIG", self.bed.edge("a").kubectl().kubeconfig())
            .env("HOME", self.bed.dir().join("helm"))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        ensure!(output.status.success(), "helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Waits until the controller of a Deployment of Helm's has seen its last change.
    pub async fn observed(&self, name: &str) -> Result<()> {
        let all = self.bed.edge("a").api::<Deployment>(&self.namespace).await?;
        let seen = |web: &Deployment| {
            web.status.as_ref().and_then(|status| status.observed_generation) == web.metadata.generation
        };
        wait_for_object(all, name, SOON, seen).await.map(drop)
    }

    /// Both have the same in these fields of an object.
    pub async fn agrees(&self, namespace: &str, object: &str, fields: &[&str]) -> Result<()> {
        for path in fields {
            let ours = field(self.bed, namespace, object, path).await?;
            let theirs = field(self.bed, &self.namespace, object, path).await?;
            ensure!(ours == theirs, "{object} {path}: {ours}, with Helm {theirs}");
        }
        Ok(())
    }
}
