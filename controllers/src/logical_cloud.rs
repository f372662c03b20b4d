//! LogicalCloud in; its revision, the targets of its clusters and its status out. It makes the namespace that deployments run
//! in, wherever a grant allows it.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::conditions::types::READY;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::fields::Summary;
use emco_crds::logical_cloud::{CloudClusters, LogicalCloudStatus};
use emco_crds::names::finalizer;
use emco_crds::{LogicalCloud, Project};
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::plan::Refusal;
use emco_engine::set::Assignment;
use emco_engine::snapshot::{CloudFacts, ClusterFacts, Scheduling};
use emco_engine::{cloud, holders, rollup, unsupported};

use crate::composite_app::project;
use crate::context::{Context, Failure, Outcome, Reconciled};
use crate::facts;
use crate::objects::{self, Verdict};
use crate::results;
use crate::revisions::{self, Draft, Ending, GiveUp, Limit, Owner, TooMuch, mebibytes};
use crate::stores::StoreExt;

/// Revisions kept of a logical cloud.
const HISTORY: usize = 3;

/// Namespace of a logical cloud on the clusters.
pub fn namespace(cloud: &LogicalCloud) -> String {
    cloud.spec.namespace.clone().unwrap_or_else(|| objects::namespace(cloud).to_owned())
}

