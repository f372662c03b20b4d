//! Reconciles Clusters: connects them, reports what was observed, and says what uses them.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::cluster::{ClusterAbandoned, ClusterInUse, ClusterStatus, CredentialFacts};
use emco_crds::conditions::types;
use emco_crds::fields::Time;
use emco_crds::names::finalizer;
use emco_crds::{Cluster, Conditioned, SyncShard};
use emco_engine::conditions;
use emco_engine::holders;
use emco_engine::identity::ClusterId;

use crate::abandon;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::events;
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::object::transitions;
use crate::reconcile::context::Context;
use crate::reconcile::restored;
use crate::remote::kubeconfig::Life;
use crate::remote::{Admission, Claim, State, Target, claim};
use crate::store;
use crate::tenancy::facts;

mod access;
mod by_git;
mod expiry;
mod identity;
mod kind;
mod leaving;
mod observed;
mod proof;
mod renewal;
mod requested;

pub use access::Accesses;
use access::Way;
pub use identity::Admitted;
use renewal::Renewal;
pub use renewal::Renewals;

/// Reason while the first answer is awaited.
const CONNECTING: &str = "Connecting";
/// Reason of a cluster that answers as it was, and that work may be done on.
const REACHABLE: &str = "Reachable";

/// How a cluster stands, as its condition Ready says it.
struct Judged {
    verdict: ReadyState,
    reason: &'static str,
    message: String,
}

/// What was found out about a cluster.
struct Looked {
    judged: Judged,
    /// Of its credentials, where they say so.
    life: Option<Life>,
    /// When its token is to be looked at again.
    due: Option<Duration>,
}

/// Brings one cluster to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(cluster) = ctx.stores.clusters.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = cluster.status.clone().unwrap_or_default();
    let generation = meta::generation(cluster.as_ref());
    let Some(id) = facts::id(ctx, &cluster) else {
        if meta::deleting(cluster.as_ref()) {
            return release(ctx, &cluster, None).await;
        }
        ctx.accesses.gone(&access::key(&cluster));
        let message = format!(
            "no ClusterProvider owns namespace {namespace}: create a ClusterProvider with spec.namespace {namespace}, or move the Cluster"
        );
        status::set_ready(ctx, &mut status, generation, &ReadyState::Waiting, "NoClusterProvider", &message);
        status::write(ctx, cluster.as_ref(), cluster.status.as_ref(), &status).await?;
        return Ok(Outcome::Settled);
    };
    let shards = store::shards_with_row(ctx, &id);
    let holders = holders::cluster(&id, shards.iter().map(AsRef::as_ref));
    // Written only when it becomes or ceases to be true: an example that stays right is kept.
    status.in_use = match (holders.first(), status.in_use.take()) {
        (None, _) => None,
        (Some(_), Some(known)) if known.example.as_ref().is_some_and(|e| holders.contains(e)) => Some(known),
        (Some(first), _) => Some(ClusterInUse { state: "InUse".to_owned(), example: Some(first.clone()) }),
    };
    let owners = abandon::owners_on(ctx, &id);
    status.abandoned = owners.first().map(|first| ClusterAbandoned {
        owners: i64::try_from(owners.len()).unwrap_or(i64::MAX),
        example: first.clone(),
    });
    let deleting = meta::deleting(cluster.as_ref());
    let mut waits = deleting.then(|| waits_for(ctx, &id, &holders, &shards)).flatten();
    if deleting && waits.is_none() {
        // The watch may be behind, and this process may not know what it wrote: only the hub does.
        waits = proof::waits_for(ctx, &id).await?;
        if waits.is_none() {
            return release(ctx, &cluster, Some(&id)).await;
        }
    }
    if finalizers::add(ctx, cluster.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status.provider = Some(id.provider().to_owned());
    status.id = Some(id.to_string());
    requested::begin(ctx, &cluster, &id, &status);
    let Looked { judged, life, due } = judge(ctx, &cluster, &id, &mut status).await?;
    reachable(ctx, &id, &judged, generation, &mut status);
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    if !awaits_again(&judged, generation, &status) {
        let Judged { verdict, reason, message } = judged;
        let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason, message);
        status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
    }
    requested::end(ctx, &cluster, &id, &mut status);
    let written = status::write(ctx, cluster.as_ref(), cluster.status.as_ref(), &status).await?;
    if written && let Some(warning) = expiry::news(cluster.status.as_ref(), &status) {
        events::emit(ctx, cluster.as_ref(), true, &warning.reason, &warning.message).await;
    }
    Ok(expiry::look_again(life, due, ctx.now()))
}

