//! DeploymentIntentGroup in; gathered, planned, stored, targeted and reported. The whole pipeline in one function: everything
//! before the commit is derived, everything after it can be repeated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::names::{annotation, finalizer};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::sync_shard::ShardOrder;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_engine::conditions;
use emco_engine::depends;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use k8s_openapi::jiff::Timestamp;

use crate::abandon;
use crate::object::finalizers;
use crate::object::meta;
use crate::reconcile::composite_app;
use crate::reconcile::facts;
use crate::reconcile::suspension;
use crate::reconcile::transitions::one_line;
use crate::runtime::context::{Context, Failure, Outcome, Reconciled};
use crate::runtime::plan_turns::{self, PlanTurn};
use crate::runtime::renders::PlanRenders;
use crate::runtime::stores::StoreExt;
use crate::store::{self, Draft, Owner, RevisionSummary, Stored, TooMuch, mebibytes};
use crate::target;
use emco_engine::set::combinations;
use emco_engine::snapshot::uids;

pub mod approved;
mod details;
mod dry_run;
mod events;
mod finish;
mod gather;
mod held;
mod pinned;
mod planned;
mod report;
mod terminate;

use gather::Gathered;
use planned::Planned;

/// When a deployment looks again whose stored content is lost: packs that come back from a backup are not watched.
const LOST_CONTENT: Duration = Duration::from_mins(1);
/// When a deployment looks again whose inputs or approvals are others on the hub than they were planned with: the watches bring the rest.
const MOVED: Duration = Duration::from_millis(200);

