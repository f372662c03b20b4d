//! Asks a cluster which objects of a deployment others made there, and what an apply over each would change.

use std::collections::BTreeSet;

use anyhow::bail;
use emco_controllers::api::{ApiError, ApiServerExt as _};
use emco_controllers::driver::hub::HubApi;
use emco_controllers::sync::errors::Trouble;
use emco_controllers::sync::tried::{Least, TriedApply};
use emco_crds::deployment_intent_group::sync::{ConflictPolicy, IgnoreRule};
use emco_crds::names::annotation;
use emco_engine::adopt::{self, Holder};
use emco_engine::apis::ApiResource;
use emco_engine::identity::Identity;
use emco_engine::path::ApiPath;
use emco_engine::set::{Phase, SetManifest};
use emco_engine::{drift, marks};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::discovery::Scope;
use serde_json::{Value, json};

use super::found::{Held, Listed, Obstacle};
use crate::cli::diff::edge::{Edge, Kinds};
use crate::cli::diff::fields;

/// Objects that are asked about at the same time.
const AT_ONCE: usize = 8;
/// Field managers that are named.
const NAMED: usize = 16;

/// Whose objects are looked for.
pub struct Seeker<'a> {
    /// `namespace/name` of the deployment.
    pub placed_by: &'a str,
    /// Fields that it leaves to others.
    pub ignore: &'a [IgnoreRule],
}

/// Where it is asked.
struct Asked<'a> {
    seeker: &'a Seeker<'a>,
    edge: &'a Edge,
    server: HubApi,
    manager: String,
    kinds: Kinds,
    /// What autoscalers of the deployment scale.
    scaled: BTreeSet<Identity>,
}

impl Seeker<'_> {
    /// How many manifests were looked for, and the objects of others under their names. `all`: what the cluster is to have, by app;
    /// only apps that `takes` are asked about.
    pub async fn find(
        &self,
        edge: &Edge,
        all: &[(String, SetManifest)],
        takes: impl Fn(&str) -> bool,
    ) -> anyhow::Result<(usize, Vec<Listed>)> {
        let mut kinds = Kinds::new();
        // What is taken as it is, and what removal alone makes, is in nobody's way.
        let is_asked = |app: &str, manifest: &SetManifest| {
            takes(app)
                && !manifest.crd_folder
                && !manifest.take_existing
                && manifest.phase != Phase::DeleteHook
        };
        let asked: Vec<&(String, SetManifest)> =
            all.iter().filter(|(app, manifest)| is_asked(app, manifest)).collect();
        for (_, manifest) in &asked {
            edge.resource(&mut kinds, &manifest.json).await?;
        }
        let place = Asked {
            seeker: self,
            edge,
            server: HubApi::of_cluster(edge.client.clone()),
            manager: marks::field_manager(&edge.hash),
            kinds,
            scaled: drift::scaled(all.iter().map(|(_, manifest)| &manifest.json)),
        };
        let found: Vec<Option<Listed>> = stream::iter(&asked)
            .map(|(app, manifest)| Box::pin(place.look(app, manifest)))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok((asked.len(), found.into_iter().flatten().collect()))
    }
}

