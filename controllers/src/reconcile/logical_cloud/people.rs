//! Keeps the credentials of a logical cloud's person: has clusters issue and renew them, writes them into Secrets, and takes them back.
//!
//! A credential is given on clusters that have all of the logical cloud, and renewed while the logical cloud wants the cluster. What it may do there
//! is for the bindings to say, which are the logical cloud's objects as everything else is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::fields::{Failing, Time};
use emco_crds::logical_cloud::{Kubeconfigs, LogicalCloudStatus};
use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_crds::{Cluster, LogicalCloud};
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::people::{self, Need, Stored, Wanted};
use emco_engine::rollup::People as Told;
use sha2::{Digest as _, Sha256};

use super::report;
use crate::api::key_queue::Key;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{events, meta};
use crate::people::index::Index;
use crate::people::remains::{self, Places};
use crate::people::secrets::{self, Secrets};
use crate::people::{Looked, Order, Refusal, issue};
use crate::reconcile::context::Context;
use crate::reconcile::{results, suspension};
use crate::remote::Admission;
use crate::remote::wire::cut;
use crate::store;
use crate::tenancy::facts;

/// A Secret of somebody else that is in the way is looked at again.
const TAKEN: Duration = Duration::from_mins(1);
/// Clusters are asked again after that for what the hub did not take.
const NOT_KEPT: Duration = Duration::from_mins(5);
/// So many tries that came to nothing are told, whatever the cause.
const QUIET_TRIES: u32 = 3;
/// Objects on clusters that an Event names.
const REMAINS: usize = 8;
/// In bytes.
const LONGEST_MESSAGE: usize = 256;
/// No clock makes a reconcile wait longer.
const LONGEST: Duration = Duration::from_hours(12);

/// How the credentials stand.
#[derive(Default)]
pub(super) struct Standing {
    /// Cluster by cluster, for the status.
    pub told: Told,
    /// When to look again.
    pub again: Option<Duration>,
}

impl Standing {
    fn look_again(&mut self, after: Duration) {
        let after = after.min(LONGEST);
        self.again = Some(self.again.map_or(after, |again| again.min(after)));
    }
}

fn key_of(cloud: &LogicalCloud) -> Key {
    (meta::namespace(cloud).to_owned(), meta::name(cloud).to_owned())
}

/// Takes everything back: nobody is named any more, or the logical cloud ends.
pub(super) async fn clear(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    status: &mut LogicalCloudStatus,
) -> Result<(), Failure> {
    let key = key_of(cloud);
    // The status says so before the first Secret is made.
    if cloud.status.as_ref().is_none_or(|status| status.kubeconfigs.is_none()) {
        ctx.people.forget(&key);
        status.kubeconfigs = None;
        return Ok(());
    }
    let secrets = Secrets::of(ctx, owner);
    ctx.people.forget(&key);
    let index = secrets.read().await?;
    secrets.clear(index).await?;
    // As long as the status has it, a process that begins looks again.
    if meta::deleting(cloud) {
        ctx.people.look_no_more(&key);
        status.kubeconfigs = None;
    } else if remains_are_told(ctx, cloud, owner, &key).await {
        status.kubeconfigs = None;
    }
    Ok(())
}

/// Says what the person may have left on clusters that would outlive the credentials. False while it is looked for.
async fn remains_are_told(ctx: &Context, cloud: &LogicalCloud, owner: &Owner, key: &Key) -> bool {
    match ctx.people.look(key) {
        Looked::UnderWay => false,
        Looked::Begins => {
            let further =
                cloud.spec.permissions.iter().flat_map(|one| one.namespaces.iter().flatten().cloned());
            let places = Places {
                clusters: results::of(&store::shards(ctx, owner)).into_keys().collect(),
                namespaces: further.chain([cloud.cluster_namespace().to_owned()]).collect(),
            };
            let (world, people, key) = (ctx.world.clone(), Arc::clone(&ctx.people), key.clone());
            tokio::spawn(async move {
                let found = remains::find(&world, &people, &key.0, &places).await;
                people.found(&key, found);
            });
            false
        }
        Looked::Found(found) => {
            if !found.is_empty() {
                let first: Vec<&str> = found.iter().take(REMAINS).map(String::as_str).collect();
                let more = found.len().saturating_sub(first.len());
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let said = format!(
                    "credentials of spec.user are taken back; on clusters are bindings and tokens' Secrets that are not EMCO's, and what they give \
                     holds until somebody deletes them: {}{more}",
                    first.join(", ")
                );
                tracing::warn!(namespace = owner.namespace, logical_cloud = owner.name, "{said}");
                events::emit(ctx, cloud, true, "RightsRemain", &said).await;
            }
            true
        }
    }
}