/// What a deployment needs to know of a cloud. The refusal says why it cannot be used.
pub fn facts(
    ctx: &Context,
    cloud: &LogicalCloud,
    project: &Project,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Result<CloudFacts, Box<Refusal>> {
    let name = objects::name(cloud);
    if let Some(sentence) = unsupported::check_logical_cloud(&cloud.spec) {
        let message = format!("LogicalCloud {name} is not ready: {sentence}");
        return Err(Refusal::of("Resolved", "LogicalCloudNotReady", false, message));
    }
    let members = cloud::members(&cloud.spec, &granted(ctx, project, clusters), clusters);
    Ok(CloudFacts {
        name: name.to_owned(),
        level: cloud.spec.level.as_str().to_owned(),
        namespace: namespace(cloud),
        clusters: members.candidates,
    })
}

fn granted(
    ctx: &Context,
    project: &Project,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> BTreeMap<ClusterId, emco_crds::fields::Level> {
    let providers = ctx.stores.providers.sorted();
    let providers: Vec<_> = providers.iter().map(AsRef::as_ref).collect();
    cloud::granted(objects::name(project), &facts::labels(project), &providers, clusters)
}

/// Clusters where a deployment of this cloud has rows.
fn held_clusters(ctx: &Context, cloud: &LogicalCloud) -> BTreeSet<ClusterId> {
    let digs = ctx.stores.digs.within(objects::namespace(cloud));
    let of_cloud: BTreeSet<&str> = digs
        .iter()
        .filter(|dig| dig.spec.logical_cloud_ref.name == objects::name(cloud))
        .map(|dig| objects::name(dig.as_ref()))
        .collect();
    ctx.stores
        .shards
        .within(objects::namespace(cloud))
        .iter()
        .filter(|shard| {
            shard.spec.owner.kind == "DeploymentIntentGroup"
                && of_cloud.contains(shard.spec.owner.name.as_str())
        })
        .flat_map(|shard| {
            shard.spec.clusters.iter().filter_map(|row| ClusterId::parse(&row.cluster)).collect::<Vec<_>>()
        })
        .collect()
}

/// A cluster that is being deleted keeps what deployments have there. A logical cloud holds none: where no deployment of any project
/// is left, it leaves.
fn leave_what_ends(ctx: &Context, clusters: &mut BTreeMap<ClusterId, ClusterFacts>) {
    let going: Vec<ClusterId> = ctx
        .stores
        .clusters
        .sorted()
        .iter()
        .filter(|cluster| objects::deleting(cluster.as_ref()))
        .filter_map(|cluster| facts::id(ctx, cluster))
        .collect();
    if going.is_empty() {
        return;
    }
    let shards = ctx.stores.shards.sorted();
    let held = holders::clusters(shards.iter().map(AsRef::as_ref));
    for id in going.iter().filter(|id| !held.contains_key(id)) {
        if let Some(facts) = clusters.get_mut(id) {
            facts.scheduling = Scheduling::Drained;
        }
    }
}

/// Brings one logical cloud to where it should be.
pub async fn reconcile(ctx: &Context, namespace_: &str, name: &str) -> Reconciled {
    let Some(cloud) = ctx.stores.clouds.named(namespace_, name) else { return Ok(Outcome::Settled) };
    let owner = Owner::of(ctx, "LogicalCloud", cloud.as_ref());
    let generation = objects::generation(cloud.as_ref());
    let mut status = cloud.status.clone().unwrap_or_default();
    let digs = ctx.stores.digs.within(namespace_);
    let holders = holders::logical_cloud(&cloud, digs.iter().map(AsRef::as_ref));
    status.in_use = holders::in_use(&holders);
    status.namespace = Some(namespace(&cloud));
    if objects::deleting(cloud.as_ref()) {
        return terminate(ctx, &cloud, &owner, &holders, status).await;
    }
    if objects::add_finalizer(ctx, cloud.as_ref(), finalizer::TERMINATE).await? {
        return Ok(Outcome::Settled);
    }
    // A Cluster that is away is let go of while the cloud has something there.
    revisions::leave(ctx, cloud.as_ref(), &owner, GiveUp { gone: true, ..GiveUp::default() }).await?;
    let judged = plan(ctx, &cloud, &owner, &mut status).await?;
    if let Err(refusal) = judged {
        let verdict = if refusal.stalled { Verdict::Stalled } else { Verdict::Waiting };
        objects::verdict(ctx, &mut status, generation, &verdict, refusal.reason, &refusal.message);
    }
    objects::write_status(ctx, cloud.as_ref(), cloud.status.as_ref(), &status).await?;
    if let Some(revision) = status.revision {
        revisions::note(ctx, &owner, revision, status.state.unwrap_or_default()).await?;
    }
    revisions::trim(ctx, &owner, HISTORY).await?;
    Ok(Outcome::Settled)
}

/// Plans, stores and targets; the status says what is true then. A refusal leaves what runs as it is.
async fn plan(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    status: &mut LogicalCloudStatus,
) -> Result<Result<(), Box<Refusal>>, Failure> {
    let Some(project) = project(ctx, objects::namespace(cloud)) else {
        let namespace = objects::namespace(cloud);
        let message =
            format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
        return Ok(Err(Refusal::of(READY, "NoProject", false, message)));
    };
    if let Some(sentence) = unsupported::check_logical_cloud(&cloud.spec) {
        return Ok(Err(Refusal::of(READY, "NotSupportedYet", true, sentence)));
    }
    if let Some(sentence) = revisions::of_a_later_format(ctx, owner) {
        return Ok(Err(Refusal::of(READY, "FormatUnknown", false, sentence)));
    }
    let mut clusters = facts::clusters(ctx);
    leave_what_ends(ctx, &mut clusters);
    revisions::read_again_what_is_lost(ctx, owner);
    let newest = revisions::newest(ctx, owner).await?;
    let planned = cloud::plan(&cloud::Request {
        installation: &ctx.installation,
        project: objects::name(project.as_ref()),
        name: &owner.name,
        spec: &cloud.spec,
        namespace: &namespace(cloud),
        clusters: &clusters,
        granted: &granted(ctx, &project, &clusters),
        held: &held_clusters(ctx, cloud),
        running: newest.as_ref().map(|stored| stored.running.as_ref()),
        now: ctx.world.clock.now_ms() / 1000,
    });
    let planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let stored = match (&planned.change, newest) {
        (None, Some(stored)) if revisions::mend(ctx, owner, &stored, &planned.sets).await? => Some(stored),
        (None, None) => None,
        (change, _) => {
            let draft = Draft {
                owner,
                at_least: status.revision.unwrap_or(0),
                digest: planned.plan_digest.clone(),
                inputs_digest: planned.inputs_digest.clone(),
                cause: change.as_ref().map_or(Cause::Update, |change| cause(&change.cause)),
                release: None,
                namespace: namespace(cloud),
                level: cloud.spec.level,
                logical_cloud: None,
                composite_app: None,
                apps: vec![cloud::APP.to_owned()],
                assignment: planned.assignment.clone(),
                sets: planned.sets.clone(),
                explanation: Vec::new(),
                limit: Limit::of(None, HISTORY),
            };
            match revisions::commit(ctx, draft).await? {
                Ok(stored) => Some(stored),
                Err(TooMuch { bytes, .. }) => {
                    let message =
                        format!("what is stored of the logical cloud would take {}", mebibytes(bytes));
                    return Ok(Err(Refusal::of(READY, "QuotaRejected", true, message)));
                }
            }
        }
    };
    if let Some(stored) = &stored {
        let wanted = combinations(&planned.assignment);
        revisions::retarget(ctx, owner, stored.spec.revision, &wanted, &uids(&clusters)).await?;
        status.revision = Some(stored.spec.revision);
        status.digest = Some(stored.spec.digest.clone());
        status.app_context = Some(stored.name.clone());
    }
    report(ctx, cloud, owner, &planned, status);
    Ok(Ok(()))
}

/// The cause of a change, as it is stored.
pub fn cause(text: &str) -> Cause {
    [Cause::Create, Cause::Update, Cause::Migrate, Cause::Rollback, Cause::Placement]
        .into_iter()
        .find(|cause| cause.as_str() == text)
        .unwrap_or_default()
}

/// An assignment without what it was rendered from: what shards want.
pub fn combinations(assignment: &Assignment) -> BTreeMap<ClusterId, Combination> {
    let sets = |apps: &BTreeMap<String, emco_engine::set::Assigned>| {
        apps.iter().map(|(app, assigned)| (app.clone(), assigned.set.clone())).collect()
    };
    assignment.iter().map(|(cluster, apps)| (cluster.clone(), sets(apps))).collect()
}

/// Identities known now.
pub fn uids(clusters: &BTreeMap<ClusterId, ClusterFacts>) -> BTreeMap<ClusterId, String> {
    clusters.iter().filter_map(|(id, facts)| Some((id.clone(), facts.uid.clone()?))).collect()
}

fn before(status: &LogicalCloudStatus) -> rollup::Before {
    rollup::Before {
        state: status.state.unwrap_or_default(),
        revision: status.revision,
        apps: BTreeMap::new(),
    }
}

/// What the shards say, into the status.
fn report(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    planned: &cloud::CloudPlan,
    status: &mut LogicalCloudStatus,
) {
    let shards = revisions::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let rolled = rollup::cloud(&rollup::DigInputs {
        shards: &parts,
        wanted: &combinations(&planned.assignment),
        revision: status.revision,
        placement: &[],
        ready_clusters: None,
        before: &before(status),
        approved: true,
        removing: false,
        suspended: false,
        abandoned: &[],
    });
    let not_granted = planned.members.not_granted.len() + planned.members.level_not_granted.len();
    status.state = Some(rolled.state);
    status.summary = Some(rolled.summary);
    status.clusters = Some(CloudClusters {
        not_granted: i64::try_from(not_granted).unwrap_or(i64::MAX),
        ..rolled.clusters
    });
    status.failing = rolled.failing;
    let generation = objects::generation(cloud);
    let mut message = rolled.ready.message;
    if not_granted > 0 {
        message.push_str(&format!("; {not_granted} named and not granted"));
    }
    if !planned.shrink_waits.is_empty() {
        message.push_str(&format!(
            "; {} leave when no deployment is there any more",
            planned.shrink_waits.len()
        ));
    }
    let verdict = if rolled.ready.status == "True" { Verdict::Ready } else { Verdict::Waiting };
    objects::verdict(ctx, status, generation, &verdict, rolled.ready.reason, &message);
}

/// Waits for the deployments, leaves the clusters, lets go.
async fn terminate(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    holders: &[String],
    mut status: LogicalCloudStatus,
) -> Reconciled {
    let generation = objects::generation(cloud);
    let waits = holders::waits_for(holders);
    objects::held(ctx, &mut status, generation, waits.as_deref());
    let message = if let Some(waits) = waits {
        waits
    } else {
        let give_up = GiveUp { gone: true, ..GiveUp::of(cloud, None) };
        if revisions::leave(ctx, cloud, owner, give_up).await? {
            return Ok(Outcome::Settled);
        }
        if revisions::end(ctx, owner, false).await? == Ending::Done {
            objects::remove_finalizer(ctx, cloud, finalizer::TERMINATE).await?;
            return Ok(Outcome::Settled);
        }
        let shards = revisions::shards(ctx, owner);
        let left: Vec<ClusterId> = results::of(&shards).into_keys().collect();
        let first = left.first().map(|id| format!(": {id}")).unwrap_or_default();
        status.summary = Some(Summary { clusters: Some(format!("0/{}", left.len())), ..Summary::default() });
        let mistyped = revisions::mistyped(cloud).map(|text| format!("; {text}")).unwrap_or_default();
        format!("{} clusters still to be left{first}{mistyped}", left.len())
    };
    objects::verdict(ctx, &mut status, generation, &Verdict::Waiting, "Terminating", &message);
    objects::write_status(ctx, cloud, cloud.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
