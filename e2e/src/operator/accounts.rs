//! Installs the charts on a hub, runs programs there, and makes a kubeconfig of the operator's own account.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::root;
use crate::bed::Bed;
use crate::programs::Program;

/// Runs a program that talks to the hub as its administrator, such as Helm; answers what it printed.
pub async fn call<A: AsRef<OsStr>>(bed: &Bed, program: &Path, args: &[A]) -> Result<String> {
    let mut command = Command::new(program);
    command
        .args(args)
        .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
        .env("HOME", bed.dir().join("home"));
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed: {}", command.as_std(), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs both charts with Helm, which the bed has to have; answers what it said.
pub async fn install_charts(bed: &Bed) -> Result<String> {
    let mut told = String::new();
    for name in ["emco-crds", "emco"] {
        let chart = root().join("charts").join(name).display().to_string();
        let args = ["install", name, &chart, "--namespace", "emco-system", "--create-namespace"];
        told += &call(bed, bed.programs().path(Program::Helm)?, &args).await?;
    }
    let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    bed.hub().kubectl().run(&established).await?;
    Ok(told)
}

/// A kubeconfig of the service account that the chart made, with all the rights it has and no more.
pub async fn as_account(bed: &Bed) -> Result<PathBuf> {
    let args = ["create", "token", "emco-operator", "--namespace", "emco-system", "--duration", "2h"];
    let token = bed.hub().kubectl().run(&args).await?;
    let file = bed.dir().join("operator.kubeconfig");
    tokio::fs::write(&file, bed.hub().kubeconfig_with_token(token.trim())).await?;
    Ok(file)
}

/// Runs the command with which the message of a condition ends, word by word as it stands there.
pub async fn do_as_told(bed: &Bed, message: &str) -> Result<()> {
    let at = message.find(": kubectl ").with_context(|| format!("no command is in: {message}"))?;
    let words: Vec<&str> = message[at + 2..].split_whitespace().skip(1).collect();
    // By the program itself: what is said is a command of kubectl.
    bed.hub().kubectl().run_with(&words, "").await.map(drop)
}
