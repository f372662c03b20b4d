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
    /// Those that it changes, and those that lose everything.
    pub of: BTreeMap<ClusterId, Standing>,
    /// Until when the first of those that are away still counts as being on its way.
    pub overdue_in: Option<Duration>,
}

/// How the clusters of a revision stand, and those that lose everything. One that has been away for longer than `deadline` has failed: it
/// holds nobody up for ever. A removal never fails a rollout.
pub fn standings(
    waves: &Waves,
    shards: &[Shard<'_>],
    wanted: &BTreeMap<ClusterId, Combination>,
    deadline: Duration,
    now: Timestamp,
) -> Standings {
    let mut standings = Standings { of: BTreeMap::new(), overdue_in: None };
    for fact in facts::of(shards, wanted) {
        if waves.is_unchanged(&fact.cluster) && fact.wanted.is_some() {
            continue;
        }
        let left = left(&fact, deadline, now);
        let standing = standing(&fact, left);
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
