//! Sums up the shards of an owner: where nothing but a report of some of them is new, the others are not looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::SyncShard;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::rollup::Sums;
use emco_engine::shard;

use crate::object::meta;

/// The shards of an owner by name, each as it was summed up.
pub struct ShardSums(BTreeMap<String, Known>);

struct Known {
    uid: String,
    generation: i64,
    version: Option<String>,
    sums: Sums,
}

impl Known {
    fn of(shard: &SyncShard, targets: &BTreeMap<ClusterId, Combination>) -> Self {
        Self {
            uid: meta::uid(shard).to_owned(),
            generation: meta::generation(shard),
            version: shard.metadata.resource_version.clone(),
            sums: Sums::of_shard((&shard.spec, shard.status.as_ref()), targets),
        }
    }

    fn wants_what_it_wanted(&self, shard: &SyncShard) -> bool {
        self.uid == meta::uid(shard) && self.generation == meta::generation(shard)
    }
}

/// What all rows of a shard are to have, where no row needs more than to be counted: each has a target, none leaves, and none says what
/// the owner has to act on.
pub fn targets(shard: &SyncShard) -> Option<BTreeMap<ClusterId, Combination>> {
    let acts = [Reason::ContentLost.as_str(), Reason::ClusterReplaced.as_str()];
    let mut said = shard.status.iter().flat_map(|status| &status.clusters);
    let is_asked = said.any(|row| {
        row.stripped.is_some()
            || row.error.as_ref().is_some_and(|error| acts.contains(&error.reason.as_str()))
    });
    if is_asked || shard.spec.abandoned.is_some() || meta::deleting(shard) {
        return None;
    }
    shard::wanted(&shard.spec).filter(|targets| targets.len() == shard.spec.clusters.len())
}

impl ShardSums {
    /// Of shards that have one row for each cluster, with what is wanted there; `None` where a row has more to be done.
    pub fn of(shards: &[Arc<SyncShard>], mut wanted: BTreeMap<ClusterId, Combination>) -> Option<Self> {
        let mut known = BTreeMap::new();
        for shard in shards {
            let targets = targets(shard)?;
            if targets.iter().any(|(cluster, apps)| wanted.remove(cluster).as_ref() != Some(apps)) {
                return None;
            }
            known.insert(meta::name(shard.as_ref()).to_owned(), Known::of(shard, &targets));
        }
        wanted.is_empty().then_some(Self(known))
    }

    /// Takes in what shards report. False where there is more than reports.
    pub fn follow(&mut self, shards: &[Arc<SyncShard>]) -> bool {
        let names: BTreeSet<&str> = shards.iter().map(|shard| meta::name(shard.as_ref())).collect();
        if !self.0.keys().map(String::as_str).eq(names) {
            return false;
        }
        shards.iter().all(|shard| {
            let Some(known) = self.0.get_mut(meta::name(shard.as_ref())) else { return false };
            if !known.wants_what_it_wanted(shard) {
                return false;
            }
            if known.version == shard.metadata.resource_version {
                return true;
            }
            let targets = targets(shard);
            if let Some(targets) = &targets {
                *known = Known::of(shard, targets);
            }
            targets.is_some()
        })
    }

    /// All of them together.
    pub fn all(&self) -> Sums {
        let mut all = Sums::default();
        for known in self.0.values() {
            all.and(&known.sums);
        }
        all
    }
}
