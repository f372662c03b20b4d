//! Holds a plan back that its project wants approved: reads the project, the removal budget and the approvals.

use std::collections::BTreeMap;

use emco_crds::deployment_approval::Decision;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::ApprovalRecord;
use emco_crds::project::{Approval, ApprovalMode, ApprovalScope, ConfirmDeletion};
use emco_crds::{DeploymentApproval, DeploymentIntentGroup, Project};
use emco_engine::approval::{Asked, Digests, Required, Vote, Wait, covering, without_plan};
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::plan::{Plan, over_budget};
use emco_engine::set::{Assignment, combinations};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::ApiResult;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::composite_app;
use crate::reconcile::context::Context;
use crate::reconcile::in_use;
use crate::store::{self, Stored};

/// Removals within this time count together.
const BUDGET_WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// A plan, what runs, and what the project asks for.
pub struct Gate {
    namespace: String,
    group: String,
    plan: (String, String),
    runs: Option<(String, String)>,
    policy: Approval,
    over: Option<String>,
    /// When a removal of before counts no more.
    pub until: Option<Timestamp>,
}

/// The gate that a plan has to pass.
pub async fn gate(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
    plan: &Plan,
) -> Result<Gate, Failure> {
    let project = composite_app::project(ctx, &owner.namespace);
    let policy = project.as_ref().map(|project| project.spec.approval).unwrap_or_default();
    let plan_digests = (plan.inputs_digest.clone(), plan.plan_digest.clone());
    let (namespace, group) = (owner.namespace.clone(), owner.name.clone());
    // Nothing could be rendered yet.
    if plan.change.is_none() && newest.is_none() {
        let runs = Some(plan_digests.clone());
        return Ok(Gate { namespace, group, plan: plan_digests, runs, policy, over: None, until: None });
    }
    let targets = store::targets(ctx, owner);
    let said = dig.status.as_ref().and_then(|status| status.revision);
    // One that was stored and not targeted before the process died does not run: it is approved as any other plan.
    let runs = if targets.is_empty() { None } else { store::targeted(ctx, owner, newest, said).await? };
    // Neither does one that is taken for it because clusters are in the middle of a rollout of another.
    let begun = |stored: &Stored| {
        let revision = stored.spec.revision;
        said == Some(revision)
            || store::are_of(&targets, &stored.running)
            || store::named_by_shards(ctx, owner).contains(&revision)
    };
    let back = comes_back(ctx, dig, owner, newest, runs.as_ref()).cloned();
    let runs = back.or_else(|| runs.filter(begun));
    let runs = runs.map(|stored| (stored.running.inputs_digest.clone(), stored.running.plan_digest.clone()));
    let (over, until) = budget(ctx, owner, project.as_deref(), &plan.assignment).await?;
    Ok(Gate { namespace, group, plan: plan_digests, runs, policy, until, over })
}

/// The newest revision, where it ran, was neither taken back nor rejected since, and clusters have an earlier one that nobody pins.
pub fn comes_back<'a>(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&'a Stored>,
    targeted: Option<&Stored>,
) -> Option<&'a Stored> {
    let ends = meta::deleting(dig) || dig.spec.desired_state == DesiredState::Terminated;
    if dig.spec.revision.is_some() || dig.spec.is_held() || ends || store::targets(ctx, owner).is_empty() {
        return None;
    }
    let newest = newest?;
    let revision = newest.spec.revision;
    let earlier = targeted.is_some_and(|targeted| targeted.name != newest.name);
    let rejected = || {
        let digests = [newest.spec.inputs_digest.as_deref(), Some(newest.spec.digest.as_str())];
        let votes = votes(ctx, &owner.namespace, &owner.name);
        let of_it = |vote: &Vote| digests.contains(&Some(vote.digest.as_str()));
        votes.iter().any(|vote| vote.decision == Decision::Rejected && of_it(vote))
    };
    let comes = earlier
        && store::was_complete(ctx, owner, revision)
        && !store::is_taken_back(ctx, owner, revision)
        && !rejected();
    comes.then_some(newest)
}

