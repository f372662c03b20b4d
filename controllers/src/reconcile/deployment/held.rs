//! Holds the newest plan back while a deployment is suspended, only planned, pinned or waits for an approval, and works out what waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::sync::ImmutablePolicy;
use emco_engine::approval::Wait;
use emco_engine::changes::Comparison;
use emco_engine::cloud;
use emco_engine::hold::{Hold, Next};
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::plan::{DerivedAccount, Plan};
use emco_engine::refusal::Refusal;
use emco_engine::role::Derived;
use emco_engine::set::{Assigned, Assignment, ManifestSet, combinations, deployed};
use emco_engine::snapshot::{Running, uids};

use super::dry_run;
use super::gather::{goes_on, installed};
use super::order::order_of;
use super::pinned::Pin;
use super::planned::{Held, PendingChange, Planned};
use super::rollout::{self, Way};
use super::unpinned;
use crate::abandon;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::composite_app;
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows;
use crate::store::{self, Stored};
use crate::tenancy::facts;

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
        waves: None,
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
    let (suspended, planned) = (dig.spec.is_suspended(), dig.spec.is_planned());
    let stays = suspended || planned || pin.is_some() && awaits.is_some();
    let targets = store::targets(ctx, owner);
    let (stored, mut assignment) = match &pin {
        Some(pin) if !stays => (Some(pin.stored.clone()), pin.assignment.clone()),
        // What was stored and is not targeted, yet or any more, does not run.
        _ if (awaits.is_some() || planned || suspended && said.is_none()) && targets.is_empty() => {
            (None, Assignment::new())
        }
        // What only waits for its turn does not run where nothing is carried out.
        _ if planned => targeted_by_rows(ctx, owner, newest, said).await?,
        _ => running(ctx, dig, owner, newest).await?,
    };
    if planned {
        assignment.retain(|cluster, _| targets.contains_key(cluster));
    }
    let runs = match &stored {
        None => None,
        Some(stored) if planned && targeted(&assignment) != targets => {
            let mixed = store::mixed(ctx, owner, stored, &targets).await?;
            assignment.clone_from(&mixed.assignment);
            Some(Arc::new(mixed))
        }
        Some(stored) if stored.running.assignment == assignment => Some(Arc::clone(&stored.running)),
        // A pinned revision is not everywhere where it was.
        Some(stored) => {
            let assignment = assignment.clone();
            Some(Arc::new(Running { assignment, ..stored.running.as_ref().clone() }))
        }
    };
    let there = installed(ctx, owner);
    let account = derived_account(ctx, dig);
    let recreates = dig.spec.sync.immutable_fields == ImmutablePolicy::Recreate;
    let gained = |mut change: PendingChange, assignment: &Assignment| {
        if recreates {
            change.foresee();
        }
        if let Some(account) = &account {
            change.details.gains = account.gains(runs.as_deref(), assignment, &change.sets);
            change.renew();
        }
        change
    };
    let planned_changes = |plan: &Plan| {
        let changes = plan.changes(runs.as_deref(), &there);
        let mut change = PendingChange::new(changes, runs.clone(), deployed(&plan.assignment, &plan.sets));
        if let Some(waves) = plan.waves.as_deref() {
            change.details.waves = waves.outline();
            change.renew();
        }
        gained(change, &plan.assignment)
    };
    let (next, digest, change) = match (&pin, &plan) {
        (Some(pin), _) if stays => {
            if combinations(&pin.assignment) == combinations(&assignment) {
                (Next::Same, String::new(), None)
            } else {
                let change = gained(pinned_changes(pin, runs.as_ref(), &there), &pin.assignment);
                let Pin { stored, .. } = pin;
                let next = Next::Revision(stored.spec.revision, change.changes.summary());
                (next, stored.spec.digest.clone(), Some(change))
            }
        }
        (_, Err(refusal)) => (Next::Refused(refusal.message.clone()), String::new(), None),
        (_, Ok(plan)) => match (&plan.change, newest) {
            (Some(_), _) => {
                let newest = store::contexts(ctx, owner).first().map(|context| context.spec.revision);
                let number = newest.max(said).unwrap_or_default() + 1;
                let change = planned_changes(plan);
                let next = Next::Revision(number, change.changes.summary());
                (next, plan.plan_digest.clone(), Some(change))
            }
            (None, Some(newest))
                if stored.as_ref().is_none_or(|runs| runs.name != newest.name)
                    || planned && targeted(&newest.running.assignment) != targets =>
            {
                let change = planned_changes(plan);
                let next = Next::Revision(newest.spec.revision, change.changes.summary());
                (next, newest.spec.digest.clone(), Some(change))
            }
            (None, _) => (Next::Same, String::new(), None),
        },
    };
    // What has to be approved is named by what the approval covers.
    let digest = awaits.as_ref().map_or(digest, |wait| wait.digest.clone());
    let suspending = suspension::field(&ctx.stores, dig);
    let hold = Hold { suspended, suspending, planned, pinned: dig.spec.revision, awaits, next };
    Ok(Held { stored, assignment, plan, hold, digest, change, way: None })
}

