//! Declares the command line of `kubectl emco`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

pub use check::CheckArgs;
pub use deployments::DeploymentCommand;
pub use leave::{RotateArgs, UninstallArgs};
pub use words::{Deployment, is_label};

use self::words::{cluster, duration, label};
use super::status::tree::Verdict;

pub mod adopt;
mod check;
pub mod deployments;
mod leave;
pub mod role;
pub mod test;
mod words;

/// What is said at the end of every help.
const EXIT_CODES: &str = "Exit codes: 0 everything is as wanted, 1 an error, 2 a command line that cannot be understood, 3 \
                          something is not as wanted (not ready, differing, orphaned, unknown).";

/// Looks at EMCO's clusters and deployments, registers clusters, empties and removes them; takes EMCO away.
#[derive(Parser, Debug)]
#[command(
    name = "kubectl-emco",
    bin_name = "kubectl emco",
    version = crate::version::VERSION.as_str(),
    about,
    arg_required_else_help = true,
    after_help = EXIT_CODES
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Register, empty and remove clusters.
    Cluster {
        /// What to do.
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Look at the installation: hub, kinds, rights, operator, clocks and clusters, each with its cure. Changes nothing.
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// List clusters: all of them, or for a tenant those of its logical clouds.
    #[command(after_help = EXIT_CODES)]
    Clusters(ClustersArgs),
    /// Show deployments as a tree: apps, clusters, and objects that are not as wanted.
    #[command(after_help = EXIT_CODES)]
    Status(StatusArgs),
    /// Compare what a deployment shall have on its clusters with what is there, field by field. Changes nothing.
    #[command(after_help = EXIT_CODES)]
    Diff(DiffArgs),
    /// List the shards whose deployment or logical cloud is gone, with the clusters that still have its objects; or make the
    /// inventory of a new hub from what is found on clusters.
    #[command(after_help = EXIT_CODES)]
    Orphans(OrphansArgs),
    /// Take EMCO away: what runs is kept, released or removed, by choice. Without a choice it says what there is.
    #[command(after_help = EXIT_CODES)]
    Uninstall(UninstallArgs),
    /// What concerns one deployment, and its clusters.
    #[command(flatten)]
    Deployment(DeploymentCommand),
    /// Print a completion script.
    Completion {
        /// For which shell; `kubectl` is the script kubectl_complete-emco, which makes kubectl complete `kubectl emco`.
        shell: Shell,
    },
    /// Complete a command line, as kubectl asks plug-ins to.
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete {
        /// The words after `kubectl emco`; the last is the one to complete.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the version.
    Version,
}

/// What to do with a cluster.
#[derive(Subcommand, Debug)]
pub enum ClusterCommand {
    /// Make a service account on a cluster and register the cluster with it on the hub.
    #[command(after_help = EXIT_CODES)]
    Add(Box<AddArgs>),
    /// Let a cluster take nothing new. What it has stays.
    #[command(after_help = EXIT_CODES)]
    Cordon(NamedCluster),
    /// Let a cluster take work again, after cordon or drain.
    #[command(after_help = EXIT_CODES)]
    Uncordon(NamedCluster),
    /// Move what a cluster has to other clusters, as far as placements allow, and wait until nothing is left.
    #[command(after_help = EXIT_CODES)]
    Drain(DrainArgs),
    /// Give a cluster new credentials without interruption, and end the old ones.
    #[command(after_help = EXIT_CODES)]
    Rotate(Box<RotateArgs>),
    /// Take a cluster off the hub: its Cluster, the Secret and the account that `cluster add` made. Refused while a deployment has
    /// something there.
    #[command(after_help = EXIT_CODES)]
    Remove(RemoveArgs),
}

/// A cluster of the hub.
#[derive(clap::Args, Debug)]
pub struct NamedCluster {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// The cluster, as PROVIDER/CLUSTER.
    #[arg(value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: String,
}

/// `kubectl emco cluster drain`.
#[derive(clap::Args, Debug)]
pub struct DrainArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedCluster,
    /// How long to wait until nothing is left; 0s does not wait.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
}

/// `kubectl emco cluster remove`.
#[derive(clap::Args, Debug)]
pub struct RemoveArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedCluster,
    /// Leave the account on the cluster.
    #[arg(long)]
    pub keep_account: bool,
    /// How long to wait until the Cluster is gone.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

/// Which completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// For kubectl-emco in bash.
    Bash,
    /// For kubectl-emco in zsh.
    Zsh,
    /// For kubectl-emco in fish.
    Fish,
    /// For `kubectl emco` in any shell that kubectl completes in.
    Kubectl,
}

/// Where the hub is.
#[derive(clap::Args, Debug)]
pub struct HubArgs {
    /// Kubeconfig of the hub; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Its context of the hub; the current one if not given.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The operator's own namespace on the hub.
    #[arg(long, env = "EMCO_NAMESPACE", default_value = "emco-system", value_name = "NAME")]
    pub operator_namespace: String,
}