/// Clusters of a logical cloud.
struct Clusters {
    /// It wants to be there.
    wanted: BTreeSet<ClusterId>,
    /// All of it is there.
    applied: BTreeSet<ClusterId>,
}

/// Brings the credentials of a logical cloud that wants these clusters to where they should be; of one that names nobody there is nothing to say.
pub(super) async fn stand(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    project: &str,
    combinations: &BTreeMap<ClusterId, Combination>,
    status: &mut LogicalCloudStatus,
) -> Result<Standing, Failure> {
    let Some(wanted) = Wanted::of(&cloud.spec, project, &owner.name, cloud.cluster_namespace()) else {
        return Ok(Standing::default());
    };
    ctx.people.look_no_more(&key_of(cloud));
    let applied = report::applied_on(ctx, owner, combinations, status);
    // A credential is asked for by writes on the cluster.
    let (left_out, asked): (BTreeSet<ClusterId>, BTreeSet<ClusterId>) =
        combinations.keys().cloned().partition(|id| facts::is_by_git(ctx, id));
    let clusters = Clusters { wanted: asked, applied };
    let mut standing = follow(ctx, cloud, owner, &wanted, &clusters, status).await?;
    standing.told.left_out = left_out;
    Ok(standing)
}

/// Brings the credentials to where they should be. Nothing is waited for.
async fn follow(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    wanted: &Wanted,
    clusters: &Clusters,
    status: &mut LogicalCloudStatus,
) -> Result<Standing, Failure> {
    let key = key_of(cloud);
    let people = &ctx.people;
    let now = ctx.now();
    let mut standing = Standing::default();
    let index = match people.take_index(&key) {
        Some(index) => index,
        None => Secrets::of(ctx, owner).read().await?,
    };
    if let Some(name) = index.taken() {
        let message = secrets::taken(owner, name);
        for cluster in &clusters.wanted {
            standing.told.failing.push(row(cluster, Reason::Conflict.as_str(), &message, status, ctx));
        }
        standing.look_again(TAKEN);
        return Ok(standing);
    }
    people.retain(&key, |cluster| clusters.wanted.contains(cluster));
    let index = written(ctx, cloud, owner, wanted, clusters, index, &mut standing).await?;
    let stored = index.stored();
    people.keep(&key, index);

    let due: Vec<(&ClusterId, Need)> = clusters
        .wanted
        .iter()
        .map(|cluster| {
            let endpoint = people.endpoint(cluster);
            let spread = spread(&owner.hash, cluster);
            let met = stored.get(cluster);
            (cluster, people::need(wanted, met, endpoint.as_deref(), now, spread))
        })
        .collect();
    let suspended = suspension::of_project(&ctx.stores, &owner.namespace);
    // Where one has to be renewed, those that would follow soon are renewed along: each time is a write.
    let renewing = due.iter().any(|(_, need)| *need == Need::Renew);
    let soon = |cluster: &ClusterId, at: jiff::Timestamp| {
        let life = stored.get(cluster).map(|stored| stored.expires.duration_since(stored.issued));
        renewing && life.is_some_and(|life| at.duration_since(now) <= life / 20)
    };
    for (cluster, need) in due {
        let asks = match need {
            Need::Issue => clusters.applied.contains(cluster),
            Need::Renew => true,
            Need::Nothing(at) => {
                let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                standing.look_again(left + Duration::from_secs(1));
                soon(cluster, at)
            }
        };
        let before = stored.get(cluster).filter(|stored| wanted.is_met_by(stored));
        if asks && !suspended {
            ask(ctx, (&key, owner), cluster, wanted, before, &mut standing);
        }
        tell(ctx, cloud, (cluster, need), clusters, status, &mut standing);
    }
    let renewals = stored.iter().map(|(cluster, stored)| {
        people::renew_at(stored.issued, stored.expires, spread(&owner.hash, cluster))
    });
    let renew_at = people::first(renewals).map(Time);
    status.kubeconfigs = Some(Kubeconfigs { secret_prefix: secrets::prefix(&owner.name), renew_at });
    Ok(standing)
}

