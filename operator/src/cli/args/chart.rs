//! Arguments of the commands on charts.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::HubArgs;

/// What is said at the end of the help of `chart push`.
const PUSH_EXIT_CODES: &str = "Exit codes: 0 the hub has the chart, and all that name it have its digest, 1 an error, 2 a command line that \
                               cannot be understood, 3 the hub has the chart, and who names it could not be read or changed.";

/// What to do with a chart.
#[derive(Subcommand, Debug)]
pub enum ChartCommand {
    /// Pack a chart's folder into a ConfigMap of the hub, and set its digest in each CompositeApp that names it.
    #[command(after_help = PUSH_EXIT_CODES)]
    Push(PushArgs),
}

/// `kubectl emco chart push`.
#[derive(Args, Debug)]
pub struct PushArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// The chart's folder, or what `helm package` made of it.
    #[arg(value_name = "DIR")]
    pub chart: PathBuf,
    /// Namespace of the project on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The ConfigMap; the chart's name if not given.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The key in it.
    #[arg(long, value_name = "NAME", default_value = "chart.tgz")]
    pub key: String,
}