/// Which namespace of the hub.
#[derive(clap::Args, Debug)]
pub struct ScopeArgs {
    /// Namespace on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

/// How the answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// More columns, and what is as wanted, too.
    Wide,
    /// For programs.
    Json,
    /// For programs, and easier to read.
    Yaml,
}

/// `kubectl emco clusters`.
#[derive(clap::Args, Debug)]
pub struct ClustersArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub: of a provider, or of a project for the clusters of its logical clouds. All if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only clusters of this provider.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Only clusters with these labels, as kubectl reads them: `tier=edge,region in (eu, us)`.
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco status`.
#[derive(clap::Args, Debug)]
pub struct StatusArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Which namespace.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// A deployment intent group, as NAME, dig/NAME or PROJECT/NAME; all of the namespace if not given.
    #[arg(value_name = "DEPLOYMENT")]
    pub deployment: Option<Deployment>,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// Only this app; repeat for several.
    #[arg(long, value_name = "NAME")]
    pub app: Vec<String>,
    /// Only where an app on a cluster is in this state; repeat for several.
    #[arg(long, value_enum, ignore_case = true)]
    pub state: Vec<Verdict>,
    /// Show every change from now on, as the hub tells of it, until interrupted.
    #[arg(short, long)]
    pub watch: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco diff`.
#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    /// Which deployment.
    #[command(flatten)]
    pub named: deployments::NamedDeployment,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// Compare with this revision instead of the one that the clusters shall have: what going back to it would change.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco orphans`.
#[derive(clap::Args, Debug)]
pub struct OrphansArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub; all if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Ask every registered cluster what carries EMCO's label there, and write inventory on the hub for what it does not know of:
    /// for a hub that was made anew. Nothing is written to clusters.
    #[arg(long)]
    pub rebuild: bool,
    /// With --rebuild: write nothing at all.
    #[arg(long, requires = "rebuild")]
    pub dry_run: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// What the stored credential may do on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Everything: charts of level Admin may hold any object.
    Admin,
    /// Not supported yet.
    Standard,
    /// Not supported yet.
    Privileged,
}

/// Which kind of token is stored on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenKind {
    /// Bound; a token Secret where the cluster only gives bound tokens that end much sooner than asked for.
    Auto,
    /// Bound to the service account, with an end.
    Bound,
    /// A token Secret: without an end, until the Secret is deleted.
    Secret,
}

/// `kubectl emco cluster add`. Here `--kubeconfig` and `--context` are those of the cluster that is added.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("edge").required(true).multiple(true).args(["kubeconfig", "context"])))]
pub struct AddArgs {
    /// The cluster's name, as PROVIDER/CLUSTER, or CLUSTER with --provider.
    #[arg(value_name = "PROVIDER/CLUSTER")]
    pub name: String,
    /// Its provider, where the name does not say it.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Kubeconfig of the cluster to add; KUBECONFIG if not given.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the cluster to add.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Address of the API server for the hub, where it is not the one of the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File with the authority of the API server in PEM, where the kubeconfig has none.
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,
    /// Labels of the Cluster, `tier=edge,region=eu`; repeat for more.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// What the stored credential may do on the cluster.
    #[arg(long, value_enum, ignore_case = true, default_value = "Admin")]
    pub level: Level,
    /// Bind this role of the cluster (a cluster role) instead of one that may do everything.
    #[arg(long, value_name = "NAME")]
    pub cluster_role: Option<String>,
    /// Which kind of token is stored on the hub.
    #[arg(long, value_enum, ignore_case = true, default_value = "Auto")]
    pub token: TokenKind,
    /// How long a bound token is asked for.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub token_duration: Duration,
    /// With --secret-file: make a new token although the stored one still works. On the hub, kubectl emco cluster rotate does it.
    #[arg(long)]
    pub renew: bool,
    /// Change nothing; print what would be made, without a token.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the Cluster for Git instead of applying it. The Secret goes to the hub, or to --secret-file.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
    /// Write the Secret into this file, readable to nobody else, instead of applying it: to be encrypted for Git.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// How long to wait until the operator says that it reaches the cluster; 0s does not wait.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
    /// Kubeconfig of the hub; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,
    /// Context of the hub; the current one if not given.
    #[arg(long, value_name = "NAME")]
    pub hub_context: Option<String>,
    /// The operator's own namespace on the hub.
    #[arg(long, env = "EMCO_NAMESPACE", default_value = "emco-system", value_name = "NAME")]
    pub operator_namespace: String,
}

impl AddArgs {
    /// Where the hub is.
    pub fn hub(&self) -> HubArgs {
        HubArgs {
            kubeconfig: self.hub_kubeconfig.clone(),
            context: self.hub_context.clone(),
            operator_namespace: self.operator_namespace.clone(),
        }
    }

    /// The labels, the last of each key.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
