//! Judges whether EMCO's namespace on a cluster may go with EMCO's account.

use anyhow::bail;
use emco_engine::role::RBAC;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::{Scope, verbs};
use kube::{Api, Client, ResourceExt as _};

use super::served;
use crate::cli::add::ACCOUNT;
use crate::cli::add::account::is_of_token;
use crate::cli::diff::edge::failed;

/// Whether a namespace of the cluster has nothing but what every namespace has and what is of the account. Every kind is looked at.
///
/// # Errors
/// What cannot be listed, or is defined and not served now, may be there.
pub async fn is_only_ours(client: &Client, namespace: &str) -> anyhow::Result<bool> {
    let served = served(client).await?;
    if let Some(first) = served.unserved.first() {
        bail!("{first}");
    }
    let listable = served.kinds.into_iter().filter(|(kind, able)| {
        // Events go by themselves.
        able.scope == Scope::Namespaced && able.supports_operation(verbs::LIST) && kind.kind != "Event"
    });
    // None of what is ours is as much.
    let params = ListParams::default().limit(20);
    for (kind, _) in listable {
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind);
        let found = api.list_metadata(&params).await.map_err(|error| failed(&error))?;
        let ours: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "ConfigMap") => &["kube-root-ca.crt"],
            ("", "ServiceAccount") => &["default", ACCOUNT],
            (RBAC, "Role" | "RoleBinding") => &[ACCOUNT],
            _ => &[],
        };
        let of_token = |name: &str| kind.group.is_empty() && kind.kind == "Secret" && is_of_token(name);
        let is_ours = |name: String| ours.contains(&name.as_str()) || of_token(&name);
        let more = found.metadata.continue_.as_ref().is_some_and(|token| !token.is_empty());
        if more || !found.iter().all(|object| is_ours(object.name_any())) {
            return Ok(false);
        }
    }
    Ok(true)
}
