//! Text functions: trimming, cutting, replacing, joining. Strings are bytes, cut inside runes where Go cuts.
use std::collections::BTreeSet;

use super::args::{Out, any, boolean, bytes, def, int, text, variadic};
use super::cast::{is_untyped_nil, strslice, strval};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::gofmt;
use crate::gotext::runes;
use crate::template::quoting::quote as go_quote;
use crate::value::{List, ListType, Map, MapType, Text, Value};

use Param::{Any, Int, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("hello", &[], |_, _| text("Hello!")),
    def("trunc", &[Int, Str], |_, a| text(trunc(int(a, 0), bytes(a, 1)))),
    def("trim", &[Str], |_, a| text(trim_space(bytes(a, 0)))),
    def("trimall", &[Str, Str], |_, a| text(trim_set(bytes(a, 1), bytes(a, 0)))),
    def("trimAll", &[Str, Str], |_, a| text(trim_set(bytes(a, 1), bytes(a, 0)))),
    def("trimSuffix", &[Str, Str], |_, a| {
        text(bytes(a, 1).strip_suffix(bytes(a, 0)).unwrap_or_else(|| bytes(a, 1)))
    }),
    def("trimPrefix", &[Str, Str], |_, a| {
        text(bytes(a, 1).strip_prefix(bytes(a, 0)).unwrap_or_else(|| bytes(a, 1)))
    }),
    def("substr", &[Int, Int, Str], substr),
    def("repeat", &[Int, Str], repeat),
    def("contains", &[Str, Str], |_, a| Ok(find(bytes(a, 1), bytes(a, 0)).is_some().into())),
    def("hasPrefix", &[Str, Str], |_, a| Ok(bytes(a, 1).starts_with(bytes(a, 0)).into())),
    def("hasSuffix", &[Str, Str], |_, a| Ok(bytes(a, 1).ends_with(bytes(a, 0)).into())),
    variadic("quote", &[], Any, quote),
    variadic("squote", &[], Any, squote),
    variadic("cat", &[], Any, cat),
    def("indent", &[Int, Str], |c, a| text(indent(c, int(a, 0), bytes(a, 1), b"")?)),
    def("nindent", &[Int, Str], |c, a| text(indent(c, int(a, 0), bytes(a, 1), b"\n")?)),
    def("replace", &[Str, Str, Str], |c, a| text(replace(c, bytes(a, 2), bytes(a, 0), bytes(a, 1))?)),
    def("plural", &[Str, Str, Int], |_, a| Ok(any(a, usize::from(int(a, 2) != 1)).clone())),
    def("toString", &[Any], |c, a| {
        let value = strval(any(a, 0));
        c.charge(value.len())?;
        text(value)
    }),
    def("toStrings", &[Any], |c, a| {
        let strings = strings(any(a, 0));
        texts(c, strings.as_list().map_or(&[][..], List::items).iter().filter_map(Value::as_text))?;
        Ok(strings)
    }),
    def("join", &[Str, Any], |c, a| {
        let items = strslice(any(a, 1));
        texts(c, items.iter())?;
        text(join(c, &items, bytes(a, 0))?)
    }),
    def("sortAlpha", &[Any], |c, a| {
        let mut items = match any(a, 0) {
            Value::Nil => vec![strval(&Value::Nil)],
            list => strslice(list),
        };
        texts(c, items.iter())?;
        items.sort();
        Ok(Value::strings(items))
    }),
    def("split", &[Str, Str], |c, a| {
        let parts = split(c, bytes(a, 1), bytes(a, 0), -1)?.unwrap_or_default();
        Ok(numbered(parts))
    }),
    def("splitn", &[Str, Int, Str], |c, a| {
        let parts = split(c, bytes(a, 2), bytes(a, 0), int(a, 1))?.unwrap_or_default();
        Ok(numbered(parts))
    }),
    def("splitList", &[Str, Str], |c, a| {
        Ok(Value::strings(split(c, bytes(a, 1), bytes(a, 0), -1)?.unwrap_or_default()))
    }),
    def("ternary", &[Any, Any, Param::Bool], |_, a| Ok(any(a, usize::from(!boolean(a, 2))).clone())),
];

