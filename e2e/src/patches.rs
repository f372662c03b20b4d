//! Compares what our patches make of manifests with `kubectl patch --local`.

mod made;
mod operations;

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use emco_engine::canonical;
use emco_engine::edits::{Patch, check, patched};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::programs::{Program, Programs};
use crate::random::Random;

/// Built-in kinds with each kind of list that Kubernetes merges.
const SAMPLES: &str = include_str!("patches/samples.yaml");
/// kubectl programs that run at once.
const AT_ONCE: usize = 4;
/// Larger objects are left out: a patch of one may be longer than an argument of a program.
const MOST_BYTES: usize = 64 * 1024;
/// Differences that are shown in full.
const MOST_SHOWN: usize = 5;
/// A JSON patch and a merge patch for each so many strategic ones.
const OTHERS_EVERY: usize = 5;
/// Groups whose kinds API servers merge strategically and kubectl does not.
const OF_SERVERS: [&str; 2] = ["apiextensions.k8s.io/", "apiregistration.k8s.io/"];
/// How kubectl refuses a field that its version of a kind does not have. We merge it as any other.
const UNKNOWN_FIELD: [&str; 2] = ["unable to find api field", "data type is not struct"];

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Compared {
    /// Patches with the same result.
    pub applied: usize,
    /// Patches that both refuse.
    pub refused: usize,
    /// Patches that kubectl refuses for a field that it does not know.
    pub unknown: usize,
    /// What was different, each with object and patch.
    pub differences: Vec<String>,
}

impl Compared {
    /// An error where something was different, or where too little was compared to mean anything.
    pub fn agree(&self) -> Result<()> {
        let shown: Vec<&str> = self.differences.iter().take(MOST_SHOWN).map(String::as_str).collect();
        ensure!(
            shown.is_empty(),
            "{} patches differ, such as\n{}",
            self.differences.len(),
            shown.join("\n\n")
        );
        ensure!(
            self.applied > 4 * (self.refused + self.unknown),
            "most patches should be applied, but {self}"
        );
        Ok(())
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { applied, refused, unknown, differences } = self;
        write!(
            f,
            "{applied} patches give the same, both refuse {refused}, kubectl knows no field of {unknown}"
        )?;
        write!(f, ", {} differ", differences.len())
    }
}

/// Objects of our own to try patches on.
pub fn samples() -> Result<Vec<Value>> {
    emco_helm::yaml::documents(SAMPLES.as_bytes()).context("the samples are no YAML")
}

/// Those of the objects that can be compared: of built-in kinds, not too large, without `null`.
pub fn comparable(objects: Vec<Value>) -> Vec<Value> {
    let empty = Patch::Strategic(json!({}));
    let mut objects: Vec<Value> = objects.into_iter().filter(Value::is_object).collect();
    objects.retain(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let is_known = check(version, object["kind"].as_str().unwrap_or_default(), &empty).is_ok();
        let is_named = object["metadata"]["name"].is_string();
        let is_of_servers = OF_SERVERS.iter().any(|group| version.starts_with(group));
        is_known && is_named && !is_of_servers && object.to_string().len() <= MOST_BYTES
    });
    objects.iter_mut().for_each(without_nulls);
    objects
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(without_nulls);
        }
        _ => {}
    }
}

/// Compares so many random strategic merge patches of the objects, with a JSON patch and a merge patch for every fifth.
pub async fn compare(objects: &[Value], seed: u64, patches: usize) -> Result<Compared> {
    ensure!(!objects.is_empty(), "there is no object to patch");
    let programs = Programs::get(&[Program::Kubectl]).await?;
    let dir = tempfile::tempdir().context("cannot make a folder for kubectl")?;
    std::fs::write(dir.path().join("kubeconfig"), "apiVersion: v1\nkind: Config\n")?;
    let kubectl = Kubectl::new(programs.path(Program::Kubectl)?, dir.path());
    let mut random = Random(seed.max(1));
    let mut cases = Vec::new();
    for round in 0..patches {
        let object = random.of(objects).clone();
        cases.push((object.clone(), made::strategic(&mut random, &object)));
        if round % OTHERS_EVERY == 0 {
            cases.push((object.clone(), made::merge(&mut random, &object)));
            cases.push((object.clone(), operations::json(&mut random, &object)));
        }
    }
    let outcomes = stream::iter(cases).map(|(object, patch)| try_patch(kubectl.clone(), object, patch));
    let outcomes: Vec<Outcome> = outcomes.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut compared = Compared::default();
    for outcome in outcomes {
        match outcome {
            Outcome::Applied => compared.applied += 1,
            Outcome::Refused => compared.refused += 1,
            Outcome::Unknown => compared.unknown += 1,
            Outcome::Different(what) => compared.differences.push(what),
        }
    }
    Ok(compared)
}

enum Outcome {
    Applied,
    Refused,
    Unknown,
    Different(String),
}

async fn try_patch(kubectl: Kubectl, object: Value, patch: Patch) -> Result<Outcome> {
    let (form, text) = match &patch {
        Patch::Json(operations) => ("json", json!(operations).to_string()),
        Patch::Merge(fields) => ("merge", fields.to_string()),
        Patch::Strategic(fields) => ("strategic", fields.to_string()),
        Patch::Workload(_) => bail!("kubectl has no such patch: {object}"),
    };
    let args = ["patch", "--local", "-f", "-", "--type", form, "-p", &text, "-o", "json"];
    let output = kubectl.output(&args, &object.to_string()).await?;
    let ours = patched(&object, &patch);
    let what = match (ours, output.is_ok()) {
        (Ok(ours), true) => {
            let theirs: Value = serde_json::from_str(&output.stdout).context("kubectl gave no JSON")?;
            if canonical::json(&ours) == canonical::json(&theirs) {
                return Ok(Outcome::Applied);
            }
            format!("ours:    {ours}\nkubectl: {theirs}")
        }
        (Err(_), false) => return Ok(Outcome::Refused),
        (Ok(_), false) if UNKNOWN_FIELD.iter().any(|words| output.stderr.contains(words)) => {
            return Ok(Outcome::Unknown);
        }
        (Ok(ours), false) => format!("ours:    {ours}\nkubectl: {}", output.stderr.trim()),
        (Err(refusal), true) => format!("ours:    {refusal}\nkubectl: {}", output.stdout.trim()),
    };
    Ok(Outcome::Different(format!("object:  {object}\n{form}: {text}\n{what}")))
}
