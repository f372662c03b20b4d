//! Judges samples by the rules of the kinds: the fast half of what `e2e/tests/api.rs` shows on a real API server.

#[path = "support/files.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};

use emco_crds as api;
use kube_cel::Validator;
use serde_json::Value;
use support::{documents, files, ours, root, schemas};

const VALID: [&str; 3] = ["config/samples", "config/samples/first", "crds/tests/full"];

fn broken_rules(schemas: &BTreeMap<String, Value>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = &schemas[new["kind"].as_str().unwrap()];
    match Validator::new().validate_with_defaults(schema, new, old) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_vec().into_iter().map(|e| e.message).collect(),
    }
}

#[test]
fn every_valid_sample_breaks_no_rule() {
    let schemas = schemas();
    for folder in VALID {
        for (name, document) in ours(folder) {
            assert_eq!(broken_rules(&schemas, &document, None), Vec::<String>::new(), "{folder}/{name}");
        }
    }
}

#[test]
fn every_invalid_sample_breaks_exactly_the_rule_it_names() {
    let schemas = schemas();
    for (name, text) in files(&root().join("config/samples/invalid")) {
        let expected =
            text.lines().next().unwrap().strip_prefix("# expect: ").unwrap_or_else(|| panic!("{name}"));
        let all = documents(&text);
        let (last, before) = all.split_last().unwrap();
        for accepted in before {
            assert_eq!(broken_rules(&schemas, accepted, None), Vec::<String>::new(), "{name}");
        }
        let broken: BTreeSet<_> = broken_rules(&schemas, last, before.last()).into_iter().collect();
        assert_eq!(broken, BTreeSet::from([expected.to_owned()]), "{name}");
    }
}

#[test]
fn every_rule_has_an_invalid_sample() {
    fn messages(schema: &Value, into: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                for rule in
                    fields.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten()
                {
                    into.insert(rule["message"].as_str().expect("every rule has a message").to_owned());
                }
                fields.values().for_each(|v| messages(v, into));
            }
            Value::Array(items) => items.iter().for_each(|v| messages(v, into)),
            _ => {}
        }
    }
    let mut stated = BTreeSet::new();
    for schema in schemas().values() {
        messages(schema, &mut stated);
    }
    let shown: BTreeSet<String> = files(&root().join("config/samples/invalid"))
        .values()
        .map(|text| text.lines().next().unwrap().trim_start_matches("# expect: ").to_owned())
        .collect();
    assert_eq!(stated, shown);
}

/// An object as its type has it.
fn through_type(document: &Value) -> Value {
    fn kept<T: serde::de::DeserializeOwned + serde::Serialize>(document: &Value) -> Value {
        let object: T =
            serde_json::from_value(document.clone()).unwrap_or_else(|e| panic!("{e}: {document:#}"));
        serde_json::to_value(&object).unwrap()
    }
    macro_rules! kinds {
        ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
            match document["kind"].as_str().unwrap() {
                $(stringify!($kind) => kept::<api::$kind>(document),)*
                other => panic!("{other}: no type"),
            }
        };
    }
    api::each_kind!(all => kinds)
}

/// What a type does not know would be lost when the operator writes it back.
#[test]
fn types_keep_every_field_of_every_sample() {
    for folder in VALID {
        for (name, document) in ours(folder) {
            let back = through_type(&document);
            contains(&back, &document, &format!("{folder}/{name}"));
        }
    }
}

/// Defaults may be added, nothing may be missing or different.
fn contains(whole: &Value, part: &Value, at: &str) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let found = whole.get(key).unwrap_or_else(|| panic!("{at}.{key} is lost"));
                contains(found, value, &format!("{at}.{key}"));
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{at}");
            whole.iter().zip(part).enumerate().for_each(|(i, (w, p))| contains(w, p, &format!("{at}[{i}]")));
        }
        _ => assert_eq!(whole, part, "{at}"),
    }
}

/// The full samples are there to show fields: one that none shows could be misspelt unseen. A field counts as shown
/// when its type shows it anywhere.
#[test]
fn full_samples_show_every_field() {
    fn walk(schema: &Value, values: &[&Value], at: &str, seen: &mut BTreeMap<String, bool>) {
        let mut parts = at.rsplitn(3, '.');
        let (name, parent) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        *seen.entry(format!("{parent}.{name}")).or_default() |= !values.is_empty();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let inner: Vec<&Value> = values.iter().filter_map(|v| v.get(name)).collect();
            walk(property, &inner, &format!("{at}.{name}"), seen);
        }
        if schema["items"].is_object() {
            let inner: Vec<&Value> = values.iter().filter_map(|v| v.as_array()).flatten().collect();
            walk(&schema["items"], &inner, at, seen);
        }
    }
    let samples = ours("crds/tests/full");
    let mut seen = BTreeMap::new();
    for (kind, schema) in &schemas() {
        for part in ["spec", "status"] {
            let values: Vec<&Value> =
                samples.iter().filter(|(_, d)| d["kind"] == **kind).map(|(_, d)| &d[part]).collect();
            walk(&schema["properties"][part], &values, &format!("{kind}.{part}"), &mut seen);
        }
    }
    let missing: Vec<_> = seen.into_iter().filter(|(_, shown)| !shown).map(|(field, _)| field).collect();
    assert_eq!(missing, Vec::<String>::new());
}
