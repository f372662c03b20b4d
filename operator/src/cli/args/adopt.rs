//! Arguments of `kubectl emco adopt`.

use clap::{Args, ValueEnum};
use emco_crds::deployment_intent_group::sync::ConflictPolicy;

use super::Format;
use super::deployments::{NamedDeployment, PartArgs};

/// What is said at the end of its help.
pub const EXIT_CODES: &str = "Exit codes: 0 there is nothing to take over, or --conflicts was written, 1 an error, such as a value of --conflicts \
                              that is not enough, 2 a command line that cannot be understood, 3 something is to be taken over, or a \
                              cluster cannot be asked.";

/// A value of `spec.sync.conflicts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Conflicts {
    /// Nothing more is taken over. What was taken over stays so.
    #[value(name = "Fail")]
    Fail,
    /// What an apply would not change.
    #[value(name = "AdoptIfSame")]
    AdoptIfSame,
    /// Also what changes, unless another field manager holds a field with another value.
    #[value(name = "Adopt")]
    Adopt,
    /// Everything: other managers lose fields.
    #[value(name = "Force")]
    Force,
}

impl From<Conflicts> for ConflictPolicy {
    fn from(value: Conflicts) -> Self {
        match value {
            Conflicts::Fail => Self::Fail,
            Conflicts::AdoptIfSame => Self::AdoptIfSame,
            Conflicts::Adopt => Self::Adopt,
            Conflicts::Force => Self::Force,
        }
    }
}

/// `kubectl emco adopt`.
#[derive(Args, Debug)]
pub struct AdoptArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Which part of it.
    #[command(flatten)]
    pub part: PartArgs,
    /// Look, then set spec.sync.conflicts to this: the operator takes over what it is enough for. It holds for all apps and clusters.
    #[arg(long, value_name = "VALUE", value_enum, ignore_case = true, conflicts_with_all = ["cluster", "app"])]
    pub conflicts: Option<Conflicts>,
    /// With --conflicts: also where the value does not take all that was found, or a cluster cannot be asked.
    #[arg(long, requires = "conflicts")]
    pub partly: bool,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}