/// The gate that a stored revision has to pass which is pinned, on these clusters. One that is there has passed it.
pub async fn of_pin(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (stored, assignment): (&Stored, &Assignment),
) -> Result<Gate, Failure> {
    let project = composite_app::project(ctx, &owner.namespace);
    let policy = project.as_ref().map(|project| project.spec.approval).unwrap_or_default();
    let (namespace, group) = (owner.namespace.clone(), owner.name.clone());
    let spec = &stored.spec;
    let (targets, mut wanted) = (store::targets(ctx, owner), combinations(assignment));
    wanted.retain(|_, apps| !apps.is_empty());
    let plan = digests_of_pin(ctx, owner, (spec.revision, &spec.digest), &wanted);
    let said = dig.status.as_ref().and_then(|status| status.revision) == Some(spec.revision);
    let runs = if targets == wanted {
        Some(plan.clone())
    } else {
        // One that is on its way has gates before it that a pin would skip.
        let whole = said && store::was_complete(ctx, owner, spec.revision);
        let runs = whole && !targets.is_empty() && store::are_of(&targets, &stored.running);
        let same = runs.then(|| digests_of_pin(ctx, owner, (spec.revision, &spec.digest), &targets));
        same.or_else(|| running(ctx, dig, owner))
    };
    let (over, until) = budget(ctx, owner, project.as_deref(), assignment).await?;
    Ok(Gate { namespace, group, plan, runs, policy, over, until })
}

