//! Reconciles every `LogicalCloud`: its revision, the targets of its clusters and its status. It makes the namespace
//! that deployments run in, wherever a grant allows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::conditions::types::READY;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::fields::{Level, Summary};
use emco_crds::logical_cloud::LogicalCloudStatus;
use emco_crds::names::finalizer;
use emco_crds::reasons::LogicalCloudReason;
use emco_crds::{DeploymentIntentGroup, LogicalCloud, OwnerKind, Project};
use emco_engine::cloud::{self, CloudFacts};
use emco_engine::identity::ClusterId;
use emco_engine::refusal::Refusal;
use emco_engine::role::{Derived, Reach};
use emco_engine::set::combinations;
use emco_engine::snapshot::{ClusterFacts, Scheduling, uids};
use emco_engine::text::counted;
use emco_engine::{holders, unsupported};

use crate::abandon::{self, AbandonPolicy};
use crate::object::Owner;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::composite_app::project;
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::results;
use crate::reconcile::revision::{self, Storing};
use crate::reconcile::suspension;
use crate::rows::{self, Removal};
use crate::store::{self, Draft, Limit, Stored, TooMuch, mebibytes};
use crate::tenancy::facts;

mod derived;
mod held;
mod kind;
mod not_removed;
mod people;
mod report;
mod rest;
mod suspended;
mod taken;
mod usable;

use report::{Beside, refused, report, runs};
use rest::Rest;
pub use taken::losing_to;
pub use usable::usable;

/// Revisions kept of a logical cloud.
const HISTORY: usize = 3;

