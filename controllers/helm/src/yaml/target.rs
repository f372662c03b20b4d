//! What documents are decoded into: JSON, and the values of templates.
use std::collections::BTreeMap;

use super::decode::Build;
use crate::value::{Map, MapType, Text, Value};
use crate::{gofloat, gotext};

impl Build for serde_json::Value {
    fn null() -> Self {
        Self::Null
    }

    fn bool(value: bool) -> Self {
        Self::Bool(value)
    }

    fn int(value: i64) -> Self {
        Self::from(value)
    }

    fn uint(value: u64) -> Self {
        Self::from(value)
    }

    /// Whole floats are integers, as they are after Go's way through JSON text.
    fn float(value: f64) -> Self {
        if value.fract() != 0.0 {
            return Self::from(value);
        }
        let text = gofloat::json(value);
        let unsigned = || text.parse::<u64>().map_or_else(|_| Self::from(value), Self::from);
        text.parse::<i64>().map_or_else(|_| unsigned(), Self::from)
    }

    fn text(value: Vec<u8>) -> Self {
        Self::String(gotext::valid(value))
    }

    fn list(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn map(entries: BTreeMap<Vec<u8>, Self>) -> Self {
        Self::Object(entries.into_iter().map(|(key, value)| (gotext::valid(key), value)).collect())
    }
}

/// JSON in which a minus zero stays one, and, if asked for, all whole floats stay floats.
pub(super) struct Exact<const ALL: bool>(pub serde_json::Value);

impl<const ALL: bool> Build for Exact<ALL> {
    fn null() -> Self {
        Self(Build::null())
    }

    fn bool(value: bool) -> Self {
        Self(Build::bool(value))
    }

    fn int(value: i64) -> Self {
        Self(Build::int(value))
    }

    fn uint(value: u64) -> Self {
        Self(Build::uint(value))
    }

    fn float(value: f64) -> Self {
        let is_minus_zero = value == 0.0 && value.is_sign_negative();
        Self(if ALL || is_minus_zero { serde_json::Value::from(value) } else { Build::float(value) })
    }

    fn text(value: Vec<u8>) -> Self {
        Self(Build::text(value))
    }

    fn list(items: Vec<Self>) -> Self {
        Self(Build::list(items.into_iter().map(|item| item.0).collect()))
    }

    fn map(entries: BTreeMap<Vec<u8>, Self>) -> Self {
        Self(Build::map(entries.into_iter().map(|(key, value)| (key, value.0)).collect()))
    }
}

impl Build for Value {
    const COUNTS: bool = true;

    fn null() -> Self {
        Self::Nil
    }

    fn bool(value: bool) -> Self {
        Self::Bool(value)
    }

    #[allow(clippy::cast_precision_loss)] // Numbers in values are floats.
    fn int(value: i64) -> Self {
        Self::Float(value as f64)
    }

    #[allow(clippy::cast_precision_loss)]
    fn uint(value: u64) -> Self {
        Self::Float(value as f64)
    }

    fn float(value: f64) -> Self {
        Self::Float(value)
    }

    fn text(value: Vec<u8>) -> Self {
        Self::text(gotext::valid(value))
    }

    fn list(items: Vec<Self>) -> Self {
        Self::list(items)
    }

    fn map(entries: BTreeMap<Vec<u8>, Self>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Text::from(gotext::valid(key)), value));
        Self::Map(Map::from_entries(MapType::Any, entries))
    }
}
