//! Makes objects that the schemas accept: the types must read every one of them. A watch of typed objects ends at the
//! first it cannot read, so one odd object of one tenant would stop everybody's.

#[path = "support/files.rs"]
mod support;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// Values that the API server's validation of `schema` accepts.
fn accepted(schema: &Value) -> BoxedStrategy<Value> {
    let value = accepted_non_null(schema);
    if schema["nullable"] == true { prop_oneof![1 => Just(Value::Null), 9 => value].boxed() } else { value }
}

fn accepted_non_null(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return select(values.clone()).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return prop_oneof![integer(schema), text(schema)].boxed();
    }
    if schema["type"].is_null() && schema["x-kubernetes-preserve-unknown-fields"] == true {
        return select(vec![json!(1), json!("text"), json!([1, {"a": null}]), json!({"a": {"b": 1.5}})])
            .boxed();
    }
    match schema["type"].as_str() {
        Some("object") if schema["x-kubernetes-preserve-unknown-fields"] == true => {
            select(vec![json!({}), json!({"a": null, "b": [1, 1.5, {"c": "d"}]})]).boxed()
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let value = accepted(&schema["additionalProperties"]);
            prop::collection::btree_map("[a-z./]{1,20}", value, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect()))
                .boxed()
        }
        Some("object") => object(schema),
        Some("array") => {
            let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
            prop::collection::vec(accepted(&schema["items"]), least..least + 3).prop_map(Value::Array).boxed()
        }
        Some("string") => text(schema),
        Some("integer") => integer(schema),
        Some("boolean") => any::<bool>().prop_map(Value::Bool).boxed(),
        other => panic!("no values for type {other:?}"),
    }
}

/// All required fields and some of the others.
fn object(schema: &Value) -> BoxedStrategy<Value> {
    let fields: Vec<(String, Value)> =
        schema["properties"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let (must, may): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(k, _)| required.contains(&json!(k)));
    let some = 0..=may.len();
    subsequence(may, some)
        .prop_flat_map(move |chosen| {
            let all: Vec<_> =
                must.iter().chain(&chosen).map(|(k, v)| (Just(k.clone()), accepted(v))).collect();
            all.prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
        })
        .boxed()
}

/// Also numbers that 32 bits do not hold, where the schema lets them pass.
fn integer(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |key: &str, otherwise: i64| {
        schema[key].as_f64().map_or(otherwise, |f| format!("{f:.0}").parse().unwrap())
    };
    let (low, high) =
        if schema["format"] == "int32" { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    (bound("minimum", low)..=bound("maximum", high)).prop_map(Value::from).boxed()
}

fn text(schema: &Value) -> BoxedStrategy<Value> {
    if schema["format"] == "date-time" {
        let times = ["2026-11-21T07:00:00Z", "2026-11-21T07:00:00.123456Z", "2026-11-21T09:00:00+02:00"];
        return select(times.map(Value::from).to_vec()).boxed();
    }
    let pattern = schema["pattern"].as_str().map_or("\\PC{1,12}", |p| p.trim_matches(['^', '$']));
    proptest::string::string_regex(pattern).unwrap().prop_map(Value::from).boxed()
}

/// What was read, as it would be written back: nothing that was not null may be lost.
fn kept(whole: &Value, part: &Value, at: &str) -> Result<(), TestCaseError> {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let empty = value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(Map::is_empty)
                    || value == ""
                    || value == 0
                    || value == false;
                match whole.get(key) {
                    Some(found) => kept(found, value, &format!("{at}.{key}"))?,
                    None => prop_assert!(empty, "{at}.{key} is lost"),
                }
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            prop_assert_eq!(whole.len(), part.len(), "{}", at);
            for (whole, part) in whole.iter().zip(part) {
                kept(whole, part, at)?;
            }
        }
        // Times are written back in one form.
        (Value::String(_), Value::String(time)) if time.starts_with("2026-11-21T") => {}
        _ => prop_assert_eq!(whole, part, "{}", at),
    }
    Ok(())
}

macro_rules! laws {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        mod every_accepted_object_is_read {
            use emco_crds as api;
            use proptest::prelude::*;
            use serde_json::json;

            use super::support::schemas;
            use super::{accepted, kept};

            $(#[test]
            fn $store() {
                let schema = schemas().remove(stringify!($kind)).unwrap();
                let parts = (accepted(&schema["properties"]["spec"]), accepted(&schema["properties"]["status"]));
                proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) }, |(parts in parts)| {
                    let object = json!({
                        "apiVersion": api::names::API_VERSION,
                        "kind": stringify!($kind),
                        "metadata": {"name": "any"},
                        "spec": parts.0,
                        "status": parts.1,
                    });
                    let read: api::$kind = match serde_json::from_value(object.clone()) {
                        Ok(read) => read,
                        Err(error) => return Err(TestCaseError::fail(format!("{error} in {object:#}"))),
                    };
                    kept(&serde_json::to_value(&read).unwrap(), &object, stringify!($kind))?;
                });
            })*
        }
    };
}

emco_crds::each_kind!(all => laws);
