//! Sees for which level a cluster was added before: a command that names none takes no rights from what runs there.

use anyhow::bail;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;

use super::account::ACCOUNT;
use super::target::Target;
use crate::cli::absence::find;
use crate::cli::args::{AddArgs, Level};

/// Refuses to narrow what is there without a word.
pub(super) async fn refuse(target: &Target, args: &AddArgs) -> anyhow::Result<()> {
    if args.level.is_some() || args.cluster_role.is_some() || args.git.is_some() {
        return Ok(());
    }
    let bindings = Api::<ClusterRoleBinding>::all(target.client.clone());
    let binding = find(&bindings, ACCOUNT).await.map_err(|error| target.failed(&error))?;
    let Some(binding) = binding else { return Ok(()) };
    if binding.role_ref.name != ACCOUNT {
        bail!(
            "the account {ACCOUNT} of the cluster {} has the role {}: write --cluster-role {} to keep that, or --level with the level that it \
             is to have instead",
            target.server,
            binding.role_ref.name,
            binding.role_ref.name
        );
    }
    let roles = Api::<ClusterRole>::all(target.client.clone());
    let role = find(&roles, ACCOUNT).await.map_err(|error| target.failed(&error))?;
    let Some(wider) = role.as_ref().and_then(wider) else { return Ok(()) };
    bail!(
        "the cluster {} was added for level {wider:?}, and --level Standard, which is meant where none is named, would take rights from what \
         runs there: write --level {wider:?} to keep it, or --level Standard to narrow it",
        target.server
    )
}

/// The level of a role that has more than level Standard.
fn wider(role: &ClusterRole) -> Option<Level> {
    let rules = role.rules.as_deref().unwrap_or_default();
    let names = |resource: &str| {
        rules.iter().any(|rule| rule.resources.iter().flatten().any(|named| named == resource))
    };
    if names("*") {
        return Some(Level::Admin);
    }
    names("clusterrolebindings").then_some(Level::Privileged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_tells_for_which_level_it_was_made() {
        let of = |resources: &[&str]| {
            let rules = json!([{"apiGroups": ["*"], "resources": resources, "verbs": ["get"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
            wider(&serde_json::from_value(json!({"metadata": {"name": "emco-hub"}, "rules": rules})).unwrap())
        };
        assert_eq!(of(&["*"]), Some(Level::Admin));
        assert_eq!(of(&["namespaces", "clusterrolebindings"]), Some(Level::Privileged));
        assert_eq!(of(&["namespaces", "rolebindings"]), None);
    }
}
