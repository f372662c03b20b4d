//! Makes random JSON patches that fit an object.

use emco_engine::edits::{Patch, patched};
use serde_json::{Value, json};

use super::made::{plain, scalar};
use crate::random::Random;

/// What says which object it is, and what is above that.
const IDENTITY: [&str; 6] =
    ["", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"];

/// A JSON patch of up to four operations. Each is made for what those before it leave, and most find what they name: kubectl replaces
/// and copies what is not there, which RFC 6902 forbids.
pub(super) fn json(random: &mut Random, object: &Value) -> Patch {
    let mut now = object.clone();
    let mut operations = Vec::new();
    for _ in 0..=random.below(4) {
        let operation = operation(random, &now);
        operations.push(operation.clone());
        match patched(&now, &Patch::Json(vec![operation])) {
            Ok(next) => now = next,
            Err(_) => break,
        }
    }
    Patch::Json(operations)
}

/// Every path below a value, with what is there.
fn collect(value: &Value, path: String, paths: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
            for (field, value) in map {
                collect(value, format!("{path}/{}", field.replace('~', "~0").replace('/', "~1")), paths);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
    paths.push((path, value.clone()));
}

fn operation(random: &mut Random, object: &Value) -> Value {
    let mut paths = Vec::new();
    collect(object, String::new(), &mut paths);
    let to = new_place(random, &paths);
    paths.retain(|(path, _)| !IDENTITY.contains(&path.as_str()));
    if paths.is_empty() {
        return json!({"op": "add", "path": to, "value": 1});
    }
    let (path, value) = random.of(&paths).clone();
    match random.below(24) {
        0..=4 => json!({"op": "replace", "path": path, "value": plain(random, &value)}),
        5..=7 => json!({"op": "remove", "path": path}),
        8..=11 => json!({"op": "add", "path": to, "value": scalar(random, &value)}),
        12..=13 => json!({"op": "copy", "from": path, "path": to}),
        14..=15 if !to.starts_with(&path) => json!({"op": "move", "from": path, "path": to}),
        16 => json!({"op": "remove", "path": format!("{path}/nothing/there")}),
        17 => json!({"op": "test", "path": path, "value": {"another": "value"}}),
        _ => json!({"op": "test", "path": path, "value": value}),
    }
}

/// A place in a map or list, which is not taken yet. The object itself is one.
fn new_place(random: &mut Random, paths: &[(String, Value)]) -> String {
    let places: Vec<_> = paths.iter().filter(|(_, value)| value.is_object() || value.is_array()).collect();
    let (path, place) = random.of(&places);
    let last = match place {
        Value::Array(_) if random.below(2) == 0 => "0",
        Value::Array(_) => "-",
        _ => "added",
    };
    format!("{path}/{last}")
}
