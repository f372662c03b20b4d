//! Takes a cluster off the hub: the Cluster, the account on the cluster, and the Secret that `cluster add` made.
//!
//! The Secret goes last. Where this is interrupted after the Cluster was deleted, running it again finishes the job with that Secret.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::bail;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::{Cluster, cluster::Scheduling};
use kube::api::{DeleteParams, Preconditions};
use kube::{Client, ResourceExt as _};

use super::absence::find;
use super::args::RemoveArgs;
use super::diff::edge;
use super::hub::{self, Hub};
use super::scheduling::{HubCluster, holder, locate};
use super::{Outcome, print, watched};

mod account;
mod kept;
mod on_cluster;
mod secret;

pub use account::remove_account;
pub use kept::spaces;
pub use on_cluster::{Left, stays, unclaim};
pub use secret::{Ours, RELEASED, made_by_us};

/// A Cluster that is off the hub, and what is to be done for it still.
struct Gone {
    secret: Ours,
    /// The cluster with its identity, as the account of `cluster add`; `None` where that account is gone by now.
    client: Option<anyhow::Result<(Client, Option<String>)>>,
}

/// `kubectl emco cluster remove`.
pub async fn run(args: RemoveArgs) -> anyhow::Result<Outcome> {
    let id = args.named.cluster.clone();
    let hub = hub::connect(&args.named.hub).await?;
    let spaces = kept::spaces_of(&hub).await;
    match Box::pin(remove(&hub, &id, args.keep_account, (args.timeout, &spaces))).await? {
        Some(outcome) => Ok(outcome),
        None => bail!("there is no Cluster {id} on the hub {}", hub.url),
    }
}

/// The same on a hub; `None` where neither the Cluster is there nor what an interrupted run left. `spaces` are namespaces that logical
/// clouds have, or had, on clusters.
pub async fn remove(
    hub: &Hub,
    id: &str,
    keep_account: bool,
    (limit, spaces): (Duration, &BTreeSet<String>),
) -> anyhow::Result<Option<Outcome>> {
    let place = locate(hub, id).await?;
    let found = find(&place.api, &place.name).await;
    let gone = match found.map_err(|error| hub.sentence(&error, "read cluster", id))? {
        Some(cluster) => match take_off(hub, &place, &cluster, id, limit).await? {
            Some(gone) => gone,
            None => return Ok(Some(Outcome::NotAsWanted)),
        },
        None => match interrupted(hub, &place, id).await? {
            Some(gone) => gone,
            None => return Ok(None),
        },
    };
    let clean = match gone.client {
        Some(client) => on_cluster::leave(hub, &place, id, client, (keep_account, spaces)).await?,
        None => print("on the cluster everything was removed before\n").map(|()| true)?,
    };
    let deleted = match gone.secret {
        Ours::Yes(name) => secret::delete(hub, &place, &name, clean && !keep_account).await?,
        Ours::No(why) => print(&format!("{why}\n")).map(|()| true)?,
    };
    Ok(Some(if clean && deleted { Outcome::AsWanted } else { Outcome::NotAsWanted }))
}

/// Deletes the Cluster and waits until it is gone; `None` when that takes too long, which is said.
async fn take_off(
    hub: &Hub,
    place: &HubCluster,
    cluster: &Cluster,
    id: &str,
    limit: Duration,
) -> anyhow::Result<Option<Gone>> {
    if let Some(holder) = holder(cluster) {
        let drained = cluster.spec.scheduling == Scheduling::Drained;
        let cure = if drained {
            "change its placement, or delete it".to_owned()
        } else {
            format!("kubectl emco cluster drain {id}")
        };
        bail!("{holder} still has something on {id}, which would stay there: first {cure}");
    }
    // Read before it goes: with it, the account on the cluster is removed.
    let secret = made_by_us(hub, place, cluster).await?;
    let uid = cluster.status.as_ref().and_then(|status| status.uid.clone());
    let client = edge::open(hub, cluster, uid.as_deref()).await;
    // What cannot be deleted in the end is refused before anything is.
    if let Ours::Yes(name) = &secret {
        secret::try_delete(hub, place, name).await?;
    }
    let preconditions = Preconditions { uid: cluster.uid(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match place.api.delete(&place.name, &params).await {
        // It was being deleted, and went at this moment.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(hub.sentence(&error, "delete cluster", id)),
        Ok(_) => {}
    }
    if let Some(waits) = until_gone(place, limit).await? {
        eprintln!(
            "warning: Cluster {id} is not gone after {limit:?}: {waits}. The account on the cluster and the Secret are there still: run \
             this again to finish"
        );
        return Ok(None);
    }
    print(&format!("{id} is removed from the hub\n"))?;
    Ok(Some(Gone { secret, client: Some(client) }))
}

/// What an earlier run left that did not come to its end.
async fn interrupted(hub: &Hub, place: &HubCluster, id: &str) -> anyhow::Result<Option<Gone>> {
    let left = secret::left(hub, place).await;
    let left =
        left.map_err(|error| error.context(format!("there is no Cluster {id} on the hub {}", hub.url)))?;
    let Some(secret::OfGone { name, kubeconfig, marked }) = left else { return Ok(None) };
    secret::try_delete(hub, place, &name).await?;
    print(&format!(
        "{id} is off the hub, and Secret {}/{name} of `cluster add` is there still: finishing what was interrupted\n",
        place.namespace
    ))?;
    let client = match kubeconfig {
        Ok(kubeconfig) => edge::open_stored(&kubeconfig, None).await,
        Err(error) => Err(error),
    };
    // The account that was removed opens nothing any more.
    let client = Some(client).filter(|client| client.is_ok() || !marked);
    Ok(Some(Gone { secret: Ours::Yes(name), client }))
}

/// Waits until a Cluster is gone; what it waits for, when that takes too long.
async fn until_gone(place: &HubCluster, limit: Duration) -> anyhow::Result<Option<String>> {
    let judge = |cluster: Option<&Cluster>| {
        let Some(cluster) = cluster else { return Ok(()) };
        let condition = cluster.status.as_ref().and_then(|status| status.condition(types::IN_USE));
        Err(condition.map_or_else(|| UNSEEN.to_owned(), |condition| condition.message.clone()))
    };
    Ok(watched::until(place.api.clone(), &place.name, limit, UNSEEN, judge).await?.err())
}

const UNSEEN: &str = "no operator has looked at it";
