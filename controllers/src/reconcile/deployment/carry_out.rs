//! Stores what was planned as a revision, and gives it to the clusters as far as its waves go.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::status::Cause;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use emco_engine::rollout::{Earlier, Waves};
use emco_engine::set::combinations;
use emco_engine::snapshot::uids;
use futures::future::try_join;

use super::gather::Gathered;
use super::held;
use super::order::order_of;
use super::rollout::{self, Way};
use crate::abandon;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{meta, one_line};
use crate::reconcile::context::Context;
use crate::reconcile::revision::{self, Storing};
use crate::reconcile::{composite_app, hardware, suspension};
use crate::store::{self, Bound, Draft, OfDeployment, RevisionSummary, Stored, TooMuch, mebibytes};

/// What is new in a revision that is stored a second time.
const STORED_ANEW: &str = "its content was lost and is stored anew";

/// What became of a plan.
pub enum Carried {
    /// The inputs moved while it was being stored, and nothing was targeted.
    Moved,
    /// It may not be stored; what runs goes on.
    Refused(Box<Refusal>),
    /// Stored and targeted as far as its waves go, unless nothing could be rendered yet.
    Out(Box<(Option<Stored>, Option<Box<Way>>)>),
}

/// Stores a changed plan, which has been worked out since `begun`, and targets it. A stored one that cannot be read any more is stored
/// anew.
pub async fn carry_out(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    gathered: &Gathered,
    plan: &Plan,
    newest: Option<Stored>,
    begun: tokio::time::Instant,
) -> Result<Carried, Failure> {
    let (stored, is_new) = match Box::pin(stored(ctx, dig, owner, (gathered, plan), newest)).await? {
        Ok(done) => done,
        Err(carried) => return Ok(carried),
    };
    let mut way = None;
    if let Some(stored) = &stored {
        let wanted = combinations(&plan.assignment);
        way = rollout::way(ctx, dig, owner, stored, (&wanted, &BTreeSet::new())).await?;
        let now = way.as_ref().map_or(&wanted, |way| &way.wanted);
        let moves = store::targets(ctx, owner) != held::having_apps(now.clone());
        // Of a new revision the hub said meanwhile that the project is not suspended: the watch may be behind.
        let may_go_on = is_new && !suspension::of_project(&ctx.stores, &owner.namespace);
        if moves && !may_go_on && !gathered.goes_on(ctx).await? {
            return Ok(Carried::Moved);
        }
        if let Some(way) = &way
            && rollout::remember(ctx, dig, owner, stored, way).await?
        {
            if is_new {
                // It is targeted by the next look, which does not know what is new in it.
                store::mark_targeted(ctx, owner, meta::generation(dig), stored.spec.revision, summary(plan));
            }
            return Ok(Carried::Moved);
        }
        let (revision, order, given) = match &way {
            Some(way) => (way.revision, way.order.clone(), Some(&way.given)),
            None => (stored.spec.revision, order_of(stored, &wanted), None),
        };
        let uids = uids(&gathered.snapshot.clusters);
        abandon::retarget(ctx, owner, revision, now, &uids, (order.as_ref(), given)).await?;
        if is_new {
            log(&gathered.snapshot.project, dig, plan, stored.spec.revision, begun);
            store::mark_targeted(ctx, owner, meta::generation(dig), stored.spec.revision, summary(plan));
        }
    }
    Ok(Carried::Out(Box::new((stored, way.map(Box::new)))))
}

/// Stores a changed plan, once nobody else has what it takes of clusters; with it, whether it is new.
async fn stored(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (gathered, plan): (&Gathered, &Plan),
    newest: Option<Stored>,
) -> Result<Result<(Option<Stored>, bool), Carried>, Failure> {
    let draft = |newest: Option<&Stored>| draft(ctx, dig, owner, (gathered, plan), newest);
    let still_true = async {
        let (still, goes_on) = try_join(gathered.still_true(ctx, dig), gathered.goes_on(ctx)).await?;
        Ok(still && goes_on)
    };
    let changed = plan.change.is_some();
    if changed && !hardware::take(ctx, owner, &gathered.snapshot, &plan.assignment, gathered.claims) {
        return Ok(Err(Carried::Moved));
    }
    let storing = revision::store(ctx, owner, newest, (changed, &plan.sets), draft, still_true).await?;
    match storing {
        Storing::Moved | Storing::TooMuch(_) => hardware::give_back(ctx, owner),
        Storing::Kept(_) | Storing::New(_) => hardware::keep(ctx, owner),
    }
    Ok(match storing {
        Storing::Kept(stored) => Ok((stored, false)),
        Storing::New(stored) => Ok((Some(stored), true)),
        Storing::Moved => Err(Carried::Moved),
        Storing::TooMuch(too_much) => Err(Carried::Refused(does_not_fit(dig, gathered, &too_much))),
    })
}

