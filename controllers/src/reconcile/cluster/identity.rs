//! Judges whether what answers behind a Cluster is the cluster it was, registered once and ours to work on. Until that
//! is judged nothing is applied there, and nothing removed.

use std::sync::Arc;

use emco_crds::Cluster;
use emco_crds::cluster::{ClusterStatus, HubRestored};
use emco_crds::fields::Time;
use emco_engine::identity::ClusterId;

use super::{CONNECTING, Judged, by_git};
use crate::object::meta;
use crate::object::status::ReadyState;
use crate::reconcile::context::Context;
use crate::reconcile::restored::{self, confirmation, confirmed};
use crate::remote::{Admission, Claim, Observation, claim};
use crate::stores::indexes;
use crate::tenancy::facts;

mod admitted;

pub use admitted::Admitted;

/// Reason while nobody confirmed that a hub that was restored from a backup may work on a cluster that knows more.
const HUB_RESTORED: &str = "HubRestored";

/// What was found out about who a cluster is.
pub(super) enum Identity {
    /// It is who it was, and ours; with what a person should know besides.
    Fine(Option<String>),
    /// Nothing may be done there.
    Not(Judged),
}

/// Judges, tells the connection, and claims a cluster that belongs to nobody.
pub(super) async fn judge(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    observed: &Observation,
    status: &mut ClusterStatus,
) -> Identity {
    let Some(uid) = observed.uid.as_deref() else { return Identity::Fine(None) };
    let refused = match who(ctx, cluster, id, uid, status).or_else(|| first(ctx, id, uid, status)) {
        Some(refused) => Some(refused),
        // The claim is on the branch: nothing is read or written on the cluster for it.
        None if cluster.spec.access.git_ops.is_some() => match by_git::admission(ctx, cluster) {
            Ok(()) => {
                status.uid = Some(uid.to_owned());
                ctx.connector.admit(id, uid, Admission::Admitted);
                return Identity::Fine(None);
            }
            Err(refused) => Some(refused),
        },
        None => match claimed(ctx, cluster, id, observed, status).await {
            Ok(note) => {
                status.uid = Some(uid.to_owned());
                status.hub_restored = None;
                ctx.connector.admit(id, uid, Admission::Admitted);
                return Identity::Fine(note);
            }
            Err(Some(refused)) => Some(refused),
            Err(None) => None,
        },
    };
    ctx.admitted.forget(id);
    let Some(judged) = refused else {
        let message = "its claim is being read again".to_owned();
        return Identity::Not(Judged { verdict: ReadyState::Waiting, reason: CONNECTING, message });
    };
    let (reason, message) = (judged.reason, judged.message.clone());
    ctx.connector.admit(id, uid, Admission::Refused { reason, message });
    Identity::Not(judged)
}

fn annotate(cluster: &Cluster, what: &str) -> String {
    restored::annotate("ecl", cluster, what)
}

/// Another cluster than before, or one that is registered already.
fn who(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    uid: &str,
    status: &ClusterStatus,
) -> Option<Judged> {
    let known = status.uid.as_deref();
    let answer = claim::shell_safe(uid);
    if let Some(known) = known.filter(|known| *known != uid && !confirmed(cluster, &answer)) {
        let message = format!(
            "another cluster answers behind {id}: its kube-system has uid {uid}, {known} was registered. Nothing is applied or removed there. Register it under another name; or, where the old one is gone for good and this one takes its place: {}",
            annotate(cluster, &answer)
        );
        return Some(Judged { verdict: ReadyState::Stalled, reason: "ClusterReplaced", message });
    }
    let twin = twin(ctx, cluster, uid, known == Some(uid))?;
    let name =
        facts::id(ctx, &twin).map_or_else(|| meta::name(twin.as_ref()).to_owned(), |id| id.to_string());
    Some(twice(&name, meta::deleting(twin.as_ref()), uid))
}

/// The Cluster that has the API server. The one whose status names the UID keeps it; among several, or where none does yet, the older
/// object, then the smaller name.
fn twin(ctx: &Context, cluster: &Cluster, uid: &str, recorded: bool) -> Option<Arc<Cluster>> {
    let age = |c: &Cluster| {
        (c.metadata.creation_timestamp.clone(), c.metadata.namespace.clone(), c.metadata.name.clone())
    };
    let precedes = |other: &Arc<Cluster>| age(other) < age(cluster);
    let of = |other: &Cluster| other.status.as_ref().and_then(|status| status.uid.clone());
    let others = |all: Vec<Arc<Cluster>>| {
        let others = all.into_iter().filter(|other| meta::uid(other.as_ref()) != meta::uid(cluster));
        others.min_by_key(|other| age(other))
    };
    let mut named = ctx.stores.clusters.indexed(indexes::IDENTITY, uid);
    named.retain(|other| of(other).as_deref() == Some(uid) && (!recorded || precedes(other)));
    others(named).or_else(|| {
        let mut seen: Vec<Arc<Cluster>> = Vec::new();
        for id in ctx.connector.seen_as(uid).iter().filter(|_| !recorded) {
            let connected = ctx.connector.observation(id).is_some_and(|seen| seen.connected());
            seen.extend(facts::registered(ctx, id).filter(|_| connected));
        }
        seen.retain(|other| of(other).is_none() && precedes(other));
        others(seen)
    })
}

