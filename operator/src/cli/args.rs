//! Declares the command line of `kubectl emco`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

pub use add::{AddArgs, Level, People, TokenKind};
pub use chart::ChartCommand;
pub use check::CheckArgs;
pub use dashboard::DashboardArgs;
pub use deployments::DeploymentCommand;
pub use leave::{RotateArgs, UninstallArgs};
pub use shell::Shell;
pub use status::StatusArgs;
pub use words::{Deployment, is_label};

use self::exit_codes::{DASHBOARD_EXIT_CODES, EXIT_CODES, PRINTED_EXIT_CODES};
use self::words::{cluster, duration};

mod add;
pub mod adopt;
pub mod awaited;
pub mod chart;
mod check;
mod dashboard;
pub mod deployments;
mod exit_codes;
mod leave;
pub mod objects;
pub mod role;
mod shell;
pub mod status;
pub mod test;
mod words;

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
    #[command(after_help = EXIT_CODES)]
    Cluster {
        /// What to do.
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// Bring charts of this machine to the hub.
    #[command(after_help = EXIT_CODES)]
    Chart {
        /// What to do.
        #[command(subcommand)]
        command: ChartCommand,
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
    /// Serve pages for a browser on this machine that show what runs, what is wrong and what waits, and print the link to them.
    /// Changes nothing by itself; plans can be approved and rejected there.
    #[command(after_help = DASHBOARD_EXIT_CODES)]
    Dashboard(DashboardArgs),
    /// Compare what a deployment is to have on its clusters with what is there, field by field. Changes nothing.
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
    #[command(after_help = PRINTED_EXIT_CODES)]
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
    /// Print the page of the book that describes every command.
    #[command(name = "__reference", hide = true)]
    Reference,
    /// Print the version.
    #[command(after_help = PRINTED_EXIT_CODES)]
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

/// Where the hub is.
#[derive(clap::Args, Debug)]
pub struct HubArgs {
    /// Kubeconfig of the hub; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Its context of the hub; the current one if not given.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// User of the hub to act as, as far as you may act as others: to see what somebody else sees.
    #[arg(long = "as", value_name = "USER")]
    pub as_user: Option<String>,
    /// Group of the hub to act as, with --as; repeat for several.
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    pub as_group: Vec<String>,
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
    /// Namespace on the hub: of a provider, or of a project for the clusters that it may use. All if not given.
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

/// `kubectl emco diff`.
#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    /// Which deployment.
    #[command(flatten)]
    pub named: deployments::NamedDeployment,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// Compare with this revision instead of the one that the clusters are to have: what going back to it would change.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
