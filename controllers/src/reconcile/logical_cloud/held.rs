//! Says on which clusters a logical cloud has to stay, since deployments of it are there.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::{DeploymentIntentGroup, LogicalCloud, OwnerKind, SyncShard};
use emco_engine::cloud::CloudPlan;
use emco_engine::identity::ClusterId;
use emco_engine::snapshot::Running;

use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::in_use;
use crate::store;

/// Shards of deployments of this cloud. A deployment that is not among these may be of any cloud.
pub(super) fn of_deployments<'a>(
    cloud: &LogicalCloud,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
    shards: impl IntoIterator<Item = &'a SyncShard>,
) -> Vec<&'a SyncShard> {
    let clouds: BTreeMap<&str, &str> =
        digs.into_iter().map(|dig| (meta::name(dig), dig.spec.logical_cloud_ref.name.as_str())).collect();
    let holds = |shard: &&SyncShard| {
        let owner = &shard.spec.owner;
        meta::namespace(*shard) == meta::namespace(cloud)
            && owner.kind == OwnerKind::DeploymentIntentGroup
            && shard.spec.abandoned.is_none()
            && clouds.get(owner.name.as_str()).is_none_or(|named| *named == meta::name(cloud))
    };
    shards.into_iter().filter(holds).collect()
}

/// Clusters where a deployment of this cloud has rows.
fn of<'a>(
    cloud: &LogicalCloud,
    digs: impl IntoIterator<Item = &'a DeploymentIntentGroup>,
    shards: impl IntoIterator<Item = &'a SyncShard>,
) -> BTreeSet<ClusterId> {
    let shards = of_deployments(cloud, digs, shards);
    let rows = shards.into_iter().flat_map(|shard| &shard.spec.clusters);
    rows.filter_map(|row| ClusterId::parse(&row.cluster)).collect()
}

/// As the watches show it, and what this process wrote since.
pub(super) fn shown(ctx: &Context, cloud: &LogicalCloud) -> BTreeSet<ClusterId> {
    let namespace = meta::namespace(cloud);
    let digs = ctx.stores.digs.within(namespace);
    let shards = store::shards_within(ctx, namespace);
    of(cloud, digs.iter().map(AsRef::as_ref), shards.iter().map(AsRef::as_ref))
}

/// As the hub has it now: the watches may be behind a deployment that was just targeted.
pub(super) async fn listed(ctx: &Context, cloud: &LogicalCloud) -> Result<BTreeSet<ClusterId>, Failure> {
    let namespace = meta::namespace(cloud);
    // First the shards: their deployments were there before them.
    let shards = store::live_shards(ctx, Some(namespace)).await?;
    let digs: Vec<DeploymentIntentGroup> = in_use::listed(ctx, namespace).await?;
    Ok(of(cloud, &digs, shards.iter().map(AsRef::as_ref)))
}

/// Whether a plan takes the cloud from a cluster where it runs.
pub(super) fn leaves(running: Option<&Running>, planned: &CloudPlan) -> bool {
    running.is_some_and(|running| running.assignment.keys().any(|id| !planned.assignment.contains_key(id)))
}
