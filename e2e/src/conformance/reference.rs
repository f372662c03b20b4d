//! In: a packaged chart and a plane. Out: what Helm makes of it there, and what it renders anew each time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::package::Package;
use emco_e2e::programs::Program;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

use super::same::{self, Path};
use super::{PROJECT, REFERENCE};

/// For one call of Helm; it waits for workloads itself, for less.
const PATIENCE: Duration = Duration::from_mins(3);

/// Helm for one chart.
pub struct Reference<'a> {
    bed: &'a Bed,
    release: String,
    archive: PathBuf,
}

/// What is known of rendered objects, by kind and name.
#[derive(Debug, Default)]
pub struct Rendered(BTreeMap<(String, String), Facts>);

/// What is known of one rendered object.
#[derive(Debug, Default)]
pub struct Facts {
    /// Where two renderings differ: passwords, certificates, checksums of these.
    pub random: Vec<Path>,
    /// Who manages the object, as the chart says. Helm writes itself there while it installs, whatever that is.
    pub manager: Option<Value>,
}

impl Rendered {
    /// The facts of one object, if the chart's templates render it.
    pub fn of(&self, kind: &str, name: &str) -> Option<&Facts> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }
}

impl<'a> Reference<'a> {
    /// Writes the archive where Helm finds it.
    pub async fn new(bed: &'a Bed, package: &Package) -> Result<Self> {
        let archive = bed.dir().join(package.file_name());
        tokio::fs::write(&archive, &package.bytes).await.with_context(|| archive.display().to_string())?;
        Ok(Self { bed, release: package.name.clone(), archive })
    }

    /// Renders twice against the plane, without installing.
    pub async fn render(&self) -> Result<Rendered> {
        let (one, other) = (self.render_once().await?, self.render_once().await?);
        let facts = |(key, object): (&(String, String), &Value)| {
            let labels = object.pointer("/metadata/labels");
            let manager = labels.and_then(|labels| labels.get(same::MANAGED_BY)).cloned();
            let random =
                other.get(key).map(|other| same::differing_leaves(object, other)).unwrap_or_default();
            (key.clone(), Facts { random, manager })
        };
        Ok(Rendered(one.iter().map(facts).collect()))
    }

    async fn render_once(&self) -> Result<BTreeMap<(String, String), Value>> {
        let archive = self.archive.display().to_string();
        let answer =
            self.helm(&["install", &self.release, &archive, "--dry-run=server", "-o", "json"]).await?;
        let answer: Value = serde_json::from_str(&answer).context("helm did not answer in JSON")?;
        let hooks = answer.get("hooks").and_then(Value::as_array).into_iter().flatten();
        let texts = hooks.chain([&answer]).filter_map(|part| part.get("manifest")?.as_str());
        let mut objects = BTreeMap::new();
        for document in texts.flat_map(serde_yaml::Deserializer::from_str) {
            let object = Value::deserialize(document).context("what Helm renders cannot be read")?;
            let text = |at: &str| object.pointer(at).and_then(Value::as_str).map(str::to_owned);
            if let (Some(kind), Some(name)) = (text("/kind"), text("/metadata/name")) {
                objects.insert((kind, name), object);
            }
        }
        Ok(objects)
    }

    /// Installs, and waits until workloads are ready.
    pub async fn install(&self) -> Result<()> {
        let archive = self.archive.display().to_string();
        self.helm(&["install", &self.release, &archive, "--wait", "--timeout", "2m"]).await.map(drop)
    }

    /// Uninstalls, if it was installed.
    pub async fn uninstall(&self) -> Result<()> {
        self.helm(&["uninstall", &self.release, "--ignore-not-found", "--wait", "--timeout", "2m"])
            .await
            .map(drop)
    }

    async fn helm(&self, args: &[&str]) -> Result<String> {
        let program = self.bed.programs().path(Program::Helm)?;
        let home = self.bed.dir().join("helm");
        let call = Command::new(program)
            .args(args)
            .args(["--namespace", PROJECT])
            .env("KUBECONFIG", self.bed.edge(REFERENCE).kubectl().kubeconfig())
            .env("HOME", &home)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(PATIENCE, call).await;
        let output = output.with_context(|| format!("helm {} takes too long", args.join(" ")))?;
        let output = output.context("cannot start helm")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {} failed: {}", args.join(" "), said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
