//! Writes the deployment's status from a plan or its refusal and the results of its shards.

use std::collections::BTreeMap;

use emco_crds::conditions::{Condition, types};
use emco_crds::deployment_intent_group::status::{
    AppStatus, DeploymentIntentGroupStatus, HistoryEntry, Pending,
};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_engine::conditions;
use emco_engine::hold::Hold;
use emco_engine::plan::sentence;
use emco_engine::refusal::Refusal;
use emco_engine::resolve;
use emco_engine::rollup::{self, DigRollup, Sums, Verdict};
use emco_engine::text::counted;
use k8s_openapi::jiff::Timestamp;

use super::planned::{Held, Planned};
use super::rollout::Way;
use super::{approved, details, events, not_removed, release};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::object::status;
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows;
use crate::store;

mod intents;
mod rolled;
mod unseen;

pub use rolled::before;

/// Reason of a stage that refused nothing, in the order of `types::STAGES`.
const PASSED: [&str; types::STAGES.len()] = ["ReferencesFound", "Automatic", "ClustersChosen", "Rendered"];

/// Writes the status where it differs; answers what it was made of.
pub async fn write(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
) -> Result<DigRollup, Failure> {
    let mut status = dig.status.clone().unwrap_or_default();
    let mut rolled = rolled::whole(ctx, dig, owner, planned, &mut status);
    if let Some(lost) = rows::lost_content(ctx, owner).await? {
        rolled.deployed.message = format!("{}; {}", rolled.deployed.message, lost.sentence(dig, "dig"));
    }
    say(ctx, dig, owner, planned, (status, rolled)).await
}

/// The same where clusters come to these sums: each that is wanted has a row, and its content is there.
pub async fn write_sums(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    sums: &Sums,
) -> Result<DigRollup, Failure> {
    let mut status = dig.status.clone().unwrap_or_default();
    status.awaited.clear();
    let rolled = rolled::of_sums(ctx, dig, owner, planned, (&status, sums));
    say(ctx, dig, owner, planned, (status, rolled)).await
}

/// Writes what is true of a deployment whose rows were rolled up.
async fn say(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    (mut status, mut rolled): (DeploymentIntentGroupStatus, DigRollup),
) -> Result<DigRollup, Failure> {
    let stored = planned.stored();
    if let Some(way) = planned.way() {
        rolled.deployed = way.said(rolled.deployed);
        rolled.ready = way.ready(rolled.ready);
    }
    let runs = rolled.ready.clone();
    if let Some(held) = planned.held() {
        rolled.ready = held.hold.ready(rolled.ready, stored.is_some());
    }
    fill(&mut status, &rolled, keeps_placement(planned));
    fill_remarks(&mut status, planned);
    status.intents = intents::of(dig, planned);
    if let Some(plan) = planned.plan() {
        status.reachability.clone_from(&plan.reachability);
    } else if dig.spec.intents.iter().all(|listed| !resolve::is_traffic(listed)) {
        status.reachability = None;
    }
    if planned.way().is_some() || matches!(planned, Planned::Done(..)) {
        status.rollout = planned.way().map(|way| way.status.clone());
    }
    status.not_removed = not_removed::of(dig);
    rolled.deployed.message.push_str(&not_removed::said(dig));
    status.release = Some(dig.release().to_owned());
    if let Some(stored) = stored {
        status.revision = Some(stored.spec.revision);
        status.app_context = Some(stored.name.clone());
        status.digest = Some(stored.spec.digest.clone());
    }
    status.pending = planned.held().and_then(|held| pending(owner, held));
    status.history = history(ctx, dig, owner);
    status.last_handled_request = super::request(dig);
    status.approval = approved::record(ctx, owner, stored, dig);
    state(ctx, dig, &mut status, planned, (&rolled, &runs));
    let contested = release::contested(ctx, dig, owner);
    if let Some(contested) = &contested {
        contested.add_to(ctx, &mut status, meta::generation(dig));
    }
    if status::write(ctx, dig, dig.status.as_ref(), &status).await? {
        events::tell(ctx, dig, &status, &rolled).await;
        if let Some(contested) = &contested {
            contested.tell(ctx, dig, &status).await;
        }
    }
    Ok(rolled)
}

/// Whether what is said of the placement stays as it is.
fn keeps_placement(planned: &Planned) -> bool {
    match planned {
        Planned::Refused(..) => true,
        Planned::Done(..) => false,
        Planned::Held(held) => {
            let pins = held.hold.pinned.is_some() && held.hold.awaits.is_none();
            !pins && !planned.is_carried_out()
        }
    }
}

/// The plan that waits.
pub(super) fn pending(owner: &Owner, held: &Held) -> Option<Pending> {
    let change = held.change.as_ref()?;
    let mut pending = held.hold.pending(&held.digest, &change.changes)?;
    change.details.fill(&mut pending);
    pending.details = Some(details::reference(owner, change));
    Some(pending)
}

