//! Says when a cluster's credentials expire, and when to report that.

use std::time::Duration;

use emco_crds::cluster::ClusterStatus;
use emco_crds::conditions::{Condition, types};
use emco_crds::{Cluster, Conditioned as _};
use emco_engine::identity::ClusterId;
use jiff::Timestamp;

use super::renewal::Renewal;
use super::{CONNECTING, Judged, REACHABLE, credentials};
use crate::object::context::Outcome;
use crate::reconcile::context::Context;
use crate::remote::kubeconfig::Life;

/// Reason of credentials that are accepted and will not be for long.
const SOON: &str = "EndSoon";
/// Reason of credentials that are accepted, and that the operator could not renew.
const REFUSED: &str = "RenewalRefused";
/// A clock that jumps is noticed within this.
const LONGEST: Duration = Duration::from_hours(12);

/// What helps.
fn cure(id: &ClusterId, secret: &str) -> String {
    format!(
        "run `kubectl emco cluster rotate {id} --context CONTEXT`, or put a fresh kubeconfig into Secret {secret}"
    )
}

/// The sentence on credentials that are accepted and end soon; `why` the operator did not renew them, if it does so.
fn soon(life: Life, now: Timestamp, why: Option<&str>, cure: &str) -> Option<String> {
    let verb = if life.ends <= now { "ended" } else { "end" };
    let why = why.map(|why| format!(" and could not be renewed ({why})")).unwrap_or_default();
    (life.warns <= now).then(|| format!("the credentials {verb} at {}{why}: {cure}", life.ends))
}

/// The sentence on credentials that hold for a good while, and that somebody has to see to.
fn refused(life: Life, why: &str, cure: &str) -> String {
    format!("the credentials hold until {} and could not be renewed ({why}): {cure}", life.ends)
}

/// The sentence on credentials that are refused because they ended.
fn ended(life: Life, now: Timestamp, reason: &str, cure: &str) -> Option<String> {
    let refused = ["Unauthorized", "TLSFailed"].contains(&reason);
    (refused && life.ends <= now).then(|| format!("the credentials ended at {}: {cure}", life.ends))
}

/// Says of credentials that end when they do, and why they were not renewed.
pub(super) fn say(
    ctx: &Context,
    cluster: &Cluster,
    (id, secret): (&ClusterId, &str),
    (life, renewal, renewable): (Life, &Renewal, bool),
    judged: &mut Judged,
    status: &mut ClusterStatus,
) {
    let (now, cure) = (ctx.now(), cure(id, secret));
    if let Some(message) = ended(life, now, judged.reason, &cure) {
        credentials(ctx, cluster, status, Err((judged.reason, &message)));
        judged.message = message;
        return;
    }
    // What was said of a token that could not be renewed stays until the cluster is asked again.
    if !status.is_true(types::CREDENTIALS_VALID) || (renewable && judged.reason == CONNECTING) {
        return;
    }
    let away = (renewable && judged.reason != REACHABLE)
        .then(|| format!("the cluster cannot be worked with: {}", judged.reason));
    let why = away.as_deref().or_else(|| renewal.refusal.as_ref().map(|refusal| refusal.message.as_str()));
    if let Some(message) = soon(life, now, why, &cure) {
        credentials(ctx, cluster, status, Ok((SOON, &message)));
    } else if let Some(refusal) = renewal.refusal.as_ref().filter(|refusal| refusal.lasts) {
        let message = refused(life, &refusal.message, &cure);
        credentials(ctx, cluster, status, Ok((REFUSED, &message)));
    }
}

/// The warning, where it is one that was not said before.
pub fn news<'a>(old: Option<&ClusterStatus>, new: &'a ClusterStatus) -> Option<&'a Condition> {
    let known = old.and_then(|old| old.condition(types::CREDENTIALS_VALID));
    let warns = |now: &&Condition| [SOON, REFUSED].contains(&now.reason.as_str());
    let now = new.condition(types::CREDENTIALS_VALID).filter(warns)?;
    known.is_none_or(|known| known.reason != now.reason).then_some(now)
}

/// Nothing but the clock brings the moment from which on the end is spoken of, and the one of which a renewal says that it is `due`.
pub fn look_again(life: Option<Life>, due: Option<Duration>, now: Timestamp) -> Outcome {
    let left = life.filter(|life| life.warns > now).map(|life| life.warns.duration_since(now));
    let left = left.and_then(|left| Duration::try_from(left).ok());
    // Not a moment too early, whatever the clock's fractions are.
    let warns = left.map(|left| (left + Duration::from_secs(1)).min(LONGEST));
    Outcome::Settled.at_latest(warns).at_latest(due.map(|due| due.min(LONGEST)))
}
