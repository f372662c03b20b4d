//! What a cluster says to one object of a plan, judged as the real apply would judge it.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::apis::ApiList;
use emco_engine::changes::{RecreatedRow, RefusedRow, What};
use emco_engine::drift::{bundles, joint, unions};
use emco_engine::identity::{kind_of, split_api_version};
use emco_engine::marks::made;
use emco_engine::set::{ManifestSet, SetManifest, deployed};
use emco_engine::{adopt, manifests, marks};
use serde_json::Value;

use super::super::planned::PendingChange;
use super::Asker;
use crate::api::{ApiError, ApiResult, ApiServer};
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::sync::errors::{Trouble, lacks_namespace, names_each_field};
use crate::sync::tried::TriedApply;

/// How an API server refuses a dry run itself: a webhook of it has side effects.
const NO_DRY_RUNS: &str = "does not support dry run";

/// What a cluster says to an object.
pub(super) enum Verdict {
    Accepted,
    Refused(RefusedRow),
    /// It cannot be changed, and would be deleted and made again.
    Recreated(RecreatedRow),
    /// Nothing before it is carried out: what is missing comes by then, or it may not be asked.
    Open,
    /// Nothing now.
    Silent,
}

/// A cluster that can be asked.
pub(super) struct Edge {
    pub server: Arc<dyn ApiServer>,
    pub apis: Arc<ApiList>,
    /// Digest of who it is, of what it serves, and of what it has of the logical cloud.
    pub state: String,
    /// The logical cloud's account is there, with its rights.
    pub has_account: bool,
}

/// An object of a name that is new to the deployment.
#[derive(PartialEq)]
enum Found {
    /// None that is in the way.
    Nothing,
    /// The account may not look.
    Unread,
    /// One of others.
    Others(Value),
}

/// An object that a dry run would make has no version.
fn is_there(after: &Value) -> bool {
    let version = after.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.is_some_and(|version| !version.is_empty())
}

/// What may be missing when clusters are asked, and comes with the plan or with what runs.
#[derive(Default)]
pub(super) struct Comes {
    /// Group and kind.
    kinds: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
}

impl Comes {
    /// What all apps bring, and the logical cloud.
    pub fn of(ctx: &Context, dig: &DeploymentIntentGroup, change: &PendingChange) -> Self {
        let mut comes = Self::default();
        let cloud = ctx.stores.clouds.named(meta::namespace(dig), &dig.spec.logical_cloud_ref.name);
        comes.namespaces.extend(cloud.map(|cloud| cloud.cluster_namespace().to_owned()));
        for set in change.sets.values() {
            comes.add(set);
        }
        if let Some(running) = &change.running {
            for set in deployed(&running.assignment, &running.sets).values() {
                comes.add(set);
            }
        }
        comes
    }

    fn add(&mut self, set: &ManifestSet) {
        for manifest in &set.manifests {
            if let Some(((group, kind), _)) = manifests::defined(&manifest.json) {
                self.kinds.insert((group, kind));
            }
            if kind_of(&manifest.json) == ("", "Namespace") {
                self.namespaces.insert(manifest.identity().name);
            }
        }
    }
}

