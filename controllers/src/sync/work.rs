//! A row of a shard as the job of one owner on one cluster works on it. Plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::SyncShard;
use emco_crds::sync_shard::{IdentitiesRef, ShardCombination};
use emco_engine::depends::Order;
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::shard::{self, FOUND, decode_status};

use crate::object::meta;

/// A combination with its name in the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, such as `t3`.
    pub name: String,
    /// The revision that made it.
    pub revision: i64,
    /// App to set, shared by all rows that name it.
    pub apps: Arc<Combination>,
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

    /// Whether a job that began with this one has nothing to look at for the other: its own row and order say the same, and the shard was
    /// not written anew from an earlier state, in which writes count again.
    pub fn is_no_news(&self, newer: &Self) -> bool {
        let target = newer.target.as_ref().map(|target| target.name.as_str());
        self.same_wish(newer) && newer.order.is_same_for(&self.order, target) && newer.written >= self.written
    }
}

/// The rows of a shard as work, by cluster. `epoch` is ours: a shard of a later one is not ours to act on. `known` is the order that the
/// shard had, which stays the same one where it is equal.
pub fn works(
    shard: &SyncShard,
    epoch: i64,
    known: Option<&Arc<Order>>,
) -> (BTreeMap<ClusterId, Arc<Work>>, Arc<Order>) {
    let (spec, written, version) = (&shard.spec, meta::writes(shard), meta::version(shard));
    let all: BTreeMap<&str, Named> = spec.combinations.iter().map(|c| (c.name.as_str(), named(c))).collect();
    let find = |name: &str| all.get(name).cloned();
    let rows = shard.status.as_ref().map(|status| decode_status(spec, status)).unwrap_or_default();
    let apps = spec.combinations.iter().flat_map(|one| &one.apps).map(|app| app.app.as_str());
    let order = Order::of(spec.order.as_ref()).with(apps);
    let order = match known {
        Some(known) if **known == order => Arc::clone(known),
        _ => Arc::new(order),
    };
    let mut works = BTreeMap::new();
    for row in &spec.clusters {
        let applied = rows.get(&row.id).and_then(|status| status.applied.as_ref());
        let mut held = Vec::new();
        let mut held_identities = Vec::new();
        for entry in &row.held {
            held.extend(entry.combination.as_deref().and_then(find).map(|named| (entry.since, named)));
            held_identities.extend(entry.identities.clone().map(|identities| (entry.since, identities)));
        }
        let work = Work {
            id: row.id,
            written,
            version,
            uid: row.uid.clone(),
            removal: row.target.is_none(),
            target: row.target.as_deref().and_then(find),
            held,
            held_identities,
            retargeted: shard::retargeted(row),
            applied: applied.and_then(|applied| applied.combination.as_deref()).and_then(find),
            lost: shard::lost(row, applied, |name| all.contains_key(name)),
            order: Arc::clone(&order),
            fenced: spec.epoch > epoch,
        };
        // A second row of a cluster is never written by us, and never acted on: it could take away what the first gives.
        works.entry(shard::cluster_id(&row.cluster)).or_insert_with(|| Arc::new(work));
    }
    (works, order)
}

fn named(combination: &ShardCombination) -> Named {
    let apps = combination.apps.iter().map(|a| (a.app.clone(), SetDigest(a.set.clone()))).collect();
    Named { name: combination.name.clone(), revision: combination.revision, apps: Arc::new(apps) }
}