/// Accounts for a list of texts that was just made.
fn texts<'t>(ctx: &Ctx<'_>, items: impl Iterator<Item = &'t Text>) -> Result<(), FuncError> {
    ctx.charge(items.map(|item| item.own_bytes() + size_of::<Value>()).sum())
}

fn strings(value: &Value) -> Value {
    match value {
        Value::List(list) if list.list_type() == ListType::String => value.clone(),
        other => {
            Value::List(List::new(ListType::String, strslice(other).into_iter().map(Value::Text).collect()))
        }
    }
}

fn numbered(parts: Vec<Text>) -> Value {
    let entries =
        parts.into_iter().enumerate().map(|(i, part)| (Text::from(format!("_{i}")), Value::Text(part)));
    Value::Map(Map::from_entries(MapType::String, entries))
}

fn trunc(count: i64, value: &[u8]) -> &[u8] {
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        return value
            .len()
            .checked_sub(size)
            .filter(|start| *start > 0)
            .map_or(value, |start| value.get(start..).unwrap_or_default());
    }
    value.get(..size).unwrap_or(value)
}

fn substr(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let (start, end, value) = (int(args, 0), int(args, 1), bytes(args, 2));
    let place = |at: i64| usize::try_from(at).unwrap_or(usize::MAX);
    let length = value.len();
    let (part, range) = if start < 0 {
        let with_length = if end < 0 { String::new() } else { format!(" with length {length}") };
        (value.get(..place(end)), format!("[:{end}]{with_length}"))
    } else if end < 0 || place(end) > length {
        (value.get(place(start)..), format!("[{start}:{length}]"))
    } else {
        (value.get(place(start)..place(end)), format!("[{start}:{end}]"))
    };
    let outside = || super::args::fail(format!("runtime error: slice bounds out of range {range}"));
    part.map_or_else(outside, text)
}

pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

/// Go's `unicode.IsSpace`.
pub(super) fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\x0B' | '\x0C' | '\r' | ' ' | '\u{85}' | '\u{A0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200A}' | '\u{2028}' | '\u{2029}' | '\u{202F}' | '\u{205F}' | '\u{3000}'
    )
}

pub(super) fn trim_space(value: &[u8]) -> &[u8] {
    trim_by(value, is_space)
}

fn trim_set<'a>(value: &'a [u8], set: &[u8]) -> &'a [u8] {
    let set: BTreeSet<char> = runes(set).map(|(_, c)| c).collect();
    trim_by(value, |c| set.contains(&c))
}

fn trim_by(value: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    let Some((start, _)) = runes(value).find(|(_, c)| !cut(*c)) else { return &[] };
    // The end is looked for rune by rune from the front, since bytes may be no text.
    let mut end = start;
    let mut position = start;
    let tail = value.get(start..).unwrap_or_default();
    for (at, c) in runes(tail) {
        position = start + at;
        if !cut(c) {
            end = position + crate::gotext::rune(tail.get(at..).unwrap_or_default()).map_or(1, |rune| rune.1);
        }
    }
    let _ = position;
    value.get(start..end).unwrap_or_default()
}

fn repeat(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let value = bytes(args, 1);
    let Ok(count) = usize::try_from(int(args, 0)) else {
        return super::args::fail("strings: negative Repeat count");
    };
    let size = value.len().saturating_mul(count);
    ctx.charge(size)?;
    text(value.repeat(if value.is_empty() { 0 } else { count }))
}

fn quote(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut out = Vec::new();
    for value in args.iter().filter(|value| !is_untyped_nil(value)) {
        if !out.is_empty() {
            out.push(b' ');
        }
        let shown = strval(value);
        // A byte may need four.
        ctx.charge(shown.len().saturating_mul(4))?;
        out.extend_from_slice(go_quote(shown.as_bytes()).as_bytes());
    }
    text(out)
}

