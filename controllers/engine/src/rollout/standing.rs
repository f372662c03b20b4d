//! Reads from rows how clusters stand with a revision.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::{Standing, Waves};
use crate::identity::{ClusterId, Combination};
use crate::rollup::Shard;
use crate::rollup::facts::{self, ClusterFact, Kind};

/// How the clusters of a revision stand.
pub struct Standings {
    /// Those that take part, and those that lose everything.
    pub of: BTreeMap<ClusterId, Standing>,
    /// Whether all take part: one that the revision did not change has something else now.
    pub everywhere: bool,
    /// Until when the first of those that are away still counts as being on its way.
    pub overdue_in: Option<Duration>,
}

/// How the clusters of a revision stand, and those that lose everything. One that has been away for longer than `deadline` has failed: it
/// holds nobody up for ever. A removal never fails a rollout. `everywhere` is how it was before.
pub fn standings(
    waves: &Waves,
    shards: &[Shard<'_>],
    wanted: &BTreeMap<ClusterId, Combination>,
    everywhere: bool,
    (deadline, now): (Duration, Timestamp),
) -> Standings {
    let facts = facts::of(shards, wanted);
    let is_unchanged = |fact: &ClusterFact<'_>| waves.is_unchanged(&fact.cluster) && fact.wanted.is_some();
    let everywhere = everywhere || facts.iter().any(|fact| is_unchanged(fact) && !fact.current);
    let mut standings = Standings { of: BTreeMap::new(), everywhere, overdue_in: None };
    for fact in facts.iter().filter(|fact| everywhere || !is_unchanged(fact)) {
        let left = left(fact, deadline, now);
        let standing = standing(fact, left);
        if standing == Standing::Underway {
            standings.overdue_in = standings.overdue_in.into_iter().chain(left).min();
        }
        standings.of.insert(fact.cluster.clone(), standing);
    }
    standings
}

fn standing(fact: &ClusterFact<'_>, left: Option<Duration>) -> Standing {
    if !fact.current {
        return Standing::Before;
    }
    match fact.kind {
        Kind::Ready | Kind::Leaving | Kind::LeavingFailed | Kind::LeavingUnreachable => Standing::Ready,
        Kind::Failed => Standing::Failed,
        Kind::Unreachable if left.is_some_and(|left| left.is_zero()) => Standing::Failed,
        Kind::Unreachable | Kind::Progressing => Standing::Underway,
    }
}

/// How long a cluster that is away may still be; `None` for one that is not.
fn left(fact: &ClusterFact<'_>, deadline: Duration, now: Timestamp) -> Option<Duration> {
    let since = fact.status.as_ref().and_then(|status| status.since.as_ref());
    let since = since.filter(|_| fact.kind == Kind::Unreachable)?;
    let away = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
    Some(deadline.saturating_sub(away))
}
