//! Merges lists as Kubernetes does: by a merge key, as sets of values, or as a whole.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::directives::{self, At, Directive, directive};
use super::error::PatchError;
use super::keys::{Field, Shape};
use super::order::{Identity, Ranks, arrange, ranks};
use super::strategic;

/// Merges a list of the patch into one of the object.
pub(super) fn merge(
    list: &mut Vec<Value>,
    patch: &[Value],
    field: Option<&Field>,
    at: &At<'_>,
) -> Result<(), PatchError> {
    match field {
        Some(Field::Keyed(key, shape)) => merge_keyed(list, patch, key, shape, at).map(drop),
        Some(Field::Set) => merge_values(list, patch, at),
        _ => replace(list, patch, at),
    }
}

/// Merges a list and orders it by the value of `$setElementOrder`.
pub(super) fn ordered(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    field: &str,
    order: &Value,
    shape: &Shape,
    at: &At<'_>,
) -> Result<(), PatchError> {
    let order = directives::list(order, at)?;
    let new = patch.get(field).map(|new| directives::list(new, at)).transpose()?;
    let old = object.get(field).map(|old| directives::list(old, at).map(<[Value]>::to_vec)).transpose()?;
    if old.is_none() && new.is_none() {
        return Ok(());
    }
    let known = shape.field(field);
    let key = match known {
        Some(Field::Keyed(key, _)) => Some(*key),
        _ => None,
    };
    let wanted = identities(order, key, at)?;
    agree(new.unwrap_or_default(), &wanted, key, at)?;
    let mut merged = old.clone().unwrap_or_default();
    let mut before = identities(&merged, key, at)?;
    if let Some(new) = new {
        match known {
            _ if old.is_none() => merged = directives::plain_list(new),
            Some(Field::Keyed(key, shape)) => {
                let members = merge_keyed(&mut merged, new, key, shape, at)?;
                // Go looks into the memory of the list before, where items that came have the place of those that went.
                before = members.into_iter().take(before.len()).collect();
            }
            known => merge(&mut merged, new, known, at)?,
        }
    }
    identities(&merged, key, at)?;
    let merged = arrange(merged, key, &ranks(&wanted), &ranks(&before));
    object.insert(field.to_owned(), Value::Array(merged));
    Ok(())
}

/// Answers by what the items that stayed are known, and after them those that came.
fn merge_keyed(
    list: &mut Vec<Value>,
    patch: &[Value],
    key: &str,
    shape: &Shape,
    at: &At<'_>,
) -> Result<Vec<Identity>, PatchError> {
    let mut maps = Vec::with_capacity(patch.len());
    let mut deleted = BTreeSet::new();
    let mut is_replaced = false;
    for item in patch {
        let map =
            item.as_object().ok_or_else(|| at.fault(format!("every item has to be a map with {key}")))?;
        match directive(map, at)? {
            None => maps.push((identity(item, Some(key), at)?, map)),
            Some(Directive::Delete) => {
                deleted.insert(identity(item, Some(key), at)?);
            }
            Some(Directive::Replace) => is_replaced = true,
            Some(Directive::Merge) => {
                return Err(at.fault("$patch: merge is for maps: leave it out, items are merged anyway"));
            }
        }
    }
    list.retain(|item| Identity::of(item, Some(key)).is_none_or(|item| !deleted.contains(&item)));
    let mut members = identities(list, Some(key), at)?;
    if is_replaced {
        let itself = ranks(maps.iter().map(|(identity, _)| identity));
        let items = maps.iter().map(|(_, map)| Value::Object(directives::plain(map))).collect();
        *list = arrange(items, Some(key), &Ranks::new(), &itself);
        return Ok(members);
    }
    let before = ranks(&members);
    let mut places = before.clone();
    for (identity, map) in &maps {
        if let Some(place) = places.get(identity).copied() {
            if let Some(Value::Object(old)) = list.get_mut(place) {
                strategic::merge(old, map, shape, &at.then(identity.as_str()))?;
            }
        } else {
            places.insert(identity.clone(), list.len());
            members.push(identity.clone());
            list.push(Value::Object(directives::plain(map)));
        }
    }
    let wanted = ranks(maps.iter().map(|(identity, _)| identity));
    *list = arrange(std::mem::take(list), Some(key), &wanted, &before);
    Ok(members)
}

fn merge_values(list: &mut Vec<Value>, patch: &[Value], at: &At<'_>) -> Result<(), PatchError> {
    let wanted = identities(patch, None, at)?;
    let before = identities(list, None, at)?;
    let mut seen = BTreeSet::new();
    let all = before.iter().chain(&wanted).zip(list.iter().chain(patch));
    let merged = all.filter(|(identity, _)| seen.insert(*identity)).map(|(_, value)| value.clone()).collect();
    *list = arrange(merged, None, &ranks(&wanted), &ranks(&before));
    Ok(())
}

fn replace(list: &mut Vec<Value>, patch: &[Value], at: &At<'_>) -> Result<(), PatchError> {
    for map in patch.iter().filter_map(Value::as_object) {
        if matches!(directive(map, at)?, Some(Directive::Delete | Directive::Merge)) {
            return Err(at.fault(
                "Kubernetes replaces this list as a whole, so $patch finds no item in it: write the whole list, or use a JSON patch",
            ));
        }
    }
    *list = directives::plain_list(patch);
    Ok(())
}

/// What every item of a list is known by.
fn identities(items: &[Value], key: Option<&str>, at: &At<'_>) -> Result<Vec<Identity>, PatchError> {
    items.iter().map(|item| identity(item, key, at)).collect()
}

fn identity(item: &Value, key: Option<&str>, at: &At<'_>) -> Result<Identity, PatchError> {
    Identity::of(item, key).ok_or_else(|| match key {
        Some(key) => at.fault(format!("an item has no {key}, by which items of this list are merged")),
        None => at.fault("Kubernetes merges values here, and an item is a map, a list or null"),
    })
}

/// Whether the items of the patch are in the order that it asks for, with others between them.
fn agree(patch: &[Value], wanted: &[Identity], key: Option<&str>, at: &At<'_>) -> Result<(), PatchError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut order = wanted.iter();
    for item in patch {
        if item.as_object().is_some_and(|map| map.contains_key("$patch")) {
            continue;
        }
        let known = identity(item, key, at)?;
        if !order.any(|other| *other == known) {
            return Err(at.fault(
                "the patch has items that are missing here or stand in another order: list all of them",
            ));
        }
    }
    Ok(())
}
