//! What can be written: JSON, and the values of templates by either of Helm's two ways.
use std::borrow::Cow;

use super::emit::{Shape, Source};
use super::{MAX_DEPTH, YamlError};
use crate::gofloat;
use crate::value::{ListType, Value};

impl<'a> Source<'a> for &'a serde_json::Value {
    fn shape(&self, _depth: usize) -> Result<Shape<'a, Self>, YamlError> {
        use serde_json::Value as Json;
        Ok(match self {
            Json::Null => Shape::Null,
            Json::Bool(value) => Shape::Bool(*value),
            Json::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => Shape::Number(float_via_json(float)),
                _ => Shape::Number(number.to_string()),
            },
            Json::String(text) => Shape::Text(Cow::Borrowed(text.as_bytes())),
            Json::Array(items) => Shape::List(items.iter().collect()),
            Json::Object(entries) => Shape::Map(
                entries.iter().map(|(key, value)| (Cow::Borrowed(key.as_bytes()), value)).collect(),
            ),
        })
    }
}

/// A finite float on Go's way over JSON text: whole numbers of 64 bits lose their point.
fn float_via_json(value: f64) -> String {
    let text = gofloat::json(value);
    let digits = text.strip_prefix('-').unwrap_or(&text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return gofloat::shortest_g(value);
    }
    if text == "-0" {
        return "0".to_owned();
    }
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() { text } else { gofloat::shortest_g(value) }
}

/// A value written by way of JSON, as `toYaml` does.
pub(super) struct ByJson(pub Value);

impl Source<'static> for ByJson {
    fn shape(&self, depth: usize) -> Result<Shape<'static, Self>, YamlError> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match &self.0 {
            Value::Nil => Shape::Null,
            Value::Bool(value) => Shape::Bool(*value),
            Value::Int(int) => Shape::Number(int.to_string()),
            Value::Float(float) if float.is_finite() => Shape::Number(float_via_json(*float)),
            Value::Float(_) | Value::Complex(..) => {
                return Err(YamlError::json("json: unsupported value".to_owned()));
            }
            Value::Text(text) => Shape::Text(Cow::Owned(through_json(text.as_bytes(), false)?)),
            Value::List(list) if list.is_nil() => Shape::Null,
            Value::List(list) if list.list_type() == ListType::Bytes => {
                Shape::Text(Cow::Owned(crate::gojson::base64(list).into_bytes()))
            }
            Value::List(list) => Shape::List(list.items().iter().cloned().map(Self).collect()),
            Value::Map(map) if map.is_nil() => Shape::Null,
            Value::Map(map) => Shape::Map(
                map.entries()
                    .into_iter()
                    .map(|(key, value)| Ok((Cow::Owned(through_json(key.as_bytes(), true)?), Self(value))))
                    .collect::<Result<_, YamlError>>()?,
            ),
            Value::Object(object) => return Self(object.plain()).shape(depth + 1),
        })
    }
}

/// A value written directly, as `toYamlPretty` does.
pub(super) struct Direct(pub Value);

impl Source<'static> for Direct {
    fn shape(&self, depth: usize) -> Result<Shape<'static, Self>, YamlError> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match &self.0 {
            Value::Nil => Shape::Null,
            Value::Bool(value) => Shape::Bool(*value),
            Value::Int(int) => Shape::Number(int.to_string()),
            Value::Float(float) => Shape::Number(match gofloat::shortest_g(*float).as_str() {
                "+Inf" => ".inf".to_owned(),
                "-Inf" => "-.inf".to_owned(),
                "NaN" => ".nan".to_owned(),
                text => text.to_owned(),
            }),
            Value::Complex(..) => {
                return Err(YamlError::plain("cannot marshal type: complex128"));
            }
            Value::Text(text) => Shape::Text(Cow::Owned(text.as_bytes().to_vec())),
            Value::List(list) => Shape::List(list.items().iter().cloned().map(Self).collect()),
            Value::Map(map) => Shape::Map(
                map.entries()
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key.as_bytes().to_vec()), Self(value)))
                    .collect(),
            ),
            Value::Object(object) => return Self(object.plain()).shape(depth + 1),
        })
    }
}

fn too_deep() -> YamlError {
    YamlError::json(format!("the value nests deeper than {MAX_DEPTH} or contains itself"))
}

/// A string on its way through JSON text and Go's YAML reader. Most come through unchanged; invalid bytes become
/// U+FFFD, NEL characters are folded as line breaks, other control characters JSON leaves bare are refused.
fn through_json(text: &[u8], key: bool) -> Result<Vec<u8>, YamlError> {
    let plain = text.iter().all(|byte| (0x20..0x7F).contains(byte) || matches!(byte, b'\t' | b'\n' | b'\r'));
    if plain && !(key && text.len() > 128) {
        return Ok(text.to_vec());
    }
    let text = crate::gotext::valid(text.to_vec());
    if let Some((at, problem)) = super::chars::first_bad(text.as_bytes()) {
        // Control characters below the space are escaped in JSON.
        let bare = text.as_bytes().get(at..).is_some_and(|rest| {
            super::chars::first_bad(&rest.iter().copied().filter(|byte| *byte >= 0x20).collect::<Vec<_>>())
                .is_some()
        });
        if bare {
            return Err(YamlError::plain(problem));
        }
    }
    if key && (text.contains('\u{85}') || crate::gojson::quoted_length(&text) > 1024) {
        return Err(YamlError::plain("could not find expected ':'"));
    }
    if text.contains('\u{85}') { Ok(fold(&text).into_bytes()) } else { Ok(text.into_bytes()) }
}

/// Double-quoted text with bare NEL line breaks, as a YAML reader folds it.
fn fold(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.split('\u{85}').peekable();
    let mut empty = 0;
    let mut first = true;
    while let Some(line) = lines.next() {
        let mut line = if first { line } else { line.trim_start_matches(' ') };
        if lines.peek().is_some() {
            line = line.trim_end_matches(' ');
        }
        if !first {
            if line.is_empty() && lines.peek().is_some() {
                empty += 1;
                continue;
            }
            if empty == 0 {
                out.push(' ');
            }
            out.extend(std::iter::repeat_n('\n', empty));
            empty = 0;
        }
        out.push_str(line);
        first = false;
    }
    out
}
