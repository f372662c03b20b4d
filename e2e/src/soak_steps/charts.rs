//! Renders the charts of a corpus with Helm, for the objects that they make.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::programs::{Program, Programs};
use emco_helm::yaml;
use serde_json::Value;
use tokio::process::Command;

use crate::conformance::corpus::Corpus;

/// Fewer charts than these would say little.
const MEANINGFUL: usize = 20;

/// The objects of every chart that renders with its own values, or with those that it demands.
pub async fn objects(folder: &Path) -> Result<Vec<Value>> {
    let programs = Programs::get(&[Program::Helm]).await?;
    let home = tempfile::tempdir().context("cannot make a folder for Helm")?;
    let mut objects = Vec::new();
    let mut rendered = 0;
    for case in Corpus::open(folder)?.rendered("")? {
        let mut command = Command::new(programs.path(Program::Helm)?);
        command.args(["template", "release"]).arg(&case.chart).env("HOME", home.path());
        if let Some(values) = &case.values {
            command.arg("--values").arg(values);
        }
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
        let output = output.context("cannot start helm")?;
        // Some demand what only a cluster has.
        if output.status.success()
            && let Ok(documents) = yaml::documents(&output.stdout)
        {
            rendered += 1;
            objects.extend(documents);
        }
    }
    ensure!(rendered >= MEANINGFUL, "only {rendered} charts of {} can be rendered", folder.display());
    Ok(objects)
}
