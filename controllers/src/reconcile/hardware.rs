//! Knows which deployments need something of nodes, and what was read of clusters for them. Nothing of it is stored: after a start it is
//! read again, and until then it is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_engine::hardware::{Demand, Demands, NodeFacts, Read};
use emco_engine::identity::ClusterId;
use emco_engine::set::Assignment;
use emco_engine::snapshot::Snapshot;
use emco_engine::{place, resolve};

use crate::api::key_queue::Key;
use crate::object::Owner;
use crate::reconcile::context::Context;
use crate::remote::State;

mod claims;
mod follow;
mod given;
mod state;

pub use follow::follow;
#[cfg(test)]
pub use follow::{due, look, news};
pub use state::Hardware;

use given::Given;
use state::{Concern, Interest};

/// So long a plan waits for a cluster that answers to say what its nodes have.
const PATIENCE: Duration = Duration::from_mins(1);
/// A deployment that waits for that looks again after this time; it is woken, too.
pub const AWAITS: Duration = Duration::from_secs(1);

/// Clusters that could say what they have, and of which it was not read yet.
#[derive(Debug, Default)]
pub struct Unread {
    /// Those that were heard of.
    pub clusters: BTreeSet<ClusterId>,
    /// Some of them answer, and are waited for.
    pub awaits: bool,
}

/// All that is known of the nodes of a cluster, for who needs labels of these keys.
fn facts_of(ctx: &Context, given: &Given, cluster: &ClusterId, keys: &BTreeSet<String>) -> NodeFacts {
    let observed = ctx.connector.observation(cluster).unwrap_or_default();
    let nodes = match &observed.nodes {
        // Labels that were not asked for were not kept.
        Read::Done(detailed) if keys.is_subset(&detailed.keys) => Read::Done(Arc::clone(&detailed.nodes)),
        Read::Forbidden => Read::Forbidden,
        Read::Done(_) | Read::Not => Read::Not,
    };
    let pods = ctx.hardware.pods.lock();
    let read = pods.get(cluster).filter(|read| read.epoch == observed.epoch);
    NodeFacts {
        nodes,
        requested: read.map(|read| read.requested.clone()).unwrap_or_default(),
        given: given.on(cluster, read.map(|read| &read.counted)),
    }
}

/// Puts what is known of nodes into a snapshot whose deployment needs something of them, and notes that it does.
pub fn gather(ctx: &Context, owner: &Owner, snapshot: &mut Snapshot) -> Unread {
    let key: Key = (owner.namespace.clone(), owner.name.clone());
    // An answer of the hub was lost, or an error: no plan of it is on its way now, and what it did not get must not stand in its way.
    ctx.hardware.claims.give_back(&key);
    let demands = resolve::needed_hardware(snapshot).unwrap_or_default();
    let concerned = concerned(snapshot, &demands);
    if concerned.is_empty() {
        ctx.hardware.forget(&key);
        return Unread::default();
    }
    let keys: BTreeSet<String> = demands.0.keys().flat_map(|app| demands.keys(app)).collect();
    let given = Given::now(ctx);
    let (mut unread, mut clusters) = (Unread::default(), BTreeMap::new());
    let now = ctx.world.clock.now_ms();
    for (cluster, counts) in concerned {
        let facts = Arc::new(facts_of(ctx, &given, &cluster, &keys));
        let state = ctx.connector.observation(&cluster).map(|observed| observed.state.clone());
        let mut awaited_since = None;
        let lacks = facts.nodes == Read::Not || counts && facts.requested == Read::Not;
        if lacks && state.as_ref().is_some_and(|state| *state != State::Connecting) {
            unread.clusters.insert(cluster.clone());
            awaited_since = (state == Some(State::Connected)).then_some(now);
        }
        if let Some(known) = snapshot.clusters.get_mut(&cluster) {
            known.nodes = Some(Arc::clone(&facts));
        }
        clusters.insert(cluster, Concern { counts, awaited_since, facts });
    }
    let mut interests = ctx.hardware.interests.lock();
    let before = interests.get(&key);
    let asks_same = before.is_some_and(|before| {
        let same = |(one, other): (&Concern, &Concern)| one.counts == other.counts;
        before.keys == keys
            && before.clusters.keys().eq(clusters.keys())
            && before.clusters.values().zip(clusters.values()).all(same)
    });
    // Each cluster has its own time: one that comes does not begin it anew for one that never says anything.
    for (cluster, concern) in &mut clusters {
        let known = before.and_then(|before| before.awaited_since(cluster, &keys, concern.counts));
        concern.awaited_since = concern.awaited_since.map(|since| known.unwrap_or(since));
    }
    let patience = i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX);
    let mut awaited = clusters.values().filter_map(|concern| concern.awaited_since);
    unread.awaits = awaited.any(|since| (0..patience).contains(&(now - since)));
    interests.insert(key, Interest { demands, keys, clusters });
    drop(interests);
    if !asks_same {
        ctx.hardware.changed.notify_one();
    }
    unread
}

/// Clusters that apps which need something may go to, or are on; and whether one of them counts what Pods request.
fn concerned(snapshot: &Snapshot, demands: &Demands) -> BTreeMap<ClusterId, bool> {
    let mut all: BTreeMap<ClusterId, bool> = BTreeMap::new();
    let Some(cloud) = snapshot.cloud.as_ref() else { return all };
    for app in demands.0.keys() {
        let counts = demands.counts(app);
        let may = place::reach(&snapshot.clusters, cloud, &snapshot.dig.spec.placement, app);
        let running = snapshot.running.iter().flat_map(|running| &running.assignment);
        let has = running.filter(|(_, apps)| apps.contains_key(app)).map(|(cluster, _)| cluster);
        for cluster in may.into_iter().chain(has) {
            *all.entry(cluster.clone()).or_default() |= counts;
        }
    }
    all
}

/// Takes what a plan newly gives, before it is stored; false where another one, worked out beside it, took some of it.
pub fn take(ctx: &Context, owner: &Owner, snapshot: &Snapshot, assignment: &Assignment, known: u64) -> bool {
    let Some(demands) = resolve::needed_hardware(snapshot).filter(|demands| !demands.is_empty()) else {
        return true;
    };
    let running = snapshot.running.as_ref().map(|running| &running.assignment);
    let mut gives: BTreeMap<ClusterId, Vec<(String, Arc<Demand>)>> = BTreeMap::new();
    for (cluster, apps) in assignment {
        let has = running.and_then(|running| running.get(cluster));
        let new =
            apps.keys().filter(|app| demands.counts(app) && !has.is_some_and(|has| has.contains_key(*app)));
        for app in new {
            let all = demands.of(app).iter().map(|demand| (app.clone(), Arc::clone(demand)));
            gives.entry(cluster.clone()).or_default().extend(all);
        }
    }
    let key: Key = (owner.namespace.clone(), owner.name.clone());
    gives.is_empty() || ctx.hardware.claims.take(&key, known, gives, ctx.world.clock.now_ms())
}

/// What was taken for a plan stays taken: it is stored.
pub fn keep(ctx: &Context, owner: &Owner) {
    ctx.hardware.claims.keep(&(owner.namespace.clone(), owner.name.clone()));
}

/// Gives back all that was taken for a plan: it was not stored.
pub fn give_back(ctx: &Context, owner: &Owner) {
    ctx.hardware.claims.give_back(&(owner.namespace.clone(), owner.name.clone()));
}
