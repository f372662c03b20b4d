//! Arguments of the command that serves pages for a browser.

use clap::Args;

use super::{HubArgs, ScopeArgs};

/// `kubectl emco dashboard`.
#[derive(Args, Debug)]
pub struct DashboardArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Which namespace.
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Port of 127.0.0.1 to serve on; a free one if not given.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}