/// Brings one deployment to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(dig) = ctx.stores.digs.named(namespace, name) else { return Ok(Outcome::Settled) };
    let dig = suspension::with_project(&ctx.stores, dig);
    let owner = Owner::of(ctx, "DeploymentIntentGroup", dig.as_ref());
    if meta::deleting(dig.as_ref()) || dig.spec.desired_state == DesiredState::Terminated {
        return Box::pin(terminate::reconcile(ctx, &dig, &owner)).await;
    }
    if finalizers::add(ctx, dig.as_ref(), finalizer::TERMINATE).await? {
        return Ok(Outcome::Settled);
    }
    if let Some(left) = ctx.revisions.calm()
        && (is_at_rest(&dig) || awaits_clusters(ctx, &owner))
    {
        return Ok(Outcome::After(left));
    }
    if let Some(left) = store::report_delay(ctx, &owner, meta::generation(dig.as_ref())) {
        return Ok(Outcome::After(left));
    }
    if let Some(sentence) = store::of_a_later_format(ctx, &owner) {
        let refusal = Refusal::of("Resolved", "FormatUnknown", false, sentence);
        let newest = store::newest(ctx, &owner).await?;
        return Box::pin(report(ctx, &dig, &owner, &Planned::Refused(refusal, newest))).await;
    }
    // What is given up is worked off by others when the cluster is back: a suspended deployment leaves it alone.
    let unreachable = Some(&dig.spec.unreachable).filter(|_| !dig.spec.is_suspended());
    let give_up = abandon::AbandonPolicy { policy: unreachable, ..abandon::AbandonPolicy::default() };
    if abandon::abandon(ctx, dig.as_ref(), &owner, give_up).await? {
        return Ok(Outcome::Settled);
    }
    if target::search_confirmed(ctx, &owner, dig.as_ref()).await? {
        return Ok(Outcome::Settled);
    }
    target::invalidate_lost(ctx, &owner);
    let pin = match dig.spec.revision {
        Some(revision) => Some(Box::pin(pinned::carry_out(ctx, &dig, &owner, revision)).await?),
        None => None,
    };
    let generation = meta::generation(dig.as_ref());
    let Some(turn) = ctx.turns.take(namespace, name, generation) else {
        return Ok(Outcome::After(plan_turns::LOOK_AGAIN));
    };
    let begun = tokio::time::Instant::now();
    let newest = store::newest(ctx, &owner).await?;
    let (mut awaits, mut looks_again) = (None, None);
    let planned = match gather::gather(ctx, &dig, &owner, newest.as_ref()).await? {
        Err(refusal) => Err(refusal),
        Ok(gathered) if gathered.awaits_charts && is_at_rest(&dig) => {
            return Ok(Outcome::After(gather::AWAITS));
        }
        Ok(gathered) => {
            awaits = gathered.awaits_charts.then_some(gather::AWAITS);
            let unexplained = newest.as_ref().is_some_and(|newest| unexplained(ctx, &owner, newest));
            match plan(ctx, gathered, unexplained, turn).await? {
                Worked::Out(planned) => *planned,
                // What changed brings the next look.
                Worked::Stopped => return Ok(Outcome::Settled),
            }
        }
    };
    let said = dig.status.as_ref().and_then(|status| status.revision);
    let mut planned = match (pin, planned) {
        (Some(Ok(pin)), planned) => {
            let plan = planned.map(|(_, plan)| plan);
            let held = held::hold(ctx, &dig, &owner, newest.as_ref(), Some(pin), None, plan);
            Planned::Held(Box::new(Box::pin(held).await?))
        }
        (Some(Err(refusal)), _) | (None, Err(refusal)) => {
            if refusal.reason == Reason::ContentLost.as_str() {
                awaits = awaits.or(Some(LOST_CONTENT));
            }
            Planned::Refused(refusal, store::targeted(ctx, &owner, newest.as_ref(), said).await?)
        }
        (None, Ok((gathered, plan))) => {
            let gate = Box::pin(approved::gate(ctx, &dig, &owner, newest.as_ref(), &plan)).await?;
            let wait = gate.wait(ctx);
            if wait.is_some() || dig.spec.is_held() {
                looks_again = gate.until.map(|until| after(ctx, until));
                let held = held::hold(ctx, &dig, &owner, newest.as_ref(), None, wait, Ok(plan));
                Planned::Held(Box::new(Box::pin(held).await?))
            } else if gate.is_open(ctx).await? {
                let carried = carry_out(ctx, &dig, &owner, &gathered, &plan, newest.clone(), begun);
                match Box::pin(carried).await? {
                    Carried::Moved => return Ok(Outcome::After(MOVED)),
                    Carried::Refused(refusal) => Planned::Refused(refusal, newest),
                    Carried::Out(stored) => {
                        held::forget(ctx, &owner);
                        Planned::Done(Box::new(plan), *stored)
                    }
                }
            } else {
                return Ok(Outcome::After(MOVED));
            }
        }
    };
    let asks_again = Box::pin(held::tend(ctx, &dig, &owner, &mut planned)).await?;
    if let Some(left) = store::report_delay(ctx, &owner, meta::generation(dig.as_ref())) {
        return Ok(Outcome::After(left));
    }
    let outcome = Box::pin(report(ctx, &dig, &owner, &planned)).await?;
    let abandons = unreachable.and_then(|policy| abandon::next_abandon(ctx, &owner, policy));
    Ok(outcome.at_latest(abandons).at_latest(awaits).at_latest(looks_again).at_latest(asks_again))
}

/// The time until then, at least a second.
fn after(ctx: &Context, until: Timestamp) -> Duration {
    let seconds = until.duration_since(ctx.now()).as_secs().max(1);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(1))
}

/// Whether it was complete as it is now.
fn is_at_rest(dig: &DeploymentIntentGroup) -> bool {
    let status = dig.status.as_ref();
    status.is_some_and(|status| {
        status.observed_generation == dig.metadata.generation && status.is_true(types::DEPLOYED)
    })
}

/// Whether clusters that it runs on are about to answer. A plan waits with what it does not know of a cluster, and each answer would
/// be another revision.
fn awaits_clusters(ctx: &Context, owner: &Owner) -> bool {
    let shards = store::shards(ctx, owner);
    let rows = shards.iter().flat_map(|shard| &shard.spec.clusters);
    rows.filter_map(|row| ClusterId::parse(&row.cluster)).any(|id| facts::is_about_to_answer(ctx, &id))
}