/// What a deployment needs to know of a cloud. The refusal says why it cannot be used.
pub fn facts(
    ctx: &Context,
    cloud: &LogicalCloud,
    project: &Project,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Result<CloudFacts, Box<Refusal>> {
    let name = meta::name(cloud);
    if let Some(sentence) = unsupported::check_logical_cloud(&cloud.spec) {
        let message = format!("LogicalCloud {name} is not ready: {sentence}");
        return Err(Refusal::of("Resolved", "LogicalCloudNotReady", false, message));
    }
    if let Some(sentence) = taken::conflict(ctx, cloud, clusters) {
        return Err(taken::refusal(cloud, &sentence));
    }
    let (granted, _) = granted(ctx, project, cloud, clusters);
    let members = cloud::members(&cloud.spec, &granted, clusters);
    Ok(CloudFacts {
        name: name.to_owned(),
        level: cloud.spec.level.as_str().to_owned(),
        namespace: cloud.cluster_namespace().to_owned(),
        reach: Reach::of(&cloud.spec),
        derived: Derived::of(&cloud.spec, cloud.cluster_namespace()),
        isolation: cloud.spec.isolation,
        clusters: members.candidates,
    })
}

/// The highest level on each cluster that the project may use with the cloud's namespace, and clusters where nobody has that.
fn granted(
    ctx: &Context,
    project: &Project,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> (BTreeMap<ClusterId, Level>, BTreeSet<ClusterId>) {
    let providers = ctx.stores.providers.sorted();
    let providers: Vec<_> = providers.iter().map(AsRef::as_ref).collect();
    let mut granted = cloud::granted(meta::name(project), &facts::labels(project), &providers, clusters);
    let reserved = cloud::reserve(&mut granted, cloud.cluster_namespace(), &ctx.namespace, &providers);
    (granted, reserved)
}

/// A cluster that is being deleted keeps what deployments have there. A logical cloud holds none: where no deployment of any project
/// is left, it leaves.
fn leave_what_ends(ctx: &Context, clusters: &mut BTreeMap<ClusterId, ClusterFacts>) {
    let going: Vec<ClusterId> = ctx
        .stores
        .clusters
        .sorted()
        .iter()
        .filter(|cluster| meta::deleting(cluster.as_ref()))
        .filter_map(|cluster| facts::id(ctx, cluster))
        .collect();
    if going.is_empty() {
        return;
    }
    let shards = store::all_shards(ctx);
    let held = holders::clusters(shards.iter().map(AsRef::as_ref));
    for id in going.iter().filter(|id| !held.contains_key(id)) {
        if let Some(facts) = clusters.get_mut(id) {
            facts.scheduling = Scheduling::Drained;
        }
    }
}

/// Brings one logical cloud to where it should be. Where nothing but reports of its clusters asks for that, it is not planned anew.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let rest: Option<Rest> = ctx.cloud_looks.take(&(namespace.to_owned(), name.to_owned()));
    let Some(cloud) = ctx.stores.clouds.named(namespace, name) else { return Ok(Outcome::Settled) };
    let owner = Owner::of(ctx, OwnerKind::LogicalCloud, cloud.as_ref());
    if let Some(rest) = rest
        && let Some(outcome) = Box::pin(rest.say(ctx, &cloud, &owner)).await?
    {
        return Ok(outcome);
    }
    Box::pin(look(ctx, namespace, &cloud, &owner)).await
}

/// Looks at everything.
async fn look(ctx: &Context, namespace: &str, cloud: &Arc<LogicalCloud>, owner: &Owner) -> Reconciled {
    let generation = meta::generation(cloud.as_ref());
    if not_removed::keep(ctx, cloud, owner).await? {
        return Ok(Outcome::Settled);
    }
    let mut status = cloud.status.clone().unwrap_or_default();
    status.not_removed = not_removed::of(cloud);
    let digs = ctx.stores.digs.within(namespace);
    let mut holders = Holders::shown(holders::logical_cloud(cloud, digs.iter().map(AsRef::as_ref)));
    if meta::deleting(cloud.as_ref()) {
        let of = |digs: &[DeploymentIntentGroup]| holders::logical_cloud(cloud, digs);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    status.namespace = Some(cloud.cluster_namespace().to_owned());
    status.identity = (cloud.spec.level != Level::Admin)
        .then(|| cloud::account(cloud.cluster_namespace(), meta::name(cloud.as_ref())));
    if meta::deleting(cloud.as_ref()) {
        return terminate(ctx, cloud, owner, &holders, status).await;
    }
    if finalizers::add(ctx, cloud.as_ref(), finalizer::TERMINATE).await? {
        return Ok(Outcome::Settled);
    }
    if !store::all_shown(ctx, owner).await? {
        return Ok(Outcome::After(store::SHOWN));
    }
    // A Cluster that is away is let go of while the cloud has something there.
    let give_up = AbandonPolicy { gone: true, ..AbandonPolicy::default() };
    if !suspension::of_project(&ctx.stores, namespace) {
        abandon::abandon(ctx, cloud.as_ref(), owner, give_up).await?;
    }
    if cloud.spec.user.is_none() {
        people::clear(ctx, cloud, owner, &mut status).await?;
    }
    let (again, rest) = match plan(ctx, cloud, owner, &mut status).await? {
        Ok(Carried { again, rest }) => (again, rest),
        Err(refusal) => {
            usable::keep_rows(ctx, cloud, owner).await?;
            refused(ctx, owner, generation, &refusal, &mut status).await?;
            (None, None)
        }
    };
    status::write(ctx, cloud.as_ref(), cloud.status.as_ref(), &status).await?;
    if let Some(revision) = status.revision {
        let now = store::Seen { running: revision, state: status.state.unwrap_or_default(), good: None };
        store::record_outcome(ctx, owner, now, None).await?;
    }
    store::prune_history(ctx, owner, HISTORY, None).await?;
    if let Some(rest) = rest.filter(|_| again.is_none()) {
        rest.keep(ctx, owner);
    }
    Ok(Outcome::Settled.at_latest(again))
}

/// What became of a plan.
#[derive(Default)]
struct Carried {
    /// When to look again.
    again: Option<Duration>,
    /// What the next look needs, where only reports ask for it.
    rest: Option<Rest>,
}

impl Carried {
    const fn again(again: Duration) -> Self {
        Self { again: Some(again), rest: None }
    }
}

/// What became of it, or why the logical cloud cannot be as it is written.
type Planned = Result<Carried, Box<Refusal>>;

/// Plans, stores and targets; the status says what is true then. A refusal leaves what runs as it is. Otherwise it says when there is
/// something to do again: clusters may be given less than they have, or credentials are to be renewed.
async fn plan(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    status: &mut LogicalCloudStatus,
) -> Result<Planned, Failure> {
    let Some(project) = project(ctx, meta::namespace(cloud)) else {
        let namespace = meta::namespace(cloud);
        let message =
            format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
        return Ok(Err(Refusal::of(READY, "NoProject", false, message)));
    };
    if let Some(sentence) = unsupported::check_logical_cloud(&cloud.spec) {
        return Ok(Err(Refusal::of(READY, "NotSupportedYet", true, sentence)));
    }
    if let Some(sentence) = store::of_a_later_format(ctx, owner) {
        return Ok(Err(Refusal::of(READY, "FormatUnknown", false, sentence)));
    }
    let mut clusters = facts::clusters(ctx);
    leave_what_ends(ctx, &mut clusters);
    if let Some(sentence) = taken::conflict(ctx, cloud, &clusters) {
        let reason = LogicalCloudReason::NamespaceConflict.as_str();
        return Ok(Err(Refusal::of(READY, reason, true, sentence)));
    }
    rows::invalidate_lost(ctx, owner);
    let newest = store::newest(ctx, owner).await?;
    let (granted, reserved) = granted(ctx, &project, cloud, &clusters);
    let running = newest.as_ref().map(|stored| stored.running.as_ref());
    let plan = |held: &BTreeSet<ClusterId>, derived: &derived::OfClusters| {
        cloud::plan(&cloud::Request {
            installation: &ctx.installation,
            project: meta::name(project.as_ref()),
            name: &owner.name,
            spec: &cloud.spec,
            namespace: cloud.cluster_namespace(),
            clusters: &clusters,
            granted: &granted,
            reserved: &reserved,
            held,
            derived,
            running,
            now: ctx.world.clock.now_ms() / 1000,
        })
    };
    let mut planned = plan(&held::shown(ctx, cloud), &derived::shown(ctx, cloud, &clusters).await?);
    if planned.as_ref().is_ok_and(|planned| held::leaves(running, planned) || derived::moves(cloud, planned))
    {
        planned = plan(&held::listed(ctx, cloud).await?, &derived::listed(ctx, cloud, &clusters).await?);
    }
    let mut planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(hold) = suspension::of_all(&ctx.stores, &owner.namespace) {
        suspended::report(ctx, cloud, owner, &planned, newest.as_ref(), hold, status).await?;
        return Ok(Ok(Carried::default()));
    }
    let draft = |_: Option<&Stored>| draft(cloud, owner, status.revision, &planned);
    let plan = (planned.change.is_some(), &planned.sets);
    let stored = match revision::store(ctx, owner, newest, plan, draft, async { Ok(true) }).await? {
        Storing::Kept(stored) => stored,
        Storing::New(stored) => Some(stored),
        // The project was suspended a moment ago: the next look says so.
        Storing::Moved => return Ok(Ok(Carried::again(store::SHOWN))),
        Storing::TooMuch(TooMuch { bytes, .. }) => {
            let message = format!("what is stored of the logical cloud would take {}", mebibytes(bytes));
            return Ok(Err(Refusal::of(READY, "QuotaRejected", true, message)));
        }
    };
    // Storing takes its time.
    if let Some(hold) = suspension::of_all(&ctx.stores, &owner.namespace) {
        planned.change = None;
        suspended::report(ctx, cloud, owner, &planned, stored.as_ref(), hold, status).await?;
        return Ok(Ok(Carried::default()));
    }
    let wanted = combinations(&planned.assignment);
    if let Some(stored) = &stored {
        abandon::retarget(ctx, owner, stored.spec.revision, &wanted, &uids(&clusters), (None, None)).await?;
        runs(status, stored);
    }
    let people = people::stand(ctx, cloud, owner, meta::name(project.as_ref()), &wanted, status).await?;
    let beside = Beside::of(cloud, &planned, &wanted);
    report(ctx, cloud, owner, &beside, (&wanted, &people.told), None, status);
    let again = derived::wait(ctx, planned.less_at).into_iter().chain(people.again).min();
    Ok(Ok(Carried { again, rest: Rest::of(ctx, cloud, owner, (&planned, beside), (status, &wanted)) }))
}

/// What is stored of a plan.
fn draft<'a>(
    cloud: &LogicalCloud,
    owner: &'a Owner,
    revision: Option<i64>,
    planned: &cloud::CloudPlan,
) -> Draft<'a> {
    Draft {
        owner,
        at_least: revision.unwrap_or(0),
        digest: planned.plan_digest.clone(),
        inputs_digest: planned.inputs_digest.clone(),
        cause: planned.change.as_ref().map_or(Cause::Update, |change| change.cause),
        namespace: cloud.cluster_namespace().to_owned(),
        level: cloud.spec.level,
        apps: vec![cloud::APP.to_owned()],
        assignment: planned.assignment.clone(),
        sets: planned.sets.clone(),
        limit: Limit::of(None, HISTORY),
        deployment: None,
    }
}

