//! The state of what an owner has on clusters, in EMCO's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed, never the last thing asked for.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// It exists; nothing was put anywhere.
    #[default]
    Created,
    /// The first plan may be carried out.
    Approved,
    /// The first revision is being applied.
    Instantiating,
    /// The running revision is applied everywhere it can be.
    Instantiated,
    /// Applying the first revision failed somewhere; work goes on.
    InstantiateFailed,
    /// A later revision is being applied.
    Updating,
    /// A later revision is applied everywhere it can be.
    Updated,
    /// Applying a later revision failed somewhere; work goes on.
    UpdateFailed,
    /// What was applied is being removed.
    Terminating,
    /// Nothing is left on any cluster.
    Terminated,
    /// Removing failed somewhere; work goes on.
    TerminateFailed,
    /// Suspended while applying.
    InstantiateStopped,
    /// Suspended while removing.
    TerminateStopped,
}

impl State {
    /// All, in the order of a life.
    pub const ALL: [Self; 13] = [
        Self::Created,
        Self::Approved,
        Self::Instantiating,
        Self::Instantiated,
        Self::InstantiateFailed,
        Self::Updating,
        Self::Updated,
        Self::UpdateFailed,
        Self::Terminating,
        Self::Terminated,
        Self::TerminateFailed,
        Self::InstantiateStopped,
        Self::TerminateStopped,
    ];

    /// The text in YAML.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Approved => "Approved",
            Self::Instantiating => "Instantiating",
            Self::Instantiated => "Instantiated",
            Self::InstantiateFailed => "InstantiateFailed",
            Self::Updating => "Updating",
            Self::Updated => "Updated",
            Self::UpdateFailed => "UpdateFailed",
            Self::Terminating => "Terminating",
            Self::Terminated => "Terminated",
            Self::TerminateFailed => "TerminateFailed",
            Self::InstantiateStopped => "InstantiateStopped",
            Self::TerminateStopped => "TerminateStopped",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
