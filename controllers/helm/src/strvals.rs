//! Writes assignments of `--set` (`a.b=1,c[0]={x,y}`) into a map of values.
mod parse;

use crate::value::{Map, Value};

/// List indexes go up to this.
const MAX_INDEX: i64 = 65_536;
/// Names nest this deep.
const MAX_NESTING: usize = 30;

/// What the text after `=` becomes.
pub(super) enum Reader<'a> {
    /// `--set`: booleans, null, whole numbers, else text.
    Typed,
    /// `--set-string`: always text.
    Text,
    /// `--set-json`: JSON.
    Json,
    /// `--set-literal`: the text as it is, up to the end.
    Literal,
    /// `--set-file`: what the function gives for the text.
    File(&'a mut dyn FnMut(&str) -> Result<Value, String>),
}

/// `--set`
pub fn parse_into(text: &str, values: &Map) -> Result<(), String> {
    parse::parse(text, values, Reader::Typed)
}

/// `--set-string`
pub fn parse_string_into(text: &str, values: &Map) -> Result<(), String> {
    parse::parse(text, values, Reader::Text)
}

/// `--set-json`
pub fn parse_json_into(text: &str, values: &Map) -> Result<(), String> {
    parse::parse(text, values, Reader::Json)
}

/// `--set-file`, with the function that reads the file of a path.
pub fn parse_file_into(
    text: &str,
    values: &Map,
    read: &mut dyn FnMut(&str) -> Result<Value, String>,
) -> Result<(), String> {
    parse::parse(text, values, Reader::File(read))
}

/// `--set-literal`: one name and a value that is taken as it is, commas and backslashes included.
pub fn parse_literal_into(text: &str, values: &Map) -> Result<(), String> {
    parse::parse(text, values, Reader::Literal)
}

/// Why parsing stopped.
pub(super) enum Stop {
    /// The text is used up, which is how parsing ends well.
    End,
    Failed(String),
}

pub(super) fn failed<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(message.into()))
}

/// Sets a key, unless it is empty.
pub(super) fn set(values: &Map, key: &str, value: Value) {
    if !key.is_empty() {
        values.insert(key, value);
    }
}

/// A list with an item set; a short list is filled up with nulls.
pub(super) fn set_index(items: &[Value], index: i64, value: Value) -> Result<Vec<Value>, Stop> {
    let place = place(index)?;
    if index > MAX_INDEX {
        return failed(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}"));
    }
    let mut new = items.to_vec();
    if new.len() <= place {
        new.resize(place + 1, Value::Nil);
    }
    if let Some(slot) = new.get_mut(place) {
        *slot = value;
    }
    Ok(new)
}

pub(super) fn place(index: i64) -> Result<usize, Stop> {
    usize::try_from(index).map_err(|_| Stop::Failed(format!("negative {index} index not allowed")))
}

/// The map under a key: the one that is there, or a new one.
pub(super) fn inner_map(old: Option<Value>) -> Result<Map, Stop> {
    match old {
        None => Ok(Map::default()),
        Some(Value::Map(map)) => Ok(map),
        Some(other) => conversion(&other, "map[string]interface {}"),
    }
}

/// The items of the list under a key.
pub(super) fn inner_list(old: Option<Value>) -> Result<Vec<Value>, Stop> {
    match old {
        None => Ok(Vec::new()),
        Some(Value::List(list)) => Ok(list.items().to_vec()),
        Some(other) => conversion(&other, "[]interface {}"),
    }
}

fn conversion<T>(value: &Value, wanted: &str) -> Result<T, Stop> {
    let kind = match value {
        Value::Nil => "nil",
        other => other.type_name(),
    };
    failed(format!("unable to parse key: interface conversion: interface {{}} is {kind}, not {wanted}"))
}

pub(super) fn nesting(level: usize) -> Result<(), Stop> {
    if level > MAX_NESTING {
        return failed(format!(
            "value name nested level is greater than maximum supported nested level of {MAX_NESTING}"
        ));
    }
    Ok(())
}

/// The number between `[` and `]`.
pub(super) fn index(text: &str) -> Result<i64, Stop> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(index) if plain => Ok(index),
        _ => failed(format!("error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests;
