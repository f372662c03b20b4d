//! List functions. Lists never change in place: each function gives a new one.
use super::args::{Out, any, def, fail, int, rest as more, variadic};
use super::cast::to_int64;
use super::equal::deep_equal;
use super::{Ctx, FuncDef, FuncError, Param};
use crate::limits::NODE_BYTES;
use crate::value::{Kind, List, ListType, Value};

use Param::{Any, Int};

pub(super) const FUNCS: &[FuncDef] = &[
    variadic("list", &[], Any, |c, a| list(c, a.to_vec())),
    variadic("tuple", &[], Any, |c, a| list(c, a.to_vec())),
    def("append", &[Any, Any], |c, a| push(c, a, true)),
    def("mustAppend", &[Any, Any], |c, a| push(c, a, true)),
    def("push", &[Any, Any], |c, a| push(c, a, true)),
    def("mustPush", &[Any, Any], |c, a| push(c, a, true)),
    def("prepend", &[Any, Any], |c, a| push(c, a, false)),
    def("mustPrepend", &[Any, Any], |c, a| push(c, a, false)),
    def("first", &[Any], |_, a| {
        Ok(items(any(a, 0), "find first on")?.items().first().cloned().unwrap_or_default())
    }),
    def("mustFirst", &[Any], |_, a| {
        Ok(items(any(a, 0), "find first on")?.items().first().cloned().unwrap_or_default())
    }),
    def("last", &[Any], |_, a| {
        Ok(items(any(a, 0), "find last on")?.items().last().cloned().unwrap_or_default())
    }),
    def("mustLast", &[Any], |_, a| {
        Ok(items(any(a, 0), "find last on")?.items().last().cloned().unwrap_or_default())
    }),
    def("rest", &[Any], |c, a| part(c, a, true)),
    def("mustRest", &[Any], |c, a| part(c, a, true)),
    def("initial", &[Any], |c, a| part(c, a, false)),
    def("mustInitial", &[Any], |c, a| part(c, a, false)),
    def("reverse", &[Any], reverse),
    def("mustReverse", &[Any], reverse),
    def("uniq", &[Any], uniq),
    def("mustUniq", &[Any], uniq),
    variadic("without", &[Any], Any, without),
    variadic("mustWithout", &[Any], Any, without),
    def("has", &[Any, Any], has),
    def("mustHas", &[Any, Any], has),
    def("compact", &[Any], compact),
    def("mustCompact", &[Any], compact),
    variadic("slice", &[Any], Any, slice),
    variadic("mustSlice", &[Any], Any, slice),
    variadic("concat", &[], Any, concat),
    def("chunk", &[Int, Any], chunk),
    def("mustChunk", &[Int, Any], chunk),
];

/// The slice a value is, or Go's complaint.
fn items(value: &Value, verb: &str) -> Result<List, FuncError> {
    match value {
        Value::List(list) => Ok(list.clone()),
        Value::Object(object) if object.kind() == Kind::Slice => match object.plain() {
            Value::List(list) => Ok(list),
            _ => Ok(List::nil(ListType::Any)),
        },
        Value::Nil => fail("runtime error: invalid memory address or nil pointer dereference"),
        other => fail(format!("Cannot {verb} type {}", other.kind().name())),
    }
}

fn list(ctx: &mut Ctx<'_>, items: Vec<Value>) -> Out {
    ctx.charge(NODE_BYTES.saturating_add(items.len().saturating_mul(size_of::<Value>())))?;
    Ok(Value::list(items))
}

#[allow(clippy::unnecessary_wraps)] // The form of every function body.
fn nil_list() -> Out {
    Ok(Value::List(List::nil(ListType::Any)))
}

fn push(ctx: &mut Ctx<'_>, args: &[Value], at_end: bool) -> Out {
    let old = items(any(args, 0), if at_end { "push on" } else { "prepend on" })?;
    ctx.charge(NODE_BYTES.saturating_add(old.len().saturating_mul(size_of::<Value>())))?;
    let mut new = Vec::with_capacity(old.len() + 1);
    if !at_end {
        new.push(any(args, 1).clone());
    }
    new.extend_from_slice(old.items());
    if at_end {
        new.push(any(args, 1).clone());
    }
    Ok(Value::list(new))
}