impl Asked<'_> {
    /// One object; nothing where none of others is there.
    async fn look(&self, app: &str, manifest: &SetManifest) -> anyhow::Result<Option<Listed>> {
        let text = |key: &str| manifest.json[key].as_str().unwrap_or_default().to_owned();
        let mut id = manifest.identity();
        let Some(Some((kind, capabilities))) = self.kinds.get(&(text("apiVersion"), text("kind"))) else {
            return Ok(None);
        };
        let namespaced = capabilities.scope == Scope::Namespaced;
        if !namespaced {
            id.namespace.clear();
        }
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
        let live = match self.server.get_opt(&path).await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(None),
            Err(error) => bail!("{id} cannot be read: {error}"),
        };
        let metadata = live.get("metadata").unwrap_or(&Value::Null);
        let owner = marks::owner_of(&live);
        let entries = metadata.get("managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let stripped = owner.is_none() && drift::entry(entries, &self.manager, "Apply").is_some();
        // What goes already is waited for.
        let goes = metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null());
        if owner == Some(self.edge.hash.as_str()) || stripped || goes {
            return Ok(None);
        }
        let mut managers = drift::others(entries, &self.manager);
        managers.truncate(NAMED);
        let holder = adopt::holder(metadata, &managers);
        if owner.is_some() {
            let whose =
                metadata["annotations"][annotation::PLACED_BY].as_str().unwrap_or("another owner of EMCO");
            let holder = Holder { who: whose.to_owned(), tool: None, ..holder };
            let message = "it is taken over by nobody while it has this owner".to_owned();
            return Ok(Some(stuck(app, &id, holder, Obstacle::OtherDeployment, message)));
        }
        if manifest.hook.is_some() {
            let message = "a hook makes an object of this name and deletes it: delete this one, or change its name here";
            return Ok(Some(stuck(app, &id, holder, Obstacle::Hook, message.to_owned())));
        }
        self.ask(app, &id, holder, &path, &self.body(manifest, &id, namespaced), &live).await.map(Some)
    }

    /// What the operator would send.
    fn body(&self, manifest: &SetManifest, id: &Identity, namespaced: bool) -> Value {
        let mut body = manifest.json.clone();
        drift::bundles::leave_empty(&mut body);
        if let (false, Some(metadata)) = (namespaced, body.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.remove("namespace");
        }
        let theirs = drift::left_to_others(self.seeker.ignore, id, self.scaled.contains(id));
        drift::owned::leave(&mut body, &Value::Null, &json!({".": {}}), &theirs);
        marks::adopt(marks::mark(body, &self.edge.hash, &manifest.digest, self.seeker.placed_by))
    }

    /// The least that takes an object over, by the cluster's own word.
    async fn ask(
        &self,
        app: &str,
        id: &Identity,
        holder: Holder,
        path: &ApiPath,
        body: &Value,
        live: &Value,
    ) -> anyhow::Result<Listed> {
        let tried = TriedApply { server: &self.server, path, manager: &self.manager, body, account: None };
        let (policy, after, held) = match tried.least(live).await {
            Least::Policy { policy, after, held } => (policy, after, held),
            Least::Refused(error) => {
                let trouble = Trouble::of_apply(&error);
                // A refusal is the cluster's word on the object; all else is none.
                if !matches!(error, ApiError::Status { .. }) || !trouble.is_failure() {
                    bail!("{id} cannot be asked about: {error}");
                }
                let message = format!("{}: {}", trouble.reason, trouble.message);
                return Ok(stuck(app, id, holder, Obstacle::Refused, message));
            }
        };
        let fields = match policy {
            ConflictPolicy::AdoptIfSame => Vec::new(),
            _ => fields(&adopt::without_marks(live), &adopt::without_marks(&after)),
        };
        let template = |path: &str| path == "spec.template" || path.starts_with("spec.template.");
        let restarts_pods = id.group == "apps" && fields.iter().any(|field| template(&field.path));
        let held = held.into_iter();
        let held =
            held.map(|(field, by)| Held { field: field.trim_start_matches('.').to_owned(), by }).collect();
        let needs = Some(policy);
        Ok(Listed { needs, fields, held, restarts_pods, ..of_others(app, id, holder) })
    }
}

/// An object that no value of `spec.sync.conflicts` takes over.
fn stuck(app: &str, id: &Identity, holder: Holder, obstacle: Obstacle, message: String) -> Listed {
    Listed { obstacle: Some(obstacle), message, ..of_others(app, id, holder) }
}

/// An object, and who has it.
fn of_others(app: &str, id: &Identity, holder: Holder) -> Listed {
    Listed {
        app: app.to_owned(),
        object: id.to_string(),
        holder: holder.who,
        tool: holder.tool,
        needs: None,
        obstacle: None,
        message: String::new(),
        fields: Vec::new(),
        held: Vec::new(),
        restarts_pods: false,
    }
}