/// The gate that the end of a deployment has to pass which is only edited to be terminated; `None` where the project wants none, or nothing
/// of it was ever stored.
pub fn of_end(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<Gate> {
    let project = composite_app::project(ctx, &owner.namespace)?;
    let (mode, confirms) = (project.spec.approval.mode, project.spec.confirm_deletion);
    if meta::deleting(dig) || mode != ApprovalMode::Manual && confirms != ConfirmDeletion::Always {
        return None;
    }
    let stored = || store::contexts(ctx, owner).first().map(|context| context.spec.digest.clone());
    let runs = dig.status.as_ref().and_then(|status| status.digest.clone()).or_else(stored)?;
    let digest = without_plan::terminate(meta::uid(dig), &runs);
    Some(Gate {
        namespace: owner.namespace.clone(),
        group: owner.name.clone(),
        plan: (digest.clone(), digest),
        runs: running(ctx, dig, owner),
        policy: Approval { mode: ApprovalMode::Manual, scope: ApprovalScope::Plan },
        over: None,
        until: None,
    })
}

/// Digests of the revision that runs: what approved it is no stale approval of what comes in its place.
fn running(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<(String, String)> {
    let said = dig.status.as_ref().and_then(|status| status.revision)?;
    let contexts = store::contexts(ctx, owner);
    let spec = &contexts.iter().find(|context| context.spec.revision == said)?.spec;
    Some((spec.inputs_digest.clone().unwrap_or_default(), spec.digest.clone()))
}

/// What an approval of a pinned revision names; `wanted` is what clusters get of it.
fn digests_of_pin(
    ctx: &Context,
    owner: &Owner,
    (revision, stored): (i64, &str),
    wanted: &BTreeMap<ClusterId, Combination>,
) -> (String, String) {
    let contexts = store::contexts(ctx, owner);
    let newest = contexts.first().map_or("", |context| context.spec.digest.as_str());
    without_plan::pin(revision, (stored, newest), wanted)
}

/// The same of the pin that is in effect; `None` where there is none.
pub fn pin_in_effect(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<(String, String)> {
    let revision = dig.spec.revision?;
    if dig.status.as_ref()?.revision != Some(revision) {
        return None;
    }
    let contexts = store::contexts(ctx, owner);
    let stored = contexts.iter().find(|context| context.spec.revision == revision)?;
    Some(digests_of_pin(ctx, owner, (revision, &stored.spec.digest), &store::targets(ctx, owner)))
}

/// How an assignment goes beyond the removal budget, and until when it does.
async fn budget(
    ctx: &Context,
    owner: &Owner,
    project: Option<&Project>,
    assignment: &Assignment,
) -> Result<(Option<String>, Option<Timestamp>), Failure> {
    let targets = store::targets(ctx, owner);
    // What rows say is true also where a revision is only on some of its clusters, or cannot be read any more.
    let now = || targets.iter().flat_map(|(id, apps)| apps.keys().map(move |app| (app.as_str(), id)));
    let stays = |(app, id): (&str, &ClusterId)| assignment.get(id).is_some_and(|apps| apps.contains_key(app));
    let Some(project) = project.filter(|_| !now().all(stays)) else { return Ok((None, None)) };
    let confirmed = confirmed(ctx, owner);
    let (ran, until) = store::recent_placements(ctx, owner, BUDGET_WINDOW, confirmed).await?;
    let lately = ran.iter().flat_map(|had| had.iter());
    let lately = lately.flat_map(|(app, clusters)| clusters.iter().map(|id| (app.as_str(), id.as_ref())));
    let over = over_budget(assignment, now(), lately, &project.spec.removal_budget);
    let until = until.filter(|_| over.is_some());
    Ok((over, until))
}

/// The newest stored revision of which exactly the plan was approved: what was removed before it is confirmed.
fn confirmed(ctx: &Context, owner: &Owner) -> Option<i64> {
    let votes = votes(ctx, &owner.namespace, &owner.name);
    let approved =
        |digest: &str| votes.iter().any(|vote| vote.digest == digest && vote.decision == Decision::Approved);
    let contexts = store::contexts(ctx, owner);
    contexts.iter().find(|context| approved(&context.spec.digest)).map(|context| context.spec.revision)
}

impl Gate {
    fn asked(&self) -> Asked<'_> {
        Asked {
            group: &self.group,
            namespace: &self.namespace,
            plan: digests(&self.plan),
            runs: self.runs.as_ref().map(digests),
            mode: self.policy.mode,
            scope: self.policy.scope,
            over: self.over.as_deref(),
        }
    }

    /// Why the plan waits, as the watch of approvals shows it.
    pub fn wait(&self, ctx: &Context) -> Option<Wait> {
        let asked = self.asked();
        if asked.required() == Required::Nothing {
            return None;
        }
        asked.wait(&votes(ctx, &self.namespace, &self.group))
    }

    /// What lets it pass, and in whose name.
    pub fn passed(&self, ctx: &Context) -> Option<String> {
        let votes = votes(ctx, &self.namespace, &self.group);
        covering(&votes, digests(&self.plan)).map(|vote| format!("{} by {}", vote.name, vote.by))
    }

    /// Whether the plan may still be carried out, as the hub has the approvals now: a rejection that the watch does not show yet
    /// counts. Nothing is asked where no approval is needed.
    pub async fn is_open(&self, ctx: &Context) -> ApiResult<bool> {
        let asked = self.asked();
        if asked.required() == Required::Nothing {
            return Ok(true);
        }
        let live: Vec<DeploymentApproval> = in_use::listed(ctx, &self.namespace).await?;
        let votes: Vec<Vote> = live.iter().filter_map(|approval| vote(approval, &self.group, None)).collect();
        Ok(asked.wait(&votes).is_none())
    }
}

fn digests((inputs, plan): &(String, String)) -> Digests<'_> {
    Digests { inputs, plan }
}

/// The approvals of one deployment, as the watch shows them.
pub fn votes(ctx: &Context, namespace: &str, group: &str) -> Vec<Vote> {
    votes_of(ctx, namespace, group, None)
}

/// The approvals of one of its waves, or of its plans as a whole.
pub fn votes_of(ctx: &Context, namespace: &str, group: &str, wave: Option<&str>) -> Vec<Vote> {
    let all = ctx.stores.approvals.within(namespace);
    all.iter().filter_map(|approval| vote(approval, group, wave)).collect()
}

/// What an approval says of the plan of a deployment as a whole, or of one of its waves; `None` where it is of another one, or on its
/// way out.
pub fn vote(approval: &DeploymentApproval, group: &str, wave: Option<&str>) -> Option<Vote> {
    let spec = &approval.spec;
    let counts = spec.deployment_intent_group_ref.name == group
        && spec.wave.as_deref() == wave
        && !meta::deleting(approval);
    let created = approval.metadata.creation_timestamp.as_ref();
    counts.then(|| Vote {
        created: created.map_or(0, |time| time.0.as_second()),
        name: meta::name(approval).to_owned(),
        digest: spec.digest.clone(),
        decision: spec.decision,
        by: spec.approved_by.clone(),
    })
}

/// What approved the running revision. An approval that was deleted since stays said of the revision that it let pass.
pub fn record(
    ctx: &Context,
    owner: &Owner,
    stored: Option<&Stored>,
    dig: &DeploymentIntentGroup,
) -> Option<ApprovalRecord> {
    let spec = &stored?.spec;
    let inputs = spec.inputs_digest.as_deref().unwrap_or_default();
    let votes = votes(ctx, &owner.namespace, &owner.name);
    let before = dig.status.as_ref();
    // A pin that waited is let pass by an approval of its own.
    let pin = dig.spec.revision.filter(|pinned| *pinned == spec.revision);
    let pin =
        pin.map(|_| digests_of_pin(ctx, owner, (spec.revision, &spec.digest), &store::targets(ctx, owner)));
    let of_pin = pin.as_ref().and_then(|pin| covering(&votes, digests(pin)));
    let Some(vote) = of_pin.or_else(|| covering(&votes, Digests { inputs, plan: &spec.digest })) else {
        let before = before.filter(|before| before.revision == Some(spec.revision))?;
        return before.approval.clone();
    };
    let object = ctx.stores.approvals.named(&owner.namespace, &vote.name);
    let whole = vote.digest == spec.digest || pin.as_ref().is_some_and(|pin| vote.digest == pin.1);
    let required = if whole { "Plan" } else { "Inputs" };
    Some(ApprovalRecord {
        required: required.to_owned(),
        name: Some(vote.name.clone()),
        approved_by: Some(vote.by.clone()),
        at: object.and_then(|object| object.metadata.creation_timestamp.clone()),
    })
}