/// Writes what clusters issued, and takes out what is not wanted any more.
async fn written(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    wanted: &Wanted,
    clusters: &Clusters,
    index: Index,
    standing: &mut Standing,
) -> Result<Index, Failure> {
    let key = key_of(cloud);
    // Before a Secret is made the status says that there may be some: who ends the logical cloud then looks for them.
    let announced = cloud.status.as_ref().is_some_and(|status| status.kubeconfigs.is_some());
    if !announced {
        standing.look_again(Duration::from_secs(1));
        return Ok(index);
    }
    let mut issued = match ctx.people.take_issued(&key, wanted, ctx.world.clock.now_ms()) {
        Ok(issued) => issued,
        Err(wait) => {
            standing.look_again(wait);
            BTreeMap::new()
        }
    };
    issued.retain(|cluster, _| clusters.wanted.contains(cluster));
    // Another person's goes at once. One of another kind stays until the next is there.
    let gone = |(cluster, stored): &(ClusterId, Stored)| {
        !clusters.wanted.contains(cluster) || !wanted.is_of_person(stored)
    };
    let removed: BTreeSet<ClusterId> = index
        .stored()
        .into_iter()
        .filter(gone)
        .map(|(cluster, _)| cluster)
        .filter(|cluster| !issued.contains_key(cluster))
        .collect();
    let asked: Vec<ClusterId> = issued.keys().cloned().collect();
    let secrets = Secrets::of(ctx, owner);
    let index = match secrets.write(cloud, index, issued, &removed).await {
        Ok(index) => index,
        Err(failure) => {
            let Some(refusal) = not_kept(&failure).filter(|_| !asked.is_empty()) else { return Err(failure) };
            ctx.people.not_kept(&key, wanted, &asked, &refusal, ctx.world.clock.now_ms());
            return secrets.read().await;
        }
    };
    if !asked.is_empty() || !removed.is_empty() {
        let (issued, removed) = (asked.len(), removed.len());
        tracing::info!(
            namespace = owner.namespace,
            logical_cloud = owner.name,
            issued,
            removed,
            "credentials of a logical cloud's user were written"
        );
    }
    Ok(index)
}

/// What is said of credentials that the hub does not take: for a quota, a policy, or a Secret that nobody may change. Else it is tried again.
fn not_kept(failure: &Failure) -> Option<Refusal> {
    let (reason, message) = match failure {
        Failure::Hub(error) if error.code() == 403 => (Reason::Forbidden, error.to_string()),
        Failure::Hub(error) if error.code() == 422 => (Reason::Invalid, error.to_string()),
        Failure::Stored(message) => (Reason::Conflict, message.clone()),
        Failure::Hub(_) | Failure::Planning(_) => return None,
    };
    let message = cut(&format!("the hub does not keep what the cluster issued: {message}"), LONGEST_MESSAGE);
    Some(Refusal { reason: Some(reason.as_str()), message, pause: NOT_KEPT, longest: NOT_KEPT })
}