/// What people read first, then the rest.
async fn report(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner, planned: &Planned) -> Reconciled {
    details::tidy(ctx, dig, owner, planned).await?;
    let rolled = report::write(ctx, dig, owner, planned).await?;
    finish::finish(ctx, dig, owner, planned, &rolled).await?;
    Box::pin(details::write(ctx, owner, planned)).await?;
    Ok(Outcome::Settled)
}

/// Whether what explains the newest revision is not written yet.
fn unexplained(ctx: &Context, owner: &Owner, newest: &Stored) -> bool {
    newest.spec.explain.is_some() && store::is_unreported(ctx, owner, newest.spec.revision)
}

/// What became of a plan.
enum Carried {
    /// The inputs moved while it was being stored, and nothing was targeted.
    Moved,
    /// It may not be stored; what runs goes on.
    Refused(Box<Refusal>),
    /// Stored and targeted, unless nothing could be rendered yet.
    Out(Box<Option<Stored>>),
}

/// What planning came to.
enum Worked {
    /// A plan, or why there is none.
    Out(Box<Result<(Gathered, Plan), Box<Refusal>>>),
    /// The deployment changed meanwhile.
    Stopped,
}

/// Plans on a thread of its own: rendering many charts for many clusters takes its time. Ends when the deployment changes, or
/// when the time is over.
async fn plan(
    ctx: &Context,
    gathered: Gathered,
    unexplained: bool,
    mut turn: PlanTurn,
) -> Result<Worked, Failure> {
    let times = Arc::clone(&ctx.planning);
    let renders = PlanRenders::new(Arc::clone(&times), Arc::clone(&ctx.renders), &gathered.snapshot.project);
    let supervisor = Arc::clone(&renders);
    let mut work = tokio::task::spawn_blocking(move || {
        let mut plan =
            times.plan(|| emco_engine::plan::supervised(&gathered.snapshot, supervisor.as_ref()))?;
        if unexplained && plan.change.is_none() {
            plan.explanation = emco_engine::plan::explanation(&gathered.snapshot, &plan)?;
        }
        Ok((gathered, plan))
    });
    let limit = ctx.turns.time();
    let overdue = tokio::select! {
        done = &mut work => return Ok(Worked::Out(Box::new(done.map_err(ended)?))),
        () = turn.stopped() => false,
        () = tokio::time::sleep(limit) => true,
    };
    renders.stop();
    // The turn is kept until the threads are free again.
    let done = work.await.map_err(ended)?;
    Ok(match (done, overdue) {
        (Err(_), false) => Worked::Stopped,
        (Err(_), true) => Worked::Out(Box::new(Err(takes_too_long(limit)))),
        (done, _) => Worked::Out(Box::new(done)),
    })
}

#[allow(clippy::needless_pass_by_value)] // as `map_err` hands it over
fn ended(error: tokio::task::JoinError) -> Failure {
    Failure::Planning(error.to_string())
}

fn takes_too_long(limit: Duration) -> Box<Refusal> {
    let message = format!(
        "rendering the charts for all clusters takes longer than {} s: a chart that draws random values or keys is rendered for each cluster; give them in the values, or divide the deployment",
        limit.as_secs()
    );
    Refusal::new(types::RENDERED, Reason::PlanTooLong, message)
}

