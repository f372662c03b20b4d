//! The `--set` family: one assignment comes in and is made in a map of values.
use super::Set;
use crate::strvals;
use crate::value::{Map, Value};

pub(super) fn apply(set: &Set, values: &Map) -> Result<(), String> {
    match set {
        Set::Typed(text) => {
            strvals::parse_into(text, values).map_err(|error| format!("failed parsing --set data: {error}"))
        }
        Set::Text(text) => strvals::parse_string_into(text, values)
            .map_err(|error| format!("failed parsing --set-string data: {error}")),
        Set::Json(text) => strvals::parse_json_into(text, values)
            .map_err(|error| format!("failed parsing --set-json data {text}: {error}")),
        Set::Literal(text) => strvals::parse_literal_into(text, values)
            .map_err(|error| format!("failed parsing --set-literal data: {error}")),
        Set::File(text, files) => {
            let mut read = |path: &str| match files.get(path) {
                Some(text) => Ok(Value::text(text.as_slice())),
                None => Err(format!("the file {path} was not given")),
            };
            strvals::parse_file_into(text, values, &mut read)
                .map_err(|error| format!("failed parsing --set-file data: {error}"))
        }
    }
}
