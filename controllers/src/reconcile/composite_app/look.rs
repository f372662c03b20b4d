//! Keeps what the last look at a chart's source found that was asked for, with the pin that goes on being used.

use emco_crds::composite_app::{ChartPin, SourceLook};
use emco_crds::reasons::CompositeAppReason as Reason;
use emco_engine::conditions;

use super::Refused;
use crate::object::status::ReadyState;

/// What a look says of a branch that points to another commit: it refuses nothing.
const BRANCH_MOVED: &str = "BranchMoved";

/// A look that was refused.
pub fn refused((reason, message): &Refused) -> SourceLook {
    SourceLook {
        reason: (*reason).to_owned(),
        message: conditions::truncate(message, conditions::LONGEST_MESSAGE),
    }
}

/// A look at a branch that moved on.
pub fn moved(message: String) -> SourceLook {
    SourceLook { reason: BRANCH_MOVED.to_owned(), message }
}

/// What a look says of an app: a refusal, or a sentence beside success.
pub fn says(app: &str, look: &SourceLook) -> Result<String, Refused> {
    let message = format!("app {app}: {}", look.message);
    if look.reason == BRANCH_MOVED {
        return Ok(message);
    }
    Err((Reason::parse(&look.reason).unwrap_or(Reason::SourceUnreachable).as_str(), message))
}

/// Whether the source gave something else, and gives the same again if it is asked again.
fn is_final(reason: &str) -> bool {
    matches!(reason, "ChartDigestChanged" | "ChartInvalid" | "ChartTooLarge" | "ChartIsLibrary")
}

/// Whether a look is made again by itself: the source gave nothing, and may give the pinned chart later.
pub fn is_open(pin: &ChartPin) -> bool {
    pin.last_look.as_ref().is_some_and(|look| look.reason != BRANCH_MOVED && !is_final(&look.reason))
}

/// Whether only an edit helps.
pub fn state(reason: &str) -> ReadyState {
    if is_final(reason) || reason == "ChartSourceNotAllowed" {
        ReadyState::Stalled
    } else {
        ReadyState::Waiting
    }
}

/// Whether a chart that is not pinned is asked for again by itself.
pub fn is_tried_again(reason: &str) -> bool {
    matches!(reason, "SourceUnreachable" | "ChartNotFound" | "ChartUnauthorized")
}
