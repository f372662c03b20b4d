//! In: a bed, and the operator's program. Out: the operator at work in it, its kinds installed, edges registered, projects and
//! charts made, and ways to wait for what the operator says.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned, DeploymentIntentGroup};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::bed::{Bed, BedSpec, SharedBed};
use crate::package::Package;
use crate::supervisor::Process;
use crate::wait::wait_for_some;

/// For whatever the operator is to do or say.
pub const SOON: Duration = Duration::from_mins(2);

/// The root of the repository, where samples and definitions are.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The operator's program: that of `EMCO_OPERATOR_BIN`, else the one built beside this program.
pub fn program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("EMCO_OPERATOR_BIN").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        ensure!(named.is_file(), "EMCO_OPERATOR_BIN names {}, which is no file", named.display());
        return Ok(named);
    }
    let this = std::env::current_exe().context("this program cannot be found")?;
    // target/PROFILE/deps/TEST or target/PROFILE/PROGRAM
    let found =
        this.ancestors().skip(1).take(2).map(|dir| dir.join("emco-operator")).find(|file| file.is_file());
    found.with_context(|| {
        format!(
            "there is no emco-operator beside {}: build it with `cargo build -p emco-operator`",
            this.display()
        )
    })
}

/// A running operator. It ends with its bed.
pub struct Operator {
    program: PathBuf,
    /// One state directory for all its lives: the same replica comes back.
    state: PathBuf,
    /// Of the hub, as whom it runs.
    kubeconfig: PathBuf,
    process: Process,
    installed: String,
}

impl Operator {
    /// Installs the kinds on the hub and starts the operator there.
    pub async fn start(bed: &Bed, program: &Path) -> Result<Self> {
        let crds = root().join("config/crd").display().to_string();
        let installed = bed.hub().kubectl().run(&["apply", "--server-side", "-k", &crds]).await?;
        let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
        bed.hub().kubectl().run(&established).await?;
        Self::start_as(bed, program, bed.hub().kubeconfig_file()?, installed).await
    }

    /// Starts the operator as the user of a kubeconfig, on a hub that has the kinds since somebody installed them and was told
    /// `installed`.
    pub async fn start_as(bed: &Bed, program: &Path, kubeconfig: PathBuf, installed: String) -> Result<Self> {
        let state = bed.dir().join("operator");
        let process = run(bed, program, &state, &kubeconfig).await?;
        Ok(Self { program: program.to_owned(), state, kubeconfig, process, installed })
    }

    /// What kubectl said when the kinds were installed.
    pub fn installed(&self) -> &str {
        &self.installed
    }

    /// Its command line, as somebody would type it.
    pub fn command_line(&self) -> String {
        format!("emco-operator {}", arguments(&self.state).join(" "))
    }

    /// Its present process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it without a word (SIGKILL).
    pub async fn kill(&self) -> Result<()> {
        self.process.kill().await
    }

    /// Starts it again, with its state directory, killing it first if it runs.
    pub async fn restart(&mut self, bed: &Bed) -> Result<()> {
        if self.process.is_running() {
            self.process.kill().await?;
        }
        self.process = run(bed, &self.program, &self.state, &self.kubeconfig).await?;
        Ok(())
    }
}

/// Its edges are on loopback, which it refuses unless told; its ports are any free ones.
fn arguments(state: &Path) -> [String; 11] {
    let state = state.display().to_string();
    [
        "run",
        "--namespace",
        "emco-system",
        "--state-dir",
        &state,
        "--listen",
        "127.0.0.1:0",
        "--debug-listen",
        "127.0.0.1:0",
        "--allow-edge-address",
        "127.0.0.0/8",
    ]
    .map(str::to_owned)
}

async fn run(bed: &Bed, program: &Path, state: &Path, kubeconfig: &Path) -> Result<Process> {
    let program = program.canonicalize().with_context(|| format!("there is no {}", program.display()))?;
    let kubeconfig = kubeconfig.display().to_string();
    let args = arguments(state);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    bed.run("operator", &program, &args, &[("KUBECONFIG", &kubeconfig), ("NO_COLOR", "1")]).await
}

/// Makes a provider that grants everything to everyone, and registers planes of the bed with it under their own names, each
/// with the labels `tier: edge` and `edge: NAME`.
pub async fn register(bed: &Bed, provider: &str, edges: &[&str]) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    kubectl
        .apply(&format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {provider}, labels: {{emco.io/provider: {provider}}}}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {{name: {provider}}}
