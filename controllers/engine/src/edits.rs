//! Applies JSON patches, merge patches and strategic merge patches to manifests, and has workloads ask for hardware.

mod directives;
mod error;
mod json;
mod keys;
mod lists;
mod order;
mod strategic;
mod workload;

use serde_json::{Map, Value};

pub use error::PatchError;
pub use keys::{FieldMerge, MergedField, merged_fields};
pub use workload::{Amount, WorkloadChange, pods_of};

use crate::canonical;

/// One change of an object that a chart made (or another edit added).
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// Operations of RFC 6902, as written, in their order.
    Json(Vec<Value>),
    /// A merge patch of RFC 7386: fields to set, `null` to remove; lists are replaced.
    Merge(Value),
    /// A strategic merge patch of Kubernetes, for built-in kinds only: lists are merged by their keys.
    Strategic(Value),
    /// A change of what a workload of any kind asks for.
    Workload(WorkloadChange),
}

/// Applies a patch to one object, which stays as it is. The result is the same object by group, kind, namespace and name, and
/// nests at most as deep as what is stored; its size is the caller's to bound.
pub fn patched(object: &Value, patch: &Patch) -> Result<Value, PatchError> {
    shallow(patch)?;
    let result = match patch {
        Patch::Json(operations) => json::applied(object, operations)?,
        Patch::Merge(fields) => {
            map(fields, "merge")?;
            let mut result = object.clone();
            json_patch::merge(&mut result, fields);
            result
        }
        Patch::Strategic(fields) => {
            let fields = map(fields, "strategic merge")?;
            let shape = keys::shape(text(object, "apiVersion"), text(object, "kind"))?;
            directives::check(fields)?;
            strategic::merged(object, fields, shape)?
        }
        Patch::Workload(change) => workload::changed(object, change)?,
    };
    if canonical::too_deep(&result) {
        return Err(PatchError::TooDeep);
    }
    same(object, &result)?;
    Ok(result)
}

/// Checks what needs no object: that operations and directives are well formed and, for a strategic merge patch, that lists of
/// this kind have known merge keys. `api_version` is a group and version such as `apps/v1`.
pub fn check(api_version: &str, kind: &str, patch: &Patch) -> Result<(), PatchError> {
    shallow(patch)?;
    match patch {
        Patch::Json(operations) => json::check(operations),
        Patch::Merge(fields) => {
            map(fields, "merge")?;
            Ok(())
        }
        Patch::Strategic(fields) => {
            let fields = map(fields, "strategic merge")?;
            keys::shape(api_version, kind)?;
            directives::check(fields)
        }
        Patch::Workload(_) => Ok(()),
    }
}

/// Everything else here recurses into patches without fear for the stack.
fn shallow(patch: &Patch) -> Result<(), PatchError> {
    let deep = match patch {
        Patch::Json(operations) => operations.iter().any(canonical::too_deep),
        Patch::Merge(fields) | Patch::Strategic(fields) => canonical::too_deep(fields),
        Patch::Workload(_) => false,
    };
    if deep { Err(PatchError::TooDeep) } else { Ok(()) }
}

fn map<'a>(fields: &'a Value, patch: &'static str) -> Result<&'a Map<String, Value>, PatchError> {
    fields.as_object().ok_or(PatchError::NoMap { patch })
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether two states are of one object.
fn same(before: &Value, after: &Value) -> Result<(), PatchError> {
    fn metadata<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
        object.get("metadata").and_then(|metadata| metadata.get(field)).filter(|value| !value.is_null())
    }
    fn group(object: &Value) -> Option<&str> {
        let version = object.get("apiVersion")?.as_str()?;
        Some(version.rsplit_once('/').map_or("", |(group, _)| group))
    }
    let fields = [
        ("apiVersion", group(before) == group(after)),
        ("kind", before.get("kind") == after.get("kind")),
        ("metadata.name", metadata(before, "name") == metadata(after, "name")),
        ("metadata.namespace", metadata(before, "namespace") == metadata(after, "namespace")),
    ];
    match fields.into_iter().find(|(_, same)| !same) {
        Some((field, _)) => Err(PatchError::Identity { field }),
        None => Ok(()),
    }
}
