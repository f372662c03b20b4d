//! Decides whether a cluster's Secret on the hub goes with its Cluster, and deletes it.

use anyhow::bail;
use emco_crds::Cluster;
use emco_crds::names::manager;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cli::absence::is_absence;
use crate::cli::add::secret_name;
use crate::cli::diff::edge;
use crate::cli::hub::Hub;
use crate::cli::print;
use crate::cli::scheduling::HubCluster;

/// On what holds the credentials of an account that was removed, or is being removed: they are worth nothing.
pub const RELEASED: &str = "emco.io/released";

/// Whether a Secret goes with its Cluster.
pub enum Ours {
    /// The name of the Secret.
    Yes(String),
    /// Why it stays.
    No(String),
}

/// Whether the Secret of a Cluster was made by this program, and nobody else uses it.
pub async fn made_by_us(hub: &Hub, place: &HubCluster, cluster: &Cluster) -> anyhow::Result<Ours> {
    let Some(reference) = cluster.spec.access.kubeconfig() else {
        return Ok(Ours::No("it named no Secret".to_owned()));
    };
    let (name, namespace) = (reference.name.clone(), &place.namespace);
    let what = format!("{namespace}/{name}");
    let Some(secret) = read(hub, place, &name).await? else {
        return Ok(Ours::No(format!("Secret {what} is not there")));
    };
    if !is_ours(&secret) {
        return Ok(Ours::No(format!("Secret {what} stays: it was not made by kubectl emco")));
    }
    Ok(match user(hub, place, &name).await? {
        Some(other) => Ours::No(format!("Secret {what} stays: Cluster {other} uses it, too")),
        None => Ours::Yes(name),
    })
}

/// The Secret that `cluster add` made for a Cluster that is not there any more.
pub struct OfGone {
    pub name: String,
    pub kubeconfig: anyhow::Result<String>,
    /// Whether its account is gone.
    pub marked: bool,
}

/// Finds it.
pub async fn left(hub: &Hub, place: &HubCluster) -> anyhow::Result<Option<OfGone>> {
    let name = secret_name(&place.name);
    let Some(secret) = read(hub, place, &name).await? else { return Ok(None) };
    if !is_ours(&secret) || user(hub, place, &name).await?.is_some() {
        return Ok(None);
    }
    let marked = secret.annotations().contains_key(RELEASED);
    Ok(Some(OfGone { name, marked, kubeconfig: edge::kubeconfig_in(secret, None) }))
}

async fn read(hub: &Hub, place: &HubCluster, name: &str) -> anyhow::Result<Option<Secret>> {
    let found = secrets(hub, place).get_opt(name).await;
    found.map_err(|error| hub.sentence(&error, "read secret", &format!("{}/{name}", place.namespace)))
}

fn secrets(hub: &Hub, place: &HubCluster) -> Api<Secret> {
    Api::namespaced(hub.client.clone(), &place.namespace)
}

fn is_ours(secret: &Secret) -> bool {
    secret.managed_fields().iter().any(|fields| fields.manager.as_deref() == Some(manager::CLI))
}

/// Another Cluster that names the Secret.
async fn user(hub: &Hub, place: &HubCluster, name: &str) -> anyhow::Result<Option<String>> {
    let all = hub.list(place.api.clone(), &ListParams::default(), "clusters", Some(&place.namespace)).await?;
    let uses = |other: &&Cluster| {
        let reference = other.spec.access.kubeconfig();
        other.name_any() != place.name && reference.is_some_and(|reference| reference.name == name)
    };
    Ok(all.iter().find(uses).map(kube::ResourceExt::name_any))
}

/// Asks the hub whether the Secret could be deleted.
pub async fn try_delete(hub: &Hub, place: &HubCluster, name: &str) -> anyhow::Result<()> {
    match secrets(hub, place).delete(name, &DeleteParams::default().dry_run()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => {
            let refused = hub.sentence(&error, "delete secret", &format!("{}/{name}", place.namespace));
            bail!("{refused:#}. Nothing was changed")
        }
        Ok(_) => Ok(()),
    }
}

/// Deletes the Secret; whether it is gone, which is said. One that stays although its account is gone is marked, so that a later run
/// does not look for that account.
pub async fn delete(hub: &Hub, place: &HubCluster, name: &str, account_gone: bool) -> anyhow::Result<bool> {
    let what = format!("{}/{name}", place.namespace);
    match secrets(hub, place).delete(name, &DeleteParams::default()).await {
        Err(error) if is_absence(&error, name) => {
            print(&format!("Secret {what} is not there\n")).map(|()| true)
        }
        Err(error) => {
            if account_gone {
                let patch = Patch::Merge(json!({"metadata": {"annotations": {RELEASED: "true"}}}));
                // Who may not write it is told once more of an account that may be there.
                let _ = secrets(hub, place).patch(name, &PatchParams::default(), &patch).await;
            }
            eprintln!(
                "warning: Secret {what} stays on the hub, with the credentials of the cluster: {:#}. Run this again, or delete it: kubectl \
                 delete secret {name} -n {}",
                hub.sentence(&error, "delete secret", &what),
                place.namespace
            );
            Ok(false)
        }
        Ok(_) => print(&format!("Secret {what} is deleted\n")).map(|()| true),
    }
}