/// All items but the first, or but the last; of nothing, a nil list.
fn part(ctx: &mut Ctx<'_>, args: &[Value], rest: bool) -> Out {
    let old = items(any(args, 0), if rest { "find rest on" } else { "find initial on" })?;
    let cut = if rest { old.items().split_first() } else { old.items().split_last() };
    match cut {
        Some((_, part)) => list(ctx, part.to_vec()),
        None => nil_list(),
    }
}

fn reverse(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut new = items(any(args, 0), "find reverse on")?.items().to_vec();
    new.reverse();
    list(ctx, new)
}

/// Whether a list has an item; each comparison counts against the limits.
fn contains(ctx: &Ctx<'_>, haystack: &[Value], needle: &Value) -> Result<bool, FuncError> {
    for item in haystack {
        if deep_equal(ctx, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut new: Vec<Value> = Vec::new();
    for item in items(any(args, 0), "find uniq on")?.items() {
        if !contains(ctx, &new, item)? {
            new.push(item.clone());
        }
    }
    list(ctx, new)
}

fn without(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut new = Vec::new();
    for item in items(any(args, 0), "find without on")?.items() {
        if !contains(ctx, more(args, 1), item)? {
            new.push(item.clone());
        }
    }
    list(ctx, new)
}

fn has(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    if matches!(any(args, 1), Value::Nil) {
        return Ok(false.into());
    }
    let haystack = items(any(args, 1), "find has on")?;
    Ok(contains(ctx, haystack.items(), any(args, 0))?.into())
}

fn compact(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let old = items(any(args, 0), "compact on")?;
    list(ctx, old.items().iter().filter(|item| item.truth()).cloned().collect())
}

fn slice(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let old = match any(args, 0) {
        Value::List(list) => list.clone(),
        Value::Nil => return fail("runtime error: invalid memory address or nil pointer dereference"),
        other => {
            return fail(format!("list should be type of slice or array but {}", other.kind().name()));
        }
    };
    if old.is_empty() {
        return Ok(Value::Nil);
    }
    let place = |i: usize| usize::try_from(to_int64(any(args, i))).unwrap_or(usize::MAX);
    let start = if args.len() > 1 { place(1) } else { 0 };
    let end = if args.len() > 2 { place(2) } else { old.len() };
    let Some(part) = old.items().get(start..end) else {
        return fail("reflect.Value.Slice: slice index out of bounds");
    };
    ctx.charge(part.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::List(List::new(old.list_type(), part.to_vec())))
}

fn concat(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut new = Vec::new();
    for value in args {
        let Value::List(old) = value else {
            return match value {
                Value::Nil => fail("runtime error: invalid memory address or nil pointer dereference"),
                other => fail(format!("Cannot concat type {} as list", other.kind().name())),
            };
        };
        ctx.charge(NODE_BYTES.saturating_add(old.len().saturating_mul(size_of::<Value>())))?;
        new.extend_from_slice(old.items());
    }
    if new.is_empty() { nil_list() } else { Ok(Value::list(new)) }
}

fn chunk(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    const CHUNKS: ListType = ListType::Named("[][]interface {}");
    let (size, old) = (int(args, 0), items(any(args, 1), "chunk")?);
    ctx.charge(old.len().saturating_mul(NODE_BYTES + 2 * size_of::<Value>()))?;
    let Ok(size) = usize::try_from(size) else {
        // Go computes a number of chunks that is not positive: none, or a failure.
        #[allow(clippy::cast_precision_loss)]
        let chunks = ((old.len() as f64 - 1.0) / size as f64).floor() + 1.0;
        return if chunks == 0.0 {
            Ok(Value::List(List::new(CHUNKS, Vec::new())))
        } else {
            fail("runtime error: makeslice: len out of range")
        };
    };
    if size == 0 {
        return fail("runtime error: makeslice: len out of range");
    }
    let chunks = old.items().chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect();
    Ok(Value::List(List::new(CHUNKS, chunks)))
}
