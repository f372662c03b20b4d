//! Finds what carries EMCO's label on a cluster, and whose the cluster says it is. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::names::{annotation, label, object};
use emco_engine::{drift, marks};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::verbs;
use kube::{Client, ResourceExt as _};

use super::super::absence;
use super::super::diff::edge::failed;

/// The installation that holds the cluster, where it is another one.
pub async fn other_hub(client: &Client, ours: &str) -> anyhow::Result<Option<String>> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), object::EDGE_NAMESPACE);
    let claim = absence::find(&maps, object::EDGE_CLAIM).await.map_err(|error| failed(&error))?;
    let holder = claim.and_then(|claim| claim.data?.get("installation").cloned());
    Ok(holder.filter(|holder| !holder.is_empty() && holder != ours))
}

/// Objects of EMCO on a cluster.
#[derive(Default)]
pub struct Labelled {
    /// By owner hash: how many objects, and by whom they say they were placed.
    pub owners: BTreeMap<String, (usize, BTreeSet<String>)>,
    /// Kinds that could not be listed, as `deployments.apps`: there may be objects of them.
    pub unseen: Vec<String>,
    /// What is defined there and not served now, each as a sentence: there may be objects of it.
    pub unserved: Vec<String>,
}

/// Finds objects with an owner's label and its entry in `managedFields`. All kinds are listed.
pub async fn labelled(client: &Client) -> anyhow::Result<Labelled> {
    let served = absence::served(client).await?;
    let mut all = Labelled { unserved: served.unserved, ..Labelled::default() };
    for (resource, capabilities) in served.kinds {
        if !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let mut params = ListParams::default().labels(label::OWNER).limit(500);
        loop {
            let page = match api.list_metadata(&params).await {
                Ok(page) => page,
                Err(kube::Error::Api(status)) if status.code == 405 => break,
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                    let name = format!("{}.{}", resource.plural, resource.group);
                    all.unseen.push(name.trim_end_matches('.').to_owned());
                    break;
                }
                Err(error) => return Err(failed(&error)),
            };
            for object in &page.items {
                let Some(hash) = object.labels().get(label::OWNER) else { continue };
                let fields = serde_json::to_value(object.managed_fields())?;
                let entries = fields.as_array().map_or(&[][..], Vec::as_slice);
                if drift::entry(entries, &marks::field_manager(hash), "Apply").is_none() {
                    continue;
                }
                let entry = all.owners.entry(hash.clone()).or_default();
                entry.0 += 1;
                // A handful is enough to find out whose they are.
                if entry.1.len() < 8 {
                    entry.1.extend(object.annotations().get(annotation::PLACED_BY).cloned());
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => break,
            }
        }
    }
    Ok(all)
}
