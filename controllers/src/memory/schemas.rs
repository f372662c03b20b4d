//! Refuses of custom resources what a real API server refuses by the schema of their definition, as far as it is about nothing: a
//! field that is said to be nothing and may not be, and one that has to be there.

use serde_json::Value;

/// The fields of an object that its schema refuses: `(field, what)`.
pub(super) fn refused(schema: &Value, object: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(spec) = object.get("spec") {
        check(schema.pointer("/properties/spec").unwrap_or(&Value::Null), spec, "spec", &mut found);
    }
    found
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {
            let of_type = schema.get("type").and_then(Value::as_str);
            if let Some(of_type) = of_type.filter(|_| schema["nullable"] != true) {
                let what =
                    format!("Invalid value: (withheld): {at} in body must be of type {of_type}: (withheld)");
                found.push((at.to_owned(), what));
            }
        }
        Value::Object(map) => {
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                let name = name.as_str().unwrap_or_default();
                if !map.contains_key(name) {
                    found.push((format!("{at}.{name}"), "Required value".to_owned()));
                }
            }
            for (name, value) in map {
                let of = |part: &str| schema.get(part).filter(|part| part.is_object());
                let property = of("properties").and_then(|all: &Value| all.get(name));
                let schema = property.or_else(|| of("additionalProperties")).unwrap_or(&Value::Null);
                check(schema, value, &format!("{at}.{name}"), found);
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for (place, item) in items.iter().enumerate() {
                check(schema, item, &format!("{at}[{place}]"), found);
            }
        }
        _ => {}
    }
}

/// The schema of a version in a definition.
pub(super) fn of<'a>(definition: &'a Value, version: &str) -> Option<&'a Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array)?;
    let version = versions.iter().find(|known| known["name"] == version)?;
    version.pointer("/schema/openAPIV3Schema")
}