/// Numbers and lists. After a refusal the placement of the running revision is not worked out anew: what was written about it
/// before stays.
pub fn fill(status: &mut DeploymentIntentGroupStatus, rolled: &DigRollup, keep_placement: bool) {
    status.state = Some(rolled.state);
    status.summary = Some(rolled.summary.clone());
    status.clusters = Some(rolled.clusters);
    status.deployed = Some(rolled.deployed_counts);
    status.ready = Some(rolled.ready_counts);
    status.failing.clone_from(&rolled.failing);
    status.drift.clone_from(&rolled.drift);
    let old: BTreeMap<String, AppStatus> =
        std::mem::take(&mut status.apps).into_iter().map(|app| (app.name.clone(), app)).collect();
    status.apps = rolled
        .apps
        .iter()
        .map(|app| {
            let mut app = app.clone();
            if let Some(old) = old.get(&app.name).filter(|_| keep_placement) {
                app.chosen.clone_from(&old.chosen);
                app.rejected.clone_from(&old.rejected);
                app.unread_values.clone_from(&old.unread_values);
            }
            app
        })
        .collect();
    if status.apps.is_empty() && keep_placement {
        status.apps = old.into_values().collect();
    }
}

/// Values that charts do not read, of a plan that is carried out.
fn fill_remarks(status: &mut DeploymentIntentGroupStatus, planned: &Planned) {
    let plan = planned.plan().filter(|_| planned.is_carried_out());
    for remarks in plan.into_iter().flat_map(|plan| &plan.remarks) {
        if let Some(app) = status.apps.iter_mut().find(|app| app.name == remarks.app) {
            app.unread_values.clone_from(&remarks.unread);
        }
    }
}

