//! Removes the account of `cluster add` from a cluster, with its own token.

use anyhow::bail;
use emco_crds::names::object;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cli::absence::{find, is_absence, is_only_ours};
use crate::cli::add::ACCOUNT;
use crate::cli::add::account::is_of_token;
use crate::cli::hub::chain;

/// Removes the account with its own token. All that belongs to it is made a part of its binding first, for the token has no rights
/// any more once the binding is gone: then the cluster collects the rest.
pub async fn remove_account(client: &Client) -> anyhow::Result<String> {
    let bindings = Api::<ClusterRoleBinding>::all(client.clone());
    let said = |error: kube::Error| anyhow::anyhow!("{}", chain(&error));
    let Some(binding) = find(&bindings, ACCOUNT).await.map_err(said)? else {
        return Ok(format!("on the cluster there is no account {ACCOUNT} that cluster add made"));
    };
    let owner = binding.controller_owner_ref(&()).map(|mut owner| {
        owner.controller = None;
        owner.block_owner_deletion = None;
        owner
    });
    let owned = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    let namespace = object::EDGE_NAMESPACE;
    own(&Api::<ClusterRole>::all(client.clone()), ACCOUNT, &owned).await?;
    // What cannot be looked at keeps the namespace.
    let keeps = match is_only_ours(client, namespace).await {
        Ok(true) => None,
        Ok(false) => Some("it has more".to_owned()),
        Err(error) => Some(format!("what it has cannot be seen: {error:#}")),
    };
    if keeps.is_none() {
        own(&Api::<Namespace>::all(client.clone()), namespace, &owned).await?;
    } else {
        own(&Api::<ServiceAccount>::namespaced(client.clone(), namespace), ACCOUNT, &owned).await?;
        own(&Api::<RoleBinding>::namespaced(client.clone(), namespace), ACCOUNT, &owned).await?;
        own(&Api::<Role>::namespaced(client.clone(), namespace), ACCOUNT, &owned).await?;
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        for secret in secrets.list_metadata(&ListParams::default()).await.map_err(said)?.items {
            let name = secret.name_any();
            if is_of_token(&name) {
                own(&secrets, &name, &owned).await?;
            }
        }
    }
    bindings.delete(ACCOUNT, &DeleteParams::background()).await.map_err(said)?;
    Ok(match keeps {
        None => {
            format!("on the cluster the account {ACCOUNT}, its role and namespace {namespace} are deleted")
        }
        Some(why) => format!(
            "on the cluster the account {ACCOUNT} and its role are deleted; namespace {namespace} stays: {why}"
        ),
    })
}

/// Makes an object a part of the binding, where it is there.
async fn own<K>(api: &Api<K>, name: &str, owned: &Patch<serde_json::Value>) -> anyhow::Result<()>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.patch(name, &PatchParams::default(), owned).await {
        Err(error) if is_absence(&error, name) => Ok(()),
        Err(error) => bail!("{}", chain(&error)),
        Ok(_) => Ok(()),
    }
}
