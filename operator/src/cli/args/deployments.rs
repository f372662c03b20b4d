//! Arguments of the commands on one deployment and on its clusters.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::adopt::AdoptArgs;
use super::awaited::Awaited;
use super::exit_codes::{
    DIGEST_EXIT_CODES, EXIT_CODES, EXPLAIN_EXIT_CODES, KUBECTL_EXIT_CODES, PLAN_EXIT_CODES, WAIT_EXIT_CODES,
};
use super::objects::ObjectArgs;
use super::role::RoleArgs;
use super::status::Verdict;
use super::test::{TEST_EXIT_CODES, TestArgs};
use super::words::{Deployment, cluster, duration};
use super::{Format, HubArgs};

/// What to do with a deployment, or on a cluster.
#[derive(Subcommand, Debug)]
pub enum DeploymentCommand {
    /// Show every object of a deployment with its health, as a tree of apps, clusters and objects.
    #[command(after_help = EXIT_CODES)]
    Get(GetArgs),
    /// Print the manifests of a deployment as they are stored: what its charts gave, before EMCO's labels.
    #[command(after_help = EXIT_CODES)]
    Manifests(ManifestsArgs),
    /// List the stored revisions of a deployment: when and why each was made, what it changed, and what became of it.
    #[command(after_help = EXIT_CODES)]
    History(HistoryArgs),
    /// Put a stored revision on a deployment's clusters again and keep it there, whatever is edited meanwhile.
    #[command(after_help = EXIT_CODES)]
    Rollback(RollbackArgs),
    /// Write nothing to a deployment's clusters any more, until it is resumed. What is there is still watched.
    #[command(after_help = EXIT_CODES)]
    Suspend(HoldArgs),
    /// Let a suspended deployment go on: what was edited and what others changed meanwhile is carried out and put right.
    #[command(after_help = EXIT_CODES)]
    Resume(HoldArgs),
    /// Show which objects of others a deployment would take over and what would change; with --conflicts, have them taken over.
    #[command(after_help = super::adopt::EXIT_CODES)]
    Adopt(AdoptArgs),
    /// Show what the plan of a deployment that waits would change, or with -f what files would change that are not applied yet: by app,
    /// clusters and objects. Changes nothing.
    #[command(after_help = PLAN_EXIT_CODES)]
    Plan(Box<PlanArgs>),
    /// Print the digests that approvals of deployments in files name, before anything is applied. Without --context, no hub is asked.
    #[command(after_help = DIGEST_EXIT_CODES)]
    Digest(DigestArgs),
    /// Approve the plan of a deployment that waits, in your own name: it is carried out.
    #[command(after_help = EXIT_CODES)]
    Approve(DecideArgs),
    /// Reject the plan of a deployment that waits: it is not carried out, even if it is approved.
    #[command(after_help = EXIT_CODES)]
    Reject(DecideArgs),
    /// Confirm the deletion of a deployment whose project wants deletions confirmed: what it has on clusters is removed.
    #[command(after_help = EXIT_CODES)]
    Confirm(ConfirmArgs),
    /// Ask the operator to look at a deployment, a composite application or a cluster now, and wait until it has.
    #[command(after_help = EXIT_CODES)]
    Reconcile(ReconcileArgs),
    /// Wait until a deployment is applied, ready, at a revision or gone, or cannot come to that. Changes nothing.
    #[command(after_help = WAIT_EXIT_CODES)]
    Wait(WaitArgs),
    /// Say why the last change of a deployment is refused, if it is, and why each app of what runs is on a cluster, or is not.
    #[command(after_help = EXPLAIN_EXIT_CODES)]
    Explain(ExplainArgs),
    /// Show who reaches the servers that a deployment's TrafficGroupIntents name, and the rule that decides each pair.
    #[command(after_help = EXIT_CODES)]
    Reach(ReachArgs),
    /// Run the tests of a deployment's charts (Helm's test hooks) on its clusters, and say how each ended.
    #[command(after_help = TEST_EXIT_CODES)]
    Test(TestArgs),
    /// Print the least roles that a deployment, or all of a project, needs on clusters: each rule with the objects that need it.
    #[command(after_help = EXIT_CODES)]
    Role(RoleArgs),
    /// Print the logs of a deployment's Pods on a cluster, with kubectl.
    #[command(after_help = KUBECTL_EXIT_CODES)]
    Logs(LogsArgs),
    /// Run a command in a Pod of a deployment on a cluster, with kubectl.
    #[command(after_help = KUBECTL_EXIT_CODES)]
    Exec(ExecArgs),
    /// List the Events of a deployment's objects, and of what they made, on its clusters.
    #[command(after_help = EXIT_CODES)]
    Events(EventsArgs),
    /// Run kubectl on a cluster, with the credential that the hub has for it.
    #[command(after_help = KUBECTL_EXIT_CODES)]
    Edge(EdgeArgs),
}