/// What is new in a revision.
fn summary(plan: &Plan) -> RevisionSummary {
    let text = plan.change.as_ref().map_or(STORED_ANEW, |change| change.summary.as_str());
    RevisionSummary { text: text.to_owned(), warnings: plan.warnings.clone() }
}

fn log(project: &str, dig: &DeploymentIntentGroup, plan: &Plan, revision: i64, begun: tokio::time::Instant) {
    let seconds = (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
    tracing::info!(
        project,
        deployment = meta::name(dig),
        revision,
        clusters = plan.assignment.len(),
        seconds,
        "revision planned and stored: {}",
        one_line(&summary(plan).text)
    );
}

/// What is stored of a plan.
fn draft<'a>(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &'a Owner,
    (gathered, plan): (&Gathered, &Plan),
    newest: Option<&Stored>,
) -> Draft<'a> {
    let app = gathered.snapshot.composite_app.as_deref();
    // Beside a revision that cannot be read, all of it would be new.
    let is_compared = newest.is_some() || store::contexts(ctx, owner).is_empty();
    Draft {
        owner,
        at_least: dig.status.as_ref().and_then(|status| status.revision).unwrap_or(0),
        digest: plan.plan_digest.clone(),
        inputs_digest: plan.inputs_digest.clone(),
        cause: plan.change.as_ref().map_or(Cause::Update, |change| change.cause),
        namespace: gathered.cloud_namespace.clone(),
        level: gathered.level,
        apps: plan.placement.iter().map(|(app, _)| app.clone()).collect(),
        assignment: plan.assignment.clone(),
        sets: plan.sets.clone(),
        limit: gathered.limit.clone(),
        deployment: Some(OfDeployment {
            release: Some(dig.release().to_owned()),
            logical_cloud: Some(dig.spec.logical_cloud_ref.name.clone()),
            composite_app: Some(dig.spec.composite_app_ref.name.clone()),
            depends_on: app.map(composite_app::dependencies).unwrap_or_default(),
            charts: app.map(composite_app::pins).unwrap_or_default(),
            waves: waves_of(ctx, dig, owner, plan, newest),
            explanation: plan.explanation.clone(),
            changes: plan.change.as_ref().filter(|_| is_compared).map(|change| change.counts),
        }),
    }
}

/// How a revision of this plan reaches its clusters. One that is only stored anew keeps its waves.
fn waves_of(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    plan: &Plan,
    newest: Option<&Stored>,
) -> Option<Arc<Waves>> {
    let running = newest.and_then(|newest| newest.running.waves.clone());
    if plan.change.is_none() {
        return running;
    }
    let inputs = newest.map(|newest| newest.running.inputs_digest.as_str());
    let rollout = dig.status.as_ref().and_then(|status| status.rollout.as_ref());
    let is_over = rollout.is_some_and(|rollout| {
        inputs == Some(rollout.inputs_digest.as_str()) && rollout.place > rollout.waves
    });
    let gave = newest.map(|newest| combinations(&newest.running.assignment)).unwrap_or_default();
    let same_inputs = inputs == Some(plan.inputs_digest.as_str());
    let earlier = running.as_deref().filter(|_| !is_over);
    let earlier = earlier.map(|waves| Earlier { waves, wanted: &gave, same_inputs });
    let waves = plan.waves.as_deref()?.clone();
    let had = store::targets(ctx, owner);
    Some(Arc::new(waves.beside(&had, &combinations(&plan.assignment), earlier)))
}

/// Why a plan may not be stored.
fn does_not_fit(dig: &DeploymentIntentGroup, gathered: &Gathered, too_much: &TooMuch) -> Box<Refusal> {
    let project = &gathered.snapshot.project;
    let TooMuch { bytes, own, of } = too_much;
    let (whose, bound) = match of {
        Bound::Owner => (
            "of the deployment",
            format!("Project {project} allows {} (spec.limits.storedBytes)", gathered.limit.text),
        ),
        Bound::Project(text) => (
            "of all its deployments",
            format!("Project {project} allows {text} (spec.limits.totalStoredBytes)"),
        ),
        Bound::Installation(most) => {
            ("of all projects", format!("the operator allows {} (--stored-mebibytes)", mebibytes(*most)))
        }
    };
    let message = format!(
        "with this plan, the stored revisions {whose} would take {}, its own manifests {}, and {bound}: lower spec.revisionHistoryLimit (now {}), make the manifests smaller, or have the limit raised",
        mebibytes(*bytes),
        mebibytes(*own),
        dig.spec.revision_history_limit,
    );
    Refusal::of(types::RENDERED, "OutputTooLarge", true, message)
}
