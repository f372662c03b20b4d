//! Says where a logical cloud may be used, refused or not, and lets its rows go on there while it is refused.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::{LogicalCloud, Project};
use emco_engine::cloud;
use emco_engine::identity::ClusterId;
use emco_engine::snapshot::{ClusterFacts, Scheduling, uids};

use super::taken;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::composite_app::project;
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows;
use crate::store;
use crate::tenancy::facts;

/// Clusters where a cloud may be used today, and that are not to be left. Of one that is refused, those that it has, and no other cloud.
pub fn usable(
    ctx: &Context,
    cloud: &LogicalCloud,
    project: &Project,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> BTreeSet<ClusterId> {
    let mut usable = if let Ok(facts) = super::facts(ctx, cloud, project, clusters) {
        facts.clusters
    } else {
        let (granted, _) = super::granted(ctx, project, cloud, clusters);
        let kept = taken::kept(ctx, cloud, clusters);
        let members = cloud::members(&cloud.spec, &granted, clusters).candidates;
        members.into_iter().filter(|cluster| kept.contains(cluster)).collect()
    };
    let is_left = |facts: &ClusterFacts| matches!(facts.scheduling, Scheduling::Drained);
    usable.retain(|cluster| clusters.get(cluster).is_some_and(|facts| !is_left(facts)));
    usable
}

/// Beside a refusal, clusters that are heard of for the first time, or were replaced, get what their rows say.
pub(super) async fn keep_rows(ctx: &Context, cloud: &LogicalCloud, owner: &Owner) -> Result<(), Failure> {
    let suspended = suspension::of_project(&ctx.stores, &owner.namespace);
    let Some(project) = project(ctx, meta::namespace(cloud)).filter(|_| !suspended) else { return Ok(()) };
    if meta::deleting(project.as_ref()) || store::of_a_later_format(ctx, owner).is_some() {
        return Ok(());
    }
    let clusters = facts::clusters(ctx);
    let usable = usable(ctx, cloud, &project, &clusters);
    let mut uids = uids(&clusters);
    uids.retain(|cluster, _| usable.contains(cluster));
    rows::keep(ctx, owner, &uids).await?;
    Ok(())
}
