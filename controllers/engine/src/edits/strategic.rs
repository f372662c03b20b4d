//! Merges maps as Kubernetes does (`StrategicMergePatch` of its `strategicpatch` package).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::directives::{self, At, DELETE, Directive, ORDER, RETAIN, TOP, directive, is_directive};
use super::error::PatchError;
use super::keys::{Field, NONE, Shape};
use super::lists;
use super::order::Identity;

/// An object after a strategic merge patch whose directives are well formed.
pub(super) fn merged(object: &Value, patch: &Map<String, Value>, shape: &Shape) -> Result<Value, PatchError> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    merge(&mut fields, patch, shape, &TOP)?;
    Ok(Value::Object(fields))
}

/// Merges a map of the patch into one of the object.
pub(super) fn merge(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: &Shape,
    at: &At<'_>,
) -> Result<(), PatchError> {
    match directive(patch, at)? {
        Some(Directive::Replace) => {
            *object = directives::plain(patch);
            return Ok(());
        }
        Some(Directive::Delete) => {
            object.clear();
            return Ok(());
        }
        Some(Directive::Merge) | None => {}
    }
    retain(object, patch, at)?;
    let mut ordered = BTreeSet::new();
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix(ORDER) {
            lists::ordered(object, patch, field, value, shape, &at.then(name))?;
            ordered.insert(field);
        }
    }
    // What is taken out and put in by one patch is in.
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix(DELETE) {
            let values: BTreeSet<Identity> = directives::list(value, &at.then(name))?
                .iter()
                .filter_map(|item| Identity::of(item, None))
                .collect();
            if let Some(Value::Array(items)) = object.get_mut(field) {
                items.retain(|item| Identity::of(item, None).is_none_or(|item| !values.contains(&item)));
            }
        }
    }
    for (field, value) in patch {
        if is_directive(field) || ordered.contains(field.as_str()) {
            continue;
        }
        merge_field(object, field, value, shape, &at.then(field))?;
    }
    Ok(())
}

fn merge_field(
    object: &mut Map<String, Value>,
    field: &str,
    value: &Value,
    shape: &Shape,
    at: &At<'_>,
) -> Result<(), PatchError> {
    if value.is_null() {
        object.remove(field);
        return Ok(());
    }
    let known = shape.field(field);
    let is_merged = match (object.get_mut(field), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            match known {
                Some(Field::Whole) => *old = directives::plain(new),
                Some(Field::Object(shape)) => merge(old, new, shape, at)?,
                _ => merge(old, new, &NONE, at)?,
            }
            true
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            lists::merge(old, new, known, at)?;
            true
        }
        _ => false,
    };
    if !is_merged {
        match directives::added(value) {
            Some(value) => drop(object.insert(field.to_owned(), value)),
            None => drop(object.remove(field)),
        }
    }
    Ok(())
}

/// Removes the fields that `$retainKeys` does not name. The patch may set none besides.
fn retain(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    at: &At<'_>,
) -> Result<(), PatchError> {
    let Some(names) = patch.get(RETAIN) else {
        return Ok(());
    };
    let names: BTreeSet<&str> = directives::retained(names, &at.then(RETAIN))?.into_iter().collect();
    let besides = patch
        .iter()
        .find(|(field, value)| !value.is_null() && !is_directive(field) && !names.contains(field.as_str()));
    if let Some((field, _)) = besides {
        return Err(at
            .then(field)
            .fault(format!("{RETAIN} beside it does not name this field: add it there")));
    }
    object.retain(|field, _| names.contains(field.as_str()));
    Ok(())
}
