//! The command line comes in, checked arguments go out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use super::status::tree::Verdict;

/// What is said at the end of every help.
const EXIT_CODES: &str = "Exit codes: 0 everything is as wanted, 1 an error, 2 a command line that cannot be understood, 3 \
                          something is not as wanted (not ready, differing, orphaned, unknown).";

/// Looks at EMCO's clusters and deployments, and registers clusters.
#[derive(Parser, Debug)]
#[command(
    name = "kubectl-emco",
    bin_name = "kubectl emco",
    version,
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
    /// Register clusters.
    Cluster {
        /// What to do.
        #[command(subcommand)]
        command: ClusterCommand,
    },
    /// List clusters: all of them, or for a tenant those of its logical clouds.
    #[command(after_help = EXIT_CODES)]
    Clusters(ClustersArgs),
    /// Show deployments as a tree: apps, clusters, and objects that are not as wanted.
    #[command(after_help = EXIT_CODES)]
    Status(StatusArgs),
    /// Compare what a deployment shall have on its clusters with what is there, field by field. Changes nothing.
    #[command(after_help = EXIT_CODES)]
    Diff(DiffArgs),
    /// List the shards whose deployment or logical cloud is gone, with the clusters that still have its objects.
    #[command(after_help = EXIT_CODES)]
    Orphans(OrphansArgs),
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
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A deployment intent group, as NAME, dig/NAME or PROJECT/NAME.
    #[arg(value_name = "DEPLOYMENT")]
    pub deployment: Deployment,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
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
    /// Make a new token although the stored one still works.
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

/// A deployment intent group as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Where it says so.
    pub project: Option<String>,
    /// The name of the object.
    pub name: String,
}

impl std::str::FromStr for Deployment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const KINDS: [&str; 4] =
            ["dig", "deploymentintentgroup", "deploymentintentgroups", "deploymentintentgroups.emco.io"];
        let wrong = || "write NAME, dig/NAME or PROJECT/NAME, such as shop/till".to_owned();
        let part = |text: &str| if is_label(text) { Ok(text.to_owned()) } else { Err(wrong()) };
        match text.split_once('/') {
            None => Ok(Self { project: None, name: part(text)? }),
            Some((kind, name)) if KINDS.contains(&kind) => Ok(Self { project: None, name: part(name)? }),
            Some((project, name)) => Ok(Self { project: Some(part(project)?), name: part(name)? }),
        }
    }
}

/// Whether a text is a DNS label, as all names here are.
pub fn is_label(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(good) && !text.starts_with('-') && !text.ends_with('-')
}

fn cluster(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, name)) if is_label(provider) && is_label(name) => Ok(text.to_owned()),
        _ => Err("write PROVIDER/CLUSTER, such as acme/berlin".to_owned()),
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as tier=edge")?;
    if key.starts_with(emco_crds::names::PREFIX) {
        return Err(format!("labels with the prefix {} are kept for EMCO", emco_crds::names::PREFIX));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = key.rsplit('/').next().unwrap_or_default();
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    if !(1..=63).contains(&name.len()) || !name.chars().all(good) || !ends(name) {
        return Err(format!("{key:?} is not the key of a label"));
    }
    if value.len() > 63 || !value.chars().all(good) || !(value.is_empty() || ends(value)) {
        return Err(format!(
            "{value:?} is not the value of a label: at most 63 letters, digits, '-', '_' and '.', a letter or digit first \
             and last"
        ));
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn duration(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "write a duration such as 30s, 10m or 24h";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| WRONG.to_owned())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(WRONG.to_owned()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(|| WRONG.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_deployment_is_named_in_three_ways() {
        let read = |text: &str| text.parse::<Deployment>();
        let plain = Deployment { project: None, name: "till".to_owned() };
        assert_eq!(read("till"), Ok(plain.clone()));
        assert_eq!(read("dig/till"), Ok(plain));
        assert_eq!(read("shop/till").map(|d| d.project), Ok(Some("shop".to_owned())));
        for bad in ["", "a/b/c", "/till", "shop/", "Till"] {
            assert!(read(bad).is_err_and(|why| why.contains("PROJECT/NAME")), "{bad}");
        }
    }

    #[test]
    fn labels_are_checked_before_anything_is_made() {
        assert_eq!(label("tier=edge"), Ok(("tier".to_owned(), "edge".to_owned())));
        assert_eq!(label("example.com/a="), Ok(("example.com/a".to_owned(), String::new())));
        for (bad, says) in [
            ("tier", "KEY=VALUE"),
            ("emco.io/x=y", "kept for EMCO"),
            ("a b=c", "key"),
            ("a=-", "value"),
            ("=x", "key"),
        ] {
            assert!(label(bad).is_err_and(|why| why.contains(says)), "{bad}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        for bad in ["", "5", "h", "1d", "-1s", "99999999999999999999h", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