/// Has a cluster asked, unless it is already, or was a moment ago.
fn ask(
    ctx: &Context,
    (key, owner): (&Key, &Owner),
    cluster: &ClusterId,
    wanted: &Wanted,
    before: Option<&Stored>,
    standing: &mut Standing,
) {
    let people = &ctx.people;
    if people.is_asked(key, cluster) {
        return;
    }
    let tried = people.tried(key, cluster);
    let wait = tried.as_ref().map_or(0, |tried| tried.not_before_ms - ctx.world.clock.now_ms());
    if wait > 0 {
        standing.look_again(Duration::from_millis(u64::try_from(wait).unwrap_or_default()));
        return;
    }
    // When it answers, all logical clouds look again.
    let observed = ctx.connector.observation(cluster);
    if !observed.is_some_and(|seen| seen.connected() && seen.admission == Admission::Admitted) {
        return;
    }
    let Some(registered) = facts::registered(ctx, cluster).and_then(|found| registered(&found)) else {
        return;
    };
    let Some(begun) = people.begin(key, cluster, wanted) else { return };
    let order = Order {
        cluster: cluster.clone(),
        owner: owner.hash.clone(),
        wanted: wanted.clone(),
        before: before.map(|stored| stored.kind),
        failures: tried.map_or(0, |tried| tried.failures),
        registered,
    };
    let (world, people, key) = (ctx.world.clone(), Arc::clone(people), key.clone());
    tokio::spawn(async move {
        let issued = issue(&world, &people, &key.0, &order, &begun.stop).await;
        people.end(&key, &order.cluster, begun.number, issued);
    });
}

/// Namespace and name of the Secret that a cluster is registered with, and the key that is named.
fn registered(cluster: &Cluster) -> Option<(String, String, Option<String>)> {
    let reference = cluster.spec.access.kubeconfig()?;
    Some((meta::namespace(cluster).to_owned(), reference.name.clone(), reference.key.clone()))
}

/// Says how one cluster stands.
fn tell(
    ctx: &Context,
    cloud: &LogicalCloud,
    (cluster, need): (&ClusterId, Need),
    clusters: &Clusters,
    status: &LogicalCloudStatus,
    standing: &mut Standing,
) {
    let tried = ctx.people.tried(&key_of(cloud), cluster);
    let told = tried.as_ref().and_then(|tried| {
        let quiet = (tried.failures >= QUIET_TRIES).then_some(Reason::ServerError.as_str());
        Some((tried.refusal.reason.or(quiet)?, tried.refusal.message.as_str()))
    });
    if let Some((reason, message)) = told {
        standing.told.failing.push(row(cluster, reason, message, status, ctx));
        return;
    }
    if need != Need::Issue || !clusters.applied.contains(cluster) {
        return;
    }
    // A process that begins has not tried yet: what was said of the same wish stays said.
    let same = tried.is_none() && status.observed_generation == Some(meta::generation(cloud));
    let said =
        status.failing.iter().find(|row| row.cluster == cluster.as_str() && is_of_credentials(&row.reason));
    match said.filter(|_| same) {
        Some(said) => standing.told.failing.push(said.clone()),
        None => {
            standing.told.awaited.insert(cluster.clone());
        }
    }
}

fn is_of_credentials(reason: &str) -> bool {
    [Reason::CSRDenied, Reason::CSRNotSigned, Reason::CredentialRefused]
        .iter()
        .any(|one| one.as_str() == reason)
}

/// A cluster for `status.failing`, since when it was told first.
fn row(
    cluster: &ClusterId,
    reason: &str,
    message: &str,
    status: &LogicalCloudStatus,
    ctx: &Context,
) -> Failing {
    let known = status.failing.iter().find(|row| row.cluster == cluster.as_str() && row.reason == reason);
    Failing {
        cluster: cluster.to_string(),
        app: None,
        reason: reason.to_owned(),
        message: message.to_owned(),
        since: known.and_then(|row| row.since.clone()).or_else(|| Some(Time(ctx.now()))),
    }
}

/// Tells the clusters of a logical cloud, and logical clouds, apart: not all are renewed at one moment.
fn spread(owner: &str, cluster: &ClusterId) -> u64 {
    let digest: [u8; 32] = Sha256::new().chain_update(owner).chain_update(cluster.as_str()).finalize().into();
    let [a, b, c, d, ..] = digest;
    u64::from(u32::from_be_bytes([a, b, c, d]))
}
