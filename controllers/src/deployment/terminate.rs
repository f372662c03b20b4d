//! A deployment that is to end in; clusters cleaned, what was stored removed, the finalizer gone, out.

use std::collections::BTreeMap;

use emco_crds::conditions::types;
use emco_crds::names::finalizer;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_engine::conditions;
use emco_engine::rollup::{self, DigInputs};

use super::report::{before, fill};
use crate::context::{Context, Outcome, Reconciled};
use crate::objects;
use crate::revisions::{self, Ending, Owner};

/// Brings a deployment to its end. `desiredState: Terminated` keeps the definition and its history.
pub async fn reconcile(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Reconciled {
    let deleting = objects::deleting(dig);
    let ending = revisions::end(ctx, owner, !deleting).await?;
    if ending == Ending::Done && deleting {
        objects::remove_finalizer(ctx, dig, finalizer::TERMINATE).await?;
        return Ok(Outcome::Settled);
    }
    let mut status = dig.status.clone().unwrap_or_default();
    let shards = revisions::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let rolled = rollup::dig(&DigInputs {
        shards: &parts,
        wanted: &BTreeMap::new(),
        revision: status.revision,
        placement: &[],
        ready_clusters: Some(&dig.spec.ready_clusters),
        before: &before(&status),
        approved: true,
        removing: true,
        suspended: false,
    });
    fill(&mut status, &rolled, false);
    status.last_handled_request = super::request(dig);
    let generation = objects::generation(dig);
    let now = ctx.now();
    status.set_observed_generation(generation);
    let done = ending == Ending::Done;
    let (reason, message) = if done {
        ("Terminated", "nothing of this deployment is left on any cluster".to_owned())
    } else {
        let first = rolled.failing.first().map(|f| format!("; {}: {} {}", f.cluster, f.reason, f.message));
        ("Terminating", format!("{} clusters still to be cleaned{}", rolled.left, first.unwrap_or_default()))
    };
    let list = status.conditions_mut();
    conditions::set(list, types::READY, "False", reason, &message, generation, now);
    conditions::set(list, types::DEPLOYED, "False", reason, &message, generation, now);
    conditions::remove(list, types::STALLED);
    if done {
        conditions::remove(list, types::RECONCILING);
    } else {
        conditions::set(list, types::RECONCILING, "True", reason, &message, generation, now);
    }
    objects::write_status(ctx, dig, dig.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
