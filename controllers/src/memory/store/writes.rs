//! Writes: create, replace, patch and delete, each with the checks that a real server makes before.

use serde_json::{Value, json};

use super::{Store, Target, has_generation, has_status, same_but};
use crate::api::ApiResult;
use crate::memory::{apply, fixed, refusals, schemas, status, unions};

/// How a new state of an object came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The client sent all of it.
    Put,
    /// A patch was carried out on what was there.
    Patch,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Store {
    pub fn create(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let resource = &target.resource;
        let named = text(body, "/metadata/namespace");
        if resource.namespaced && !named.is_empty() && named != target.namespace {
            let message =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(status(400, "BadRequest", message));
        }
        let mut object = body.clone();
        let (name, prefix) = (text(body, "/metadata/name"), text(body, "/metadata/generateName"));
        let name = match (name, prefix) {
            ("", "") => {
                let what = "Required value: name or generateName is required";
                return Err(refusals::invalid(resource, "", "metadata.name", what));
            }
            ("", prefix) => format!("{prefix}{:05}", self.made),
            (name, _) => name.to_owned(),
        };
        let target = Target { name, ..target.clone() };
        // A namespace that takes nothing in says so before anything else is looked at.
        self.accepts(&target)?;
        if let Ok(there) = self.get(&target) {
            let deleting = there.pointer("/metadata/deletionTimestamp").is_some();
            return Err(refusals::already_exists(resource, &target.name, deleting));
        }
        let Some(map) = object.as_object_mut() else {
            return Err(status(400, "BadRequest", "the body is not an object"));
        };
        if has_status(resource) {
            map.remove("status");
        }
        self.stamp(&target, &mut object, None);
        apply::updated(None, &mut object, manager, "");
        Ok(self.commit(&target, None, object))
    }

    /// Server-set metadata of a write; the generation moves when anything but metadata and status changed.
    pub(super) fn stamp(&mut self, target: &Target, object: &mut Value, before: Option<&Value>) {
        let generation =
            before.and_then(|b| b.pointer("/metadata/generation")).and_then(Value::as_i64).unwrap_or(0);
        unions::fill(&target.resource, object);
        let moved = before.is_none_or(|b| !same_but(b, object, &["metadata", "status"]));
        self.made += 1;
        let made = self.made;
        let kept = |name: &str| before.and_then(|b| b.pointer(&format!("/metadata/{name}"))).cloned();
        let uid = kept("uid").unwrap_or_else(|| json!(format!("00000000-0000-4000-8000-{made:012}")));
        let created = kept("creationTimestamp").unwrap_or_else(|| json!("2026-01-01T00:00:00Z"));
        let Some(map) = object.as_object_mut() else { return };
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return };
        metadata.insert("name".to_owned(), json!(target.name));
        metadata.remove("generateName");
        if target.resource.namespaced {
            metadata.insert("namespace".to_owned(), json!(target.namespace));
        } else {
            // As a real server does with an object of the whole cluster.
            metadata.remove("namespace");
        }
        metadata.insert("uid".to_owned(), uid);
        metadata.insert("creationTimestamp".to_owned(), created);
        metadata.remove("generation");
        if has_generation(&target.resource) {
            metadata.insert("generation".to_owned(), json!(generation + i64::from(moved)));
        }
        for name in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            match kept(name) {
                Some(value) => drop(metadata.insert(name.to_owned(), value)),
                None => drop(metadata.remove(name)),
            }
        }
        for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
            if metadata.get(name).is_some_and(|value| {
                value.is_null()
                    || value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty)
            }) {
                metadata.remove(name);
            }
        }
        if !refusals::is_custom(&target.resource) {
            // Built-in kinds know no difference between an empty map of data and none.
            let empty =
                |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            map.retain(|name, value| !matches!(name.as_str(), "data" | "binaryData") || !empty(value));
        }
    }

    /// What must hold of a new state before it is taken.
    fn check(target: &Target, before: &Value, after: &Value, via: Via) -> ApiResult<()> {
        let (resource, name) = (&target.resource, target.name.as_str());
        let named = text(after, "/metadata/name");
        if named != name {
            let message =
                format!("the name of the object ({named}) does not match the name on the URL ({name})");
            return Err(status(400, "BadRequest", message));
        }
        let (uid, known) = (text(after, "/metadata/uid"), text(before, "/metadata/uid"));
        if !uid.is_empty() && uid != known {
            if via == Via::Patch {
                let what = "Invalid value: (withheld): field is immutable";
                return Err(refusals::invalid(resource, name, "metadata.uid", what));
            }
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
            return Err(refusals::conflict(resource, name, &why));
        }
        let version = text(after, "/metadata/resourceVersion");
        if version.is_empty() && via == Via::Put && refusals::is_custom(resource) {
            return Err(refusals::unversioned(resource, name));
        }
        if !version.is_empty() && text(before, "/metadata/resourceVersion") != version {
            return Err(refusals::modified(resource, name));
        }
        if before.pointer("/metadata/deletionTimestamp").is_some() {
            let of = |object: &Value| {
                let all = object.pointer("/metadata/finalizers").and_then(Value::as_array).cloned();
                all.unwrap_or_default()
            };
            let had = of(before);
            let fresh: Vec<String> =
                of(after).iter().filter(|f| !had.contains(f)).map(ToString::to_string).collect();
            if !fresh.is_empty() {
                let what = format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    fresh.join(", ")
                );
                return Err(refusals::invalid(resource, name, "metadata.finalizers", &what));
            }
        }
        if target.subresource.is_empty()
            && let Some((field, what)) = fixed::refused(resource, before, after)
        {
            return Err(refusals::invalid(resource, name, field, what));
        }
        if target.subresource.is_empty()
            && let Some((field, what)) = unions::refused(resource, after)
        {
            return Err(refusals::invalid(resource, name, &field, &what));
        }
        if resource.group == "emco.io"
            && resource.kind == "AppContext"
            && target.subresource.is_empty()
            && after.get("spec") != before.get("spec")
        {
            let what = "Invalid value: an AppContext cannot be edited: the operator makes a new revision";
            return Err(refusals::invalid(resource, name, "spec", what));
        }
        Ok(())
    }

    /// Replaces the whole object or its status; `body` carries the resourceVersion it was read with, or none.
    pub fn replace(&mut self, target: &Target, body: &Value, manager: &str, via: Via) -> ApiResult<Value> {
        let before = self.get(target)?;
        Self::check(target, &before, body, via)?;
        let mut object;
        if target.subresource == "status" {
            object = before.clone();
            if let (Some(map), Some(value)) = (object.as_object_mut(), body.get("status")) {
                map.insert("status".to_owned(), value.clone());
            }
        } else if target.subresource == "approval" {
            object = before.clone();
            if let (Some(map), Some(value)) = (object.as_object_mut(), body.pointer("/status/conditions")) {
                let status = map.entry("status").or_insert_with(|| json!({}));
                if let Some(status) = status.as_object_mut() {
                    status.insert("conditions".to_owned(), value.clone());
                }
            }
        } else {
            object = body.clone();
            if has_status(&target.resource) {
                let kept = before.get("status").cloned();
                if let Some(map) = object.as_object_mut() {
                    map.remove("status");
                    if let Some(kept) = kept {
                        map.insert("status".to_owned(), kept);
                    }
                }
            }
            self.stamp(target, &mut object, Some(&before));
            let entries = before.pointer("/metadata/managedFields").cloned();
            if let (Some(metadata), Some(entries)) =
                (object.get_mut("metadata").and_then(Value::as_object_mut), entries)
            {
                metadata.insert("managedFields".to_owned(), entries);
            }
        }
        apply::updated(Some(&before), &mut object, manager, &target.subresource);
        Ok(self.commit(target, Some(before), object))
    }

    /// Another number of replicas, by the subresource.
    pub fn scale(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let before = self.get(target)?;
        let mut object = before.clone();
        if let (Some(replicas), Some(spec)) =
            (body.pointer("/spec/replicas"), object.get_mut("spec").and_then(Value::as_object_mut))
        {
            spec.insert("replicas".to_owned(), replicas.clone());
        }
        self.stamp(target, &mut object, Some(&before));
        apply::updated(Some(&before), &mut object, manager, &target.subresource);
        Ok(self.commit(target, Some(before), object))
    }

    /// A replacement that says itself what `managedFields` is to be, as a JSON patch may.
    pub fn replace_with_fields(&mut self, target: &Target, body: &Value, manager: &str) -> ApiResult<Value> {
        let before = self.get(target)?;
        if before.pointer("/metadata/managedFields") == body.pointer("/metadata/managedFields") {
            return self.replace(target, body, manager, Via::Patch);
        }
        Self::check(target, &before, body, Via::Patch)?;
        let mut object = body.clone();
        self.stamp(target, &mut object, Some(&before));
        Ok(self.commit(target, Some(before), object))
    }

    pub fn apply(&mut self, target: &Target, intent: &Value, manager: &str, force: bool) -> ApiResult<Value> {
        let (before, object) = self.applied(target, intent, manager, force)?;
        Ok(self.commit(target, before, object))
    }

    /// What an apply would come to.
    pub fn try_apply(
        &mut self,
        target: &Target,
        intent: &Value,
        manager: &str,
        force: bool,
    ) -> ApiResult<Value> {
        self.applied(target, intent, manager, force).map(|(_, object)| object)
    }

    fn applied(
        &mut self,
        target: &Target,
        intent: &Value,
        manager: &str,
        force: bool,
    ) -> ApiResult<(Option<Value>, Value)> {
        let before = self.get(target).ok();
        if before.is_none() {
            if !target.subresource.is_empty() {
                return Err(refusals::not_found(&target.resource, &target.name));
            }
            self.accepts(target)?;
        }
        let wanted = text(intent, "/metadata/uid");
        if let (None, false) = (&before, wanted.is_empty()) {
            let why = format!(
                "uid mismatch: the provided object specified uid {wanted}, and no existing object was found"
            );
            return Err(refusals::conflict(&target.resource, &target.name, &why));
        }
        let mut intent = intent.clone();
        if let Some(metadata) = intent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), json!(target.name));
            if target.resource.namespaced {
                metadata.insert("namespace".to_owned(), json!(target.namespace));
            }
        }
        let mut object = apply::apply(before.as_ref(), &intent, manager, force, &target.subresource)?;
        unions::fill(&target.resource, &mut object);
        self.fits(target, &object)?;
        if let Some(before) = &before {
            // Conflicts come first; then what the intent says of identity and version is looked at.
            for name in ["uid", "resourceVersion"] {
                set_metadata(&mut object, name, intent.pointer(&format!("/metadata/{name}")));
            }
            Self::check(target, before, &object, Via::Patch)?;
            set_metadata(&mut object, "resourceVersion", before.pointer("/metadata/resourceVersion"));
        }
        self.stamp(target, &mut object, before.as_ref());
        Ok((before, object))
    }

    /// Asks the definition of a custom kind whether it takes an object.
    fn fits(&self, target: &Target, object: &Value) -> ApiResult<()> {
        let resource = &target.resource;
        if !refusals::is_custom(resource) || !target.subresource.is_empty() {
            return Ok(());
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let definition = self.resolve(&path).and_then(|target| self.get(&target));
        let refused = definition.ok().and_then(|definition| {
            schemas::of(&definition, &resource.version).map(|schema| schemas::refused(schema, object))
        });
        match refused {
            Some(refused) if !refused.is_empty() => {
                Err(refusals::invalid_fields(resource, &target.name, refused))
            }
            _ => Ok(()),
        }
    }

    /// Deletes, or marks where finalizers or content hold it. What is gone is answered with a Status, as servers do.
    pub fn delete(&mut self, target: &Target, options: Option<&Value>) -> ApiResult<Value> {
        let before = self.get(target)?;
        for (name, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let want =
                options.and_then(|o| o.pointer(&format!("/preconditions/{name}"))).and_then(Value::as_str);
            let have = text(&before, &format!("/metadata/{name}"));
            if let Some(want) = want.filter(|want| *want != have) {
                return Err(refusals::precondition(&target.resource, &target.name, what, want, have));
            }
        }
        let mut object = before.clone();
        let policy = options.and_then(|o| o.get("propagationPolicy")).and_then(Value::as_str);
        let awaits = match policy {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ => None,
        };
        let is_namespace = target.resource.kind == "Namespace" && target.resource.group.is_empty();
        if before.pointer("/metadata/deletionTimestamp").is_none()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("deletionTimestamp".to_owned(), json!("2026-01-01T00:00:01Z"));
            if !is_namespace {
                metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            }
            if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
                metadata.insert("generation".to_owned(), json!(generation + 1));
            }
            if let Some(all) = awaits.and_then(|awaits| {
                let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
                all.as_array_mut().map(|all| (all, awaits))
            }) {
                all.0.push(json!(all.1));
            }
        }
        let marked = self.commit(target, Some(before.clone()), object);
        if let (Some(awaits), Ok(live)) = (awaits, self.get(target)) {
            // The garbage collector: nothing here has dependents, so what it waits for has come.
            let mut rest = live.clone();
            if let Some(all) = rest.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
                all.retain(|finalizer| finalizer != awaits);
            }
            self.commit(target, Some(live), rest);
            return Ok(marked);
        }
        if is_namespace || self.get(target).is_ok() {
            return Ok(marked);
        }
        let mut details = json!({"name": target.name, "kind": target.resource.plural, "uid": before.pointer("/metadata/uid")});
        if let (false, Some(details)) = (target.resource.group.is_empty(), details.as_object_mut()) {
            details.insert("group".to_owned(), json!(target.resource.group));
        }
        Ok(
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
        )
    }
}

/// Sets a field of the metadata to what another object has there; absent there, it stays.
fn set_metadata(object: &mut Value, name: &str, value: Option<&Value>) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(metadata), Some(value)) = (metadata, value) {
        metadata.insert(name.to_owned(), value.clone());
    }
}
