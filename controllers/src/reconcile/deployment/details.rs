//! Keeps what a plan that waits would change written down, as long as it waits.
//!
//! The status names it before it is written, and until it is removed: so nothing is left behind, wherever a process dies.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::{Pending, PendingDetails, PendingRequires};
use emco_engine::changes::{self, Comparison};
use emco_engine::hold;
use emco_engine::set::Assignment;
use emco_engine::snapshot::Running;

use super::gather::installed;
use super::held;
use super::planned::{PendingChange, Planned};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::reconcile::context::Context;
use crate::store::{self, plan_details};

/// For `status.pending`.
pub fn reference(owner: &Owner, change: &PendingChange) -> PendingDetails {
    PendingDetails { config_map: plan_details::config_map_name(owner), digest: change.digest.clone() }
}

/// Removes what is written down where nothing waits any more. Before the status that does not name it.
pub async fn remove(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Result<(), Failure> {
    let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
    if pending.is_some_and(|pending| pending.details.is_some()) {
        plan_details::remove(ctx, owner).await?;
    }
    Ok(())
}

/// Removes what no plan needs any more, as [`remove`] does.
pub async fn tidy(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
) -> Result<(), Failure> {
    if planned.held().is_some_and(|held| held.change.is_some()) {
        return Ok(());
    }
    remove(ctx, dig, owner).await
}

/// Writes down what a plan that waits changes, where it is not yet. After the status that names it.
pub async fn write(ctx: &Context, owner: &Owner, planned: &Planned) -> Result<(), Failure> {
    match planned.held().and_then(|held| held.change.as_ref()) {
        Some(change) => write_change(ctx, owner, change).await,
        None => Ok(()),
    }
}

/// Writes down a change, where it is not yet.
pub async fn write_change(ctx: &Context, owner: &Owner, change: &PendingChange) -> Result<(), Failure> {
    if plan_details::is_written(ctx, owner, &change.digest) {
        return Ok(());
    }
    let PendingChange { changes, details, digest, running, sets } = change;
    let (changes, running, sets, digest) = (changes.clone(), running.clone(), sets.clone(), digest.clone());
    let installation = Arc::clone(&ctx.installation);
    // Comparing many manifests takes its time.
    let compared = tokio::task::spawn_blocking(move || {
        changes::differences(&changes, running.as_deref(), &sets, &installation.digest_key, &digest)
    });
    let differences = compared.await.map_err(super::ended)?;
    plan_details::write(ctx, owner, details, &differences).await?;
    Ok(())
}

/// What a deletion that waits would remove; `None` where nothing runs that can still be read.
pub async fn removed(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
) -> Result<Option<PendingChange>, Failure> {
    let newest = store::newest(ctx, owner).await?;
    let (Some(stored), assignment) = held::running(ctx, dig, owner, newest.as_ref()).await? else {
        return Ok(None);
    };
    let apps: Vec<String> = stored.spec.apps.iter().map(|app| app.name.clone()).collect();
    let running = Running { assignment, ..stored.running.as_ref().clone() };
    let (assignment, sets, there) = (Assignment::new(), BTreeMap::new(), installed(ctx, owner));
    let comparison = Comparison {
        running: Some(&running),
        apps: &apps,
        assignment: &assignment,
        sets: &sets,
        installed: &there,
        back: false,
    };
    let changes = comparison.changes();
    Ok(Some(PendingChange::new(changes, Some(Arc::new(running)), sets)))
}

/// For `status.pending`: a deletion that waits, of what has this digest.
pub fn removal(owner: &Owner, change: &PendingChange, digest: &str, requires: PendingRequires) -> Pending {
    let summary = change.changes.summary();
    let mut pending = hold::pending(digest, 0, requires, &summary, &change.changes);
    pending.details = Some(reference(owner, change));
    pending
}
