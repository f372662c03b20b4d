//! Divides the clusters of a revision into waves, once: labels that change meanwhile move no cluster to another wave.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::deployment_intent_group::rollout::{Rollout, WaveApproval};
use emco_crds::fields::DurationText;
use serde::{Deserialize, Serialize};

use crate::identity::{ClusterId, Combination};
use crate::rollup::needed;
use crate::snapshot::ClusterFacts;
use crate::terms::{self, Candidate};

/// Name of the wave of all that matches no other, in messages and in status.
pub const LAST: &str = "the rest";

/// One wave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// As in `spec.rollout`; [`LAST`] for what matches no wave.
    pub name: String,
    /// How long it is watched before the next begins.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub soak: Duration,
    /// Whether it waits for an approval, and when.
    #[serde(default)]
    pub approval: WaveApproval,
    /// Whether the revision, or an earlier one of the same inputs, changes a cluster of it: its soak and its approval count, also where
    /// that cluster is gone.
    #[serde(default)]
    pub counts: bool,
}

impl Frozen {
    fn is_as(&self, other: &Self) -> bool {
        (&self.name, self.soak, self.approval) == (&other.name, other.soak, other.approval)
    }
}

/// A wave in numbers, as a plan shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// Its name.
    pub name: String,
    /// How many clusters are of it.
    pub clusters: usize,
    /// How long it is watched, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub soak: u64,
    /// Whether it waits for an approval, and when.
    #[serde(default)]
    pub approval: WaveApproval,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The waves of a revision, and which cluster goes with which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waves {
    /// In their order; the last one is that of all other clusters.
    pub waves: Vec<Frozen>,
    /// Place in `waves`. Clusters that lose everything go with the last.
    of: BTreeMap<ClusterId, usize>,
    /// Clusters that the revision does not change. They have it from the start, and what breaks there is not its doing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unchanged: BTreeSet<ClusterId>,
    /// Clusters that had, when the revision was made, what a rollout gave them that was not over: nobody has judged it yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unjudged: BTreeSet<ClusterId>,
}

/// A revision whose rollout is under way while the next one is made.
#[derive(Clone, Copy)]
pub struct Earlier<'a> {
    /// Its waves.
    pub waves: &'a Waves,
    /// What it wants of its clusters.
    pub wanted: &'a BTreeMap<ClusterId, Combination>,
    /// Whether the next one has the same inputs, and so goes on with its rollout.
    pub same_inputs: bool,
}

impl Waves {
    /// Divides `placed`. A cluster goes with the first wave that names it; a wave of a size takes so many of all clusters, by name, from
    /// those that no wave has. Of a revision that goes on with the `earlier` one, for the same inputs, every cluster keeps its wave, and
    /// those that came join the last.
    pub fn freeze(
        rollout: &Rollout,
        placed: &BTreeSet<ClusterId>,
        clusters: &BTreeMap<ClusterId, ClusterFacts>,
        earlier: Option<&Self>,
    ) -> Self {
        let mut waves: Vec<Frozen> = rollout
            .waves
            .iter()
            .map(|wave| Frozen {
                name: wave.name.clone(),
                soak: wave.soak.as_ref().and_then(DurationText::parse).unwrap_or_default(),
                approval: wave.approval.unwrap_or_default(),
                counts: false,
            })
            .collect();
        let last = waves.len();
        waves.push(Frozen { name: LAST.to_owned(), ..Frozen::default() });
        if let Some(earlier) = earlier.filter(|earlier| earlier.is_as(&waves)) {
            let of = placed.iter().map(|id| (id.clone(), earlier.of(id)));
            return Self { of: of.collect(), waves, ..Self::default() };
        }
        let mut of: BTreeMap<ClusterId, usize> = BTreeMap::new();
        // Whoever is named goes with that wave, also where an earlier one only counts.
        for (place, wave) in rollout.waves.iter().enumerate() {
            let Some(named) = &wave.clusters else { continue };
            for id in placed {
                let matches = || {
                    clusters.get(id).is_some_and(|facts| terms::any_matches(named, &Candidate::new(facts)))
                };
                if !of.contains_key(id) && matches() {
                    of.insert(id.clone(), place);
                }
            }
        }
        for (place, wave) in rollout.waves.iter().enumerate() {
            let Some(size) = &wave.size else { continue };
            let count = needed(Some(size), placed.len());
            let free: Vec<ClusterId> =
                placed.iter().filter(|id| !of.contains_key(*id)).take(count).cloned().collect();
            of.extend(free.into_iter().map(|id| (id, place)));
        }
        for id in placed {
            of.entry(id.clone()).or_insert(last);
        }
        Self { waves, of, ..Self::default() }
    }

    fn is_as(&self, waves: &[Frozen]) -> bool {
        self.waves.len() == waves.len() && self.waves.iter().zip(waves).all(|(own, other)| own.is_as(other))
    }

    /// Leaves out the clusters that are to have what they were given before. Those stay in that have what a rollout gave them which was not
    /// over, of the `earlier` revision or of one before it: nobody has judged it yet.
    #[must_use]
    pub fn beside(
        mut self,
        had: &BTreeMap<ClusterId, Combination>,
        wanted: &BTreeMap<ClusterId, Combination>,
        earlier: Option<Earlier<'_>>,
    ) -> Self {
        let is_unjudged = |id: &&ClusterId| {
            earlier.is_some_and(|Earlier { waves, wanted, .. }| {
                let takes_part = waves.of.contains_key(*id) && !waves.unchanged.contains(*id);
                waves.unjudged.contains(*id) || takes_part && had.get(*id) == wanted.get(*id)
            })
        };
        self.unjudged = self.of.keys().filter(is_unjudged).cloned().collect();
        let same = |id: &&ClusterId| had.get(*id).is_some_and(|had| wanted.get(*id) == Some(had));
        let stays = |id: &&ClusterId| !self.unjudged.contains(*id);
        self.unchanged = self.of.keys().filter(same).filter(stays).cloned().collect();
        let same = earlier.filter(|earlier| earlier.same_inputs && earlier.waves.is_as(&self.waves));
        for (place, wave) in self.waves.iter_mut().enumerate() {
            let changes = |(id, of): (&ClusterId, &usize)| *of == place && !self.unchanged.contains(id);
            wave.counts = self.of.iter().any(changes)
                || same.and_then(|same| same.waves.waves.get(place)).is_some_and(|wave| wave.counts);
        }
        self
    }

    /// Whether the revision leaves it as it is.
    pub fn is_unchanged(&self, cluster: &ClusterId) -> bool {
        self.unchanged.contains(cluster)
    }

    /// The wave of a cluster; the last for one that has none, as all do that leave.
    pub fn of(&self, cluster: &ClusterId) -> usize {
        self.of.get(cluster).copied().unwrap_or_else(|| self.waves.len().saturating_sub(1))
    }

    /// All of them in numbers.
    pub fn outline(&self) -> Vec<Outline> {
        let mut counts = vec![0; self.waves.len()];
        for wave in self.of.values() {
            if let Some(count) = counts.get_mut(*wave) {
                *count += 1;
            }
        }
        let outline = |(wave, clusters): (&Frozen, usize)| Outline {
            name: wave.name.clone(),
            clusters,
            soak: wave.soak.as_secs(),
            approval: wave.approval,
        };
        self.waves.iter().zip(counts).map(outline).collect()
    }

    /// Clusters with their waves.
    pub fn clusters(&self) -> impl Iterator<Item = (&ClusterId, usize)> {
        self.of.iter().map(|(id, wave)| (id, *wave))
    }
}
