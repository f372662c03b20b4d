//! Arguments of `kubectl emco reach`.

use clap::Args;

use super::Format;
use super::deployments::NamedDeployment;
use super::words::cluster;

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
