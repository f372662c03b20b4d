//! JSON documents come in as template values and template values go out as JSON.
use serde_json::Number;

use super::{Map, MapType, Object, Text, Value};

/// Deeper nesting than any chart has; it also ends maps that contain themselves.
pub const MAX_DEPTH: usize = 512;

impl Value {
    /// A JSON document as `.Values` shows it: every number is a `float64`.
    pub fn from_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => Self::Map(Map::from_entries(
                MapType::Any,
                entries.iter().map(|(key, value)| (Text::from(key.as_str()), Self::from_json(value))),
            )),
        }
    }

    /// A JSON document as Kubernetes clients decode it: whole numbers are `int64`, others `float64`.
    pub fn from_object_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::int64(int),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::Array(items) => Self::list(items.iter().map(Self::from_object_json).collect()),
            Json::Object(entries) => Self::Map(Map::from_entries(
                MapType::Any,
                entries.iter().map(|(key, value)| (Text::from(key.as_str()), Self::from_object_json(value))),
            )),
            other => Self::from_json(other),
        }
    }

    /// The value as JSON: whole floats become integers, bytes that are not UTF-8 become U+FFFD.
    /// `None` when the value nests deeper than `MAX_DEPTH`, contains itself, or holds a number JSON has not.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        to_json(self, 0)
    }
}

fn to_json(value: &Value, depth: usize) -> Option<serde_json::Value> {
    use serde_json::Value as Json;
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match value {
        Value::Nil | Value::Complex(..) => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(int) => Json::Number(Number::from_i128(int.as_i128())?),
        Value::Float(float) => Json::Number(float_number(*float)?),
        Value::Text(text) => Json::String(text.lossy().into_owned()),
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) => {
            Json::Array(list.items().iter().map(|item| to_json(item, depth + 1)).collect::<Option<_>>()?)
        }
        Value::Map(map) => match map.borrow() {
            None => Json::Null,
            Some(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, value)| Some((key.lossy().into_owned(), to_json(value, depth + 1)?)))
                    .collect::<Option<_>>()?,
            ),
        },
        Value::Object(object) => object_json(object.as_ref(), depth)?,
    })
}

fn object_json(object: &dyn Object, depth: usize) -> Option<serde_json::Value> {
    to_json(&object.plain(), depth + 1)
}

/// A float as JSON text would hold it: a whole number within 64 bits is an integer.
#[allow(clippy::cast_possible_truncation)]
fn float_number(float: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}
