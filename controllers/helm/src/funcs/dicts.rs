//! Map functions. `set`, `unset` and the merges change their map for everybody who holds it.
use super::args::{Out, any, bytes, def, fail, map, rest, variadic};
use super::cast::strval;
use super::merge::{deep_copy, merge};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::limits::{MAP_BYTES, NODE_BYTES};
use crate::value::{Map as Dict, MapType, Text, Value};

use Param::{Any, Map, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    variadic("dict", &[], Any, dict),
    def("get", &[Map, Str], |_, a| Ok(map(a, 0).get(bytes(a, 1)).unwrap_or_else(|| Value::text("")))),
    def("set", &[Map, Str, Any], set),
    def("unset", &[Map, Str], |_, a| {
        let target = map(a, 0);
        drop(target.remove(bytes(a, 1)));
        Ok(Value::Map(target.with_type(MapType::Any)))
    }),
    def("hasKey", &[Map, Str], |_, a| Ok(map(a, 0).contains_key(bytes(a, 1)).into())),
    variadic("pluck", &[Str], Map, |c, a| {
        c.charge(a.len().saturating_mul(size_of::<Value>()))?;
        let found = rest(a, 1).iter().filter_map(|value| value.as_map()?.get(bytes(a, 0)));
        Ok(Value::list(found.collect()))
    }),
    variadic("keys", &[], Map, |c, a| {
        let keys: Vec<Text> = a.iter().filter_map(Value::as_map).flat_map(Dict::keys).collect();
        c.charge(keys.len().saturating_mul(size_of::<Value>()))?;
        Ok(Value::strings(keys))
    }),
    def("values", &[Map], |c, a| {
        let values: Vec<Value> = map(a, 0).entries().into_iter().map(|(_, value)| value).collect();
        c.charge(values.len().saturating_mul(size_of::<Value>()))?;
        Ok(Value::list(values))
    }),
    variadic("pick", &[Map], Str, |c, a| {
        c.charge(MAP_BYTES.saturating_add(a.len().saturating_mul(2 * size_of::<Value>())))?;
        let from = map(a, 0);
        let picked = rest(a, 1).iter().filter_map(|key| {
            let key = key.as_text()?;
            Some((key.clone(), from.get(key)?))
        });
        Ok(Value::map(picked.collect::<Vec<_>>()))
    }),
    variadic("omit", &[Map], Str, |c, a| {
        let omitted: std::collections::BTreeSet<&Text> =
            rest(a, 1).iter().filter_map(Value::as_text).collect();
        let entries = map(a, 0).entries();
        c.charge(MAP_BYTES.saturating_add(entries.len().saturating_mul(2 * size_of::<Value>())))?;
        Ok(Value::map(entries.into_iter().filter(|(key, _)| !omitted.contains(key))))
    }),
    variadic("merge", &[Map], Map, |c, a| merge_all(c, a, false, false)),
    variadic("mustMerge", &[Map], Map, |c, a| merge_all(c, a, false, true)),
    variadic("mergeOverwrite", &[Map], Map, |c, a| merge_all(c, a, true, false)),
    variadic("mustMergeOverwrite", &[Map], Map, |c, a| merge_all(c, a, true, true)),
    def("deepCopy", &[Any], copy),
    def("mustDeepCopy", &[Any], copy),
    variadic("dig", &[], Any, dig),
];

fn copy(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    match any(args, 0) {
        Value::Nil => fail("reflect: call of reflect.Value.Interface on zero Value"),
        value => deep_copy(ctx, value, 0),
    }
}

fn dict(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    // The tree of a map has room for eleven entries from the first on.
    let tree = if args.is_empty() { NODE_BYTES } else { MAP_BYTES };
    ctx.charge(tree.saturating_add(args.len().saturating_mul(2 * size_of::<Value>())))?;
    let entries = args.chunks(2).map(|pair| {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        (strval(any(pair, 0)), value)
    });
    Ok(Value::map(entries))
}

fn set(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let target = map(args, 0);
    let key = any(args, 1).as_text().cloned().unwrap_or_default();
    let tree = if target.len().is_multiple_of(8) { MAP_BYTES } else { 0 };
    ctx.charge(tree + 2 * size_of::<Value>() + key.len())?;
    if !target.insert(key, any(args, 2).clone()) {
        return fail("assignment to entry in nil map");
    }
    ctx.changed(&target);
    Ok(Value::Map(target.with_type(MapType::Any)))
}

fn merge_all(ctx: &mut Ctx<'_>, args: &[Value], overwrite: bool, must: bool) -> Out {
    let mut target = map(args, 0);
    for source in rest(args, 1) {
        let source = source.as_map().cloned().unwrap_or_else(|| Dict::nil(MapType::Any));
        if target.is_nil() && !source.is_nil() {
            target = Dict::new(MapType::Any);
        }
        match merge(ctx, &target, &source, overwrite, 0) {
            Ok(()) => {}
            Err(FuncError::Failed(_)) if !must => return Ok(Value::text("")),
            Err(error) => return Err(error),
        }
    }
    ctx.changed(&target);
    Ok(Value::Map(target.with_type(MapType::Any)))
}

fn dig(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let Some((last, front)) = args.split_last() else { return fail("dig needs at least three arguments") };
    let Some((default, keys)) = front.split_last().filter(|(_, keys)| !keys.is_empty()) else {
        return fail("dig needs at least three arguments");
    };
    let mut current = last.clone();
    let type_name = |value: &Value| if let Value::Nil = value { "nil" } else { value.type_name() };
    let plain = |value: &Value| match value {
        Value::Map(map) if map.map_type() == MapType::Any => Ok(map.clone()),
        other => fail(format!(
            "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
            type_name(other)
        )),
    };
    plain(&current)?;
    if let Some(wrong) = keys.iter().find(|key| key.as_text().is_none()) {
        return fail(format!("interface conversion: interface {{}} is {}, not string", type_name(wrong)));
    }
    for key in keys.iter().filter_map(Value::as_text) {
        match plain(&current)?.get(key) {
            Some(next) => current = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(current)
}