/// What the deletion of a cluster waits for, by these shards.
fn waits_for(ctx: &Context, id: &ClusterId, holders: &[String], shards: &[Arc<SyncShard>]) -> Option<String> {
    holders::waits_for(holders).or_else(|| leaving::waits_for(ctx, id, shards.iter().map(AsRef::as_ref)))
}

/// Whether all that is new is that this process has not heard of the cluster yet: what was last seen of it stays, or every restart
/// would write of every cluster that it left and that it came.
fn awaits_again(judged: &Judged, generation: i64, status: &ClusterStatus) -> bool {
    let seen =
        status.condition(types::READY).is_some_and(|ready| ready.observed_generation == Some(generation));
    // What was wrong with the credentials may be mended now.
    judged.reason == CONNECTING && seen && status.is_true(types::CREDENTIALS_VALID)
}

/// Says whether the cluster answers as the cluster it was. The time of this condition is what `unreachable.after` counts from;
/// while the first answer is awaited it stays as it is.
fn reachable(ctx: &Context, id: &ClusterId, judged: &Judged, generation: i64, status: &mut ClusterStatus) {
    let observed = ctx.connector.observation(id);
    let answers = match observed.as_ref().map(|observed| &observed.state) {
        Some(State::Connecting) => return,
        Some(State::Connected) => judged.reason != "ClusterReplaced",
        Some(State::Failed { .. }) | None => false,
    };
    let (value, reason, message) = if answers {
        ("True", "Reachable", "the last probe was answered")
    } else {
        ("False", judged.reason, judged.message.as_str())
    };
    let now = ctx.now();
    conditions::set(status.conditions_mut(), types::REACHABLE, value, reason, message, generation, now);
    match status.condition(types::REACHABLE).filter(|_| !answers) {
        Some(condition) => ctx.unreachable.begin(id, condition.last_transition_time.0, now),
        None => ctx.unreachable.end(id),
    }
}

/// Lets go of a cluster that nobody holds: its connection, its Secret, itself.
async fn release(ctx: &Context, cluster: &Cluster, id: Option<&ClusterId>) -> Reconciled {
    if let Some(id) = id {
        give_back(ctx, cluster, id).await;
        ctx.connector.forget(id);
        ctx.publishers.forget_cluster(id);
        ctx.unreachable.end(id);
        ctx.people.endpoint_gone(id);
        ctx.renewals.forget(id);
        ctx.admitted.forget(id);
    }
    ctx.accesses.gone(&access::key(cluster));
    if let Some(secret) = access::secret(ctx, cluster).await?
        && !access::secret_is_shared(ctx, cluster)
    {
        finalizers::remove(ctx, &secret, finalizer::IN_USE).await?;
    }
    if finalizers::remove(ctx, cluster, finalizer::IN_USE).await? {
        transitions::removed(ctx, cluster);
    }
    Ok(Outcome::Settled)
}

/// Takes our claim off a cluster that is let go of. One that cannot be reached keeps it: the next hub is told how to take it. Of one that
/// is written to through Git the claim is on the branch, and stays for the others there.
async fn give_back(ctx: &Context, cluster: &Cluster, id: &ClusterId) {
    if cluster.spec.access.git_ops.is_some() {
        return;
    }
    let Some(observed) = ctx.connector.observation(id) else { return };
    let known = cluster.status.as_ref().and_then(|status| status.uid.as_ref());
    let ours =
        matches!(&observed.claim, Claim::Held { installation, .. } if *installation == ctx.installation.id);
    if !ours || known.is_none() || known != observed.uid.as_ref() || observed.admission != Admission::Admitted
    {
        return;
    }
    let Some(server) = ctx.world.edges.get(id) else { return };
    if let Err(error) = claim::give_back(server.as_ref(), &ctx.installation.id).await {
        tracing::warn!(cluster = %id, %error, "the claim of this hub stays on a cluster that is let go of");
    }
}