/// Keeps what runs beside a plan that waits, and then asks clusters about the plan where it is only planned. When to look again.
pub async fn tend(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &mut Planned,
) -> Result<Option<Duration>, Failure> {
    let Planned::Held(held) = planned else { return Ok(None) };
    let planned = held.hold.planned;
    // A pin that is carried out is targeted already.
    if planned || held.hold.pinned.is_none() || held.hold.awaits.is_some() {
        Box::pin(maintain(ctx, dig, owner, held)).await?;
    }
    let suspended = held.hold.suspended;
    let Some(change) = held.change.as_mut().filter(|_| planned && !suspended) else { return Ok(None) };
    Ok(Box::pin(dry_run::ask(ctx, dig, owner, change)).await)
}

/// Keeps the rows of what runs beside a plan that waits: clusters that are heard of for the first time or replaced get it,
/// and rows name stored revisions. No cluster comes or goes. A suspended deployment is left alone.
async fn maintain(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    held: &mut Held,
) -> Result<(), Failure> {
    if held.hold.suspended {
        // Nothing is written; that the revision was taken back is still said.
        if let Some(stored) = held.stored.as_ref().filter(|_| !held.hold.planned) {
            let (wanted, none) = (combinations(&held.assignment), BTreeSet::new());
            let way = Box::pin(rollout::way(ctx, dig, owner, stored, (&wanted, &none))).await?;
            held.way = way.filter(|way| way.back.is_some()).map(Box::new);
        }
        return Ok(());
    }
    if let (Some(stored), Ok(plan)) = (&held.stored, &held.plan) {
        repair(ctx, owner, stored, plan).await?;
    }
    let uids = uids(&facts::clusters(ctx));
    if held.hold.planned {
        // A removal or a revision that was begun and not targeted everywhere goes no further.
        rows::keep(ctx, owner, &uids).await?;
    } else if let Some(stored) = &held.stored {
        let wanted = combinations(&held.assignment);
        // The waves of what runs go on.
        held.way = go_on(ctx, dig, owner, (stored, &wanted, &BTreeSet::new()), &uids).await?;
    }
    Ok(())
}

/// Takes a stored revision as far as its waves go, and answers how far that is; `wanted` is what its clusters are to have in the end,
/// and those that `stay` keep what they have.
pub(super) async fn go_on(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (stored, wanted, stay): (&Stored, &BTreeMap<ClusterId, Combination>, &BTreeSet<ClusterId>),
    uids: &BTreeMap<ClusterId, String>,
) -> Result<Option<Box<Way>>, Failure> {
    let shards = store::shards(ctx, owner);
    let mut combinations = shards.iter().flat_map(|shard| &shard.spec.combinations);
    if combinations.any(|made| made.revision > stored.spec.revision) {
        // Clusters have a later revision that cannot be read: nobody asked for the earlier one.
        rows::keep(ctx, owner, uids).await?;
        return Ok(None);
    }
    let way = rollout::way(ctx, dig, owner, stored, (wanted, stay)).await?.map(Box::new);
    let now = way.as_ref().map_or(wanted, |way| &way.wanted);
    // The watch may be behind: nothing moves in a project that is suspended.
    if store::targets(ctx, owner) != having_apps(now.clone()) && !project_goes_on(ctx, owner).await? {
        return Ok(way);
    }
    let remembered = match &way {
        Some(way) => rollout::remember(ctx, dig, owner, stored, way).await?,
        None => false,
    };
    let (revision, order, given) = match &way {
        Some(way) => (way.revision, way.order.clone(), Some(&way.given)),
        None => (stored.spec.revision, order_of(stored, wanted), None),
    };
    // What was written just now brings the next look.
    if !remembered {
        abandon::retarget(ctx, owner, revision, now, uids, (order.as_ref(), given)).await?;
    }
    Ok(way)
}

