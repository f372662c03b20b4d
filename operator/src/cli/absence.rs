//! Proves that a cluster or the hub lacks something, before that has a consequence: the rules of the operator
//! (`docs/decisions/proof-of-absence.md`), with the client of a person.

use std::fmt::Debug;

use anyhow::bail;
use emco_controllers::api::withheld;
use emco_controllers::sync::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{ApiResource, DeleteParams, ListParams};
use kube::discovery::{ApiCapabilities, ApiGroup, Discovery};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::diff::edge::failed;

mod namespace;
#[cfg(test)]
mod tests;

pub use namespace::is_only_ours;

/// Whether an answer says that the object of this name is not there. A 404 that does not name it is no proof.
pub fn is_absence(error: &kube::Error, name: &str) -> bool {
    matches!(error, kube::Error::Api(status) if withheld::is_absence(status.code, &status.message, name))
}

/// An object; `None` where the server's own answer says that it is not there.
pub async fn find<K>(api: &Api<K>, name: &str) -> kube::Result<Option<K>>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.get(name).await {
        Err(error) if is_absence(&error, name) => Ok(None),
        found => found.map(Some),
    }
}

/// Deletes an object; one that the server itself says is not there counts as deleted.
pub async fn delete<K>(api: &Api<K>, name: &str) -> kube::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(error) if is_absence(&error, name) => Ok(()),
        other => other.map(drop),
    }
}

/// Whether the hub's own answer says that it does not define a kind.
pub async fn is_undefined<K: Resource<DynamicType = ()>>(client: &Client) -> kube::Result<bool> {
    let name = format!("{}.{}", K::plural(&()), K::group(&()));
    Ok(find(&Api::<CustomResourceDefinition>::all(client.clone()), &name).await?.is_none())
}

/// What a cluster serves.
pub struct Served {
    /// Every kind once, in its most stable version.
    pub kinds: Vec<(ApiResource, ApiCapabilities)>,
    /// What is defined there and not served now, each as a sentence: there may be objects of it.
    pub unserved: Vec<String>,
}

/// Reads what a cluster serves, and compares it with what is defined there.
///
/// # Errors
/// The cluster is not ready, or may not be asked: nothing is known.
pub async fn served(client: &Client) -> anyhow::Result<Served> {
    is_ready(client).await?;
    let discovery = discovery(client).await.map_err(|error| failed(&error))?;
    let kinds: Vec<_> = discovery.groups().flat_map(ApiGroup::resources_by_stability).collect();
    let mut unserved = Vec::new();
    let services = Api::<APIService>::all(client.clone());
    for name in names(&services).await? {
        let (version, group) = name.split_once('.').unwrap_or((&name, ""));
        let shown = discovery.groups().filter(|shown| shown.name() == group);
        if shown.into_iter().any(|shown| !shown.versioned_resources(version).is_empty()) {
            continue;
        }
        let Some(service) = find(&services, &name).await.map_err(|error| failed(&error))? else { continue };
        let service = serde_json::to_value(&service)?;
        if !definitions::is_aggregated(&service) {
            continue;
        }
        if !definitions::is_available(&service) {
            unserved.push(definitions::unavailable(&name));
        } else if serves_anything(client, group, version).await? {
            unserved.push(format!("the API {group}/{version} is served, and was not a moment ago"));
        }
    }
    let defined = Api::<CustomResourceDefinition>::all(client.clone());
    for name in names(&defined).await? {
        let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
        if kinds.iter().any(|(kind, _)| kind.group == group && kind.plural == plural) {
            continue;
        }
        let found = find(&defined, &name).await.map_err(|error| failed(&error))?;
        let Some(definition) = found else { continue };
        if definitions::was_established(&serde_json::to_value(&definition)?) {
            unserved.push(definitions::unserved(&name));
        }
    }
    Ok(Served { kinds, unserved })
}

/// Refuses a server that starts. One that does not say is judged by its definitions alone.
async fn is_ready(client: &Client) -> anyhow::Result<()> {
    let request = http::Request::get("/readyz").body(Vec::new())?;
    match client.request_text(request).await {
        Err(kube::Error::Api(status)) if status.code >= 500 => {
            bail!(
                "the cluster is not ready (/readyz answers {}), and may not show all of its kinds yet: try it again",
                status.code
            )
        }
        Err(kube::Error::Api(_)) | Ok(_) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// In two requests; where the server does not know them so, in one for each group.
async fn discovery(client: &Client) -> kube::Result<Discovery> {
    let at_once = Discovery::new(client.clone()).run_aggregated().await;
    // Another answer is read as an empty list.
    let is_list =
        |found: &Discovery| found.groups().any(|group| group.recommended_kind("Namespace").is_some());
    match at_once {
        Ok(found) if is_list(&found) => Ok(found),
        _ => Discovery::new(client.clone()).run().await,
    }
}

async fn serves_anything(client: &Client, group: &str, version: &str) -> anyhow::Result<bool> {
    match client.list_api_group_resources(&format!("{group}/{version}")).await {
        Ok(list) => Ok(!list.resources.is_empty()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

/// Names of all objects of a kind.
async fn names<K>(api: &Api<K>) -> anyhow::Result<Vec<String>>
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    let mut params = ListParams::default().limit(500);
    let mut all = Vec::new();
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| failed(&error))?;
        all.extend(page.items.into_iter().filter_map(|item| item.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}
