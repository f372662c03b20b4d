//! Has `kubectl patch --local` carry out patches, a process each.

use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{Case, Outcome};
use crate::kubectl::Kubectl;
use crate::programs::{Program, Programs};

/// kubectl programs that run at once.
const AT_ONCE: usize = 4;

/// The outcome of each, in any order.
pub(super) async fn outcomes(cases: Vec<Case>) -> Result<Vec<Outcome>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let programs = Programs::get(&[Program::Kubectl]).await?;
    let dir = tempfile::tempdir().context("cannot make a folder for kubectl")?;
    std::fs::write(dir.path().join("kubeconfig"), "apiVersion: v1\nkind: Config\n")?;
    let kubectl = Kubectl::new(programs.path(Program::Kubectl)?, dir.path());
    let outcomes = stream::iter(cases).map(|case| outcome(kubectl.clone(), case));
    outcomes.buffer_unordered(AT_ONCE).try_collect().await
}

async fn outcome(kubectl: Kubectl, case: Case) -> Result<Outcome> {
    let (form, text) = case.form()?;
    let args = ["patch", "--local", "-f", "-", "--type", form, "-p", &text, "-o", "json"];
    let output = kubectl.output(&args, &case.object.to_string()).await?;
    let theirs = if output.is_ok() {
        Ok(serde_json::from_str(&output.stdout).context("kubectl gave no JSON")?)
    } else {
        Err(output.stderr.trim().to_owned())
    };
    case.judged("kubectl", &theirs)
}