fn squote(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut out = Vec::new();
    for value in args.iter().filter(|value| !is_untyped_nil(value)) {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.push(b'\'');
        let shown = gofmt::display(value);
        ctx.charge(shown.len())?;
        out.extend_from_slice(&shown);
        out.push(b'\'');
    }
    text(out)
}

fn cat(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let mut out = Vec::new();
    for (i, value) in args.iter().filter(|value| !is_untyped_nil(value)).enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        let shown = gofmt::display(value);
        ctx.charge(shown.len())?;
        out.extend_from_slice(&shown);
    }
    text(out)
}

fn indent(ctx: &mut Ctx<'_>, spaces: i64, value: &[u8], before: &[u8]) -> Result<Vec<u8>, FuncError> {
    let Ok(spaces) = usize::try_from(spaces) else {
        return super::args::fail("strings: negative Repeat count");
    };
    let lines = memchr::memchr_iter(b'\n', value).count() + 1;
    let size = value.len().saturating_add(lines.saturating_mul(spaces)).saturating_add(before.len());
    ctx.charge(size)?;
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(before);
    for (i, line) in value.split(|byte| *byte == b'\n').enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        out.extend(std::iter::repeat_n(b' ', spaces));
        out.extend_from_slice(line);
    }
    Ok(out)
}

pub(super) fn replace(ctx: &mut Ctx<'_>, value: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, FuncError> {
    let mut out = Vec::new();
    if old.is_empty() {
        // Between all runes, at the start and at the end.
        let count = runes(value).count() + 1;
        ctx.charge(value.len().saturating_add(count.saturating_mul(new.len())))?;
        let mut last = 0;
        for (at, _) in runes(value) {
            out.extend_from_slice(value.get(last..at).unwrap_or_default());
            out.extend_from_slice(new);
            last = at;
        }
        out.extend_from_slice(value.get(last..).unwrap_or_default());
        out.extend_from_slice(new);
        return Ok(out);
    }
    let finder = memchr::memmem::Finder::new(old);
    let count = finder.find_iter(value).count();
    ctx.charge(value.len().saturating_add(count.saturating_mul(new.len())))?;
    let mut last = 0;
    for at in finder.find_iter(value) {
        out.extend_from_slice(value.get(last..at).unwrap_or_default());
        out.extend_from_slice(new);
        last = at + old.len();
    }
    out.extend_from_slice(value.get(last..).unwrap_or_default());
    Ok(out)
}

pub(super) fn join(ctx: &mut Ctx<'_>, items: &[Text], separator: &[u8]) -> Result<Vec<u8>, FuncError> {
    let size = items.iter().map(|item| item.len().saturating_add(separator.len())).sum();
    ctx.charge(size)?;
    let mut out = Vec::with_capacity(size);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(item.as_bytes());
    }
    Ok(out)
}

/// Go's `strings.SplitN`; `None` for a nil result. An empty separator splits into runes.
pub(super) fn split(
    ctx: &mut Ctx<'_>,
    value: &[u8],
    separator: &[u8],
    count: i64,
) -> Result<Option<Vec<Text>>, FuncError> {
    if count == 0 {
        return Ok(None);
    }
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let most = match separator {
        [] => value.len(),
        _ => memchr::memmem::find_iter(value, separator).count() + 1,
    };
    // Parts may become entries of a map.
    ctx.charge(value.len().saturating_add(most.min(limit).saturating_mul(128)))?;
    let mut parts = Vec::new();
    let mut last = 0;
    let mut cut = |parts: &mut Vec<Text>, end: usize, next: usize| {
        parts.push(Text::from(value.get(last..end).unwrap_or_default()));
        last = next;
    };
    if separator.is_empty() {
        if value.is_empty() {
            return Ok(Some(parts));
        }
        for (at, _) in runes(value).skip(1) {
            if parts.len() + 1 >= limit {
                break;
            }
            cut(&mut parts, at, at);
        }
    } else {
        for at in memchr::memmem::find_iter(value, separator) {
            if parts.len() + 1 >= limit {
                break;
            }
            cut(&mut parts, at, at + separator.len());
        }
    }
    parts.push(Text::from(value.get(last..).unwrap_or_default()));
    Ok(Some(parts))
}
