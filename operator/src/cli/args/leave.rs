//! Arguments of the commands by which credentials, and EMCO itself, go.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::words::{cluster, duration};
use super::{HubArgs, TokenKind};

/// `kubectl emco cluster rotate`. As with `cluster add`, `--kubeconfig` and `--context` are those of the cluster.
#[derive(Args, Debug)]
pub struct RotateArgs {
    /// The cluster, as PROVIDER/CLUSTER.
    #[arg(value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub cluster: String,
    /// Kubeconfig of the cluster, of a person with rights there. Without it and --context the stored credentials replace themselves.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the cluster.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Which kind of token is stored on the hub.
    #[arg(long, value_enum, ignore_case = true, default_value = "Auto")]
    pub token: TokenKind,
    /// How long a bound token is asked for.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub token_duration: Duration,
    /// Say what would be done; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// How long to wait until the operator uses the new credentials; the old ones are ended only then.
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

impl RotateArgs {
    /// Where the hub is.
    pub fn hub(&self) -> HubArgs {
        HubArgs {
            kubeconfig: self.hub_kubeconfig.clone(),
            context: self.hub_context.clone(),
            as_user: None,
            as_group: Vec::new(),
            operator_namespace: self.operator_namespace.clone(),
        }
    }
}

/// What becomes of what runs.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub struct Choice {
    /// All that runs stays, and so do EMCO's objects and accounts: EMCO may come back.
    #[arg(long)]
    pub keep: bool,
    /// What runs stays on the clusters, and is nobody's; all that is EMCO's goes.
    #[arg(long)]
    pub release: bool,
    /// What runs is removed from the clusters, and then all that is EMCO's.
    #[arg(long)]
    pub remove: bool,
}

/// `kubectl emco uninstall`.
#[derive(Args, Debug)]
pub struct UninstallArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// What becomes of what runs.
    #[command(flatten)]
    pub choice: Choice,
    /// Say what would be done; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// With --release: do not ask this cluster, as PROVIDER/CLUSTER; claim and account stay there. Repeat for several.
    #[arg(long, requires = "release", value_name = "PROVIDER/CLUSTER", value_parser = cluster)]
    pub give_up: Vec<String>,
    /// How long to wait; running it again goes on.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub timeout: Duration,
}