spec: {{grants: [{{name: everyone, projectSelector: {{}}, maxLevel: Admin}}]}}
"
        ))
        .await?;
    for edge in edges {
        secret(bed, provider, edge, &bed.edge(edge).kubeconfig()?).await?;
        kubectl.apply(&cluster(provider, edge)).await?;
    }
    for edge in edges {
        wait::<Cluster, _>(bed, provider, edge, |cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
    }
    Ok(())
}

/// A Cluster whose kubeconfig is in the Secret `NAME-kubeconfig`, as YAML.
pub fn cluster(provider: &str, name: &str) -> String {
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {{name: {name}, namespace: {provider}, labels: {{tier: edge, edge: {name}}}}}
spec: {{access: {{kubeconfigSecretRef: {{name: {name}-kubeconfig}}}}}}
"
    )
}

/// Makes or changes the Secret `NAME-kubeconfig` of a cluster.
pub async fn secret(bed: &Bed, provider: &str, cluster: &str, kubeconfig: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{cluster}-kubeconfig"), "namespace": provider},
        "stringData": {"kubeconfig": kubeconfig},
    });
    bed.hub().kubectl().apply(&secret.to_string()).await.map(drop)
}

/// Makes a project of its own namespace, with the logical cloud `default` of level Admin.
pub async fn project(bed: &Bed, name: &str) -> Result<()> {
    bed.hub()
        .kubectl()
        .apply(&format!(
            "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/project: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {name}}}
spec: {{logicalCloud: {{level: Admin}}}}
"
        ))
        .await
        .map(drop)
}

/// Packages a chart of these files; `Chart.yaml` is made from `name` and `version`.
pub fn chart(name: &str, version: &str, files: &[(&str, &str)]) -> Result<Package> {
    let dir = tempfile::tempdir().context("no folder for a chart")?;
    let chart = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    for (path, text) in [("Chart.yaml", chart.as_str())].iter().chain(files) {
        let file = dir.path().join(path);
        let folder = file.parent().context("a file of a chart is in its folder")?;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Package::of_folder(dir.path())
}

/// Makes or replaces the ConfigMap `name` that holds packaged charts under their file names.
pub async fn chart_map(bed: &Bed, namespace: &str, name: &str, charts: &[Package]) -> Result<()> {
    let files = charts.iter().map(|chart| (chart.file_name(), chart.bytes.clone()));
    binary_map(bed, namespace, name, files.collect()).await
}

/// Makes or replaces a ConfigMap of any bytes.
pub async fn binary_map(
    bed: &Bed,
    namespace: &str,
    name: &str,
    data: BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    use base64::Engine as _;
    let encode = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
    let data: BTreeMap<_, _> = data.into_iter().map(|(key, bytes)| (key, encode(bytes))).collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "binaryData": data,
    });
    bed.hub().kubectl().apply(&map.to_string()).await.map(drop)
}

/// Waits until `check` accepts the object of the hub, and answers it; else the error says what was missing last.
pub async fn wait<K, T>(
    bed: &Bed,
    namespace: &str,
    name: &str,
    check: impl FnMut(&K) -> Result<T, String>,
) -> Result<T>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    wait_in(bed.hub().api(namespace).await?, name, check).await
}

/// As [`wait`], for objects of any API.
pub async fn wait_in<K, T>(
    api: Api<K>,
    name: &str,
    mut check: impl FnMut(&K) -> Result<T, String>,
) -> Result<T>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("{} {name}", K::kind(&()));
    let config = kube::runtime::watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_for_some(api, config, SOON, &what, |objects| {
        objects.values().next().map_or_else(|| Err("it does not exist".to_owned()), &mut check)
    })
    .await
}

/// Whether a condition has a status.
pub fn is<S: Conditioned>(status: Option<&S>, type_: &str, wanted: &str) -> Result<(), String> {
    let condition =
        status.and_then(|status| status.condition(type_)).ok_or_else(|| format!("it has no {type_}"))?;
    if condition.status == wanted {
        return Ok(());
    }
    Err(format!("{type_}={} {}: {}", condition.status, condition.reason, condition.message))
}

/// The message of a condition that has a reason and a status other than True.
pub fn refused<S: Conditioned>(status: Option<&S>, type_: &str, reason: &str) -> Result<String, String> {
    let condition =
        status.and_then(|status| status.condition(type_)).ok_or_else(|| format!("it has no {type_}"))?;
    if condition.reason == reason && condition.status != "True" {
        return Ok(condition.message.clone());
    }
    Err(format!("{type_}={} {}: {}", condition.status, condition.reason, condition.message))
}

