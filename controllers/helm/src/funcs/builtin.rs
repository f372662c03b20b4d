//! Go's own template functions: comparison, indexing, printing and escaping.
use super::args::{Out, any, bytes, def, fail, rest, text, variadic};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::gofmt;
use crate::gotext::rune;
use crate::template::quoting::is_printable;
use crate::value::{CompareError, Int, IntKind, Kind, MapType, Value, equal, less};

use Param::{Any, Reflect, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    variadic("eq", &[Reflect], Reflect, eq),
    def("ne", &[Reflect, Reflect], |_, a| Ok((!same(any(a, 0), any(a, 1))?).into())),
    def("lt", &[Reflect, Reflect], |_, a| Ok(before(a)?.into())),
    def("le", &[Reflect, Reflect], |_, a| Ok(at_most(a)?.into())),
    def("gt", &[Reflect, Reflect], |_, a| Ok((!at_most(a)?).into())),
    def("ge", &[Reflect, Reflect], |_, a| Ok((!before(a)?).into())),
    def("not", &[Reflect], |_, a| Ok((!any(a, 0).truth()).into())),
    def("len", &[Reflect], |_, a| len(any(a, 0))),
    variadic("index", &[Reflect], Reflect, index),
    variadic("print", &[], Any, |c, a| printed(c, gofmt::sprint(a))),
    variadic("println", &[], Any, |c, a| printed(c, gofmt::sprintln(a))),
    variadic("printf", &[Str], Any, |c, a| printed(c, gofmt::sprintf(bytes(a, 0), rest(a, 1)))),
    variadic("html", &[], Any, |c, a| printed(c, html(&escaped(c, a)?))),
    variadic("js", &[], Any, |c, a| printed(c, js(&escaped(c, a)?))),
    variadic("urlquery", &[], Any, |c, a| printed(c, super::url::query_escape(&escaped(c, a)?))),
];

/// The text of values that are about to be escaped, which makes a byte six at most.
fn escaped(ctx: &Ctx<'_>, args: &[Value]) -> Result<Vec<u8>, FuncError> {
    let shown = shown(args);
    ctx.charge(shown.len().saturating_mul(6))?;
    Ok(shown)
}

fn printed(ctx: &mut Ctx<'_>, value: Vec<u8>) -> Out {
    ctx.charge(value.len())?;
    text(value)
}

fn same(a: &Value, b: &Value) -> Result<bool, FuncError> {
    let shown = |verb: &[u8], value: &Value| {
        String::from_utf8_lossy(&gofmt::sprintf(verb, std::slice::from_ref(value))).into_owned()
    };
    equal(a, b).map_err(|error| match error {
        CompareError::NonComparable => {
            FuncError::new(format!("non-comparable type {}: {}", shown(b"%s", b), b.type_name()))
        }
        // Go swaps the second value and its type.
        CompareError::NonComparableKinds => FuncError::new(format!(
            "non-comparable types {}: {}, {}: {}",
            shown(b"%s", a),
            a.type_name(),
            b.type_name(),
            shown(b"%v", b)
        )),
        other => FuncError::new(other.to_string()),
    })
}

fn eq(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    if args.len() < 2 {
        return fail("missing argument for comparison");
    }
    for other in rest(args, 1) {
        if same(any(args, 0), other)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn before(args: &[Value]) -> Result<bool, FuncError> {
    less(any(args, 0), any(args, 1)).map_err(|error| FuncError::new(error.to_string()))
}

fn at_most(args: &[Value]) -> Result<bool, FuncError> {
    Ok(before(args)? || same(any(args, 0), any(args, 1))?)
}

fn len(value: &Value) -> Out {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Object(object) if matches!(object.kind(), Kind::Slice | Kind::Map) => {
            return len(&object.plain());
        }
        Value::Nil => return fail("reflect: call of reflect.Value.Type on zero Value"),
        other => return fail(format!("len of type {}", other.type_name())),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut item = any(args, 0).clone();
    if let Value::Nil = item {
        return fail("index of untyped nil");
    }
    for key in rest(args, 1) {
        if let Value::Object(object) = &item
            && matches!(object.kind(), Kind::Slice | Kind::Map)
        {
            item = object.plain();
        }
        item = match &item {
            Value::Nil => return fail("index of nil pointer"),
            Value::Text(text) => {
                let byte = place(key, text.len(), "string")?;
                let byte = text.as_bytes().get(byte).copied().unwrap_or(0);
                Value::Int(Int::unsigned(IntKind::Uint8, u64::from(byte)))
            }
            Value::List(list) => list.get(place(key, list.len(), "slice")?).cloned().unwrap_or_default(),
            Value::Map(map) => match key {
                Value::Text(key) => map.get(key).unwrap_or_else(|| match map.map_type() {
                    MapType::String => Value::text(""),
                    _ => Value::Nil,
                }),
                Value::Nil => return fail("value is nil; should be of type string"),
                other => return fail(format!("value has type {}; should be string", other.type_name())),
            },
            other => return fail(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(item)
}

/// An index into a sequence of a kind.
fn place(key: &Value, length: usize, kind: &str) -> Result<usize, FuncError> {
    match key {
        Value::Int(int) => match usize::try_from(int.as_i128()) {
            Ok(place) if place < length => Ok(place),
            // Go's check lets one too many pass, and its reflection complains in other words.
            Ok(place) if place == length => fail(format!("reflect: {kind} index out of range")),
            _ => fail(format!("index out of range: {int}")),
        },
        Value::Nil => fail("cannot index slice/array with nil"),
        other => fail(format!("cannot index slice/array with type {}", other.type_name())),
    }
}

/// The text escaping functions work on.
fn shown(args: &[Value]) -> Vec<u8> {
    if let [Value::Text(text)] = args {
        return text.as_bytes().to_vec();
    }
    let printable: Vec<Value> = args
        .iter()
        .map(|arg| if matches!(arg, Value::Nil) { Value::text("<no value>") } else { arg.clone() })
        .collect();
    gofmt::sprint(&printable)
}

fn html(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            0 => out.extend_from_slice("\u{FFFD}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

fn js(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((c, length)) = rune(rest) {
        let (bytes, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = after;
        match c {
            '\\' => out.extend_from_slice(br"\\"),
            '\'' => out.extend_from_slice(br"\'"),
            '"' => out.extend_from_slice(br#"\""#),
            '<' | '>' | '&' | '=' | '\0'..' ' => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
            }
            c if c.is_ascii() || is_printable(c) => out.extend_from_slice(bytes),
            c => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
        }
    }
    out
}
