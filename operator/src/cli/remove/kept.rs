//! Names what deployments leave on a cluster for good: namespaces that stay for what they hold, and the volume claims in them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use emco_crds::LogicalCloud;
use emco_crds::names::{annotation, label};
use emco_engine::text::{counted, listed};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use crate::cli::hub::{Hub, chain};

/// A namespace that stays.
#[derive(Debug)]
struct Kept {
    namespace: String,
    /// It was made for a logical cloud, and nobody has it now. One that was there before stays anyway.
    released: bool,
    /// Volume claims in it; `None` where they cannot be seen.
    claims: Option<Vec<String>>,
}

/// The namespaces that logical clouds have on clusters.
pub fn spaces(clouds: &[LogicalCloud]) -> BTreeSet<String> {
    clouds.iter().map(|cloud| cloud.cluster_namespace().to_owned()).collect()
}

/// The same of all that the hub has; none where they cannot be listed.
pub async fn spaces_of(hub: &Hub) -> BTreeSet<String> {
    let clouds = Api::<LogicalCloud>::all(hub.client.clone());
    let found = hub.try_list(clouds, &ListParams::default()).await;
    found.map(|clouds| spaces(&clouds)).unwrap_or_default()
}

/// Says what stays on a cluster of what deployments had there; empty where nothing does. `spaces` are those of logical clouds, also where
/// EMCO did not make them.
pub async fn said(client: &Client, id: &str, spaces: &BTreeSet<String>) -> String {
    let all = match Api::<Namespace>::all(client.clone()).list_metadata(&ListParams::default()).await {
        Ok(all) => all.items,
        Err(error) => {
            return format!("whether deployments left anything on {id} cannot be seen: {}\n", chain(&error));
        }
    };
    let mut kept = Vec::new();
    for one in all.iter().filter(|one| one.metadata.deletion_timestamp.is_none()) {
        let namespace = one.name_any();
        let is_owned = one.labels().contains_key(label::OWNER);
        let released = one.annotations().contains_key(annotation::MADE_FOR) && !is_owned;
        if released || spaces.contains(&namespace) && !is_owned {
            let claims = claims(client, &namespace).await;
            kept.push(Kept { namespace, released, claims });
        }
    }
    sentence(id, &kept)
}

async fn claims(client: &Client, namespace: &str) -> Option<Vec<String>> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    let found = claims.list_metadata(&ListParams::default()).await.ok()?;
    Some(found.items.iter().map(kube::ResourceExt::name_any).collect())
}

fn sentence(id: &str, kept: &[Kept]) -> String {
    let mut text = String::new();
    for Kept { namespace, released, claims } in kept {
        let holds = match claims {
            Some(claims) if !claims.is_empty() => {
                format!(" with {}: {}", counted(claims.len(), "volume claim"), listed(claims))
            }
            // What was there before is others' to look after.
            _ if !released => continue,
            Some(_) => String::new(),
            None => ", whose volume claims may not be listed with the Cluster's credentials".to_owned(),
        };
        let before = if *released { "" } else { ", which EMCO did not make," };
        let _ = writeln!(text, "  namespace {namespace}{before}{holds}");
    }
    if text.is_empty() {
        return text;
    }
    text.insert_str(0, &format!("on {id} stays what deployments left:\n"));
    let released = kept.iter().filter(|one| one.released).map(|one| one.namespace.as_str());
    let released: Vec<&str> = released.collect();
    if !released.is_empty() {
        let how =
            "with rights on the cluster, these commands delete it, with all that is in it, volumes too:\n";
        text.push_str(how);
    }
    for namespace in released {
        let _ = writeln!(text, "  kubectl delete namespace {namespace}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(namespace: &str, released: bool, claims: Option<&[&str]>) -> Kept {
        let claims = claims.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        Kept { namespace: namespace.to_owned(), released, claims }
    }

    #[test]
    fn a_namespace_that_stays_is_named_with_its_volumes_and_a_command() {
        let all = [
            kept("demo", true, Some(&["a", "b", "c", "d"])),
            kept("empty", true, Some(&[])),
            kept("hidden", true, None),
            kept("theirs", false, Some(&["data"])),
            kept("others", false, Some(&[])),
            kept("unseen", false, None),
        ];
        assert_eq!(
            sentence("acme/oslo", &all),
            "on acme/oslo stays what deployments left:
  namespace demo with 4 volume claims: a, b, c and 1 more
  namespace empty
  namespace hidden, whose volume claims may not be listed with the Cluster's credentials
  namespace theirs, which EMCO did not make, with 1 volume claim: data
with rights on the cluster, these commands delete it, with all that is in it, volumes too:
  kubectl delete namespace demo
  kubectl delete namespace empty
  kubectl delete namespace hidden
"
        );
        assert_eq!(sentence("acme/oslo", &all[4..]), "");
    }
}
