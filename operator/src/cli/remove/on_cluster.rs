//! Removes EMCO's account and claim from a cluster, or names what stays, with the commands for a person with rights there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use emco_crds::Cluster;
use emco_crds::names::{label, object};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};

use super::{kept, remove_account};
use crate::cli::absence::{find, is_absence};
use crate::cli::add::ACCOUNT;
use crate::cli::hub::{Hub, chain, is_forbidden};
use crate::cli::print;
use crate::cli::scheduling::HubCluster;
use crate::cli::uninstall::{id as id_of, installation};

/// Selects namespaces that logical clouds made. One that was released, since it has objects of others, has no owner any more.
fn of_clouds() -> String {
    format!("{},{}", label::PROJECT, label::OWNER)
}

/// One thing that stays on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The account of `cluster add`, with its role, binding and tokens.
    Account,
    /// The claim of this hub.
    Claim,
    /// Namespaces that logical clouds made.
    Namespaces,
    /// What keeps an account of a level below Admin to EMCO's namespaces.
    Confinement,
}

impl Left {
    /// Everything that every cluster has.
    pub const ALL: [Self; 3] = [Self::Account, Self::Claim, Self::Namespaces];

    fn what(self) -> String {
        let namespace = object::EDGE_NAMESPACE;
        match self {
            Self::Account => format!(
                "the account {ACCOUNT} in namespace {namespace}, with its role, binding and tokens: who has such a token may use it still"
            ),
            Self::Claim => format!(
                "the claim, ConfigMap {namespace}/{}: another hub says ClaimedByAnotherHub of the cluster while it is there",
                object::EDGE_CLAIM
            ),
            Self::Namespaces => {
                format!(
                    "namespaces that logical clouds made, labelled {}, with all that is in them",
                    of_clouds()
                )
            }
            Self::Confinement => {
                format!(
                    "the policies that keep the account {ACCOUNT} to EMCO's namespaces, and its role there"
                )
            }
        }
    }

    fn commands(self) -> Vec<String> {
        let namespace = object::EDGE_NAMESPACE;
        let delete = |what: &str| format!("kubectl delete {what} --ignore-not-found");
        match self {
            Self::Account => vec![
                delete(&format!("clusterrolebinding,clusterrole {ACCOUNT}")),
                delete(&format!("rolebinding,role {ACCOUNT} -n {namespace}")),
                delete(&format!("serviceaccount {ACCOUNT} -n {namespace}")),
                delete(&format!("secret -l app.kubernetes.io/managed-by=emco -n {namespace}")),
            ],
            Self::Claim => vec![delete(&format!("configmap {} -n {namespace}", object::EDGE_CLAIM))],
            Self::Namespaces => vec![delete(&format!("namespace -l {}", of_clouds()))],
            Self::Confinement => vec![
                delete(&format!("clusterrole {}", object::EDGE_TENANT_ROLE)),
                delete(&format!("role,rolebinding {ACCOUNT} -n {namespace}")),
                delete(
                    "validatingadmissionpolicybinding,validatingadmissionpolicy emco-hub-namespaces emco-hub-bindings \
                     emco-hub-cluster-bindings emco-hub-people",
                ),
            ],
        }
    }
}

/// Says what stays on a cluster, why, and what removes it.
pub fn stays(id: &str, left: &[Left], why: &str) -> String {
    let mut text = format!("warning: on {id} stays what cannot be removed from here, since {why}:\n");
    for one in left {
        let _ = writeln!(text, "  {}", one.what());
    }
    text.push_str("with rights on the cluster, these commands remove it:\n");
    for command in left.iter().flat_map(|one| one.commands()) {
        let _ = writeln!(text, "  {command}");
    }
    if left.iter().any(|one| *one != Left::Namespaces) {
        let namespace = object::EDGE_NAMESPACE;
        let _ = write!(
            text,
            "namespace {namespace} stays, too; where nothing of others is in it:\n  kubectl delete namespace {namespace} \
             --ignore-not-found\n"
        );
    }
    text
}

