//! DeploymentIntentGroup in; gathered, planned, stored, targeted and reported. The whole pipeline in one function: everything
//! before the commit is derived, everything after it can be repeated.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::names::{annotation, finalizer};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup, OwnerKind};
use emco_engine::conditions;
use emco_engine::identity::ClusterId;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use k8s_openapi::jiff::Timestamp;

use crate::abandon;
use crate::api::plan_turns::{self, PlanTurn};
use crate::api::renders::PlanRenders;
use crate::object::Owner;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::hardware;
use crate::reconcile::suspension;
use crate::rows;
use crate::store::{self, Stored};
use crate::tenancy::facts;

pub mod approved;
mod carry_out;
mod details;
mod dry_run;
mod events;
mod finish;
mod gather;
mod held;
mod kind;
mod not_removed;
mod order;
mod pinned;
mod planned;
pub mod preview;
mod refused;
mod release;
mod report;
mod rest;
mod rollout;
mod terminate;
mod unpinned;
pub mod waits;

use carry_out::{Carried, carry_out};
use gather::Gathered;
use pinned::Pinning;
use planned::{Planned, Refused};
use rest::{Kept, Rest, Whole};

/// When a deployment looks again whose stored content is lost: packs that come back from a backup are not watched.
const LOST_CONTENT: Duration = Duration::from_mins(1);
/// When a deployment looks again whose inputs or approvals are others on the hub than they were planned with: the watches bring the rest.
const MOVED: Duration = Duration::from_millis(200);

/// How soon a change that waits for clusters is looked at again; their answers bring a look, too.
const ANSWERED: Duration = Duration::from_secs(1);

/// Brings one deployment to where it should be. Where nothing but reports of its clusters asks for that, it is not planned anew.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let rest: Option<Rest> = ctx.looks.take(&(namespace.to_owned(), name.to_owned()));
    let Some(dig) = ctx.stores.digs.named(namespace, name) else { return Ok(Outcome::Settled) };
    let dig = suspension::with_project(&ctx.stores, dig);
    let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
    let whole = match rest.and_then(|rest| rest.of(&dig)) {
        Some((Kept::Sums(reported), until)) => {
            if let Some(outcome) = Box::pin(rest::say(ctx, &dig, &owner, (reported, until))).await? {
                return Ok(outcome);
            }
            None
        }
        Some((Kept::Plan(whole), _)) => Some(whole),
        None => None,
    };
    Box::pin(look(ctx, &dig, &owner, whole)).await
}