/// Whether a deployment runs as its present definition wants, and nothing is under way.
pub fn settled(dig: &DeploymentIntentGroup) -> Result<(), String> {
    let status = dig.status.as_ref().ok_or("it has no status yet")?;
    if status.observed_generation != dig.metadata.generation {
        return Err("the last change was not looked at yet".to_owned());
    }
    for type_ in [types::DEPLOYED, types::READY] {
        is(Some(status), type_, "True")?;
    }
    match status.condition(types::RECONCILING) {
        None => Ok(()),
        Some(condition) => Err(format!("Reconciling {}: {}", condition.reason, condition.message)),
    }
}

/// Waits until the deployment runs as its present definition wants, with `revision` or a later one.
pub async fn deployed(
    bed: &Bed,
    namespace: &str,
    name: &str,
    revision: i64,
) -> Result<DeploymentIntentGroup> {
    wait(bed, namespace, name, |dig: &DeploymentIntentGroup| {
        let now = dig.status.as_ref().and_then(|status| status.revision).unwrap_or_default();
        if now < revision {
            let why = is(dig.status.as_ref(), types::READY, "True").err().unwrap_or_default();
            return Err(format!("it runs revision {now}, not {revision}: {why}"));
        }
        settled(dig).map(|()| dig.clone())
    })
    .await
}

/// `future`, unless the operator ends before: then nothing that is waited for will come.
pub async fn unless_ended<T>(operator: &Process, future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        result = future => result,
        how = operator.ended() => Err(anyhow!("the operator ended: {how}\n{}", operator.log_tail(20))),
    }
}

/// The objects of some kinds on a plane that the operator applied there, as `KIND/NAMESPACE/NAME` (or `KIND/NAME`).
/// `kinds` is what kubectl takes, such as `configmaps,deployments`.
pub async fn ours(bed: &Bed, plane: &str, kinds: &str, namespace: Option<&str>) -> Result<Vec<String>> {
    let scope = namespace.map_or_else(|| vec!["--all-namespaces"], |namespace| vec!["-n", namespace]);
    let mut args = vec!["get", kinds, "-l", "emco.io/owner", "-o", "json"];
    args.extend(scope);
    let answer = bed.edge(plane).kubectl().run(&args).await?;
    let list: serde_json::Value = serde_json::from_str(&answer).context("kubectl did not answer in JSON")?;
    let Some(items) = list["items"].as_array() else { bail!("kubectl answered no list: {answer}") };
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut names: Vec<_> = items
        .iter()
        .map(|item| {
            let (kind, meta) = (text(&item["kind"]), &item["metadata"]);
            match text(&meta["namespace"]) {
                namespace if namespace.is_empty() => format!("{kind}/{}", text(&meta["name"])),
                namespace => format!("{kind}/{namespace}/{}", text(&meta["name"])),
            }
        })
        .collect();
    names.sort();
    Ok(names)
}

/// A CompositeApp and a DeploymentIntentGroup, both called `name`, as YAML: each chart of the ConfigMap `charts` is an app of
/// its own name. `spec` is what the group says beside them, in YAML without indentation, such as a placement.
pub fn deployment(namespace: &str, name: &str, charts: &[Package], spec: &str) -> String {
    let apps: String = charts
        .iter()
        .map(|chart| {
            let (app, key) = (&chart.name, chart.file_name());
            format!("  - {{name: {app}, chart: {{configMapRef: {{name: charts, key: {key}}}}}}}\n")
        })
        .collect();
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  apps:
{apps}---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  compositeAppRef: {{name: {name}}}
{spec}"
    )
}

/// One bed with one operator at work for all tests of a binary, started by the first that wants it. Its edges are registered
/// with the provider `acme`.
pub struct SharedOperator {
    bed: SharedBed,
    edges: &'static [&'static str],
    operator: OnceCell<Result<Operator, String>>,
}

impl SharedOperator {
    /// An operator that nobody has wanted yet. Not all planes of the bed need be registered.
    pub const fn new(bed: fn() -> BedSpec, edges: &'static [&'static str]) -> Self {
        Self { bed: SharedBed::new(bed), edges, operator: OnceCell::const_new() }
    }

    /// The bed, and the operator in it. Should it not start, every test gets the same error at once.
    pub async fn get(&'static self) -> Result<(&'static Bed, &'static Operator)> {
        let bed = self.bed.get().await?;
        let start = || async {
            let start = async {
                let operator = Operator::start(bed, &program()?).await?;
                unless_ended(operator.process(), register(bed, "acme", self.edges)).await?;
                Ok::<_, anyhow::Error>(operator)
            };
            start.await.map_err(|error| format!("{error:#}"))
        };
        let operator = self.operator.get_or_init(start).await.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok((bed, operator))
    }
}