/// Leaves a cluster whose Cluster is off the hub; whether nothing stays that should not, which is said.
pub async fn leave(
    hub: &Hub,
    place: &HubCluster,
    id: &str,
    client: anyhow::Result<(Client, Option<String>)>,
    (keep_account, spaces): (bool, &BTreeSet<String>),
) -> anyhow::Result<bool> {
    // An account that is to be kept is not named among what is to be removed.
    let all = if keep_account { &Left::ALL[1..] } else { &Left::ALL[..] };
    let (client, uid) = match client {
        Ok(opened) => opened,
        Err(error) => {
            eprint!("{}", stays(id, all, &format!("{error:#}")));
            return Ok(false);
        }
    };
    if let Some(other) = registered_as(hub, place, uid.as_deref()).await? {
        print(&format!("on the cluster everything stays: it is registered as {other}, too\n"))?;
        return Ok(true);
    }
    match give_back(hub, &client).await {
        Ok(()) => {}
        Err(Claimed::ByOther(installation)) => {
            eprintln!(
                "warning: on {id} the account {ACCOUNT} stays: the cluster belongs to another hub now (installation {installation}), which \
                 may use it"
            );
            return Ok(false);
        }
        Err(Claimed::Unknown(why)) => {
            eprint!("{}", stays(id, all, &why));
            return Ok(false);
        }
    }
    print(&kept::said(&client, id, spaces).await)?;
    let (mut left, mut why) = (Vec::new(), Vec::new());
    match namespaces(&client).await {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            left.push(Left::Namespaces);
            why.push(format!("the operator did not remove namespace {}", found.join(", ")));
        }
        // A role of the user's own need not grant it, and then says nothing of what is there.
        Err(error) if is_forbidden(&error) => {}
        Err(error) => {
            left.push(Left::Namespaces);
            why.push(chain(&error));
        }
    }
    if keep_account {
        print(&format!("on the cluster the account {ACCOUNT} stays, as asked for\n"))?;
    } else if is_confined(&client).await {
        left.insert(0, Left::Account);
        left.push(Left::Confinement);
        why.push(
            "an account of a level below Admin may change neither its rights nor what confines it".to_owned(),
        );
    } else {
        match remove_account(&client).await {
            Ok(said) => print(&format!("{said}\n"))?,
            Err(error) => {
                left.insert(0, Left::Account);
                why.push(format!("{error:#}"));
            }
        }
    }
    if left.is_empty() {
        return Ok(true);
    }
    eprint!("{}", stays(id, &left, &why.join("; ")));
    Ok(false)
}

/// Whether the account is one of a level below Admin: it may see its own binding in EMCO's namespace. One with a role of the cluster's own
/// has such a binding, too; where that role may see that there is no role for namespaces of logical clouds, it is none of a level.
async fn is_confined(client: &Client) -> bool {
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), object::EDGE_NAMESPACE);
    if !matches!(bindings.get_metadata_opt(ACCOUNT).await, Ok(Some(_))) {
        return false;
    }
    let roles = Api::<ClusterRole>::all(client.clone());
    !matches!(roles.get_metadata_opt(object::EDGE_TENANT_ROLE).await, Ok(None))
}

/// Another Cluster of the hub that is this cluster: its account is the same one.
async fn registered_as(hub: &Hub, place: &HubCluster, uid: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(uid) = uid else { return Ok(None) };
    let everywhere = Api::<Cluster>::all(hub.client.clone());
    let all = match hub.try_list(everywhere, &ListParams::default()).await {
        Err(error) if is_forbidden(&error) => {
            hub.list(place.api.clone(), &ListParams::default(), "clusters", Some(&place.namespace)).await?
        }
        Err(error) => return Err(hub.sentence(&error, "list clusters", "in all namespaces")),
        Ok(all) => all,
    };
    let is_this = |other: &&Cluster| {
        let known = other.status.as_ref().and_then(|status| status.uid.as_deref());
        let same = other.namespace().as_deref() == Some(&place.namespace) && other.name_any() == place.name;
        known == Some(uid) && !same
    };
    Ok(all.iter().find(is_this).map(id_of))
}

/// Why a claim is left as it is.
enum Claimed {
    ByOther(String),
    Unknown(String),
}