/// Looks at everything, or goes on with a plan that was made before.
async fn look(
    ctx: &Context,
    dig: &Arc<DeploymentIntentGroup>,
    owner: &Owner,
    whole: Option<Box<Whole>>,
) -> Reconciled {
    if not_removed::keep(ctx, dig, owner).await? {
        return Ok(Outcome::Settled);
    }
    if meta::deleting(dig.as_ref()) || dig.spec.desired_state == DesiredState::Terminated {
        return Box::pin(terminate::reconcile(ctx, dig, owner)).await;
    }
    if finalizers::add(ctx, dig.as_ref(), finalizer::TERMINATE).await? {
        return Ok(Outcome::Settled);
    }
    if let Some(left) = too_soon(ctx, dig, owner) {
        return Ok(Outcome::After(left));
    }
    if !store::all_shown(ctx, owner).await? {
        return Ok(Outcome::After(store::SHOWN));
    }
    if let Some(sentence) = store::of_a_later_format(ctx, owner) {
        let refusal = Refusal::of("Resolved", "FormatUnknown", false, sentence);
        let newest = store::newest(ctx, owner).await?;
        let refused = Planned::Refused(Box::new(Refused::beside(refusal, newest)));
        return Box::pin(report(ctx, dig, owner, &refused)).await;
    }
    // What is given up is worked off by others when the cluster is back: a suspended deployment leaves it alone.
    let unreachable = Some(&dig.spec.unreachable).filter(|_| !dig.spec.is_suspended());
    let give_up = abandon::AbandonPolicy { policy: unreachable, ..abandon::AbandonPolicy::default() };
    if abandon::abandon(ctx, dig.as_ref(), owner, give_up).await? {
        return Ok(Outcome::Settled);
    }
    if rows::search_confirmed(ctx, owner, dig.as_ref()).await? {
        return Ok(Outcome::Settled);
    }
    rows::invalidate_lost(ctx, owner);
    let pin = match dig.spec.revision {
        Some(revision) => Some(Box::pin(pinned::carry_out(ctx, dig, owner, revision)).await?),
        None => None,
    };
    if matches!(pin, Some(Pinning::Moved)) {
        return Ok(Outcome::After(MOVED));
    }
    if let Some(whole) = whole.filter(|_| pin.is_none()) {
        return Box::pin(rest::go_on(ctx, dig, owner, whole)).await;
    }
    let begun = tokio::time::Instant::now();
    let work = Box::pin(work(ctx, dig, owner, pin.is_some())).await?;
    let Work { newest, planned, mut awaits } = match work {
        Ok(work) => work,
        Err(outcome) => return Ok(outcome),
    };
    let (mut looks_again, mut made_of) = (None, None);
    let mut planned = match (pin, planned) {
        (Some(Pinning::Found(pin, wait, until)), planned) => {
            looks_again = until.filter(|_| wait.is_some()).map(|until| after(ctx, until));
            let plan = planned.map(|(_, plan)| plan);
            let held = held::hold(ctx, dig, owner, newest.as_ref(), Some(*pin), wait, plan);
            Planned::Held(Box::new(Box::pin(held).await?))
        }
        (Some(Pinning::Refused(refusal)), _) | (None | Some(Pinning::Moved), Err(refusal)) => {
            if refusal.reason == Reason::ContentLost.as_str() {
                awaits = awaits.or(Some(LOST_CONTENT));
            }
            Box::pin(refused::refuse(ctx, dig, owner, newest.as_ref(), refusal)).await?
        }
        (None | Some(Pinning::Moved), Ok((gathered, plan))) => {
            let carried = Box::pin(gated(ctx, dig, owner, (&gathered, plan), newest, begun)).await?;
            match carried {
                Some((planned, until)) => {
                    (looks_again, made_of) = (until, Some(gathered));
                    planned
                }
                None => return Ok(Outcome::After(MOVED)),
            }
        }
    };
    let (outcome, is_told) = Box::pin(told(ctx, dig, owner, &mut planned, [awaits, looks_again])).await?;
    if let Some(gathered) = made_of.filter(|_| is_told) {
        rest::keep(ctx, dig, owner, (gathered, planned), outcome == Outcome::Settled);
    }
    Ok(outcome)
}

/// Reports what became of a plan, unless it is too soon for that. When to look again, which may be `again`; and whether it was reported.
async fn told(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &mut Planned,
    again: [Option<Duration>; 2],
) -> Result<(Outcome, bool), Failure> {
    let asks_again = Box::pin(held::tend(ctx, dig, owner, planned)).await?;
    if let Some(left) = store::report_delay(ctx, owner, meta::generation(dig)) {
        return Ok((Outcome::After(left), false));
    }
    let outcome = Box::pin(report(ctx, dig, owner, planned)).await?;
    let unreachable = Some(&dig.spec.unreachable).filter(|_| !dig.spec.is_suspended());
    let abandons = unreachable.and_then(|policy| abandon::next_abandon(ctx, owner, policy));
    let soaked = planned.way().and_then(|way| way.again);
    let again = again.into_iter().chain([abandons, asks_again, soaked]);
    Ok((again.fold(outcome, Outcome::at_latest), true))
}

