//! Asks a cluster why it refuses an object: by a dry run of the apply, sent as who applies it.

use anyhow::anyhow;
use emco_controllers::api::ApiError;
use emco_controllers::driver::hub::HubApi;
use emco_controllers::sync::errors::Trouble;
use emco_controllers::sync::tried::TriedApply;
use emco_engine::apis::ApiResource;
use emco_engine::set::SetManifest;
use emco_engine::{drift, marks};
use kube::discovery::{ApiCapabilities, Scope};
use serde_json::Value;

use super::Change;
use super::edge::{Edge, Found};

/// Said by servers of webhooks that change something else besides.
const NO_DRY_RUNS: &str = "does not support dry run";

impl Edge {
    /// A difference of an object; where the cluster refuses what would be applied, with all its words.
    pub(super) async fn with_refusal(
        &self,
        found: Option<Found>,
        (kind, capabilities): (&kube::api::ApiResource, &ApiCapabilities),
        manifest: &SetManifest,
    ) -> anyhow::Result<Option<Found>> {
        match found {
            Some((change @ (Change::Create | Change::Update), message, fields)) => {
                let Some(words) = self.refusal(kind, capabilities, manifest).await? else {
                    return Ok(Some((change, message, fields)));
                };
                let missing = if change == Change::Create { "it is missing: " } else { "" };
                Ok(Some((Change::Refused, format!("{missing}{words}"), fields)))
            }
            found => Ok(found),
        }
    }

    /// The reason and all the words of a refusal. `None` where the cluster takes the object, or cannot say so before something else is
    /// there, such as its namespace.
    pub async fn refusal(
        &self,
        kind: &kube::api::ApiResource,
        capabilities: &ApiCapabilities,
        manifest: &SetManifest,
    ) -> anyhow::Result<Option<String>> {
        // An agent with rights of its own applies what is in Git.
        if self.by_git || manifest.crd_folder {
            return Ok(None);
        }
        let (id, namespaced) = (manifest.identity(), capabilities.scope == Scope::Namespaced);
        let resource = ApiResource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
            namespaced,
            listable: true,
            watchable: true,
        };
        let path = resource.path(&id.namespace, Some(&id.name));
        let mut body = manifest.json.clone();
        drift::bundles::leave_empty(&mut body);
        if let (false, Some(metadata)) = (namespaced, body.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.remove("namespace");
        }
        let body = marks::mark(body, &self.hash, &manifest.digest, "");
        let (server, manager) = (HubApi::of_cluster(self.client.clone()), marks::field_manager(&self.hash));
        let account = manifest.account.as_deref();
        let tried = TriedApply { server: &server, path: &path, manager: &manager, body: &body, account };
        let Err(error) = tried.send(true).await else { return Ok(None) };
        let text = error.to_string();
        if !matches!(error, ApiError::Status { .. }) {
            return Err(anyhow!("the cluster cannot be asked about {id}: {text}"));
        }
        let trouble = Trouble::of_manifest(&manifest.json, &error);
        let refused = trouble.is_failure() && !text.contains(NO_DRY_RUNS);
        Ok(refused.then(|| format!("{}: {text}", trouble.reason)))
    }
}