/// A deployment intent group of the hub.
#[derive(Args, Debug)]
pub struct NamedDeployment {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A deployment intent group, as NAME, dig/NAME or PROJECT/NAME.
    #[arg(value_name = "DEPLOYMENT")]
    pub deployment: Deployment,
}

/// Which apps and clusters of a deployment.
#[derive(Args, Debug)]
pub struct PartArgs {
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// Only this app; repeat for several.
    #[arg(long, value_name = "NAME")]
    pub app: Vec<String>,
}

impl PartArgs {
    /// Whether an app on a cluster is asked for.
    pub fn takes(&self, app: &str, cluster: &str) -> bool {
        (self.cluster.is_empty() || self.cluster.iter().any(|one| one == cluster))
            && (self.app.is_empty() || self.app.iter().any(|one| one == app))
    }
}

/// `kubectl emco get`.
#[derive(Args, Debug)]
pub struct GetArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Which part of it.
    #[command(flatten)]
    pub part: PartArgs,
    /// Only where an app on a cluster is in this state; repeat for several.
    #[arg(long, value_enum, ignore_case = true)]
    pub state: Vec<Verdict>,
    /// Which objects of it.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Ask every cluster, also where the operator says that all is ready, and for all that it says where it refuses an object.
    #[arg(long)]
    pub live: bool,
    /// How the answer looks; `wide` asks every cluster and adds API versions, ages and what stays at removal.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// How manifests are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ManifestFormat {
    /// Documents with comments.
    #[default]
    Yaml,
    /// One object of kind List.
    Json,
}

/// `kubectl emco manifests`.
#[derive(Args, Debug)]
pub struct ManifestsArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Which part of it.
    #[command(flatten)]
    pub part: PartArgs,
    /// Those of this revision instead of the ones that the clusters get now.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
    /// Print the values in Secrets, which are withheld otherwise.
    #[arg(long, conflicts_with = "edits")]
    pub show_secrets: bool,
    /// List the fields that intents added, changed or left out, each with its action, instead of the manifests: as a table, or with -o json.
    #[arg(long)]
    pub edits: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: ManifestFormat,
}

/// `kubectl emco history`.
#[derive(Args, Debug)]
pub struct HistoryArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco rollback`.
#[derive(Args, Debug)]
pub struct RollbackArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// The revision; the one before the running one if not given. `kubectl emco history` lists them.
    #[arg(value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
    /// Let the deployment follow its newest revision again.
    #[arg(long, conflicts_with = "revision")]
    pub unpin: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco suspend` and `kubectl emco resume`.
#[derive(Args, Debug)]
pub struct HoldArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub, and of objects in files that name none; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A deployment intent group, as NAME, dig/NAME or PROJECT/NAME.
    #[arg(value_name = "DEPLOYMENT", required_unless_present = "filename", conflicts_with = "filename")]
    pub deployment: Option<Deployment>,
    /// Plan what is in a file, in a folder with all that is below it (*.yaml, *.yml, *.json), or in the standard input (-), as if it were
    /// applied to the hub; repeat for several.
    #[arg(short, long, value_name = "PATH")]
    pub filename: Vec<PathBuf>,
    /// Only this app; repeat for several.
    #[arg(long, value_name = "NAME")]
    pub app: Vec<String>,
    /// Name objects, and leave out what changes inside of them.
    #[arg(long)]
    pub short: bool,
    /// How long to wait until the operator has planned the last change.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration, conflicts_with = "filename")]
    pub timeout: Duration,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco digest`.
#[derive(Args, Debug)]
pub struct DigestArgs {
    /// A file, a folder with all that is below it (*.yaml, *.yml, *.json), or - for the standard input; repeat for several.
    #[arg(short, long, value_name = "PATH", required = true)]
    pub filename: Vec<PathBuf>,
    /// Namespace that objects are applied to which name none.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Context of the hub that is asked for what the files lack.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Kubeconfig of the hub; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE", requires = "context")]
    pub kubeconfig: Option<PathBuf>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco approve` and `kubectl emco reject`.
