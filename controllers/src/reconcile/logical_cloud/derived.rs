//! Works out which rights the account of a logical cloud needs on each cluster: for what its deployments are to have there, and for what
//! they may still have of earlier revisions.
//!
//! Rows of shards say both before anything is sent, and until it is known to be gone. So rights grow before an update is applied, and
//! become less when the old objects are removed; where the process ends between two of its steps, the next one reads the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::{DeploymentIntentGroup, LogicalCloud, SyncShard};
use emco_engine::cloud;
use emco_engine::cloud::CloudPlan;
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::role::Derived;
use emco_engine::role::{Asked, Rights};
use emco_engine::shard::{self, Content};
use emco_engine::snapshot::ClusterFacts;

use super::held;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::in_use;
use crate::store;

/// Rights by cluster; `None` where they cannot be told now.
pub(super) type OfClusters = BTreeMap<ClusterId, Option<Rights>>;

/// As the watches show it, and what this process wrote since.
pub(super) async fn shown(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Result<OfClusters, Failure> {
    let Some(derived) = Derived::of(&cloud.spec, cloud.cluster_namespace()) else {
        return Ok(OfClusters::new());
    };
    let digs = ctx.stores.digs.within(meta::namespace(cloud));
    let shards = store::shards_within(ctx, meta::namespace(cloud));
    let digs = digs.iter().map(AsRef::as_ref);
    let shards = held::of_deployments(cloud, digs, shards.iter().map(AsRef::as_ref));
    of(ctx, cloud, &shards, clusters, &derived).await
}

/// As the hub has it now: the watches may be behind, and a right is not taken from what was just targeted.
pub(super) async fn listed(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Result<OfClusters, Failure> {
    let Some(derived) = Derived::of(&cloud.spec, cloud.cluster_namespace()) else {
        return Ok(OfClusters::new());
    };
    // First the shards: their deployments were there before them.
    let shards = store::live_shards(ctx, Some(meta::namespace(cloud))).await?;
    let digs: Vec<DeploymentIntentGroup> = in_use::listed(ctx, meta::namespace(cloud)).await?;
    let shards = held::of_deployments(cloud, &digs, shards.iter().map(AsRef::as_ref));
    of(ctx, cloud, &shards, clusters, &derived).await
}

/// Whether a plan changes rights.
pub(super) fn moves(cloud: &LogicalCloud, planned: &CloudPlan) -> bool {
    planned.change.is_some() && Derived::is_in(&cloud.spec)
}

/// The time until then, at least a second.
pub(super) fn wait(ctx: &Context, at: Option<i64>) -> Option<Duration> {
    let left = at? - ctx.world.clock.now_ms() / 1000;
    Some(Duration::from_secs(u64::try_from(left).unwrap_or_default().max(1)))
}

/// What rows name on a cluster.
#[derive(Default)]
struct OnCluster {
    sets: BTreeSet<SetDigest>,
    /// Some of it cannot be read.
    unread: bool,
}

async fn of(
    ctx: &Context,
    cloud: &LogicalCloud,
    shards: &[&SyncShard],
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
    derived: &Derived,
) -> Result<OfClusters, Failure> {
    let account = cloud::account(cloud.cluster_namespace(), meta::name(cloud));
    let mut asked: BTreeMap<SetDigest, Asked> = BTreeMap::new();
    let mut there: BTreeMap<ClusterId, OnCluster> = BTreeMap::new();
    for shard in shards {
        let contents =
            store::contents_of(ctx, &Owner::of_shard(&ctx.installation, shard), &shard.spec).await?;
        for row in shard::rows(&shard.spec, shard.status.as_ref()) {
            let here = there.entry(row.cluster).or_default();
            here.unread |= !row.lost.is_empty();
            // What is held as mere names is removed with the credentials of the Cluster, where the account may not.
            let held = row.may_have.iter().filter_map(|content| match content {
                Content::Sets(target) => Some(target),
                Content::Identities(_) => None,
            });
            for target in row.target.iter().chain(held).filter(|target| !target.is_found()) {
                for digest in target.apps.values() {
                    if !asked.contains_key(digest) {
                        let Some(set) = contents.set(target, digest) else {
                            here.unread = true;
                            continue;
                        };
                        asked.insert(digest.clone(), Asked::of(set, &account));
                    }
                    here.sets.insert(digest.clone());
                }
            }
        }
    }
    let rights = |id: &ClusterId, here: &OnCluster| {
        if here.unread {
            return None;
        }
        let mut all = Asked::default();
        here.sets.iter().filter_map(|digest| asked.get(digest)).for_each(|of_set| all.add(of_set));
        if all.is_empty() {
            return Some(Rights::default());
        }
        // Which resources kinds are, the cluster says.
        let apis = clusters.get(id)?.apis.as_ref()?;
        Some(all.rights(apis, derived))
    };
    Ok(there.iter().map(|(id, here)| (id.clone(), rights(id, here))).collect())
}
