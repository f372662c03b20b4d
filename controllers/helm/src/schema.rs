//! Checks values against `values.schema.json`. Nothing is fetched.
mod formats;

use std::fmt::Write;

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::Value;

/// Problems reported for one chart; more help nobody.
const MAX_PROBLEMS: usize = 50;

/// A compiled schema.
#[derive(Debug)]
pub(crate) enum Schema {
    Ready(Box<Validator>),
    /// The schema refers to a URL, and is skipped.
    Remote(String),
    /// The schema is none, which fails every render as it does in Helm.
    Broken(String),
}

/// Refuses to fetch, and names the URL.
struct Offline;

const REMOTE: &str = "schemas are not fetched";

impl Retrieve for Offline {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{REMOTE}: {uri}").into())
    }
}

impl Schema {
    pub fn new(data: &[u8]) -> Self {
        let mut schema: Value = match serde_json::from_slice(data) {
            Ok(schema) => schema,
            Err(error) => return Self::Broken(format!("values.schema.json is no JSON: {error}")),
        };
        let draft = draft(&schema);
        if draft.is_none() {
            loosen(&mut schema);
        }
        let mut options = jsonschema::options()
            .with_draft(draft.unwrap_or(Draft::Draft7))
            .with_retriever(Offline)
            // The linear engine: patterns are tenant input.
            .with_pattern_options(PatternOptions::regex())
            // Helm's validator does not look into texts.
            .without_content_encoding_support("base64")
            .without_content_media_type_support("application/json");
        for (name, check) in formats::FORMATS {
            options = options.with_format(*name, check);
        }
        let built = options.build(&schema);
        match built {
            Ok(validator) => Self::Ready(Box::new(validator)),
            Err(error) => {
                let text = error.to_string();
                if text.contains(REMOTE) || mentions_remote(&schema) {
                    Self::Remote(format!("values.schema.json is skipped: it refers to a URL, and {REMOTE}"))
                } else {
                    Self::Broken(format!("values.schema.json is no valid schema: {text}"))
                }
            }
        }
    }

    /// The problems values have, one a line, `None` if they fit. An error says why the schema was skipped.
    pub fn check(&self, values: &Value) -> Result<Option<String>, String> {
        let validator = match self {
            Self::Ready(validator) => validator,
            Self::Remote(reason) => return Err(reason.clone()),
            Self::Broken(reason) => return Ok(Some(format!("{reason}\n"))),
        };
        let empty = Value::Object(serde_json::Map::new());
        let values = if values.is_null() { &empty } else { values };
        if validator.is_valid(values) {
            return Ok(None);
        }
        let mut problems = String::new();
        for error in validator.iter_errors(values).take(MAX_PROBLEMS) {
            let path = error.instance_path().to_string();
            let path = path.trim_start_matches('/').replace('/', ".");
            let mut text = error.to_string();
            crate::limits::shorten(&mut text, 500);
            // Writing to a string cannot fail.
            let _ = writeln!(problems, "- {}: {text}", if path.is_empty() { "(root)" } else { &path });
        }
        Ok(Some(problems))
    }
}

/// The draft a schema names; `None` for those that Helm's validator does not know, and for none.
fn draft(schema: &Value) -> Option<Draft> {
    let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let drafts = [("draft-04", Draft::Draft4), ("draft-06", Draft::Draft6), ("draft-07", Draft::Draft7)];
    drafts.into_iter().find(|(name, _)| named.contains(name)).map(|(_, draft)| draft)
}

/// A schema of no draft may use the words of all drafts; those of draft 4 are put in the words of draft 7, and what
/// the schema calls its draft is left out. Recursion ends where the JSON does, whose depth the parser bounds.
fn loosen(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|key, value| !(key == "$schema" && value.is_string()));
            for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
                if let Some(&Value::Bool(excluded)) = map.get(exclusive) {
                    map.remove(exclusive);
                    if let Some(limit) = excluded.then(|| map.remove(bound)).flatten() {
                        map.insert(exclusive.to_owned(), limit);
                    }
                }
            }
            map.values_mut().for_each(loosen);
        }
        Value::Array(items) => items.iter_mut().for_each(loosen),
        _ => {}
    }
}

/// Whether some `$ref` leads to a URL. Recursion ends where the JSON does, whose depth the parser bounds.
fn mentions_remote(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::String(text) if key == "$ref" => text.contains("://"),
            value => mentions_remote(value),
        }),
        Value::Array(items) => items.iter().any(mentions_remote),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, values: &Value) -> Result<Option<String>, String> {
        Schema::new(schema.to_string().as_bytes()).check(values)
    }

    #[test]
    fn values_that_do_not_fit_are_named_by_path() {
        let schema =
            json!({"properties": {"a": {"properties": {"b": {"type": "integer"}}}}, "required": ["c"]});
        assert_eq!(check(&schema, &json!({"a": {"b": 1.0}, "c": 1})), Ok(None));
        let problems = check(&schema, &json!({"a": {"b": "x"}})).unwrap().unwrap();
        assert!(problems.contains("- a.b: ") && problems.contains("- (root): "), "{problems}");
    }

    #[test]
    fn a_schema_behind_a_url_is_skipped_and_a_broken_one_is_not() {
        let remote = json!({"properties": {"a": {"$ref": "https://example.com/s.json#/x"}}});
        assert!(check(&remote, &json!({})).is_err());
        assert!(check(&json!({"type": 5}), &json!({})).unwrap().is_some());
        assert!(Schema::new(b"{").check(&json!({})).unwrap().is_some());
    }

    #[test]
    fn a_schema_of_no_known_draft_may_use_the_words_of_all() {
        for named in [json!("nope"), json!("https://json-schema.org/draft/2020-12/schema"), json!(null)] {
            let mut schema = json!({"properties": {
                "a": {"minimum": 1, "exclusiveMinimum": true}, "b": {"exclusiveMaximum": 5},
            }});
            if named.is_string() {
                schema["$schema"] = named;
            }
            assert_eq!(check(&schema, &json!({"a": 2, "b": 4})), Ok(None));
            for (a, b) in [(1, 4), (2, 5)] {
                assert!(check(&schema, &json!({"a": a, "b": b})).unwrap().is_some(), "{schema}");
            }
        }
    }

    #[test]
    fn encoded_texts_are_not_looked_into() {
        let schema = json!({"properties": {"a": {"contentEncoding": "base64", "contentMediaType": "application/json"}}});
        assert_eq!(check(&schema, &json!({"a": "?"})), Ok(None));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"definitions": {"n": {"properties": {"n": {"$ref": "#/definitions/n"}}}},
                            "$ref": "#/definitions/n"});
        assert_eq!(check(&schema, &json!({"n": {"n": {}}})), Ok(None));
    }
}