/// Takes the claim of this hub off a cluster where the operator could not.
async fn give_back(hub: &Hub, client: &Client) -> Result<(), Claimed> {
    let unknown = |error: &kube::Error| Claimed::Unknown(chain(error));
    let claim = claim(client).await.map_err(|error| unknown(&error))?;
    let Some(holder) = claim.as_ref().and_then(holder) else { return Ok(()) };
    let ours = installation(hub).await.map_err(|error| {
        Claimed::Unknown(format!(
            "whether the claim of installation {holder} is this hub's is not known: {error:#}"
        ))
    })?;
    if ours.as_deref() != Some(holder) {
        return Err(Claimed::ByOther(holder.to_owned()));
    }
    unclaim(client, ours.as_deref()).await.map_err(|error| Claimed::Unknown(format!("{error:#}")))
}

async fn claim(client: &Client) -> kube::Result<Option<ConfigMap>> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), object::EDGE_NAMESPACE);
    find(&maps, object::EDGE_CLAIM).await
}

fn holder(claim: &ConfigMap) -> Option<&str> {
    claim.data.as_ref()?.get("installation").map(String::as_str).filter(|holder| !holder.is_empty())
}

/// Deletes the claim of this installation, and of no other one.
pub async fn unclaim(client: &Client, ours: Option<&str>) -> anyhow::Result<()> {
    let said = |error: kube::Error| anyhow::anyhow!("{}", chain(&error));
    let Some(claim) = claim(client).await.map_err(said)? else { return Ok(()) };
    if holder(&claim).is_none() || holder(&claim) != ours {
        return Ok(());
    }
    let maps = Api::<ConfigMap>::namespaced(client.clone(), object::EDGE_NAMESPACE);
    let preconditions = Preconditions { uid: claim.uid(), resource_version: claim.resource_version() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match maps.delete(object::EDGE_CLAIM, &params).await {
        Err(error) if is_absence(&error, object::EDGE_CLAIM) => Ok(()),
        Err(error) => Err(said(error)),
        Ok(_) => Ok(()),
    }
}

/// Namespaces that logical clouds made and that nobody deletes.
async fn namespaces(client: &Client) -> kube::Result<Vec<String>> {
    let all = Api::<Namespace>::all(client.clone()).list(&ListParams::default().labels(&of_clouds())).await?;
    let stays = all.items.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
    Ok(stays.map(kube::ResourceExt::name_any).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_a_cluster_is_named_with_a_command_for_each_thing() {
        let text = stays("acme/oslo", &Left::ALL, "the cluster refuses: Unauthorized");
        for words in [
            "on acme/oslo stays what cannot be removed from here, since the cluster refuses: Unauthorized:",
            "ConfigMap emco-system/hub: another hub says ClaimedByAnotherHub",
            "  kubectl delete clusterrolebinding,clusterrole emco-hub --ignore-not-found",
            "  kubectl delete rolebinding,role emco-hub -n emco-system --ignore-not-found",
            "  kubectl delete serviceaccount emco-hub -n emco-system --ignore-not-found",
            "  kubectl delete secret -l app.kubernetes.io/managed-by=emco -n emco-system --ignore-not-found",
            "  kubectl delete configmap hub -n emco-system --ignore-not-found",
            "  kubectl delete namespace -l emco.io/project,emco.io/owner --ignore-not-found",
            "where nothing of others is in it:\n  kubectl delete namespace emco-system --ignore-not-found\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let text = stays("acme/oslo", &[Left::Account, Left::Confinement], "it is so");
        for words in [
            "  kubectl delete clusterrole emco-hub-tenant --ignore-not-found",
            "  kubectl delete role,rolebinding emco-hub -n emco-system --ignore-not-found",
            "validatingadmissionpolicy emco-hub-namespaces emco-hub-bindings emco-hub-cluster-bindings emco-hub-people --ignore-not-found",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let text = stays("acme/oslo", &[Left::Namespaces], "it is so");
        assert!(!text.contains("emco-hub") && !text.contains("emco-system"), "{text}");
    }
}
