//! Merging and copying of maps, with the aliasing that charts observe: nested maps of the source are taken as they
//! are where the target has none.
use super::args::Out;
use super::{Ctx, FuncError};
use crate::limits::{MAP_BYTES, NODE_BYTES};
use crate::value::{List, Map, MapType, Value};

/// How deep maps are merged and copied; deeper ones are refused.
const MAX_DEPTH: usize = 512;

fn too_deep() -> FuncError {
    FuncError::new(format!("values nest deeper than {MAX_DEPTH} or contain themselves"))
}

/// Fills the target with what the source has more, or with all it has when overwriting.
pub(super) fn merge(
    ctx: &Ctx<'_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), FuncError> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    for (key, value) in source.entries() {
        ctx.shared.meter.step()?;
        if matches!(value, Value::Nil) {
            if overwrite {
                put(ctx, target, &key, value)?;
            }
            continue;
        }
        let old = target.get(&key);
        if let (Some(Value::Map(inner)), Value::Map(more)) = (&old, &value)
            && !inner.is_nil()
        {
            merge(ctx, inner, more, overwrite, depth + 1)?;
        }
        if let (Value::List(list), Some(old)) = (&value, &old)
            && overwrite
            && !matches!(old, Value::Nil)
        {
            put(ctx, target, &key, Value::List(list.clone()))?;
        }
        let filled = old.as_ref().is_some_and(|old| !is_empty(old));
        if filled
            && (matches!(value, Value::List(_))
                || matches!((&value, &old), (Value::Map(_), Some(Value::Map(_)))))
        {
            continue;
        }
        if overwrite || !filled {
            put(ctx, target, &key, value)?;
        }
    }
    Ok(())
}

fn put(ctx: &Ctx<'_>, target: &Map, key: &crate::value::Text, value: Value) -> Result<(), FuncError> {
    let tree = if target.len().is_multiple_of(8) { MAP_BYTES } else { 0 };
    ctx.charge(tree + 2 * size_of::<Value>() + key.len())?;
    if target.map_type() == MapType::String && !matches!(value, Value::Text(_)) {
        return Err(FuncError::new(format!(
            "reflect.Value.SetMapIndex: value of type {} is not assignable to type string",
            value.type_name()
        )));
    }
    target.insert(key.clone(), value);
    ctx.changed(target);
    Ok(())
}

/// Empty by the rules of merging: structs and pointers never are.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        other => !other.truth(),
    }
}

/// A copy that shares no map or list with the original.
pub(super) fn deep_copy(ctx: &Ctx<'_>, value: &Value, depth: usize) -> Out {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    ctx.shared.meter.step()?;
    ctx.charge(if matches!(value, Value::Map(_)) { MAP_BYTES } else { NODE_BYTES })?;
    Ok(match value {
        Value::List(list) if !list.is_nil() => {
            let items = list.items().iter().map(|item| deep_copy(ctx, item, depth + 1));
            Value::List(List::new(list.list_type(), items.collect::<Result<_, _>>()?))
        }
        Value::Map(map) if !map.is_nil() => {
            let entries = map
                .entries()
                .into_iter()
                .map(|(key, value)| Ok((key, deep_copy(ctx, &value, depth + 1)?)))
                .collect::<Result<Vec<_>, FuncError>>()?;
            Value::Map(Map::from_entries(map.map_type(), entries))
        }
        other => other.clone(),
    })
}
