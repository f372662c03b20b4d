//! Installs a packaged chart on a plane with Helm, and finds what Helm renders anew each time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::package::Package;
use emco_e2e::programs::Program;
use emco_helm::yaml;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

use super::corpus::Case;
use super::same::{self, Path};
use super::{PROJECT, REFERENCE};

/// For one call of Helm; it waits for workloads itself, for less.
const PATIENCE: Duration = Duration::from_mins(3);

/// Helm for one chart.
pub struct Reference<'a> {
    bed: &'a Bed,
    release: String,
    archive: PathBuf,
    /// The file of values.
    values: PathBuf,
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
    /// Where Secrets have drawn values.
    pub fn drawn(&self) -> impl Iterator<Item = (&str, &Path)> {
        let secrets = self.0.iter().filter(|((kind, _), _)| kind == "Secret");
        secrets.flat_map(|((_, name), facts)| facts.random.iter().map(move |path| (name.as_str(), path)))
    }

    /// The facts of one object, if the chart's templates render it.
    pub fn of(&self, kind: &str, name: &str) -> Option<&Facts> {
        self.0.get(&(kind.to_owned(), name.to_owned()))
    }
}

impl<'a> Reference<'a> {
    /// Writes the archive and the values where Helm finds them.
    pub async fn new(bed: &'a Bed, step: &str, package: &Package, values: &Value) -> Result<Self> {
        let archive = bed.dir().join(package.file_name());
        let file = bed.dir().join(format!("{}-values-{step}.json", package.file_name()));
        for (file, bytes) in [(&archive, &package.bytes), (&file, &values.to_string().into_bytes())] {
            tokio::fs::write(file, bytes).await.with_context(|| file.display().to_string())?;
        }
        Ok(Self { bed, release: package.name.clone(), archive, values: file })
    }

    /// Renders twice against the plane, without installing.
    pub async fn render(&self) -> Result<Rendered> {
        let (one, other) = tokio::try_join!(self.render_once(), self.render_once())?;
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
        let answer = match self.helm(&self.what("install"), &["--dry-run=server", "-o", "json"]).await {
            Ok(answer) => answer,
            // Objects of kinds that the chart's own folder of definitions brings.
            Err(error) if error.to_string().contains("ensure CRDs are installed first") => {
                let flags = ["--dry-run=server", "--kube-version", Program::ApiServer.version()];
                let text = self.helm(&self.what("template"), &flags).await?;
                let objects = documents(&text)?.into_iter();
                return Ok(objects.map(|([_, kind, _, name], object)| ((kind, name), object)).collect());
            }
            Err(error) => return Err(error),
        };
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
        self.helm(&self.what("install"), &["--wait", "--timeout", "2m"]).await.map(drop)
    }

    /// Upgrades the release to this chart and these values, and waits until workloads are ready.
    pub async fn upgrade(&self) -> Result<()> {
        self.helm(&self.what("upgrade"), &["--wait", "--timeout", "2m"]).await.map(drop)
    }

    /// Uninstalls, if it was installed.
    pub async fn uninstall(&self) -> Result<()> {
        let what = ["uninstall", &self.release].map(str::to_owned);
        self.helm(&what, &["--ignore-not-found", "--wait", "--timeout", "2m"]).await.map(drop)
    }

    /// A verb of Helm with the release, the chart and its values.
    fn what(&self, verb: &str) -> [String; 5] {
        let (archive, values) = (self.archive.display().to_string(), self.values.display().to_string());
        [verb.to_owned(), self.release.clone(), archive, "--values".to_owned(), values]
    }

    async fn helm(&self, what: &[String], flags: &[&str]) -> Result<String> {
        let what: Vec<&str> = what.iter().map(String::as_str).collect();
        helm(self.bed, &[&what, flags, &["--namespace", PROJECT]].concat()).await
    }
}

/// Rendered objects by API version, kind, namespace and name. Of equal names the last one counts.
pub type Documents = BTreeMap<[String; 4], Value>;

/// What Helm renders of a chart with lookups on the plane, without storing anything there.
pub async fn template(
    bed: &Bed,
    case: &Case,
    release: &str,
    namespace: &str,
    is_upgrade: bool,
) -> Result<Documents> {
    let chart = case.chart.display().to_string();
    let mut args = vec!["template", release, &chart, "--namespace", namespace, "--dry-run=server"];
    // Schemas may be elsewhere, where nothing is reached; what they refuse is compared by the renderings of installations.
    args.extend([
        "--include-crds",
        "--skip-schema-validation",
        "--kube-version",
        super::upgrades::KUBE_VERSION,
    ]);
    if is_upgrade {
        args.push("--is-upgrade");
    }
    let values = case.values.as_ref().map(|values| values.display().to_string());
    args.extend(values.iter().flat_map(|values| ["--values", values]));
    documents(&helm(bed, &args).await?)
}

/// What Helm renders where the schemas of the chart allow its values.
pub async fn validate(bed: &Bed, case: &Case, release: &str) -> Result<String> {
    let chart = case.chart.display().to_string();
    let mut args = vec!["template", release, &chart, "--kube-version", super::upgrades::KUBE_VERSION];
    let values = case.values.as_ref().map(|values| values.display().to_string());
    args.extend(values.iter().flat_map(|values| ["--values", values]));
    helm(bed, &args).await
}

/// The objects of a stream of documents.
pub fn documents(text: &str) -> Result<Documents> {
    let mut documents = Vec::new();
    for document in text.split_inclusive('\n').collect::<Vec<_>>().split(|line| line.trim_end() == "---") {
        let document = yaml::to_json(document.concat().as_bytes());
        documents
            .push(document.map_err(|error| anyhow::anyhow!("what is rendered cannot be read: {error}"))?);
    }
    let text =
        |object: &Value, at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let at = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"];
    let objects = documents.into_iter().filter(|document| !document.is_null());
    Ok(objects.map(|object| (at.map(|at| text(&object, at)), object)).collect())
}

async fn helm(bed: &Bed, args: &[&str]) -> Result<String> {
    let program = bed.programs().path(Program::Helm)?;
    let call = Command::new(program)
        .args(args)
        .env("KUBECONFIG", bed.edge(REFERENCE).kubectl().kubeconfig())
        .env("HOME", bed.dir().join("helm"))
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