/// Waits for the deployments, leaves the clusters, lets go.
async fn terminate(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    holders: &Holders,
    mut status: LogicalCloudStatus,
) -> Reconciled {
    let generation = meta::generation(cloud);
    let waits = holders::waits_for(&holders.names);
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let mut unseen = false;
    let suspending = suspension::of_owner(&ctx.stores, &owner.namespace);
    let suspended = suspending.is_some();
    let mut message = if let Some(waits) = waits {
        waits
    } else {
        people::clear(ctx, cloud, owner, &mut status).await?;
        let give_up = AbandonPolicy { gone: true, ..AbandonPolicy::of(cloud, None) };
        if !suspended && abandon::abandon(ctx, cloud, owner, give_up).await? {
            return Ok(Outcome::Settled);
        }
        let removal = revision::remove(ctx, owner, suspended, false).await?;
        unseen = removal == Some(Removal::Unseen);
        if removal == Some(Removal::Done) {
            revision::release(ctx, cloud).await?;
            return Ok(Outcome::Settled);
        }
        let left = results::of(&store::shards(ctx, owner));
        let first = left.iter().next().map(|(id, result)| format!(": {id}{}", result.why()));
        let first = first.unwrap_or_default();
        status.summary = Some(Summary { clusters: Some(format!("0/{}", left.len())), ..Summary::default() });
        let mistyped = abandon::annotation_error(cloud).map(|text| format!("; {text}")).unwrap_or_default();
        format!("{} still to be left{first}{mistyped}", counted(left.len(), "cluster"))
    };
    if let Some(field) = suspending {
        message.push_str(&format!("; suspended: nothing is removed until {field} is unset"));
    }
    let reason = if suspended { LogicalCloudReason::Suspended.as_str() } else { status::TERMINATING };
    status::set_ready(ctx, &mut status, generation, &ReadyState::Waiting, reason, &message);
    status::write(ctx, cloud, cloud.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(unseen.then_some(store::SHOWN)).at_latest(holders.again()))
}
