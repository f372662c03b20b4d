//! Holds the newest plan back while a deployment is suspended, pinned or waits for an approval, and works out what waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::DeploymentIntentGroup;
use emco_engine::approval::Wait;
use emco_engine::hold::{Hold, Next};
use emco_engine::identity::ClusterId;
use emco_engine::plan::{Plan, difference};
use emco_engine::refusal::Refusal;
use emco_engine::set::{Assignment, combinations};
use emco_engine::snapshot::Running;

use super::order_of;
use super::pinned::Pin;
use super::planned::Held;
use crate::runtime::context::{Context, Failure};
use crate::store::{self, Owner, Stored};
use crate::target;

/// Key of a plan that waits, among the contents of stored revisions.
fn key(owner: &Owner) -> String {
    store::waiting_key(&owner.hash)
}

fn revision_of(stored: Option<&Stored>) -> i64 {
    stored.map_or(0, |stored| stored.spec.revision)
}

/// What was rendered before for a plan beside this revision that is not carried out. Harmless if lost.
pub fn waiting(ctx: &Context, owner: &Owner, newest: Option<&Stored>) -> Option<Arc<Running>> {
    let kept = ctx.revisions.contents.lock().get(&key(owner))?;
    (kept.revision == revision_of(newest)).then_some(kept)
}

/// Forgets what was rendered for a plan that waited.
pub fn forget(ctx: &Context, owner: &Owner) {
    ctx.revisions.contents.lock().forget(&key(owner));
}

/// Remembers what was rendered for a plan that waits.
fn remember(ctx: &Context, owner: &Owner, newest: Option<&Stored>, plan: &Plan) {
    let revision = revision_of(newest);
    let mut contents = ctx.revisions.contents.lock();
    if plan.change.is_none() {
        contents.forget(&key(owner));
        return;
    }
    let same = |kept: &Running| kept.revision == revision && kept.plan_digest == plan.plan_digest;
    if contents.get(&key(owner)).is_some_and(|kept| same(&kept)) {
        return;
    }
    let waits = Running {
        revision,
        plan_digest: plan.plan_digest.clone(),
        inputs_digest: plan.inputs_digest.clone(),
        composite_app: String::new(),
        assignment: plan.assignment.clone(),
        sets: plan.sets.clone(),
        parts: BTreeMap::new(),
    };
    contents.put(key(owner), Arc::new(waits));
}

/// What runs while the newest plan is held back, and what comes afterwards. Nothing is written.
pub async fn hold(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
    pin: Option<Pin>,
    awaits: Option<Wait>,
    plan: Result<Plan, Box<Refusal>>,
) -> Result<Held, Failure> {
    if let Ok(plan) = &plan {
        remember(ctx, owner, newest, plan);
    }
    let said = dig.status.as_ref().and_then(|status| status.revision);
    let suspended = dig.spec.is_suspended();
    let (stored, assignment) = match &pin {
        Some(pin) if !suspended => (Some(pin.stored.clone()), pin.assignment.clone()),
        // What was stored for this plan and is not targeted yet does not run.
        _ if awaits.is_some() && store::targets(ctx, owner).is_empty() => (None, Assignment::new()),
        _ => running(ctx, owner, newest, said).await?,
    };
    let runs = stored.as_ref().map(|stored| stored.running.as_ref());
    let (next, digest) = match (&pin, &plan) {
        (Some(pin), _) if suspended => {
            if combinations(&pin.assignment) == combinations(&assignment) {
                (Next::Same, String::new())
            } else {
                let Pin { stored, assignment } = pin;
                let apps: Vec<String> = stored.spec.apps.iter().map(|app| app.name.clone()).collect();
                let summary = difference(runs, &apps, assignment, &stored.running.sets);
                (Next::Revision(stored.spec.revision, summary), stored.spec.digest.clone())
            }
        }
        (_, Err(refusal)) => (Next::Refused(refusal.message.clone()), String::new()),
        (_, Ok(plan)) => match (&plan.change, newest) {
            (Some(_), _) => {
                let newest = store::contexts(ctx, owner).first().map(|context| context.spec.revision);
                let number = newest.max(said).unwrap_or_default() + 1;
                (Next::Revision(number, changes(runs, plan)), plan.plan_digest.clone())
            }
            (None, Some(newest)) if stored.as_ref().is_none_or(|runs| runs.name != newest.name) => {
                (Next::Revision(newest.spec.revision, changes(runs, plan)), newest.spec.digest.clone())
            }
            (None, _) => (Next::Same, String::new()),
        },
    };
    // What has to be approved is named by what the approval covers.
    let digest = awaits.as_ref().map_or(digest, |wait| wait.digest.clone());
    let hold = Hold { suspended, pinned: dig.spec.revision, awaits, next };
    Ok(Held { stored, assignment, plan, hold, digest })
}

/// Keeps the rows of what runs beside a plan that waits for an approval: clusters that are heard of for the first time or replaced get it,
/// and rows name stored revisions. No cluster comes or goes. A suspended deployment is left alone.
pub async fn maintain(
    ctx: &Context,
    owner: &Owner,
    held: &Held,
    uids: &BTreeMap<ClusterId, String>,
) -> Result<(), Failure> {
    let Some(stored) = held.stored.as_ref().filter(|_| !held.hold.suspended) else { return Ok(()) };
    let wanted = combinations(&held.assignment);
    let order = order_of(stored, &wanted);
    target::retarget(ctx, owner, stored.spec.revision, &wanted, uids, order.as_ref()).await?;
    Ok(())
}

fn changes(runs: Option<&Running>, plan: &Plan) -> String {
    let apps: Vec<String> = plan.placement.iter().map(|(app, _)| app.clone()).collect();
    difference(runs, &apps, &plan.assignment, &plan.sets)
}

/// The revision that clusters are to have as their rows say, and where. `said` is the one that the status names.
async fn running(
    ctx: &Context,
    owner: &Owner,
    newest: Option<&Stored>,
    said: Option<i64>,
) -> Result<(Option<Stored>, Assignment), Failure> {
    let Some(stored) = store::targeted(ctx, owner, newest, said).await? else {
        return Ok((None, Assignment::new()));
    };
    let mut assignment = stored.running.assignment.clone();
    if newest.is_some_and(|newest| newest.name != stored.name) {
        // A pinned revision is not everywhere where it was.
        let targets = store::targets(ctx, owner);
        assignment.retain(|cluster, _| targets.contains_key(cluster));
    }
    Ok((Some(stored), assignment))
}
