//! Names the fields that others took, and the rule that leaves exactly these to them.

use serde_json::Value;

use super::owned::escape;
use crate::identity::Identity;

/// Fields of a map that are named one by one.
const FEW: usize = 3;

/// Pointers to single fields: who loses the last field of a map has lost the map, and is meant to lose no other.
pub fn fields(manifest: &Value, taken: &[String]) -> Vec<String> {
    let below = |pointer: &String| {
        let mut found = Vec::new();
        if let Some(value) = manifest.pointer(pointer) {
            leaves(value, pointer.clone(), &mut found);
        }
        if (1..=FEW).contains(&found.len()) { found } else { vec![pointer.clone()] }
    };
    taken.iter().flat_map(below).collect()
}

fn leaves(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(value, format!("{at}/{}", escape(key)), found);
            }
        }
        _ => found.push(at),
    }
}

/// A list with one rule for `spec.sync.ignore`, in YAML on one line.
pub fn rule(id: &Identity, fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| scalar(field)).collect();
    let (group, kind, name, fields) = (scalar(&id.group), &id.kind, scalar(&id.name), fields.join(", "));
    format!("[{{group: {group}, kind: {kind}, name: {name}, jsonPointers: [{fields}]}}]")
}

fn scalar(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    // A number begins with neither a letter nor a slash.
    let is_text = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_word =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&&*text.to_lowercase());
    if is_text && !is_word && text.bytes().all(plain) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_map_that_was_taken_is_named_by_its_few_fields() {
        let spec = json!({"a": 1, "b": 2, "c": {"d": 3, "e": 4}, "list": [{"x": 1}]});
        let manifest = json!({"data": {"a/b": "1"}, "spec": spec});
        let named =
            |taken: &[&str]| fields(&manifest, &taken.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["/data", "/spec/c"]), ["/data/a~1b", "/spec/c/d", "/spec/c/e"]);
        assert_eq!(named(&["/spec", "/spec/list/0", "/none"]), ["/spec", "/spec/list/0/x", "/none"]);
    }

    #[test]
    fn a_rule_is_yaml_that_says_what_was_meant() {
        let id = |group: &str, name: &str| Identity {
            group: group.to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let pointers = |all: &[&str]| all.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            rule(&id("apps", "web"), &pointers(&["/spec/replicas", "/data/a~1b"])),
            r#"[{group: apps, kind: Deployment, name: web, jsonPointers: [/spec/replicas, "/data/a~1b"]}]"#
        );
        let odd = rule(&id("", "1"), &pointers(&["/data/a, b"]));
        assert_eq!(odd, r#"[{group: "", kind: Deployment, name: "1", jsonPointers: ["/data/a, b"]}]"#);
    }
}
