//! Releases objects, and takes namespaces again that this very owner had made and released: by the proof that they carry.

use emco_crds::names::{label, manager};
use emco_engine::identity::Identity;
use emco_engine::marks::made;
use emco_engine::path::ApiPath;
use emco_engine::{marks, order};
use serde_json::Value;

use super::super::super::errors::{Retry, Trouble};
use super::super::desired::Item;
use super::super::foreign::{self, Foreign};
use super::super::send::Over;
use super::super::takeover::Stripped;
use super::super::{Job, JobContext};
use crate::api::{Content, Method, Request};

impl JobContext {
    /// The proof that the namespace of this UID on the cluster was made for the owner; none while the owner's own namespace is not known,
    /// or when the work was abandoned: by then, a namespace of this name on the hub may be another tenant's.
    fn proof(&self, uid: &str) -> Option<String> {
        if self.abandoned {
            return None;
        }
        let tenant = self.policies.tenant(&self.owner.namespace)?;
        Some(made::proof(&self.installation.digest_key, uid, &self.owner.hash, &tenant))
    }

    /// The request that releases an object; `None` where nothing of the owner is on it. A namespace that was made for the owner, and was not
    /// there before, carries the proof from then on.
    pub(in super::super) fn release(
        &self,
        path: &ApiPath,
        id: &Identity,
        live: &Value,
        was_there: bool,
    ) -> Option<Result<Request, Trouble>> {
        let made = order::is_namespace(id.kind()) && !was_there && !marks::is_adopted(live);
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str).filter(|_| made);
        let (patch, manager) = match uid.and_then(|uid| self.proof(uid)) {
            // In the owner's name, the entry of the proof would say that the object still is the owner's.
            Some(proof) => (marks::release_made_patch(live, &self.owner.hash, &proof)?, manager::RELEASE),
            None => (marks::release_patch(live, &self.owner.hash)?, self.manager.as_str()),
        };
        let body = match serde_json::to_value(&patch) {
            Ok(body) => body,
            Err(error) => return Some(Err(Trouble::new("Invalid", &error.to_string(), Retry::Slowly))),
        };
        let request =
            Request::new(Method::Patch, path).query("fieldManager", manager).body(Content::JsonPatch, &body);
        Some(Ok(request))
    }
}

impl Job {
    /// A namespace that carries the proof that it was made for this owner, as it is applied again; `None` of everything else. What another
    /// owner or a tool took since is theirs.
    pub(in super::super) fn over_released(&self, item: &Item, found: &Foreign) -> Option<Over> {
        let Foreign { seen, holder, proof } = found;
        // A hook's objects are deleted with all that is in them.
        let lasts = item.manifest().is_some_and(|manifest| manifest.hook.is_none());
        let is_free =
            lasts && order::is_namespace(item.id.kind()) && seen.owner.is_none() && holder.tool.is_none();
        let proof = proof.as_ref().filter(|_| is_free)?;
        if self.ctx.proof(&seen.uid).as_ref() != Some(proof) {
            return None;
        }
        let (uid, version) = (seen.uid.clone(), seen.version_text.clone());
        Some(Over::Stripped(Stripped { uid, version, by: None }))
    }

    /// The trouble with an object of others that is in the way and is not taken over.
    pub(in super::super) fn in_the_way(&self, item: &Item, found: &Foreign) -> Trouble {
        let offers = self.may_take_over(item);
        if !order::is_namespace(item.id.kind()) {
            return foreign::trouble(&found.holder, offers);
        }
        // To delete it would delete all that is in it: that is no way out.
        let way = match &found.holder.tool {
            Some(_) if offers => ", or take it over in place (emco adopt)".to_owned(),
            None if offers => ", or take it over (spec.sync.conflicts)".to_owned(),
            None if !self.has_sync_policy() => {
                let (name, key, hash) = (&item.id.name, label::OWNER, &self.ctx.owner.hash);
                format!(", or give it over there: kubectl label ns {name} {key}={hash}")
            }
            _ => String::new(),
        };
        foreign::namespace(found, &way)
    }
}