/// Stored revisions, newest first. Their times are those of their objects.
fn history(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Vec<HistoryEntry> {
    let limit = usize::try_from(dig.spec.revision_history_limit).unwrap_or(10);
    store::contexts(ctx, owner)
        .iter()
        .take(limit)
        .map(|context| HistoryEntry {
            revision: context.spec.revision,
            digest: context.spec.digest.clone(),
            cause: context.spec.cause,
            at: context.metadata.creation_timestamp.clone(),
        })
        .collect()
}

/// What a refusal ends with where nothing would be written anyway.
fn suspended_by(ctx: &Context, dig: &DeploymentIntentGroup) -> String {
    if !dig.spec.is_suspended() {
        return String::new();
    }
    let suspending = suspension::field(&ctx.stores, dig);
    let hold = Hold { suspended: true, suspending, ..Hold::default() };
    format!("; {}", hold.sentence())
}

/// All conditions. What `runs` is as ready as this, whatever is held back beside it.
fn state(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    status: &mut DeploymentIntentGroupStatus,
    planned: &Planned,
    (rolled, runs): (&DigRollup, &Verdict),
) {
    let generation = meta::generation(dig);
    let now = ctx.now();
    status.set_observed_generation(generation);
    let revision = status.revision;
    let approval = status.approval.clone();
    let list = status.conditions_mut();
    let mut say = |type_: &str, state: &str, reason: &str, message: &str| {
        conditions::set(list, type_, state, reason, message, generation, now);
    };
    let unplanned = planned.refusal();
    let awaits = planned.awaits();
    let refused_at =
        unplanned.and_then(|refusal| types::STAGES.iter().position(|type_| *type_ == refusal.condition));
    for (at, (type_, reason)) in types::STAGES.into_iter().zip(PASSED).enumerate() {
        match (unplanned, refused_at) {
            (Some(refusal), Some(refused)) if at == refused => {
                say(type_, "False", refusal.reason, &refusal.message);
            }
            (Some(_), Some(refused)) if at > refused => {
                say(type_, "Unknown", "Progressing", "an earlier step was refused");
            }
            _ => match (awaits, &approval) {
                (Some(wait), _) if type_ == types::APPROVED => {
                    say(type_, "False", wait.reason.as_str(), &wait.message);
                }
                (None, Some(approval)) if type_ == types::APPROVED => {
                    let (name, by) = (approval.name.as_deref(), approval.approved_by.as_deref());
                    let message = format!("{} by {}", name.unwrap_or_default(), by.unwrap_or_default());
                    say(type_, "True", Reason::ApprovedBy.as_str(), &message);
                }
                _ => say(type_, "True", reason, &stage_message(planned, type_)),
            },
        }
    }
    // What is pinned runs whatever becomes of the plan beside it; what a person rejects is refused as what cannot be planned.
    let rejected = awaits
        .filter(|wait| wait.reason.stalled())
        .map(|wait| Refusal::new(types::APPROVED, wait.reason, wait.message.as_str()));
    let refusal = unplanned.filter(|_| planned.held().is_none()).or(rejected.as_deref());
    let rolled_ready = &rolled.ready;
    if revision.is_some() {
        say(types::DEPLOYED, rolled.deployed.status, rolled.deployed.reason, &rolled.deployed.message);
    } else {
        say(types::DEPLOYED, "False", "Progressing", "there is no revision yet");
    }
    match (refusal, revision) {
        (Some(refusal), Some(revision)) => {
            let said = (refusal.reason, refusal.message.as_str());
            let message = rollup::still_runs(revision, &rolled.applied, said, runs);
            say(types::READY, "False", refusal.reason, &(message + &suspended_by(ctx, dig)));
        }
        (Some(refusal), None) => {
            say(
                types::READY,
                "False",
                refusal.reason,
                &format!("{}{}", refusal.message, suspended_by(ctx, dig)),
            );
        }
        (None, Some(_)) => say(types::READY, rolled_ready.status, rolled_ready.reason, &rolled_ready.message),
        (None, None) => say(types::READY, "False", rolled_ready.reason, &rolled_ready.message),
    }
    let ready = revision.is_some() && refusal.is_none() && rolled_ready.status == "True";
    // A change that is taken back is not tried again: only another one helps.
    let is_over = planned.is_carried_out() && planned.way().is_some_and(Way::is_over);
    let stalled = refusal.map_or(is_over, |refusal| refusal.stalled);
    let suspended = planned.held().is_some_and(|held| held.hold.suspended);
    // Where people want a plan and nothing else, it is there.
    let planned_only = planned.held().is_some_and(|held| held.hold.planned);
    let waits = !planned_only
        && planned.held().is_some_and(|held| (suspended || awaits.is_some()) && held.hold.waits());
    let settled = refusal.is_none() && rolled.deployed.status == "True" && ready && !waits;
    let (reason, message) = match refusal {
        Some(refusal) => (refusal.reason, refusal.message.as_str()),
        None if awaits.is_some() && !suspended => {
            awaits.map_or(("", ""), |wait| (wait.reason.as_str(), wait.message.as_str()))
        }
        None if !ready || waits => (rolled_ready.reason, rolled_ready.message.as_str()),
        None => (rolled.deployed.reason, rolled.deployed.message.as_str()),
    };
    if stalled {
        conditions::set(list, types::STALLED, "True", reason, message, generation, now);
    } else {
        conditions::remove(list, types::STALLED);
    }
    // A dead cluster is named, not fatal: where enough are ready and nothing moves, nothing is being reconciled.
    let only_unreachable = ready && !waits && rolled.deployed.reason == "Unreachable";
    let is_planned = planned_only && refusal.is_none() && planned.stored().is_none();
    if stalled || settled || only_unreachable || is_planned {
        conditions::remove(list, types::RECONCILING);
    } else {
        conditions::set(list, types::RECONCILING, "True", reason, message, generation, now);
    }
    pinned(dig, list, planned, generation, now);
}

/// The condition Pinned, present while `spec.revision` is.
fn pinned(
    dig: &DeploymentIntentGroup,
    list: &mut Vec<Condition>,
    planned: &Planned,
    generation: i64,
    now: Timestamp,
) {
    let Some(revision) = dig.spec.revision else {
        conditions::remove(list, types::PINNED);
        return;
    };
    let (state, reason, message) = match planned {
        Planned::Refused(refused) => ("False", refused.refusal.reason, refused.refusal.message.clone()),
        Planned::Done(..) => ("False", Reason::Progressing.as_str(), String::new()),
        Planned::Held(held) => {
            let hold = Hold { pinned: Some(revision), ..Hold::default() };
            let waits = held.stored.as_ref().is_none_or(|stored| stored.spec.revision != revision);
            if waits {
                let reason = match &held.hold.awaits {
                    _ if held.hold.suspended => Reason::Suspended,
                    Some(wait) if !held.hold.planned => wait.reason,
                    _ => Reason::Planned,
                };
                ("False", reason.as_str(), held.hold.sentence())
            } else {
                ("True", Reason::Pinned.as_str(), hold.sentence())
            }
        }
    };
    conditions::set(list, types::PINNED, state, reason, &message, generation, now);
}

fn stage_message(planned: &Planned, type_: &str) -> String {
    let Some(plan) = planned.plan() else { return String::new() };
    match type_ {
        types::PLACED => {
            format!("{} on {}", counted(plan.placement.len(), "app"), counted(plan.clusters, "cluster"))
        }
        // A remark refuses nothing: the charts are rendered.
        types::RENDERED => sentence(&plan.remarks),
        _ => String::new(),
    }
}
