//! Says why there is no plan: what every stage refuses with.

use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use crate::conditions::shorten;

/// Why there is no plan. Everything a condition needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The condition that becomes False: `Resolved`, `Placed` or `Rendered`.
    pub condition: &'static str,
    /// From the closed set of reasons.
    pub reason: &'static str,
    /// A sentence that names the object, the field, what is wrong and what to do. No times, no generated names.
    pub message: String,
    /// Whether only an edit can cure it (Stalled) or it may cure itself (Reconciling).
    pub stalled: bool,
}

impl Refusal {
    /// Longest message, in bytes: what comes from charts and templates has no bound of its own.
    const LONGEST: usize = 1024;

    /// A refusal; whether it is stalled follows from the reason.
    pub fn new(condition: &'static str, reason: Reason, message: impl Into<String>) -> Box<Self> {
        Self::of(condition, reason.as_str(), reason.stalled(), message.into())
    }

    /// A refusal with a reason of another kind.
    pub fn of(
        condition: &'static str,
        reason: &'static str,
        stalled: bool,
        mut message: String,
    ) -> Box<Self> {
        // A table of kubectl shows the first line of a message, and a log has one.
        if message.contains('\n') {
            let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
            message = lines.collect::<Vec<_>>().join(" ");
        }
        let message = shorten(&message, Self::LONGEST);
        Box::new(Self { condition, reason, message, stalled })
    }
}
