//! A cluster in; what carries EMCO's label there, and whose the cluster says it is, out. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::names::{annotation, label, object};
use emco_engine::{drift, marks};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Client, ResourceExt as _};

use super::super::diff::edge::failed;

/// The installation that holds the cluster, where it is another one.
pub async fn other_hub(client: &Client, ours: &str) -> anyhow::Result<Option<String>> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), object::EDGE_NAMESPACE);
    let claim = maps.get_opt(object::EDGE_CLAIM).await.map_err(|error| failed(&error))?;
    let holder = claim.and_then(|claim| claim.data?.get("installation").cloned());
    Ok(holder.filter(|holder| !holder.is_empty() && holder != ours))
}

/// Objects with an owner's label and its entry in `managedFields`, by owner hash: how many, and by whom they say they were
/// placed. All kinds are listed.
pub async fn labelled(client: &Client) -> anyhow::Result<BTreeMap<String, (usize, BTreeSet<String>)>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(|error| failed(&error))?;
    let mut all: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for (resource, capabilities) in
        discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources)
    {
        if !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let mut params = ListParams::default().labels(label::OWNER).limit(500);
        loop {
            let page = match api.list_metadata(&params).await {
                Ok(page) => page,
                // What these credentials may not list, EMCO did not put there with them.
                Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => break,
                Err(error) => return Err(failed(&error)),
            };
            for object in &page.items {
                let Some(hash) = object.labels().get(label::OWNER) else { continue };
                let fields = serde_json::to_value(object.managed_fields())?;
                let entries = fields.as_array().map_or(&[][..], Vec::as_slice);
                if drift::entry(entries, &marks::field_manager(hash), "Apply").is_none() {
                    continue;
                }
                let entry = all.entry(hash.clone()).or_default();
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
