//! Carries out `spec.revision`: the stored content of a revision goes to its clusters again. Nothing is rendered, and no chart,
//! profile or composite application is needed.

use std::collections::BTreeSet;

use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::fields::Level;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_engine::approval::Wait;
use emco_engine::cloud::{self, CloudFacts};
use emco_engine::identity::ClusterId;
use emco_engine::pin::{self, Pinned};
use emco_engine::refusal::Refusal;
use emco_engine::set::{Assignment, combinations};
use emco_engine::snapshot::uids;
use k8s_openapi::jiff::Timestamp;

use super::approved;
use super::order::order_of;
use crate::abandon;
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::{composite_app, logical_cloud};
use crate::store::{self, Stored, Unavailable};
use crate::tenancy::facts;

/// Revisions that a refusal names.
const NAMED: usize = 8;

/// A stored revision that is pinned, and which clusters get what of it.
pub struct Pin {
    pub stored: Stored,
    pub assignment: Assignment,
}

/// What became of a pin.
pub enum Pinning {
    /// It cannot be had, and nothing is changed.
    Refused(Box<Refusal>),
    /// Its approvals are others on the hub than the watch shows.
    Moved,
    /// Targeted, unless the deployment is suspended or only planned, or the pin waits for an approval; and when that may change by itself.
    Found(Box<Pin>, Option<Wait>, Option<Timestamp>),
}

/// Finds the pinned revision, and targets it where it may be carried out.
pub async fn carry_out(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    number: i64,
) -> Result<Pinning, Failure> {
    let pin = match find(ctx, dig, owner, number).await? {
        Ok(pin) => pin,
        Err(refusal) => return Ok(Pinning::Refused(refusal)),
    };
    let gate = Box::pin(approved::of_pin(ctx, dig, owner, (&pin.stored, &pin.assignment))).await?;
    let (wait, until) = (gate.wait(ctx), gate.until);
    if wait.is_none() && !dig.spec.is_held() {
        if !gate.is_open(ctx).await? {
            return Ok(Pinning::Moved);
        }
        target(ctx, owner, &pin).await?;
    }
    Ok(Pinning::Found(Box::new(pin), wait, until))
}

/// Finds a stored revision, and what clusters may have of it today. The inner error says why it cannot be had. Nothing is changed.
pub async fn find(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    number: i64,
) -> Result<Result<Pin, Box<Refusal>>, Failure> {
    let stored = match store::revision(ctx, owner, number).await? {
        Ok(stored) => stored,
        Err(why) => return Ok(Err(unavailable(ctx, dig, owner, number, &why))),
    };
    let clusters = facts::clusters(ctx);
    let cloud = match cloud(ctx, dig, &stored) {
        Ok(cloud) => cloud,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let have: BTreeSet<ClusterId> = store::targets(ctx, owner).into_keys().collect();
    let Pinned { assignment, homeless } =
        pin::pinned(&stored.running.assignment, &cloud.clusters, &clusters, &have);
    if let Some((app, cluster)) = homeless.first_key_value() {
        let message = format!(
            "spec.revision {number}: app {app} was on {cluster}, and is on no cluster that logical cloud {} has today and that takes work: give it one of them back, pin another revision, or remove spec.revision",
            cloud.name
        );
        return Ok(Err(Refusal::new(types::PLACED, Reason::ClusterNotInLogicalCloud, message)));
    }
    Ok(Ok(Pin { stored, assignment }))
}

async fn target(ctx: &Context, owner: &Owner, pin: &Pin) -> Result<(), Failure> {
    let Pin { stored, assignment } = pin;
    let (wanted, uids) = (combinations(assignment), uids(&facts::clusters(ctx)));
    let (revision, order) = (stored.spec.revision, order_of(stored, &wanted));
    if abandon::retarget(ctx, owner, revision, &wanted, &uids, (order.as_ref(), None)).await? {
        let LogFields { project, deployment, object } = owner.log_fields(ctx);
        let clusters = assignment.len();
        tracing::info!(project, deployment, object, revision, clusters, "a stored revision is pinned");
    }
    Ok(())
}

/// The logical cloud that the revision ran in, where it still is the deployment's and the same.
fn cloud(ctx: &Context, dig: &DeploymentIntentGroup, stored: &Stored) -> Result<CloudFacts, Box<Refusal>> {
    let (namespace, number) = (meta::namespace(dig), stored.spec.revision);
    let Some(project) = composite_app::project(ctx, namespace) else {
        let message =
            format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
        return Err(Refusal::new(types::RESOLVED, Reason::NoProject, message));
    };
    let name = &dig.spec.logical_cloud_ref.name;
    let Some(object) = ctx.stores.clouds.named(namespace, name) else {
        return Err(cloud::missing(name, namespace, meta::name(project.as_ref())));
    };
    let cloud = logical_cloud::facts(ctx, &object, &project, &facts::clusters(ctx))?;
    let ran = (stored.spec.logical_cloud.as_ref(), stored.spec.namespace.as_ref(), stored.spec.level);
    if ran != (Some(name), Some(&cloud.namespace), Some(object.spec.level)) {
        let message = format!(
            "spec.revision {number}: the revision ran in logical cloud {} (namespace {}, level {}), and the deployment is in logical cloud {name} (namespace {}, level {}): set spec.logicalCloudRef back, pin another revision, or remove spec.revision",
            stored.spec.logical_cloud.as_deref().unwrap_or("unknown"),
            stored.spec.namespace.as_deref().unwrap_or("unknown"),
            stored.spec.level.map_or("unknown", Level::as_str),
            cloud.namespace,
            cloud.level,
        );
        return Err(Refusal::new(types::RESOLVED, Reason::RevisionUnavailable, message));
    }
    Ok(cloud)
}

fn unavailable(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    number: i64,
    why: &Unavailable,
) -> Box<Refusal> {
    let stored: Vec<i64> = store::contexts(ctx, owner).iter().map(|context| context.spec.revision).collect();
    let others: Vec<String> =
        stored.iter().filter(|other| **other != number).take(NAMED).map(i64::to_string).collect();
    let instead = if others.is_empty() {
        "remove spec.revision".to_owned()
    } else {
        format!("pin one of {} instead, or remove spec.revision", others.join(", "))
    };
    let said = dig.status.as_ref().and_then(|status| status.revision);
    let newest = stored.first().copied().max(said).unwrap_or_default();
    match why {
        Unavailable::Unreadable(why) => {
            let message = format!(
                "spec.revision {number}: the content of revision {number} is lost ({why}): restore it from a backup, {instead}"
            );
            Refusal::new(types::RESOLVED, Reason::ContentLost, message)
        }
        Unavailable::NotStored if newest == 0 => {
            let message = format!("spec.revision {number}: no revision is stored yet: {instead}");
            Refusal::new(types::RESOLVED, Reason::RevisionUnavailable, message)
        }
        Unavailable::NotStored if number > newest => {
            let message = format!(
                "spec.revision {number}: there is no such revision, the newest is {newest}: {instead}"
            );
            Refusal::new(types::RESOLVED, Reason::RevisionUnavailable, message)
        }
        Unavailable::NotStored => {
            let message = format!(
                "spec.revision {number}: revision {number} is not stored any more (spec.revisionHistoryLimit is {}): {instead}",
                dig.spec.revision_history_limit
            );
            Refusal::new(types::RESOLVED, Reason::RevisionUnavailable, message)
        }
    }
}