/// Stores a changed plan, which has been worked out since `begun`, and targets it. A stored one that cannot be read any more is stored
/// anew.
async fn carry_out(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    gathered: &Gathered,
    plan: &Plan,
    newest: Option<Stored>,
    begun: tokio::time::Instant,
) -> Result<Carried, Failure> {
    let whole = match (&plan.change, &newest) {
        (None, Some(stored)) => target::repair_packs(ctx, owner, stored, &plan.sets).await?,
        (change, _) => change.is_none(),
    };
    let stored = match (&plan.change, newest) {
        (_, newest) if whole => newest,
        _ if suspension::of_project(&ctx.stores, &owner.namespace) => return Ok(Carried::Moved),
        (change, _) => {
            let draft = Draft {
                owner,
                at_least: dig.status.as_ref().and_then(|status| status.revision).unwrap_or(0),
                digest: plan.plan_digest.clone(),
                inputs_digest: plan.inputs_digest.clone(),
                cause: change.as_ref().map_or(Cause::Update, |change| change.cause),
                release: Some(dig.release().to_owned()),
                namespace: gathered.cloud_namespace.clone(),
                level: gathered.level,
                logical_cloud: Some(dig.spec.logical_cloud_ref.name.clone()),
                composite_app: Some(dig.spec.composite_app_ref.name.clone()),
                apps: plan.placement.iter().map(|(app, _)| app.clone()).collect(),
                depends_on: gathered
                    .snapshot
                    .composite_app
                    .as_deref()
                    .map(composite_app::dependencies)
                    .unwrap_or_default(),
                charts: gathered
                    .snapshot
                    .composite_app
                    .as_deref()
                    .map(composite_app::pins)
                    .unwrap_or_default(),
                assignment: plan.assignment.clone(),
                sets: plan.sets.clone(),
                explanation: plan.explanation.clone(),
                limit: gathered.limit.clone(),
            };
            // Written together with the last look at the inputs: a mixture that never existed is never targeted.
            let (stored, still) =
                futures::future::join(store::commit(ctx, draft), gathered.still_true(ctx, dig)).await;
            let stored = match stored? {
                Ok(stored) => stored,
                Err(too_much) => return Ok(Carried::Refused(does_not_fit(dig, gathered, &too_much))),
            };
            if !still? {
                return Ok(Carried::Moved);
            }
            Some(stored)
        }
    };
    if let Some(stored) = &stored {
        let wanted = combinations(&plan.assignment);
        // Storing takes its time, and watches may be behind.
        if store::targets(ctx, owner) != held::targeted(&plan.assignment) && !gathered.goes_on(ctx).await? {
            return Ok(Carried::Moved);
        }
        let (order, uids) = (order_of(stored, &wanted), uids(&gathered.snapshot.clusters));
        target::retarget(ctx, owner, stored.spec.revision, &wanted, &uids, order.as_ref()).await?;
        if !whole {
            let again = "its content was lost and is stored anew";
            let summary = plan.change.as_ref().map_or(again, |change| change.summary.as_str()).to_owned();
            let seconds = (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
            tracing::info!(
                project = gathered.snapshot.project,
                deployment = meta::name(dig),
                revision = stored.spec.revision,
                clusters = plan.assignment.len(),
                seconds,
                "revision planned and stored: {}",
                one_line(&summary)
            );
            let summary = RevisionSummary { text: summary, warnings: plan.warnings.clone() };
            store::mark_targeted(ctx, owner, meta::generation(dig), stored.spec.revision, summary);
        }
    }
    Ok(Carried::Out(Box::new(stored)))
}

/// Which apps of a stored revision wait for which, where its clusters are these.
fn order_of(stored: &Stored, wanted: &BTreeMap<ClusterId, Combination>) -> Option<ShardOrder> {
    let apps = stored.spec.apps.iter().map(|app| (app.name.as_str(), app.depends_on.as_slice()));
    depends::order(apps, wanted, stored.spec.revision)
}

/// Why a plan may not be stored.
fn does_not_fit(dig: &DeploymentIntentGroup, gathered: &Gathered, too_much: &TooMuch) -> Box<Refusal> {
    let message = format!(
        "with this plan, the stored revisions of the deployment would take {}, its own manifests {}, and Project {} allows {} (spec.limits.storedBytes): lower spec.revisionHistoryLimit (now {}), make the manifests smaller, or have the limit raised",
        mebibytes(too_much.bytes),
        mebibytes(too_much.own),
        gathered.snapshot.project,
        gathered.limit.text,
        dig.spec.revision_history_limit,
    );
    Refusal::of(types::RENDERED, "OutputTooLarge", true, message)
}

/// Echo of "do it now".
fn request(dig: &DeploymentIntentGroup) -> Option<String> {
    meta::annotation(dig, annotation::REQUESTED_AT).map(|text| conditions::truncate(text, 256))
}
