//! DeploymentIntentGroup in; gathered, planned, stored, targeted and reported. The whole pipeline in one function: everything
//! before the commit is derived, everything after it can be repeated.

use std::sync::Arc;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::names::{annotation, finalizer};
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_engine::conditions;
use emco_engine::identity::ClusterId;
use emco_engine::plan::{Plan, Refusal};

use crate::context::{Context, Failure, Outcome, Reconciled};
use crate::facts;
use crate::logical_cloud::{cause, combinations, uids};
use crate::objects;
use crate::revisions::{self, Draft, News, Owner, Stored, TooMuch, mebibytes};
use crate::stores::StoreExt;

mod aftermath;
mod events;
mod gather;
mod report;
mod terminate;

use gather::Gathered;

/// Brings one deployment to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(dig) = ctx.stores.digs.named(namespace, name) else { return Ok(Outcome::Settled) };
    let owner = Owner::of(ctx, "DeploymentIntentGroup", dig.as_ref());
    if objects::deleting(dig.as_ref()) || dig.spec.desired_state == DesiredState::Terminated {
        return terminate::reconcile(ctx, &dig, &owner).await;
    }
    if objects::add_finalizer(ctx, dig.as_ref(), finalizer::TERMINATE).await? {
        return Ok(Outcome::Settled);
    }
    if let Some(left) = ctx.revisions.calm()
        && (is_at_rest(&dig) || awaits_clusters(ctx, &owner))
    {
        return Ok(Outcome::After(left));
    }
    if let Some(left) = revisions::quiet(ctx, &owner, objects::generation(dig.as_ref())) {
        return Ok(Outcome::After(left));
    }
    if let Some(sentence) = revisions::of_a_later_format(ctx, &owner) {
        let refusal = Refusal::of("Resolved", "FormatUnknown", false, sentence);
        let newest = revisions::newest(ctx, &owner).await?;
        return report(ctx, &dig, &owner, &report::Planned::Refused(refusal, newest)).await;
    }
    let give_up = revisions::GiveUp { policy: Some(&dig.spec.unreachable), ..revisions::GiveUp::default() };
    if revisions::leave(ctx, dig.as_ref(), &owner, give_up).await? {
        return Ok(Outcome::Settled);
    }
    if revisions::search_confirmed(ctx, &owner, dig.as_ref()).await? {
        return Ok(Outcome::Settled);
    }
    revisions::read_again_what_is_lost(ctx, &owner);
    let newest = revisions::newest(ctx, &owner).await?;
    let planned = match gather::gather(ctx, &dig, &owner, newest.as_ref()).await? {
        Err(refusal) => Err(refusal),
        Ok(gathered) => {
            let unexplained = newest.as_ref().is_some_and(|newest| unexplained(ctx, &owner, newest));
            plan(ctx, gathered, unexplained).await?
        }
    };
    let planned = match planned {
        Err(refusal) => report::Planned::Refused(refusal, newest),
        Ok((gathered, plan)) => match carry_out(ctx, &dig, &owner, &gathered, &plan, newest.clone()).await? {
            // What was read while planning is no longer what is there: the watches bring the rest.
            Carried::Moved => return Ok(Outcome::After(std::time::Duration::from_millis(200))),
            Carried::Refused(refusal) => report::Planned::Refused(refusal, newest),
            Carried::Out(stored) => report::Planned::Done(Box::new(plan), *stored),
        },
    };
    if let Some(left) = revisions::quiet(ctx, &owner, objects::generation(dig.as_ref())) {
        return Ok(Outcome::After(left));
    }
    let outcome = report(ctx, &dig, &owner, &planned).await?;
    Ok(outcome.at_latest(revisions::due_in(ctx, &owner, &dig.spec.unreachable)))
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
    let shards = revisions::shards(ctx, owner);
    let rows = shards.iter().flat_map(|shard| &shard.spec.clusters);
    rows.filter_map(|row| ClusterId::parse(&row.cluster)).any(|id| facts::is_about_to_answer(ctx, &id))
}

/// What people read first, then the rest.
async fn report(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &report::Planned,
) -> Reconciled {
    let (outcome, state) = report::write(ctx, dig, owner, planned).await?;
    aftermath::follow(ctx, dig, owner, planned, state).await?;
    Ok(outcome)
}

/// Whether what explains the newest revision is not written yet.
fn unexplained(ctx: &Context, owner: &Owner, newest: &Stored) -> bool {
    newest.spec.explain.is_some() && revisions::is_new(ctx, owner, newest.spec.revision)
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

/// Plans on a thread of its own: rendering many charts for many clusters takes its time.
async fn plan(
    ctx: &Context,
    gathered: Gathered,
    unexplained: bool,
) -> Result<Result<(Gathered, Plan), Box<Refusal>>, Failure> {
    let times = Arc::clone(&ctx.planning);
    tokio::task::spawn_blocking(move || {
        let mut plan = times.plan(|timing| emco_engine::plan::plan_timed(&gathered.snapshot, timing))?;
        if unexplained && plan.change.is_none() {
            plan.explanation = emco_engine::plan::explanation(&gathered.snapshot, &plan)?;
        }
        Ok((gathered, plan))
    })
    .await
    .map_err(|error| Failure::Planning(error.to_string()))
}

/// Stores a changed plan and targets it. One that is stored and cannot be read any more is stored anew.
async fn carry_out(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    gathered: &Gathered,
    plan: &Plan,
    newest: Option<Stored>,
) -> Result<Carried, Failure> {
    let whole = match (&plan.change, &newest) {
        (None, Some(stored)) => revisions::mend(ctx, owner, stored, &plan.sets).await?,
        (change, _) => change.is_none(),
    };
    let stored = match (&plan.change, newest) {
        (_, newest) if whole => newest,
        (change, _) => {
            let draft = Draft {
                owner,
                at_least: dig.status.as_ref().and_then(|status| status.revision).unwrap_or(0),
                digest: plan.plan_digest.clone(),
                inputs_digest: plan.inputs_digest.clone(),
                cause: change.as_ref().map_or(Cause::Update, |change| cause(&change.cause)),
                release: Some(dig.release().to_owned()),
                namespace: gathered.cloud_namespace.clone(),
                level: gathered.level,
                logical_cloud: Some(dig.spec.logical_cloud_ref.name.clone()),
                composite_app: Some(dig.spec.composite_app_ref.name.clone()),
                apps: plan.placement.iter().map(|(app, _)| app.clone()).collect(),
                assignment: plan.assignment.clone(),
                sets: plan.sets.clone(),
                explanation: plan.explanation.clone(),
                limit: gathered.limit.clone(),
            };
            // Written together with the last look at the inputs: a mixture that never existed is never targeted.
            let (stored, still) =
                futures::future::join(revisions::commit(ctx, draft), gathered.still_true(ctx, dig)).await;
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
        revisions::retarget(ctx, owner, stored.spec.revision, &wanted, &uids(&gathered.snapshot.clusters))
            .await?;
        if !whole {
            let again = "its content was lost and is stored anew";
            let summary = plan.change.as_ref().map_or(again, |change| change.summary.as_str()).to_owned();
            let news = News { summary, warnings: plan.warnings.clone() };
            revisions::begin(ctx, owner, objects::generation(dig), stored.spec.revision, news);
        }
    }
    Ok(Carried::Out(Box::new(stored)))
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
    objects::annotation(dig, annotation::REQUESTED_AT).map(|text| conditions::truncate(text, 256))
}
