//! Adds clusters up, so that the sums of shards are the sum of a deployment: one whose shard did not change is not looked at again.

use std::collections::BTreeMap;

use emco_crds::Failing;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::apps::{self, Apps};
use super::facts::{self, ClusterFact, Kind, Tally};
use super::notes::Told;
use super::{CloudRollup, DigInputs, DigRollup, LONGEST_MESSAGE, MOST_FAILING, Shard, cloud_status, status};
use crate::conditions::shorten;
use crate::identity::{ClusterId, Combination};

/// Everything that a status says of some clusters. Bounded whatever their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    pub(super) tally: Tally,
    /// The first ones.
    pub(super) failing: Vec<FailingCluster>,
    pub(super) notes: Told,
    pub(super) apps: Apps,
}

/// A cluster that is not as wanted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FailingCluster {
    pub said: Failing,
    /// It cannot be reached: why, its own condition says.
    away: bool,
}

impl Sums {
    /// Of all these clusters.
    pub(super) fn of(facts: &[ClusterFact<'_>]) -> Self {
        let mut failing: Vec<FailingCluster> = facts.iter().filter_map(FailingCluster::of).collect();
        first(&mut failing);
        for one in &mut failing {
            one.said.message = shorten(&one.said.message, LONGEST_MESSAGE);
        }
        Self { tally: Tally::of(facts), failing, notes: Told::of(facts), apps: apps::of(facts) }
    }

    /// Of the clusters with a row in this shard. Where each cluster that is wanted has one row, the sums of all shards are those that
    /// [`super::dig`] makes.
    pub fn of_shard(shard: Shard<'_>, wanted: &BTreeMap<ClusterId, Combination>) -> Self {
        Self::of(&facts::of_shard(shard, wanted))
    }

    /// With those of other clusters.
    pub fn and(&mut self, other: &Self) {
        let Self { tally, failing, notes, apps } = other;
        self.tally.and(tally);
        self.failing.extend(failing.iter().cloned());
        first(&mut self.failing);
        self.notes.and(notes);
        apps::and(&mut self.apps, apps);
    }

    /// The status of a deployment whose clusters come to this; the shards and targets of `inputs` are not looked at.
    pub fn dig(&self, inputs: &DigInputs<'_>) -> DigRollup {
        status(self, inputs)
    }

    /// The status of a logical cloud whose clusters come to this, without names of clusters that are ready, or have what runs.
    pub fn cloud(&self, inputs: &DigInputs<'_>) -> CloudRollup {
        cloud_status(self, inputs)
    }
}

impl FailingCluster {
    fn of(fact: &ClusterFact<'_>) -> Option<Self> {
        let away = matches!(fact.kind, Kind::Unreachable | Kind::LeavingUnreachable);
        fact.failing().map(|said| Self { said, away })
    }
}

/// Leaves the first ones: what failed before what is only not ready yet, then oldest first.
fn first(all: &mut Vec<FailingCluster>) {
    all.sort_by(|a, b| {
        let since = |f: &FailingCluster| f.said.since.as_ref().map(|t| t.0);
        // One without a time is new.
        let waits = |f: &FailingCluster| f.said.reason == Reason::NotReady.as_str();
        let key = |f: &FailingCluster| (waits(f), since(f).is_none(), since(f));
        key(a).cmp(&key(b)).then_with(|| a.said.cluster.cmp(&b.said.cluster))
    });
    all.truncate(MOST_FAILING);
}

/// Says of the first failing cluster what is wrong there. Why a cluster does not answer is its own condition's to say: it differs
/// from try to try, and each new sentence is a write.
pub(super) fn example(failing: &[FailingCluster]) -> Option<String> {
    let FailingCluster { said: first, away } = failing.first()?;
    let app = first.app.as_deref().map(|app| format!(" ({app})")).unwrap_or_default();
    let words =
        if *away || first.message.is_empty() { String::new() } else { format!(": {}", first.message) };
    Some(format!("{}{app}: {}{words}", first.cluster, first.reason))
}
