//! Lets what is stored go on beside a change that cannot be planned: it needs no chart and no profile.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::DeploymentIntentGroup;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::pin;
use emco_engine::refusal::Refusal;
use emco_engine::set::{Assignment, combinations};
use emco_engine::snapshot::{ClusterFacts, uids};

use super::held;
use super::planned::{Planned, Refused};
use super::release;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::{composite_app, logical_cloud};
use crate::rows;
use crate::store::{self, Stored};
use crate::tenancy::facts;

/// What runs beside a change that cannot be planned. It goes on, unless the deployment is suspended, or nothing of it is targeted:
/// what was stored and is not targeted, yet or any more, does not run.
pub async fn refuse(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
    refusal: Box<Refusal>,
) -> Result<Planned, Failure> {
    let said = dig.status.as_ref().and_then(|status| status.revision);
    let (stored, assignment) = held::targeted_by_rows(ctx, owner, newest, said).await?;
    let mut refused = Refused { refusal, stored, assignment, way: None };
    if !dig.spec.is_suspended() && !store::targets(ctx, owner).is_empty() {
        Box::pin(go_on(ctx, dig, owner, newest, &mut refused)).await?;
    }
    Ok(Planned::Refused(Box::new(refused)))
}

/// Waves and the way back go on, and clusters that are heard of for the first time, or were replaced, get what their rows say. Where
/// people want no plan carried out, or another revision than the one that goes in waves, rows keep what they are to have.
async fn go_on(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
    refused: &mut Refused,
) -> Result<(), Failure> {
    let (Some(stored), assignment) = held::running(ctx, dig, owner, newest).await? else { return Ok(()) };
    let clusters = facts::clusters(ctx);
    let Some(usable) = usable(ctx, dig, &stored, &clusters) else { return Ok(()) };
    let mut uids = uids(&clusters);
    uids.retain(|cluster, _| usable.contains(cluster));
    if stored.running.waves.is_none() || dig.spec.is_planned() || dig.spec.revision.is_some() {
        rows::keep(ctx, owner, &uids).await?;
        return Ok(());
    }
    let wanted = wanted(&assignment, &usable, &clusters, &store::targets(ctx, owner));
    let stay = wanted.keys().filter(|cluster| !usable.contains(*cluster)).cloned().collect();
    refused.way = held::go_on(ctx, dig, owner, (&stored, &wanted, &stay), &uids).await?;
    (refused.stored, refused.assignment) = (Some(stored), assignment);
    Ok(())
}

/// Clusters that the logical cloud of a revision may use today. `None` where nothing is written for it: the project or the cloud is not
/// there, ends, or is another one than it was, or another deployment has the release.
fn usable(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    stored: &Stored,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Option<BTreeSet<ClusterId>> {
    let namespace = meta::namespace(dig);
    let project = composite_app::project(ctx, namespace)?;
    let cloud = ctx.stores.clouds.named(namespace, stored.spec.logical_cloud.as_deref()?)?;
    let ends = meta::deleting(project.as_ref()) || meta::deleting(cloud.as_ref());
    let ran = (stored.spec.namespace.as_deref(), stored.spec.level);
    if ends
        || ran != (Some(cloud.cluster_namespace()), Some(cloud.spec.level))
        || release::holder(ctx, dig).is_some()
    {
        return None;
    }
    Some(logical_cloud::usable(ctx, &cloud, &project, clusters))
}

/// What clusters are to have in the end. One that takes no work of the logical cloud today keeps what it has.
fn wanted(
    assignment: &Assignment,
    usable: &BTreeSet<ClusterId>,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
    targets: &BTreeMap<ClusterId, Combination>,
) -> BTreeMap<ClusterId, Combination> {
    let have: BTreeSet<ClusterId> = targets.keys().cloned().collect();
    let takes = pin::pinned(assignment, usable, clusters, &have).assignment;
    let mut wanted = combinations(&takes);
    let others = assignment.keys().filter(|cluster| !takes.contains_key(*cluster));
    wanted.extend(others.filter_map(|cluster| Some((cluster.clone(), targets.get(cluster)?.clone()))));
    wanted
}