#[derive(Args, Debug)]
pub struct DecideArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Digest of the plan, or its first digits: refused where another plan waits. That of the plan that waits if not given.
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// Of a wave of the rollout that is under way, instead of a plan.
    #[arg(long, value_name = "NAME")]
    pub wave: Option<String>,
    /// What is kept with the decision, for people.
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco confirm`.
#[derive(Args, Debug)]
pub struct ConfirmArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Digest of what runs, or its first digits: refused where something else runs. That of what runs if not given.
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco reconcile`.
#[derive(Args, Debug)]
pub struct ReconcileArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Kind and name: a deployment intent group as PROJECT/NAME or NAME, `capp PROJECT/NAME`, `cluster PROVIDER/CLUSTER`.
    #[arg(value_name = "[KIND] NAME", num_args = 1..=2, required = true)]
    pub object: Vec<String>,
    /// How long to wait until the operator has looked.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
}

/// `kubectl emco wait`.
#[derive(Args, Debug)]
pub struct WaitArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// What to wait for: `applied` (all clusters have what it asks for now), `ready`, `revision=NUMBER` (all clusters have that revision), `wave=NAME` (the rollout is past that wave),
    /// `delete` (it is gone).
    #[arg(long = "for", value_name = "WHAT")]
    pub awaited: Awaited,
    /// How long to wait; 0s looks once.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Which part of it.
    #[command(flatten)]
    pub part: PartArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco reach`.
#[derive(Args, Debug)]
pub struct ReachArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Only who is called so: a client, or a part of what is shown of another end.
    #[arg(long, value_name = "TEXT")]
    pub from: Option<String>,
    /// Only this server.
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// With which account a cluster is asked.
#[derive(Args, Debug, Default)]
pub struct AccountArgs {
    /// Use this context of your own for the cluster, instead of the credential that the hub has for it.
    #[arg(long, value_name = "NAME")]
    pub edge_context: Option<String>,
    /// Kubeconfig with that context; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE", requires = "edge_context")]
    pub edge_kubeconfig: Option<PathBuf>,
}

/// A workload of a deployment on a cluster.
#[derive(Args, Debug)]
pub struct WorkloadArgs {
    /// Which deployment.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// A workload of it on the cluster, as NAME or KIND/NAME; needed where there are several.
    #[arg(value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// The cluster, as PROVIDER/CLUSTER; needed where it runs on several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Option<String>,
    /// With which account.
    #[command(flatten)]
    pub account: AccountArgs,
    /// Only this container.
    #[arg(short, long, value_name = "NAME")]
    pub container: Option<String>,
}

/// `kubectl emco logs`.
#[derive(Args, Debug)]
pub struct LogsArgs {
    /// Whose.
    #[command(flatten)]
    pub of: WorkloadArgs,
    /// Go on with what is written from now on.
    #[arg(short, long)]
    pub follow: bool,
    /// Those of the container before its last restart.
    #[arg(short, long)]
    pub previous: bool,
    /// Begin each line with its time.
    #[arg(long)]
    pub timestamps: bool,
    /// At most this many lines of each container, the last ones; -1 for all.
    #[arg(
        long,
        value_name = "LINES",
        default_value = "-1",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    pub tail: i64,
    /// Only what is not older.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
}

/// `kubectl emco exec`.
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// Where.
    #[command(flatten)]
    pub of: WorkloadArgs,
    /// Pass standard input on.
    #[arg(short = 'i', long)]
    pub stdin: bool,
    /// Standard input is a terminal.
    #[arg(short, long)]
    pub tty: bool,
    /// The command and its arguments, after `--`.
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<String>,
}

/// `kubectl emco events`.
#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Only this cluster, as PROVIDER/CLUSTER; repeat for several.
    #[arg(long, value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: Vec<String>,
    /// With which account.
    #[command(flatten)]
    pub account: AccountArgs,
    /// Only Events of type Warning.
    #[arg(long)]
    pub warnings: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// `kubectl emco edge`.
#[derive(Args, Debug)]
pub struct EdgeArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// With which account.
    #[command(flatten)]
    pub account: AccountArgs,
    /// The cluster, as PROVIDER/CLUSTER.
    #[arg(value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: String,
    /// What kubectl is asked, such as `get pods -n shop`.
    #[arg(
        value_name = "KUBECTL ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub words: Vec<String>,
}