/// A plan beside the newest revision, or why there is none.
struct Work {
    newest: Option<Stored>,
    planned: Result<(Gathered, Plan), Box<Refusal>>,
    /// It waits for charts, and until then looks again so soon.
    awaits: Option<Duration>,
}

/// Plans. The inner error says when to look again instead.
async fn work(
    ctx: &Context,
    dig: &Arc<DeploymentIntentGroup>,
    owner: &Owner,
    is_pinned: bool,
) -> Result<Result<Work, Outcome>, Failure> {
    let generation = meta::generation(dig.as_ref());
    let Some(turn) = ctx.turns.take(&owner.namespace, &owner.name, generation) else {
        return Ok(Err(Outcome::After(plan_turns::LOOK_AGAIN)));
    };
    let newest = store::newest(ctx, owner).await?;
    let mut awaits = None;
    let planned = match gather::gather(ctx, dig, owner, newest.as_ref()).await? {
        Err(refusal) => Err(refusal),
        Ok(gathered) if gathered.awaits_charts && is_at_rest(dig) => {
            return Ok(Err(Outcome::After(gather::AWAITS)));
        }
        // Before clusters said what their nodes have, nothing is chosen, and nothing moves.
        Ok(gathered) if gathered.unread.awaits && !is_pinned => {
            return Ok(Err(Outcome::After(hardware::AWAITS)));
        }
        Ok(gathered) => {
            awaits = gathered.awaits_charts.then_some(gather::AWAITS);
            let unexplained = newest.as_ref().is_some_and(|newest| unexplained(ctx, owner, newest));
            match plan(ctx, gathered, unexplained, turn).await? {
                Worked::Out(planned) => *planned,
                // What changed brings the next look.
                Worked::Stopped => return Ok(Err(Outcome::Settled)),
            }
        }
    };
    Ok(Ok(Work { newest, planned, awaits }))
}

/// How long a look would find nothing new yet.
fn too_soon(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<Duration> {
    let answers = || ctx.revisions.first_answers().filter(|_| awaits_clusters(ctx, owner));
    ctx.revisions
        .calm()
        .filter(|_| is_at_rest(dig))
        .or_else(|| answers().map(|left| left.min(ANSWERED)))
        .or_else(|| store::report_delay(ctx, owner, meta::generation(dig)))
}

/// Carries a plan out where it may be; else says why it is held, and when that may change by itself. `None`: what it was planned with is
/// another one by now.
async fn gated(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (gathered, plan): (&Gathered, Plan),
    newest: Option<Stored>,
    begun: tokio::time::Instant,
) -> Result<Option<(Planned, Option<Duration>)>, Failure> {
    let gate = Box::pin(approved::gate(ctx, dig, owner, newest.as_ref(), &plan)).await?;
    let wait = gate.wait(ctx);
    if wait.is_some() || dig.spec.is_held() {
        let until = gate.until.map(|until| after(ctx, until));
        let held = held::hold(ctx, dig, owner, newest.as_ref(), None, wait, Ok(plan));
        return Ok(Some((Planned::Held(Box::new(Box::pin(held).await?)), until)));
    }
    if !gate.is_open(ctx).await? {
        return Ok(None);
    }
    let carried = carry_out(ctx, dig, owner, gathered, &plan, newest.clone(), begun);
    Ok(match Box::pin(carried).await? {
        Carried::Moved => None,
        Carried::Refused(refusal) => {
            let refused = refused::refuse(ctx, dig, owner, newest.as_ref(), refusal);
            Some((Box::pin(refused).await?, None))
        }
        Carried::Out(out) => {
            held::forget(ctx, owner);
            let (stored, way) = *out;
            Some((Planned::Done(Box::new(plan), stored.map(Box::new), way), None))
        }
    })
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

/// Echo of "do it now".
fn request(dig: &DeploymentIntentGroup) -> Option<String> {
    meta::annotation(dig, annotation::REQUESTED_AT).map(|text| conditions::truncate(text, 256))
}
