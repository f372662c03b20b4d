//! Holds a plan back that its project wants approved: reads the project, the removal budget and the approvals.

use emco_crds::deployment_approval::Decision;
use emco_crds::deployment_intent_group::status::{ApprovalRecord, DeploymentIntentGroupStatus};
use emco_crds::project::Approval;
use emco_crds::{DeploymentApproval, DeploymentIntentGroup};
use emco_engine::approval::{Asked, Digests, Required, Vote, Wait, covering};
use emco_engine::identity::ClusterId;
use emco_engine::plan::{Plan, over_budget};
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
    let runs = runs.filter(begun);
    let runs = runs.map(|stored| (stored.running.inputs_digest.clone(), stored.running.plan_digest.clone()));
    let (mut over, mut until) = (None, None);
    // What rows say is true also where a revision is only on some of its clusters, or cannot be read any more.
    let now = || targets.iter().flat_map(|(id, apps)| apps.keys().map(move |app| (app.as_str(), id)));
    let stays =
        |(app, id): (&str, &ClusterId)| plan.assignment.get(id).is_some_and(|apps| apps.contains_key(app));
    if let Some(project) = &project
        && !now().all(stays)
    {
        let confirmed = confirmed(ctx, owner);
        let (ran, oldest) = store::recent_placements(ctx, owner, BUDGET_WINDOW, confirmed).await?;
        until = oldest;
        let lately = ran.iter().flat_map(|had| had.iter());
        let lately = lately.flat_map(|(app, clusters)| clusters.iter().map(|id| (app.as_str(), id.as_ref())));
        over = over_budget(&plan.assignment, now(), lately, &project.spec.removal_budget);
    }
    Ok(Gate {
        namespace,
        group,
        plan: plan_digests,
        runs,
        policy,
        until: until.filter(|_| over.is_some()),
        over,
    })
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
    before: Option<&DeploymentIntentGroupStatus>,
) -> Option<ApprovalRecord> {
    let spec = &stored?.spec;
    let inputs = spec.inputs_digest.as_deref().unwrap_or_default();
    let votes = votes(ctx, &owner.namespace, &owner.name);
    let Some(vote) = covering(&votes, Digests { inputs, plan: &spec.digest }) else {
        let before = before.filter(|before| before.revision == Some(spec.revision))?;
        return before.approval.clone();
    };
    let object = ctx.stores.approvals.named(&owner.namespace, &vote.name);
    let required = if vote.digest == spec.digest { "Plan" } else { "Inputs" };
    Some(ApprovalRecord {
        required: required.to_owned(),
        name: Some(vote.name.clone()),
        approved_by: Some(vote.by.clone()),
        at: object.and_then(|object| object.metadata.creation_timestamp.clone()),
    })
}
