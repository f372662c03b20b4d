//! Arguments of the command that shows deployments as a tree.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::objects::ObjectArgs;
use super::words::{Deployment, cluster};
use super::{Format, HubArgs, ScopeArgs};

/// `kubectl emco status`.
#[derive(Args, Debug)]
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
    /// Only deployments in this state, and those of which an app on a cluster is; repeat for several.
    #[arg(long, value_enum, ignore_case = true)]
    pub state: Vec<Verdict>,
    /// Which objects of those that are not as wanted, and whether an app on a cluster is ready.
    #[command(flatten)]
    pub objects: ObjectArgs,
    /// Show every change from now on, as the hub tells of it, until interrupted.
    #[arg(short, long)]
    pub watch: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// How an app is on a cluster, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Verdict {
    /// All of it is applied and ready.
    Ready,
    /// On its way.
    Progressing,
    /// Something was refused, or did not become ready in time.
    Failed,
    /// The cluster cannot be reached.
    Unreachable,
    /// On its way out.
    Removing,
    /// Nobody can say now.
    Unknown,
}

impl Verdict {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::Unreachable => "Unreachable",
            Self::Removing => "Removing",
            Self::Unknown => "Unknown",
        }
    }
}
