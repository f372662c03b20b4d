//! Says why there is no chart: a reason for conditions, and a sentence.

use crate::remote::wire::cut;

/// The reason of other bytes than those that were seen first.
pub const CHANGED: &str = "ChartDigestChanged";
/// The reason of a download that may not begin now.
pub const BUSY: &str = "Fetching";

/// Why there is no chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChartError {
    reason: &'static str,
    message: String,
}

impl ChartError {
    pub(crate) fn new(reason: &'static str, message: &str) -> Self {
        Self { reason, message: cut(message, 512) }
    }

    /// No download may begin now; who asked is woken when one may.
    pub(super) fn busy() -> Self {
        Self::new(
            BUSY,
            "waits for its turn: few charts are downloaded at once, and fewer of one project; it goes on by itself",
        )
    }

    /// `ChartNotFound`, `ChartUnauthorized`, `ChartSourceNotAllowed`, `ChartDigestChanged`, `ChartInvalid`,
    /// `ChartTooLarge`, `ChartIsLibrary`, `SourceUnreachable` or `Fetching`.
    pub const fn reason(&self) -> &'static str {
        self.reason
    }

    /// Trying again later may help although nobody changed anything here.
    pub fn is_transient(&self) -> bool {
        self.reason == "SourceUnreachable"
    }
}
