//! A row of a shard as the job of one owner on one cluster works on it. Plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::SyncShard;
use emco_crds::sync_shard::{IdentitiesRef, ShardCombination};
use emco_engine::depends::Order;
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::shard::{FOUND, rows};

use crate::object::meta;

/// A combination with its name in the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, such as `t3`.
    pub name: String,
    /// The revision that made it.
    pub revision: i64,
    /// App to set.
    pub apps: Combination,
}

impl Named {
    /// Whether it stands for whatever carries the owner's label.
    pub const fn is_found(&self) -> bool {
        self.revision == FOUND
    }
}

/// What a row says, as read from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Number of the row in its shard.
    pub id: i64,
    /// Write of the shard it was read from, as `since` counts them.
    pub written: i64,
    /// Version of the shard it was read from: how far the hub had come.
    pub version: u64,
    /// Identity of the cluster that the row speaks of.
    pub uid: Option<String>,
    /// Everything is to leave.
    pub removal: bool,
    /// What the cluster shall have.
    pub target: Option<Named>,
    /// What may be there besides, with the write that added it.
    pub held: Vec<(i64, Named)>,
    /// The same as identities alone.
    pub held_identities: Vec<(i64, IdentitiesRef)>,
    /// The last write of the shard that gave it another target; 0 = none is known of.
    pub retargeted: i64,
    /// What was completely applied last, as the stored status says; `None` also when that combination is not known any more.
    pub applied: Option<Named>,
    /// Combinations that the row names and the shard does not have: an inventory with a hole.
    pub lost: Vec<String>,
    /// Which apps wait for which.
    pub order: Arc<Order>,
    /// The shard was written by a later epoch than ours: nothing may be done.
    pub fenced: bool,
}

impl Work {
    /// Whether the wish is the same: what a job has begun stays valid. Another order of the same apps is no other wish.
    pub fn same_wish(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.removal == other.removal
            && self.target == other.target
            && self.lost == other.lost
            && self.held == other.held
            && self.held_identities == other.held_identities
            && self.fenced == other.fenced
    }
}

/// The rows of a shard as work, by cluster. `epoch` is ours: a shard of a later one is not ours to act on.
pub fn works(shard: &SyncShard, epoch: i64) -> BTreeMap<ClusterId, Work> {
    let written = meta::writes(shard);
    let version = meta::version(shard);
    let combinations: BTreeMap<&str, &ShardCombination> =
        shard.spec.combinations.iter().map(|c| (c.name.as_str(), c)).collect();
    let named = |name: &str| combinations.get(name).map(|c| named(c));
    let rows = rows(&shard.spec, shard.status.as_ref());
    let apps = shard.spec.combinations.iter().flat_map(|one| &one.apps).map(|app| app.app.as_str());
    let order = Arc::new(Order::of(shard.spec.order.as_ref()).with(apps));
    let mut works = BTreeMap::new();
    for (row, spec) in rows.into_iter().zip(&shard.spec.clusters) {
        let mut held = Vec::new();
        let mut held_identities = Vec::new();
        for entry in &spec.held {
            held.extend(entry.combination.as_deref().and_then(named).map(|named| (entry.since, named)));
            held_identities.extend(entry.identities.clone().map(|identities| (entry.since, identities)));
        }
        let applied = row.applied.as_ref().and_then(|a| a.combination.as_deref()).and_then(named);
        let work = Work {
            id: row.id,
            written,
            version,
            uid: row.uid,
            removal: spec.target.is_none(),
            target: row.target.map(|t| Named { name: t.name, revision: t.revision, apps: t.apps }),
            held,
            held_identities,
            retargeted: row.retargeted,
            applied,
            lost: row.lost,
            order: Arc::clone(&order),
            fenced: shard.spec.epoch > epoch,
        };
        // A second row of a cluster is never written by us, and never acted on: it could take away what the first gives.
        works.entry(row.cluster).or_insert(work);
    }
    works
}

fn named(combination: &ShardCombination) -> Named {
    let apps = combination.apps.iter().map(|a| (a.app.clone(), SetDigest(a.set.clone()))).collect();
    Named { name: combination.name.clone(), revision: combination.revision, apps }
}
