//! Matches texts with regular expressions.
use std::collections::BTreeSet;
use std::rc::Rc;

use regex::bytes::{Captures, Match};

use super::args::{Out, bytes, def, int, text};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::goregex::{Compiled, compile};
use crate::gotext::runes;
use crate::value::{List, ListType, Value};

use Param::{Int, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("regexMatch", &[Str, Str], |_, a| {
        if compile(bytes(a, 0)).is_err() {
            return Ok(false.into());
        }
        Ok(pattern(a)?.regex.is_match(bytes(a, 1)).into())
    }),
    def("mustRegexMatch", &[Str, Str], |_, a| Ok(pattern(a)?.regex.is_match(bytes(a, 1)).into())),
    def("regexFind", &[Str, Str], find),
    def("mustRegexFind", &[Str, Str], find),
    def("regexFindAll", &[Str, Str, Int], find_all),
    def("mustRegexFindAll", &[Str, Str, Int], find_all),
    def("regexReplaceAll", &[Str, Str, Str], |c, a| replace_all(c, a, true)),
    def("mustRegexReplaceAll", &[Str, Str, Str], |c, a| replace_all(c, a, true)),
    def("regexReplaceAllLiteral", &[Str, Str, Str], |c, a| replace_all(c, a, false)),
    def("mustRegexReplaceAllLiteral", &[Str, Str, Str], |c, a| replace_all(c, a, false)),
    def("regexSplit", &[Str, Str, Int], split),
    def("mustRegexSplit", &[Str, Str, Int], split),
    def("regexQuoteMeta", &[Str], |c, a| {
        let mut out = Vec::new();
        for byte in bytes(a, 0) {
            if b"\\.+*?()|[]{}^$".contains(byte) {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        c.charge(out.len())?;
        text(out)
    }),
];

/// The compiled pattern of a call, whose second argument is the text.
fn pattern(args: &[Value]) -> Result<Rc<Compiled>, FuncError> {
    let compiled = compile(bytes(args, 0)).map_err(FuncError::new)?;
    compiled.admits(bytes(args, 1)).map_err(FuncError::new)?;
    Ok(compiled)
}

/// Accounts for what looking for empty matches takes in a text that is not UTF-8.
fn indexed(ctx: &Ctx<'_>, value: &[u8]) -> Result<(), FuncError> {
    ctx.shared.meter.check_time()?;
    let bytes = if std::str::from_utf8(value).is_ok() { 0 } else { value.len().saturating_mul(24) };
    ctx.charge(bytes)
}

fn find(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let found = pattern(args)?.regex.find(bytes(args, 1)).map(|found| found.as_bytes().to_vec());
    text(found.unwrap_or_default())
}

/// Whether a position lies between two runes. Empty matches are only there.
fn boundaries(value: &[u8]) -> impl Fn(usize) -> bool + '_ {
    let text = std::str::from_utf8(value).ok();
    let starts: BTreeSet<usize> = match text {
        Some(_) => BTreeSet::new(),
        None => runes(value).map(|(at, _)| at).chain([value.len()]).collect(),
    };
    move |at| text.map_or_else(|| starts.contains(&at), |text| text.is_char_boundary(at))
}

fn matches<'a>(compiled: &'a Compiled, value: &'a [u8]) -> impl Iterator<Item = Match<'a>> {
    let boundary = boundaries(value);
    compiled.regex.find_iter(value).filter(move |found| !found.is_empty() || boundary(found.start()))
}

/// How many matches are wanted: a negative number is all.
fn limit(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn find_all(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let (compiled, value) = (pattern(args)?, bytes(args, 1));
    indexed(ctx, value)?;
    let wanted = limit(int(args, 2));
    // As many as there are, counted before any is made.
    let mut count = 0_usize;
    for _ in matches(&compiled, value).take(wanted) {
        ctx.shared.meter.check_time()?;
        count += 1;
    }
    ctx.charge(value.len().saturating_add(count.saturating_mul(64)))?;
    let found: Vec<Value> =
        matches(&compiled, value).take(wanted).map(|found| Value::text(found.as_bytes())).collect();
    Ok(Value::List(match found.len() {
        0 => List::nil(ListType::String),
        _ => List::new(ListType::String, found),
    }))
}

fn split(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let (compiled, value, count) = (pattern(args)?, bytes(args, 1), int(args, 2));
    if count == 0 {
        return Ok(Value::List(List::nil(ListType::String)));
    }
    if !bytes(args, 0).is_empty() && value.is_empty() {
        return Ok(Value::strings([""]));
    }
    indexed(ctx, value)?;
    let mut most = 0_usize;
    for _ in matches(&compiled, value).take(limit(count)) {
        ctx.shared.meter.check_time()?;
        most += 1;
    }
    ctx.charge(value.len().saturating_add(most.saturating_mul(64)))?;
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for found in matches(&compiled, value).take(limit(count)) {
        if count > 0 && parts.len() + 1 == limit(count) {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(value.get(begin..end).unwrap_or_default());
        }
        begin = found.end();
    }
    if end != value.len() {
        parts.push(value.get(begin..).unwrap_or_default());
    }
    Ok(Value::strings(parts))
}

fn replace_all(ctx: &mut Ctx<'_>, args: &[Value], expand: bool) -> Out {
    let (compiled, value, template) = (pattern(args)?, bytes(args, 1), bytes(args, 2));
    let expand = expand && template.contains(&b'$');
    indexed(ctx, value)?;
    let mut out = Vec::new();
    let mut last = 0;
    let boundary = boundaries(value);
    for found in compiled.regex.captures_iter(value) {
        ctx.shared.meter.check_time()?;
        let Some(whole) = found.get(0).filter(|whole| !whole.is_empty() || boundary(whole.start())) else {
            continue;
        };
        out.extend_from_slice(value.get(last..whole.start()).unwrap_or_default());
        let before = out.len();
        if expand {
            expand_template(template, &found, &compiled, &mut out);
        } else {
            out.extend_from_slice(template);
        }
        ctx.charge(out.len() - before)?;
        last = whole.end();
    }
    out.extend_from_slice(value.get(last..).unwrap_or_default());
    ctx.charge(value.len())?;
    text(out)
}

/// Writes a template with `$1`, `${name}` and `$$` filled in; a group that is not there is empty.
fn expand_template(template: &[u8], found: &Captures<'_>, compiled: &Compiled, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(rest.get(..dollar).unwrap_or_default());
        rest = rest.get(dollar + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        let braced = rest.first() == Some(&b'{');
        let body = rest.get(usize::from(braced)..).unwrap_or_default();
        let length = runes(body)
            .find(|(_, c)| !(super::case::is_letter(*c) || super::case::is_digit(*c) || *c == '_'))
            .map_or(body.len(), |(at, _)| at);
        let name = body.get(..length).unwrap_or_default();
        if length == 0 || (braced && body.get(length) != Some(&b'}')) {
            out.push(b'$');
            continue;
        }
        rest = body.get(length + usize::from(braced)..).unwrap_or_default();
        if let Ok(name) = std::str::from_utf8(name) {
            write_group(name, found, compiled, out);
        }
    }
    out.extend_from_slice(rest);
}

fn write_group(name: &str, found: &Captures<'_>, compiled: &Compiled, out: &mut Vec<u8>) {
    let group = if name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0')) {
        name.parse().ok().and_then(|index| found.get(index))
    } else {
        // The first group of the name that matched.
        let named = compiled.names.iter().zip(1..).filter(|(known, _)| known.as_deref() == Some(name));
        named.into_iter().find_map(|(_, index)| found.get(index))
    };
    out.extend_from_slice(group.map_or(&[], |group| group.as_bytes()));
}