/// Whether the project of a deployment is not suspended, as the hub says.
async fn project_goes_on(ctx: &Context, owner: &Owner) -> Result<bool, Failure> {
    match composite_app::project(ctx, &owner.namespace) {
        Some(project) => Ok(goes_on(ctx, meta::name(project.as_ref())).await?),
        None => Ok(false),
    }
}

/// Stores packs of what runs again that are lost, as far as the plan made their manifests again.
async fn repair(ctx: &Context, owner: &Owner, stored: &Stored, plan: &Plan) -> Result<(), Failure> {
    let assigned = stored.running.assignment.values().flat_map(BTreeMap::values);
    let made: BTreeMap<SetDigest, Arc<ManifestSet>> = assigned
        .flat_map(Assigned::sets)
        .filter_map(|set| {
            let made = stored.running.sets.get(set).or_else(|| plan.sets.get(set))?;
            Some((set.clone(), Arc::clone(made)))
        })
        .collect();
    rows::repair_packs(ctx, owner, stored, &made).await?;
    Ok(())
}

/// What rows are to have where this is carried out: a cluster without apps has none.
pub(super) fn targeted(assignment: &Assignment) -> BTreeMap<ClusterId, Combination> {
    having_apps(combinations(assignment))
}

/// Clusters that have any.
pub(super) fn having_apps(mut wanted: BTreeMap<ClusterId, Combination>) -> BTreeMap<ClusterId, Combination> {
    wanted.retain(|_, apps| !apps.is_empty());
    wanted
}

/// The account of the deployment's logical cloud, where its rights follow what is deployed.
fn derived_account(ctx: &Context, dig: &DeploymentIntentGroup) -> Option<DerivedAccount> {
    let cloud = ctx.stores.clouds.named(meta::namespace(dig), &dig.spec.logical_cloud_ref.name)?;
    let home = cloud.cluster_namespace().to_owned();
    let derived = Derived::of(&cloud.spec, &home)?;
    Some(DerivedAccount { account: cloud::account(&home, meta::name(cloud.as_ref())), home, derived })
}

/// What a pin changes that is not carried out.
fn pinned_changes(
    pin: &Pin,
    runs: Option<&Arc<Running>>,
    installed: &BTreeSet<(ClusterId, String)>,
) -> PendingChange {
    let Pin { stored, assignment } = pin;
    let apps: Vec<String> = stored.spec.apps.iter().map(|app| app.name.clone()).collect();
    let sets = &stored.running.sets;
    let running = runs.map(Arc::as_ref);
    let back = running.is_some_and(|running| running.revision > stored.spec.revision);
    let comparison = Comparison { running, apps: &apps, assignment, sets, installed, back };
    PendingChange::new(comparison.changes(), runs.cloned(), deployed(assignment, sets))
}

/// The revision whose rows, or whose rollout, are kept beside a plan that waits, and where it is to be.
pub(super) async fn running(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    newest: Option<&Stored>,
) -> Result<(Option<Stored>, Assignment), Failure> {
    let status = dig.status.as_ref();
    let taken_back = status.and_then(|status| status.rollout.as_ref()).filter(|rollout| rollout.taken_back);
    let is_taken_back = |newest: &&Stored| {
        taken_back.is_some_and(|it| it.inputs_digest == newest.running.inputs_digest)
            || store::is_taken_back(ctx, owner, newest.spec.revision)
    };
    // Clusters have another one: that this one was taken back has to be known when the next plan is carried out.
    if let Some(newest) = newest.filter(|newest| newest.running.waves.is_some()).filter(is_taken_back) {
        return Ok((Some(newest.clone()), newest.running.assignment.clone()));
    }
    let (stored, assignment) =
        targeted_by_rows(ctx, owner, newest, status.and_then(|status| status.revision)).await?;
    match unpinned::back(ctx, dig, owner, newest, stored.as_ref()).await? {
        Some((newest, assignment)) => Ok((Some(newest), assignment)),
        None => Ok((stored, assignment)),
    }
}

/// The revision that clusters are to have as their rows say, and where. `said` is the one that the status names.
pub(super) async fn targeted_by_rows(
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
