//! Reads the directives of strategic merge patches.

use serde_json::{Map, Value};

use super::error::PatchError;

/// Says what becomes of a map, or of an item of a list.
const PATCH: &str = "$patch";
/// Names the fields that a map keeps.
pub(super) const RETAIN: &str = "$retainKeys";
/// Begins the field with the order of a list.
pub(super) const ORDER: &str = "$setElementOrder/";
/// Begins the field with values to take out of a list.
pub(super) const DELETE: &str = "$deleteFromPrimitiveList/";
/// Fields of schemas, which are no directives.
const SCHEMA: [&str; 2] = ["$ref", "$schema"];

/// What `$patch` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Replace,
    Delete,
    Merge,
}

/// Where in a patch something is: a field's name or an item's merge key below another place.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    above: Option<&'a Self>,
    step: &'a str,
}

/// The patch itself.
pub(super) const TOP: At<'static> = At { above: None, step: "" };

impl<'a> At<'a> {
    /// A field or item of this.
    pub(super) fn then(&'a self, step: &'a str) -> Self {
        Self { above: Some(self), step }
    }

    /// What is wrong here.
    pub(super) fn fault(&self, fault: impl Into<String>) -> PatchError {
        PatchError::Field { path: self.path(), fault: fault.into() }
    }

    fn path(&self) -> String {
        match self.above {
            None => "the top level".to_owned(),
            Some(above) if above.above.is_none() => self.step.to_owned(),
            Some(above) => format!("{}.{}", above.path(), self.step),
        }
    }
}

/// What `$patch` of a map says, if it has one.
pub(super) fn directive(map: &Map<String, Value>, at: &At<'_>) -> Result<Option<Directive>, PatchError> {
    match map.get(PATCH).map(Value::as_str) {
        None => Ok(None),
        Some(Some("replace")) => Ok(Some(Directive::Replace)),
        Some(Some("delete")) => Ok(Some(Directive::Delete)),
        Some(Some("merge")) => Ok(Some(Directive::Merge)),
        Some(_) => Err(at.fault("$patch has to be replace, delete or merge")),
    }
}

/// Whether a field of a patch is a directive.
pub(super) fn is_directive(field: &str) -> bool {
    field == PATCH || field == RETAIN || field.starts_with(ORDER) || field.starts_with(DELETE)
}

/// Checks every directive of a patch by itself.
pub(super) fn check(patch: &Map<String, Value>) -> Result<(), PatchError> {
    check_map(patch, &TOP)
}

fn check_map(map: &Map<String, Value>, at: &At<'_>) -> Result<(), PatchError> {
    directive(map, at)?;
    for (field, value) in map {
        let at = at.then(field);
        if field == RETAIN {
            retained(value, &at)?;
        } else if field.starts_with(ORDER) || field.starts_with(DELETE) {
            list(value, &at)?;
        } else if field.starts_with('$') && field != PATCH && !SCHEMA.contains(&field.as_str()) {
            let known = format!("{PATCH}, {RETAIN}, {ORDER}FIELD and {DELETE}FIELD");
            return Err(at.fault(format!("there is no such directive; there are {known}")));
        } else {
            check_value(value, &at)?;
        }
    }
    Ok(())
}

fn check_value(value: &Value, at: &At<'_>) -> Result<(), PatchError> {
    match value {
        Value::Object(map) => check_map(map, at),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, at)),
        _ => Ok(()),
    }
}

/// The value of a directive that is a list.
pub(super) fn list<'a>(value: &'a Value, at: &At<'_>) -> Result<&'a [Value], PatchError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| at.fault("this has to be a list"))
}

/// The names of fields in `$retainKeys`.
pub(super) fn retained<'a>(value: &'a Value, at: &At<'_>) -> Result<Vec<&'a str>, PatchError> {
    let names: Option<Vec<&str>> = list(value, at)?.iter().map(Value::as_str).collect();
    names.ok_or_else(|| at.fault("this has to be a list of names of fields"))
}

/// What a patch adds where the object has nothing of the kind: without directives, and without `null` in maps. `None` where a
/// `$patch` is for something that is not there.
pub(super) fn added(value: &Value) -> Option<Value> {
    copied(value, false)
}

/// A map of a patch as it is, but for the directives in it and below.
pub(super) fn plain(map: &Map<String, Value>) -> Map<String, Value> {
    copied_map(map, true)
}

/// A list of a patch as it is, but for the directives in it and below.
pub(super) fn plain_list(items: &[Value]) -> Vec<Value> {
    items.iter().filter_map(|item| copied(item, true)).collect()
}

fn copied(value: &Value, nulls: bool) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(copied_map(map, nulls))),
        Value::Array(items) => Some(items.iter().filter_map(|item| copied(item, nulls)).collect()),
        _ => Some(value.clone()),
    }
}

fn copied_map(map: &Map<String, Value>, nulls: bool) -> Map<String, Value> {
    let fields = map.iter().filter(|(field, value)| !is_directive(field) && (nulls || !value.is_null()));
    fields.filter_map(|(field, value)| Some((field.clone(), copied(value, nulls)?))).collect()
}
