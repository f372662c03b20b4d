//! Says when a cluster's credentials expire, and when to report that.

use std::time::Duration;

use emco_crds::Conditioned as _;
use emco_crds::cluster::ClusterStatus;
use emco_crds::conditions::{Condition, types};
use emco_engine::identity::ClusterId;
use jiff::Timestamp;

use crate::remote::kubeconfig::Life;
use crate::runtime::context::Outcome;

/// Reason of credentials that are accepted and will not be for long.
pub const SOON: &str = "EndSoon";
/// A clock that jumps is noticed within this.
const LONGEST: Duration = Duration::from_hours(12);

/// What helps.
pub fn cure(id: &ClusterId, secret: &str) -> String {
    format!(
        "run `kubectl emco cluster rotate {id} --context CONTEXT`, or put a fresh kubeconfig into Secret {secret}"
    )
}

/// The sentence on credentials that are accepted and end soon.
pub fn soon(life: Life, now: Timestamp, cure: &str) -> Option<String> {
    let verb = if life.ends <= now { "ended" } else { "end" };
    (life.warns <= now).then(|| format!("the credentials {verb} at {}: {cure}", life.ends))
}

/// The sentence on credentials that are refused because they ended.
pub fn ended(life: Life, now: Timestamp, reason: &str, cure: &str) -> Option<String> {
    let refused = ["Unauthorized", "TLSFailed"].contains(&reason);
    (refused && life.ends <= now).then(|| format!("the credentials ended at {}: {cure}", life.ends))
}

/// The warning, where it is one that was not said before.
pub fn news<'a>(old: Option<&ClusterStatus>, new: &'a ClusterStatus) -> Option<&'a Condition> {
    let known = old.and_then(|old| old.condition(types::CREDENTIALS_VALID));
    let now = new.condition(types::CREDENTIALS_VALID).filter(|now| now.reason == SOON)?;
    known.is_none_or(|known| known.reason != SOON).then_some(now)
}

/// Nothing but the clock brings the moment from which on the end is spoken of.
pub fn look_again(life: Option<Life>, now: Timestamp) -> Outcome {
    let left = life.filter(|life| life.warns > now).map(|life| life.warns.duration_since(now));
    let left = left.and_then(|left| Duration::try_from(left).ok());
    // Not a moment too early, whatever the clock's fractions are.
    left.map_or(Outcome::Settled, |left| Outcome::After((left + Duration::from_secs(1)).min(LONGEST)))
}
