//! In: a bed, and the operator's program. Out: the operator at work in it, its kinds installed, edges registered, projects and
//! charts made, and ways to wait for what the operator says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::sync::OnceCell;

use crate::bed::{Bed, BedSpec, SharedBed};
use crate::supervisor::Process;

mod accounts;
mod copies;
mod loose;
mod objects;
mod ours;
mod states;
mod turn;
mod word;

pub use accounts::{as_account, call, do_as_told, install_charts};
pub use copies::{Copies, Statuses};
pub use loose::without_rules_on_names;
pub use objects::{
    binary_map, chart, chart_map, cluster, deployment, look_again, project, provider, reconciled_again,
    register, secret, still_says,
};
pub use ours::{field, ours};
pub use states::{
    deployed, deployed_within, failing, has_maps, is, refused, says, settled, unless_ended, wait, wait_in,
    written,
};
pub use turn::{OperatorInTurn, Turn};
pub use word::{EVERYWHERE, note, noted, saying};

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

/// Installs the kinds on the hub; answers what kubectl said.
pub async fn install_kinds(bed: &Bed) -> Result<String> {
    let crds = root().join("config/crd").display().to_string();
    let installed = bed.hub().kubectl().run(&["apply", "--server-side", "-k", &crds]).await?;
    let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    bed.hub().kubectl().run(&established).await?;
    Ok(installed)
}

/// A running operator. It ends with its bed.
pub struct Operator {
    /// Of its log.
    name: String,
    program: PathBuf,
    /// One state directory for all its lives: the same replica comes back.
    state: PathBuf,
    /// Of the hub, as whom it runs.
    kubeconfig: PathBuf,
    process: Process,
    installed: String,
    /// Environment besides the usual.
    more: Vec<(String, String)>,
}

impl Operator {
    /// Installs the kinds on the hub and starts the operator there.
    pub async fn start(bed: &Bed, program: &Path) -> Result<Self> {
        Self::start_in(bed, program, &[]).await
    }

    /// As [`Operator::start`], with more in its environment.
    pub async fn start_in(bed: &Bed, program: &Path, more: &[(&str, &str)]) -> Result<Self> {
        let installed = install_kinds(bed).await?;
        Self::start_with(bed, program, bed.hub().kubeconfig_file()?, installed, more).await
    }

    /// Starts the operator as the user of a kubeconfig, on a hub that has the kinds since somebody installed them and was told
    /// `installed`.
    pub async fn start_as(bed: &Bed, program: &Path, kubeconfig: PathBuf, installed: String) -> Result<Self> {
        Self::start_with(bed, program, kubeconfig, installed, &[]).await
    }

    /// The same, with more in its environment.
    pub async fn start_with(
        bed: &Bed,
        program: &Path,
        kubeconfig: PathBuf,
        installed: String,
        more: &[(&str, &str)],
    ) -> Result<Self> {
        let more = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self::named(bed, program, "operator", kubeconfig, installed, more).await
    }

    /// Starts one more replica beside the first, with a state directory of its own. On the hub it is user `name`, who may do
    /// everything, so that an audit log tells the replicas apart.
    pub async fn standby(bed: &Bed, program: &Path, name: &str) -> Result<Self> {
        let file = bed.dir().join(format!("{name}.kubeconfig"));
        std::fs::write(&file, bed.hub().kubeconfig_as(name, Some("system:masters"))?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        Self::standby_as(bed, program, name, file).await
    }

    /// The same as the user of a kubeconfig.
    pub async fn standby_as(bed: &Bed, program: &Path, name: &str, kubeconfig: PathBuf) -> Result<Self> {
        Self::named(bed, program, name, kubeconfig, String::new(), Vec::new()).await
    }

    async fn named(
        bed: &Bed,
        program: &Path,
        name: &str,
        kubeconfig: PathBuf,
        installed: String,
        more: Vec<(String, String)>,
    ) -> Result<Self> {
        let (name, state) = (name.to_owned(), bed.dir().join(name));
        let process = run(bed, &name, program, &state, &kubeconfig, &more).await?;
        Ok(Self { name, program: program.to_owned(), state, kubeconfig, process, installed, more })
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

    /// Starts it again as in a new Pod, where nothing is kept, killing it first if it runs.
    pub async fn replace(&mut self, bed: &Bed) -> Result<()> {
        if self.process.is_running() {
            self.process.kill().await?;
        }
        std::fs::remove_dir_all(&self.state)
            .with_context(|| format!("cannot empty {}", self.state.display()))?;
        self.restart(bed).await
    }

    /// As [`Operator::replace`], for a Pod that is told to end and gives its Lease back: the next one has not to wait until that ends.
    pub async fn roll(&mut self, bed: &Bed) -> Result<()> {
        self.process.terminate().await?;
        self.replace(bed).await
    }

    /// Starts it again, with its state directory, killing it first if it runs.
    pub async fn restart(&mut self, bed: &Bed) -> Result<()> {
        if self.process.is_running() {
            self.process.kill().await?;
        }
        self.process = run(bed, &self.name, &self.program, &self.state, &self.kubeconfig, &self.more).await?;
        Ok(())
    }
}

/// Its edges are on loopback, which it refuses unless told; its ports are any free ones.
fn arguments(state: &Path) -> [String; 13] {
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
        "--probe-listen",
        "127.0.0.1:0",
        "--allow-edge-address",
        "127.0.0.0/8",
    ]
    .map(str::to_owned)
}

async fn run(
    bed: &Bed,
    name: &str,
    program: &Path,
    state: &Path,
    kubeconfig: &Path,
    more: &[(String, String)],
) -> Result<Process> {
    let program = program.canonicalize().with_context(|| format!("there is no {}", program.display()))?;
    let kubeconfig = kubeconfig.display().to_string();
    let args = arguments(state);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut env = vec![("KUBECONFIG", kubeconfig.as_str()), ("NO_COLOR", "1")];
    env.extend(more.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    bed.run(name, &program, &args, &env).await
}

/// One bed with one operator at work for all tests of a binary, started by the first that wants it. Its edges are registered
/// with the provider `acme`.
pub struct SharedOperator {
    bed: SharedBed,
    edges: &'static [&'static str],
    more: fn() -> Vec<(&'static str, String)>,
    operator: OnceCell<Result<Operator, String>>,
}

impl SharedOperator {
    /// An operator that nobody has wanted yet. Not all planes of the bed need be registered.
    pub const fn new(bed: fn() -> BedSpec, edges: &'static [&'static str]) -> Self {
        Self { bed: SharedBed::new(bed), edges, more: Vec::new, operator: OnceCell::const_new() }
    }

    /// The same with more in the operator's environment.
    #[must_use]
    pub const fn with(mut self, more: fn() -> Vec<(&'static str, String)>) -> Self {
        self.more = more;
        self
    }

    /// The bed, and the operator in it. Should it not start, every test gets the same error at once.
    pub async fn get(&'static self) -> Result<(&'static Bed, &'static Operator)> {
        let bed = self.bed.get().await?;
        let start = || async {
            let start = async {
                let more = (self.more)();
                let more: Vec<_> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let operator = Operator::start_in(bed, &program()?, &more).await?;
                unless_ended(operator.process(), register(bed, "acme", self.edges)).await?;
                Ok::<_, anyhow::Error>(operator)
            };
            start.await.map_err(|error| format!("{error:#}"))
        };
        let operator = self.operator.get_or_init(start).await.as_ref().map_err(|error| anyhow!("{error}"))?;
        Ok((bed, operator))
    }
}
