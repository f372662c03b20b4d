use serde_json::{Value as Json, json};

use super::{Schema, Unchecked};
use crate::limits::{LimitError, Limits, Meter};
use crate::template::exec::STACK_BYTES;

/// A schema is read on any thread, and values are checked on one that has the stack of a render.
fn check_within(limits: &Limits, schema: &[u8], values: &Json) -> Result<Option<String>, Unchecked> {
    let schema = Schema::new(schema);
    std::thread::scope(|scope| {
        let work = || schema.check(values, &Meter::start(limits));
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.unwrap().join().unwrap()
    })
}

fn check(schema: &Json, values: &Json) -> Option<String> {
    check_within(&Limits::default(), schema.to_string().as_bytes(), values).unwrap()
}

/// The cases say what Helm 3.17.3 said; `tests/schemas/update.py` writes them.
#[test]
fn schemas_are_read_and_checked_as_by_helms_validator() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("../../tests/schemas/cases.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let schema = case["schema"].as_str().unwrap();
        let said = check_within(&Limits::default(), schema.as_bytes(), &case["values"]).unwrap();
        let mut lines: Vec<&str> = said.iter().flat_map(|said| said.lines()).collect();
        lines.sort_unstable();
        let agree = match &case["helm"] {
            Json::Null => said.is_none(),
            Json::String(_) => lines.iter().any(|line| !line.starts_with("- ")),
            helm => *helm == json!(lines),
        };
        if !agree {
            wrong.push(format!("{case}\n  here: {said:?}"));
        }
    }
    assert!(cases.len() > 150 && wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_schema_behind_a_url_is_skipped_and_a_broken_one_is_not() {
    let remote = br#"{"properties": {"a": {"$ref": "https://example.com/s.json#/x"}}}"#;
    let Err(Unchecked::Skipped(why)) = check_within(&Limits::default(), remote, &json!({})) else { panic!() };
    assert!(why.contains("https://example.com/s.json#/x"), "{why}");
    let why = check(&json!({"properties": {"a": {"type": 5}}}), &json!({})).unwrap();
    assert!(why.contains("properties.a: type must be a text"), "{why}");
}

#[test]
fn bytes_that_are_no_text_do_not_break_a_schema() {
    let schema = b"{\"title\": \"caf\xE9\", \"properties\": {\"a\": {\"type\": \"string\"}}}";
    assert_eq!(check_within(&Limits::default(), schema, &json!({"a": "x"})).unwrap(), None);
    assert!(check_within(&Limits::default(), schema, &json!({"a": 1})).unwrap().is_some());
}

#[test]
fn a_schema_that_leads_to_itself_ends_in_an_error() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
               "properties": {"x": {"$ref": "#/definitions/a"}}}),
    ] {
        let said = check(&schema, &json!({"x": 1})).unwrap();
        assert!(said.contains("refers to itself without end"), "{said}");
    }
}

#[test]
fn a_schema_that_doubles_its_work_ends_at_the_limit_of_time() {
    let mut definitions = json!({"n0": {"type": "string"}});
    for level in 1..60 {
        let below = json!({"$ref": format!("#/definitions/n{}", level - 1)});
        definitions[format!("n{level}")] = json!({"oneOf": [below, below]});
    }
    let schema = json!({"definitions": definitions, "properties": {"a": {"$ref": "#/definitions/n59"}}});
    let limits = Limits { time: std::time::Duration::from_millis(50), ..Limits::default() };
    let said = check_within(&limits, schema.to_string().as_bytes(), &json!({"a": "x"}));
    assert!(matches!(said, Err(Unchecked::Limit(LimitError::Time(_)))), "{said:?}");
}

#[test]
fn only_so_many_problems_are_told() {
    let schema = json!({"properties": {"a": {"items": {"type": "string"}}}});
    let said = check(&schema, &json!({"a": vec![1; 1000]})).unwrap();
    assert_eq!(said.lines().count(), 50);
}

#[test]
fn a_long_name_is_not_written_before_each_reference() {
    let name = format!("http://example.com/{}", "x".repeat(1 << 20));
    let properties: Vec<Json> = vec![json!({"$ref": "#/definitions/a"}); 100];
    let schema = json!({"$id": name, "definitions": {"a": {}}, "anyOf": properties});
    let said = check(&schema, &json!({})).unwrap();
    assert!(said.contains("take more than"), "{said}");
}

#[test]
fn patterns_of_names_are_tried_until_the_limit_of_time() {
    let patterns: serde_json::Map<String, Json> =
        (0..300).map(|at| (format!("^never{at}$"), json!({}))).collect();
    let values: serde_json::Map<String, Json> = (0..5000).map(|at| (format!("x{at}"), json!(1))).collect();
    let limits = Limits { time: std::time::Duration::from_millis(10), ..Limits::default() };
    let schema = json!({"patternProperties": patterns}).to_string();
    let said = check_within(&limits, schema.as_bytes(), &Json::Object(values));
    assert!(matches!(said, Err(Unchecked::Limit(LimitError::Time(_)))), "{said:?}");
}

#[test]
fn a_schema_has_only_so_many_patterns() {
    let patterns = |count: usize| -> serde_json::Map<String, Json> {
        (0..count).map(|at| (format!("a{at}"), json!({}))).collect()
    };
    assert_eq!(check(&json!({"patternProperties": patterns(1000)}), &json!({})), None);
    let said = check(&json!({"patternProperties": patterns(1001)}), &json!({})).unwrap();
    assert!(said.contains("more than 1000 patterns"), "{said}");
}

#[test]
fn a_part_with_many_names_is_looked_at_once() {
    let all: Vec<Json> = (0..20_000).map(|at| json!({"$ref": format!("#n{at}")})).collect();
    let before = std::time::Instant::now();
    assert!(matches!(Schema::new(json!({"items": all}).to_string().as_bytes()), Schema::Ready(_)));
    assert!(before.elapsed() < std::time::Duration::from_secs(30), "not once for each name");
}

#[test]
fn the_places_of_what_is_referred_to_are_bounded() {
    let all: Vec<Json> = (0..100).map(|at| json!({"$ref": format!("http://example.com/s#n{at}")})).collect();
    let place = "x".repeat(100 << 10);
    let schema = json!({"definitions": {place: {"$id": "http://example.com/s"}}, "items": all});
    let said = check(&schema, &json!({})).unwrap();
    assert!(said.contains("takes more than"), "{said}");
}

#[test]
fn problems_that_are_alive_at_one_time_count_as_memory() {
    let missing: Vec<String> = (0..50).map(|at| format!("{at}{}", "x".repeat(400))).collect();
    let mut definitions = json!({"n0": {"type": "string"}});
    for level in 1..400 {
        let below = json!({"$ref": format!("#/definitions/n{}", level - 1)});
        definitions[format!("n{level}")] = json!({"anyOf": [{"$ref": "#/definitions/m"}, below]});
    }
    definitions["m"] = json!({"required": missing});
    let schema = json!({"definitions": definitions, "$ref": "#/definitions/n399"}).to_string();
    let limits = Limits { memory_bytes: 4 << 20, ..Limits::default() };
    let said = check_within(&limits, schema.as_bytes(), &json!({}));
    assert!(matches!(said, Err(Unchecked::Limit(LimitError::Memory(_)))), "{said:?}");
}
