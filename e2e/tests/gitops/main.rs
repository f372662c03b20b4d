//! In: objects as people keep them in Git. Out: what Flux and Argo CD make of them, with the code that Flux and Argo CD judge and
//! compare with; and a tenant in one folder, in any order.

mod differences;
mod folder;
mod held;
mod objects;
mod stages;

use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::programs::{Program, Programs};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// One question to the program in `e2e/gitops`.
async fn ask(bed: &Bed, command: &str, question: &Value) -> Result<Vec<Value>> {
    let programs = Programs::get(&[Program::GitOpsChecks]).await?;
    let mut child = Command::new(programs.path(Program::GitOpsChecks)?)
        .arg(command)
        .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
        .env("HOME", bed.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    let question = question.to_string();
    let write = async move { input.write_all(question.as_bytes()).await };
    let (written, output) = tokio::join!(write, child.wait_with_output());
    let output = output?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    written?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// All objects of our kinds, and more. One call for all of them: each starts a kubectl.
async fn lives(bed: &Bed, more: &[&str]) -> Result<Vec<Value>> {
    let ours = emco_crds::kinds::ALL.iter().map(|row| resource(row.kind));
    let resources: Vec<String> = ours.chain(more.iter().map(|&kind| kind.to_owned())).collect();
    let args = ["get", &resources.join(","), "-A", "-o", "json", "--show-managed-fields"];
    let mut list: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        other => bail!("no list: {other}"),
    }
}

/// The resource of a kind, fully: `clusters` and `projects` are others' names, too.
fn resource(kind: &str) -> String {
    format!("{}.emco.io", emco_crds::kinds::row(kind).unwrap().plural())
}