/// Reads the kubeconfig, wants the connection, and judges what is seen through it.
async fn judge(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    status: &mut ClusterStatus,
) -> Result<Looked, Failure> {
    by_git::register(ctx, cluster, id, status);
    let refuse = |ctx: &Context, reason, message: String| {
        ctx.connector.forget(id);
        let judged = Judged { verdict: ReadyState::Waiting, reason, message };
        Ok(Looked { judged, life: None, due: None })
    };
    let access = access::read(ctx, cluster).await?;
    // Of credentials that are gone or cannot be read nobody knows when they end.
    status.credentials = None;
    let Some(access) = access else {
        let message = format!(
            "Secret {} does not exist in namespace {}: create it with the cluster's kubeconfig under the key kubeconfig, or change {}",
            access::secret_name(cluster).unwrap_or_default(),
            meta::namespace(cluster),
            cluster.spec.access.kubeconfig_field()
        );
        credentials(ctx, cluster, status, Err(("SecretNotFound", &message)));
        return refuse(ctx, "SecretNotFound", message);
    };
    match &access.way {
        Err(error) => {
            let message = format!("Secret {}: {}", access.secret, error.message);
            credentials(ctx, cluster, status, Err((error.reason, &message)));
            refuse(ctx, error.reason, message)
        }
        Ok(way) => Ok(look(ctx, cluster, id, (access.secret.as_str(), way), status).await),
    }
}

/// Wants the connection, and judges what is seen through it.
async fn look(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    (secret, way): (&str, &Way),
    status: &mut ClusterStatus,
) -> Looked {
    endpoint_seen(ctx, id, way);
    ctx.connector.set_target(id.clone(), target(ctx, cluster, status, way));
    let seen = ctx.connector.observation(id).unwrap_or_default();
    let mut judged = observed::observe(ctx, cluster, id, &seen, status).await;
    // Not where it is written to through Git: to renew a token is to write there.
    let renewal = if judged.reason == REACHABLE {
        renewal::renew(ctx, cluster, id, status.uid.as_deref(), way.renewed.as_ref()).await
    } else {
        Renewal::default()
    };
    let through_git = cluster.spec.access.git_ops.is_some();
    let life = renewal.renewed.or_else(|| way.credentials.life());
    status.credentials = life.map(|life| CredentialFacts { expires: Some(Time(life.ends)) });
    if let Some(life) = life {
        let renewable = !through_git && way.renewed.is_some();
        expiry::say(ctx, cluster, (id, secret), (life, &renewal, renewable), &mut judged, status);
    }
    let due = renewal.after.or_else(|| through_git.then(|| by_git::look_again(&judged)));
    Looked { judged, life, due }
}

/// The way to reach the cluster.
fn target(ctx: &Context, cluster: &Cluster, status: &ClusterStatus, way: &Way) -> Target {
    Target {
        credentials: way.credentials.clone(),
        version: way.version.clone(),
        // A process that begins must not go on with what waits to be confirmed.
        identity: status.uid.clone().filter(|_| status.hub_restored.is_none()),
        installation: ctx.installation.id.clone(),
        hub_version: restored::hub_version(ctx, cluster),
        registered: cluster.metadata.creation_timestamp.as_ref().map(|time| time.0),
        by_git: cluster.spec.access.git_ops.is_some(),
    }
}

/// People's kubeconfigs name the cluster as it is reached: where that is another way now, their logical clouds look again.
fn endpoint_seen(ctx: &Context, id: &ClusterId, way: &Way) {
    let Some(endpoint) = &way.endpoint else { return };
    if ctx.people.endpoint_seen(id, endpoint) {
        for cloud in ctx.stores.clouds.sorted().iter().filter(|cloud| cloud.spec.user.is_some()) {
            ctx.people.wake.enqueue(meta::namespace(cloud.as_ref()), meta::name(cloud.as_ref()));
        }
    }
}

fn credentials(
    ctx: &Context,
    cluster: &Cluster,
    status: &mut ClusterStatus,
    valid: Result<(&str, &str), (&str, &str)>,
) {
    let generation = meta::generation(cluster);
    let (state, reason, message) = match valid {
        Ok((reason, message)) => ("True", reason, message),
        Err((reason, message)) => ("False", reason, message),
    };
    let now = ctx.now();
    conditions::set(
        status.conditions_mut(),
        types::CREDENTIALS_VALID,
        state,
        reason,
        message,
        generation,
        now,
    );
}
