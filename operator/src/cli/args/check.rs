//! Arguments of the command that looks at the installation.

use clap::Args;

use super::{Format, HubArgs};

/// `kubectl emco check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}