impl Asker<'_> {
    /// What the cluster says to an object.
    pub(super) async fn verdict(&self, edge: &Edge, what: What, manifest: &SetManifest) -> Verdict {
        let id = manifest.identity();
        let refused = |reason: &str, message: &str| {
            let (object, reason, message) = (id.to_string(), reason.to_owned(), message.to_owned());
            Verdict::Refused(RefusedRow { object, reason, message })
        };
        let text = |key: &str| manifest.json.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = split_api_version(text("apiVersion"));
        let Some(resource) = edge.apis.find(group, version, &id.kind) else {
            if self.comes.kinds.contains(&(id.group.clone(), id.kind.clone())) {
                return Verdict::Open;
            }
            return refused("KindMissing", "the cluster does not serve this kind");
        };
        let path = resource.path(&id.namespace, Some(&id.name));
        let body = self.body(manifest, resource.namespaced);
        let manager = marks::field_manager(&self.owner.hash);
        let account = match manifest.account.as_deref() {
            // Nothing says yet that its namespace is the logical cloud's: what is there may be anybody's, and any answer would tell of it.
            Some(_) if !edge.has_account => return Verdict::Open,
            account => account,
        };
        let tried =
            TriedApply { server: &*edge.server, path: &path, manager: &manager, body: &body, account };
        let found = match self.found(&tried, what, manifest).await {
            Ok(found) => found,
            Err(error) => {
                let trouble = Trouble::of_request(&error);
                let is_failure = trouble.is_failure();
                return if is_failure { refused(trouble.reason, &trouble.message) } else { Verdict::Silent };
            }
        };
        let answer = match &found {
            Found::Nothing | Found::Unread => tried.send(true).await,
            Found::Others(live) => {
                let mut body = body.clone();
                joint::join(&mut body, live, None, &[]);
                match self.takeover(&TriedApply { body: &body, ..tried }, live).await {
                    Ok(answer) => answer,
                    Err(why) => return refused("NotOurs", &why),
                }
            }
        };
        if matches!(&answer, Ok(after) if found == Found::Unread && is_there(after)) {
            return Verdict::Open;
        }
        let Err(error) = answer else { return Verdict::Accepted };
        if lacks_namespace(&error) {
            if self.comes.namespaces.contains(&id.namespace) {
                return Verdict::Open;
            }
            return refused("NamespaceMissing", "its namespace is not there");
        }
        let no_dry_runs = matches!(&error, ApiError::Status { message, .. } if message.contains(NO_DRY_RUNS));
        if no_dry_runs {
            return Verdict::Open;
        }
        if !matches!(found, Found::Others(_)) {
            if gives_way(&tried, manifest, &error).await {
                return Verdict::Accepted;
            }
            if let Some(verdict) = self.anew(&tried, manifest, &error).await {
                return verdict;
            }
        }
        let trouble = Trouble::of_manifest(&manifest.json, &error);
        if trouble.is_failure() { refused(trouble.reason, &trouble.message) } else { Verdict::Silent }
    }

    /// What is in the way of an object that is new.
    async fn found(&self, tried: &TriedApply<'_>, what: What, manifest: &SetManifest) -> ApiResult<Found> {
        if what != What::Added || manifest.take_existing {
            return Ok(Found::Nothing);
        }
        match tried.read().await {
            Ok(live) => {
                let others = live.filter(|live| !self.is_ours(live) && !self.was_ours(live));
                Ok(others.map_or(Found::Nothing, Found::Others))
            }
            Err(error) if tried.account.is_some() && error.lacks_right() => Ok(Found::Unread),
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_ours(&self, live: &Value) -> bool {
        marks::owner_of(live) == Some(self.owner.hash.as_str())
    }

    /// Whether it is a namespace that was made for the deployment and released: it is taken again, whatever `spec.sync.conflicts` says.
    fn was_ours(&self, live: &Value) -> bool {
        let home = self.ctx.stores.namespaces.named("", &self.owner.namespace);
        let tenant = home.as_deref().map(meta::uid).unwrap_or_default();
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        let proof = made::proof(&self.ctx.installation.digest_key, uid, &self.owner.hash, tenant);
        let metadata = live.get("metadata").unwrap_or(&Value::Null);
        made::proof_on(live) == Some(proof.as_str())
            && marks::owner_of(live).is_none()
            && adopt::holder(metadata, &[]).tool.is_none()
    }

    /// What comes of an object of others, by `spec.sync.conflicts`. The outer error says why it is not taken over.
    async fn takeover(&self, tried: &TriedApply<'_>, live: &Value) -> Result<ApiResult<Value>, String> {
        if marks::owner_of(live).is_some() {
            return Err("an object of this name is there already, and another deployment's".to_owned());
        }
        let policy = self.dig.spec.sync.conflicts;
        if policy == ConflictPolicy::Fail {
            let why = "an object of this name is there already, and not of this deployment";
            return Err(why.to_owned());
        }
        match policy {
            ConflictPolicy::Adopt => Ok(tried.unless_held(live).await),
            ConflictPolicy::AdoptIfSame => match tried.if_same(live).await {
                Ok(Err(fields)) => {
                    let fields = adopt::named(&fields);
                    Err(format!("an object of this name is there already, and differs in {fields}"))
                }
                Ok(Ok(after)) => Ok(Ok(after)),
                Err(error) => Ok(Err(error)),
            },
            ConflictPolicy::Force | ConflictPolicy::Fail => Ok(tried.send(true).await),
        }
    }

    /// What would be sent.
    fn body(&self, manifest: &SetManifest, namespaced: bool) -> Value {
        let mut json = manifest.json.clone();
        bundles::leave_empty(&mut json);
        if let (false, Some(metadata)) = (namespaced, json.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.remove("namespace");
        }
        let placed_by = format!("{}/{}", self.owner.namespace, self.owner.name);
        marks::mark(json, &self.owner.hash, &manifest.digest, &placed_by)
    }
}

/// The real apply goes through: it has what is in the way in unions of the object give way first.
async fn gives_way(tried: &TriedApply<'_>, manifest: &SetManifest, error: &ApiError) -> bool {
    let ApiError::Status { causes, .. } = error else { return false };
    if !names_each_field(error) {
        return false;
    }
    let Ok(Some(live)) = tried.read().await else { return false };
    let refused: Vec<&str> = causes.iter().map(|(field, _)| field.as_str()).collect();
    unions::explains(&manifest.json, &live, &refused)
}

#[cfg(test)]
mod tests {
    use emco_engine::identity::SetDigest;
    use emco_engine::set::Phase;
    use serde_json::json;

    use super::*;

    fn set(app: &str, json: Value) -> ManifestSet {
        let manifest = SetManifest {
            digest: String::new(),
            phase: Phase::Main,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json,
        };
        ManifestSet { digest: SetDigest(app.to_owned()), app: app.to_owned(), manifests: vec![manifest] }
    }

    #[test]
    fn a_kind_and_a_namespace_may_come_with_any_app() {
        let mut comes = Comes::default();
        comes.add(&set(
            "operator",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget"}},
            }),
        ));
        comes.add(&set(
            "base",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tools"}}),
        ));
        assert!(comes.kinds.contains(&("example.com".to_owned(), "Widget".to_owned())));
        assert!(comes.namespaces.contains("tools"));
    }
}
