//! Decodes the YAML files of a chart, and converts scalars to text where Helm does.
use serde_json::{Map, Value};

use super::LoadError;
use crate::yaml::YamlError;

/// The mapping a file holds; an empty file is an empty mapping.
pub(super) fn mapping(data: &[u8], file: &str) -> Result<Map<String, Value>, LoadError> {
    checked(crate::yaml::to_values(data), file)
}

/// As `mapping`, for files whose numbers become text: `1e6` stays another number than `1000000`.
pub(super) fn exact_mapping(data: &[u8], file: &str) -> Result<Map<String, Value>, LoadError> {
    checked(crate::yaml::to_exact_json(data), file)
}

fn checked(read: Result<Value, YamlError>, file: &str) -> Result<Map<String, Value>, LoadError> {
    match read {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(LoadError::Invalid(format!(
            "cannot load {file}: it holds {} where a mapping belongs",
            kind(&other)
        ))),
        Err(error) => {
            Err(LoadError::Invalid(format!("cannot load {file}: error converting YAML to JSON: {error}")))
        }
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The fields of one mapping, found as Go's JSON decoder finds them: by name, whatever the case.
pub(super) struct Fields<'a> {
    pub map: &'a Map<String, Value>,
    /// What messages call the mapping.
    pub file: &'a str,
}

impl<'a> Fields<'a> {
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let found = self.map.get(name).or_else(|| {
            self.map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        });
        found.filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, value: &Value, wanted: &str) -> LoadError {
        LoadError::Invalid(format!(
            "cannot load {}: the field {name} holds {} where {wanted} belongs",
            self.file,
            kind(value)
        ))
    }

    /// A string; numbers and booleans are written out.
    pub fn text(&self, name: &str) -> Result<String, LoadError> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(value) => scalar(value).ok_or_else(|| self.wrong(name, value, "a string")),
        }
    }

    pub fn bool(&self, name: &str) -> Result<bool, LoadError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(value) => Err(self.wrong(name, value, "a boolean")),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>, LoadError> {
        self.list(name)?
            .iter()
            .map(|item| match item {
                Value::Null => Ok(String::new()),
                item => scalar(item).ok_or_else(|| self.wrong(name, item, "a string")),
            })
            .collect()
    }

    pub fn list(&self, name: &str) -> Result<&'a [Value], LoadError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(value) => Err(self.wrong(name, value, "a list")),
        }
    }

    pub fn mapping(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, LoadError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(value) => Err(self.wrong(name, value, "a mapping")),
        }
    }

    /// The mappings of a list; null items are refused.
    pub fn mappings(&self, name: &str) -> Result<Vec<Self>, LoadError> {
        self.list(name)?
            .iter()
            .map(|item| match item {
                Value::Object(map) => Ok(Self { map, file: self.file }),
                Value::Null => Err(LoadError::Invalid(format!(
                    "validation: {name} must not contain empty or null nodes"
                ))),
                item => Err(self.wrong(name, item, "a mapping")),
            })
            .collect()
    }
}

/// A scalar as text, written as the YAML library Helm uses writes it: floats as 32-bit numbers.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        #[allow(clippy::cast_possible_truncation)]
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map(|float| crate::gofloat::shortest_g_32(float as f32))
        }
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
