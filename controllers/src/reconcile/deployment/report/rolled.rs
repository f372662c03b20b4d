//! Rolls the clusters of a deployment up: all rows, or the sums of its shards.

use std::collections::BTreeMap;

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::placement::AppPlacement;
use emco_engine::rollup::{self, Before, DigInputs, DigRollup, Shard, Sums};
use emco_engine::set::combinations;

use super::super::planned::Planned;
use super::unseen::{awaited, names, remembered, unseen, without_row};
use crate::abandon;
use crate::object::Owner;
use crate::reconcile::context::Context;
use crate::store;

/// Of all rows. The status learns which clusters have none yet.
pub fn whole(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    status: &mut DeploymentIntentGroupStatus,
) -> DigRollup {
    let before = from(status, planned);
    let shards = store::shards(ctx, owner);
    let mut parts: Vec<Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let waiting = match planned {
        Planned::Refused(refused) => remembered(ctx, refused, &status.awaited, &parts),
        Planned::Held(..) => BTreeMap::new(),
        Planned::Done(plan, ..) => awaited(plan),
    };
    let wanted = wanted(planned, &waiting);
    let without_row = without_row(planned, waiting);
    if matches!(planned, Planned::Done(..)) {
        status.awaited = names(&without_row);
    }
    let unseen = unseen(ctx, planned, &without_row);
    if let Some((spec, rows)) = &unseen {
        parts.push((spec, Some(rows)));
    }
    let (placement, abandoned) = (planned.placement(), abandon::abandoned(ctx, owner));
    let said = inputs(dig, planned, (&placement, &before, &abandoned));
    rollup::dig(&DigInputs { shards: &parts, wanted: &wanted, ..said })
}

/// Of sums that were made before.
pub fn of_sums(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    (status, sums): (&DeploymentIntentGroupStatus, &Sums),
) -> DigRollup {
    let before = from(status, planned);
    let (placement, abandoned) = (planned.placement(), abandon::abandoned(ctx, owner));
    sums.dig(&inputs(dig, planned, (&placement, &before, &abandoned)))
}

/// Clusters with nothing.
static NOTHING: BTreeMap<ClusterId, Combination> = BTreeMap::new();

/// What a rollup reads besides rows.
fn inputs<'a>(
    dig: &'a DeploymentIntentGroup,
    planned: &Planned,
    (placement, before, abandoned): (&'a [(String, AppPlacement)], &'a Before, &'a [ClusterId]),
) -> DigInputs<'a> {
    DigInputs {
        shards: &[],
        wanted: &NOTHING,
        revision: planned.stored().map(|stored| stored.spec.revision),
        placement,
        ready_clusters: Some(&dig.spec.ready_clusters),
        before,
        approved: planned.plan().is_some() && planned.awaits().is_none(),
        removing: false,
        suspended: dig.spec.is_suspended(),
        abandoned,
    }
}

/// What clusters are to have, those included that wait for their first contact.
fn wanted(planned: &Planned, waiting: &BTreeMap<ClusterId, Combination>) -> BTreeMap<ClusterId, Combination> {
    let with_waiting = |apps: BTreeMap<ClusterId, Combination>| -> BTreeMap<ClusterId, Combination> {
        waiting.clone().into_iter().chain(apps).collect()
    };
    match (planned, planned.way().and_then(|way| way.back.as_ref())) {
        (_, Some(back)) => with_waiting(back.counted.clone()),
        (Planned::Refused(refused), None) => with_waiting(combinations(&refused.assignment)),
        (Planned::Held(held), None) => combinations(&held.assignment),
        (Planned::Done(plan, ..), None) => {
            let mut wanted = combinations(&plan.assignment);
            wanted.extend(waiting.clone());
            wanted
        }
    }
}

/// The states that the next ones move from.
fn from(status: &DeploymentIntentGroupStatus, planned: &Planned) -> Before {
    let mut before = before(status);
    if let Some(back) = planned.way().and_then(|way| way.back.as_ref()) {
        // A status may never have spoken of what is taken back: the process died before, or had more to do.
        before.revision = Some(back.from);
    }
    before
}

/// States as they are stored: the next ones move from them.
pub fn before(status: &DeploymentIntentGroupStatus) -> Before {
    Before {
        state: status.state.unwrap_or_default(),
        revision: status.revision,
        apps: status.apps.iter().map(|app| (app.name.clone(), app.state.unwrap_or_default())).collect(),
    }
}
