//! Reads TOML into template values: integers are `int64`, dates are times.
use toml_edit::{Array, Datetime, DocumentMut, InlineTable, Item, Offset, Table};

use crate::gotime::{Civil, Time, TimeObject, Zone};
use crate::value::{List, ListType, Map, MapType, Text, Value};

/// The table a document is, or a complaint.
pub(crate) fn decode(text: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(text).map_err(|_| "toml: invalid UTF-8 byte".to_owned())?;
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        format!("toml: {message}")
    })?;
    Ok(Value::Map(table(document.as_table())))
}

fn map(entries: impl Iterator<Item = (Text, Value)>) -> Map {
    Map::from_entries(MapType::Any, entries)
}

fn table(table: &Table) -> Map {
    map(table.iter().map(|(key, item)| (Text::from(key), self::item(item))))
}

fn item(item: &Item) -> Value {
    match item {
        Item::None => Value::Nil,
        Item::Value(value) => self::value(value),
        Item::Table(inner) => Value::Map(table(inner)),
        Item::ArrayOfTables(tables) => Value::List(List::new(
            ListType::Maps,
            tables.iter().map(|inner| Value::Map(table(inner))).collect(),
        )),
    }
}

fn value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(int) => Value::int64(*int.value()),
        toml_edit::Value::Float(float) => Value::Float(*float.value()),
        toml_edit::Value::Boolean(value) => Value::Bool(*value.value()),
        toml_edit::Value::Datetime(time) => self::time(time.value()),
        toml_edit::Value::Array(items) => array(items),
        toml_edit::Value::InlineTable(table) => Value::Map(inline(table)),
    }
}

fn array(items: &Array) -> Value {
    Value::list(items.iter().map(value).collect())
}

fn inline(table: &InlineTable) -> Map {
    map(table.iter().map(|(key, inner)| (Text::from(key), value(inner))))
}

/// A time; one without an offset, or without date or clock, is in a zone whose name says so.
fn time(time: &Datetime) -> Value {
    let (year, month, day) = time
        .date
        .map_or((0, 1, 1), |date| (i64::from(date.year), i64::from(date.month), i64::from(date.day)));
    let (hour, minute, second, nanos) = time.time.map_or((0, 0, 0, 0), |time| {
        let second = time.second.unwrap_or(0);
        (i64::from(time.hour), i64::from(time.minute), i64::from(second), time.nanosecond.unwrap_or(0))
    });
    let local = |name: &str| Zone::Fixed { name: name.to_owned(), offset: 0 };
    let zone = match (time.offset, time.date, time.time) {
        (Some(Offset::Z | Offset::Custom { minutes: 0 }), ..) => Zone::Utc,
        (Some(Offset::Custom { minutes }), ..) => {
            Zone::Fixed { name: String::new(), offset: i32::from(minutes) * 60 }
        }
        (None, Some(_), Some(_)) => local("datetime-local"),
        (None, Some(_), None) => local("date-local"),
        _ => local("time-local"),
    };
    let offset = if let Zone::Fixed { offset, .. } = &zone { i64::from(*offset) } else { 0 };
    let seconds = Civil::seconds(year, month, day, hour, minute, second) - offset;
    TimeObject::value(Time { seconds, nanos, zone })
}