/// Another Cluster of the same API server whose admission no status tells yet.
fn first(ctx: &Context, id: &ClusterId, uid: &str, status: &ClusterStatus) -> Option<Judged> {
    if status.uid.as_deref() == Some(uid) {
        ctx.admitted.forget(id);
        return None;
    }
    let waits = |other: &ClusterId| {
        facts::registered(ctx, other).is_some_and(|holder| {
            holder.status.as_ref().and_then(|status| status.uid.as_deref()) != Some(uid)
        })
    };
    let other = ctx.admitted.take(uid, id, waits)?;
    Some(twice(&other.to_string(), false, uid))
}

fn twice(name: &str, deleting: bool, uid: &str) -> Judged {
    let help = if deleting {
        format!(
            "{name} is being deleted and waits for what runs there: set spec.scheduling: Drained on it, and this one takes over when it is gone"
        )
    } else {
        "delete one of the two Clusters".to_owned()
    };
    let message = format!(
        "this cluster is registered already as {name} (its kube-system has the same uid {uid}): {help}"
    );
    Judged { verdict: ReadyState::Stalled, reason: "SameClusterTwice", message }
}

/// Whose hub the cluster belongs to. `Err(None)`: it has to be read again.
async fn claimed(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    observed: &Observation,
    status: &mut ClusterStatus,
) -> Result<Option<String>, Option<Judged>> {
    let ours = ctx.installation.id.as_str();
    if let Some(seen) = unconfirmed(ctx, cluster, id, observed, status).await? {
        // Another restore may find the same mark: what was confirmed then confirms nothing now.
        let known = status.hub_restored.take().filter(|known| known.seen == seen);
        let restored =
            known.unwrap_or_else(|| HubRestored { seen: seen.clone(), since: Some(Time(ctx.now())) });
        let answer = confirmation(&restored);
        status.hub_restored = Some(restored);
        if !confirmed(cluster, &answer) {
            let message = format!(
                "this hub was restored from a backup: {id} was worked on at version {seen} of the hub's store, which the restored one had not reached. Nothing is applied or removed there until somebody confirms that what this hub knows is to be put there: {}",
                annotate(cluster, &answer)
            );
            return Err(Some(Judged { verdict: ReadyState::Stalled, reason: HUB_RESTORED, message }));
        }
        if let before @ Claim::Held { since, .. } = &observed.claim {
            let Some(server) = ctx.world.edges.get(id) else { return Err(None) };
            if let Err(error) = claim::take(server.as_ref(), before, ours, since).await {
                tracing::warn!(cluster = %id, %error, "the mark of the hub before could not be taken off");
            }
            ctx.connector.refresh_apis(id);
            return Err(None);
        }
    }
    match &observed.claim {
        Claim::Unknown => Ok(None),
        Claim::Held { installation, .. } if installation == ours => Ok(None),
        Claim::Unreadable(why) => Ok(Some(unclaimed(why))),
        Claim::Held { installation, since, .. }
            if !confirmed(cluster, &claim::confirmation(installation, since)) =>
        {
            let message = format!(
                "{} To move it here: {}",
                claim::refusal(id, &observed.claim),
                annotate(cluster, &claim::confirmation(installation, since))
            );
            Err(Some(Judged { verdict: ReadyState::Stalled, reason: "ClaimedByAnotherHub", message }))
        }
        before => {
            let Some(server) = ctx.world.edges.get(id) else { return Err(None) };
            let since = ctx.now().to_string();
            match claim::take(server.as_ref(), before, ours, &since).await {
                Ok(()) => {
                    ctx.connector.refresh_apis(id);
                    // Until it is read again this is known from the answer alone.
                    Ok(None)
                }
                Err(error) if matches!(error.code(), 401 | 403) => Ok(Some(unclaimed(&error.to_string()))),
                Err(error) => {
                    tracing::warn!(cluster = %id, %error, "the cluster could not be claimed");
                    ctx.connector.refresh_apis(id);
                    Err(None)
                }
            }
        }
    }
}

/// What has to be confirmed before a hub that was restored from a backup works on the cluster. That it was is seen only until its
/// store has come as far again, by writes of whatever kind; so once it was seen, the status keeps it until it is confirmed.
async fn unconfirmed(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    observed: &Observation,
    status: &ClusterStatus,
) -> Result<Option<String>, Option<Judged>> {
    let known = status.hub_restored.as_ref().map(|restored| restored.seen.clone());
    let seen = match &observed.claim {
        // Without a mark: nothing was done there yet, or what was done is confirmed.
        Claim::Held { installation, seen, .. } if *installation == ctx.installation.id => *seen,
        Claim::Held { .. } => return Ok(None),
        Claim::Unknown | Claim::Absent | Claim::Unreadable(_) => return Ok(known),
    };
    // What was judged and could not be written to the status counts, too.
    let waits = known.is_some()
        || matches!(&observed.admission, Admission::Refused { reason, .. } if *reason == HUB_RESTORED);
    if seen == 0 || (!waits && hub_reaches(ctx, cluster, id, seen).await?) {
        return Ok(None);
    }
    Ok(Some(seen.to_string()))
}

/// True where the hub's store has come as far as this. `Err(None)`: that is not known.
async fn hub_reaches(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    seen: u64,
) -> Result<bool, Option<Judged>> {
    restored::hub_reaches(ctx, cluster, seen).await.map_err(|error| {
        tracing::warn!(cluster = %id, %error, "how far the hub has come is not known");
        None
    })
}

fn unclaimed(why: &str) -> String {
    format!(
        "it is not claimed for this hub, as the credentials may not keep ConfigMap {}/hub there, and another hub would not be noticed: {why}",
        claim::NAMESPACE
    )
}
