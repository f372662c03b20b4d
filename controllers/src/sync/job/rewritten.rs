//! Finds the fields in which a cluster's admission changed what was applied.
//!
//! Server-side apply leaves such fields in our entry of the managed fields: only the values tell. Other spellings of the same value
//! are the API server's, and no change.

use emco_engine::hardware::quantity::same_quantity;
use serde_json::Value;

/// Lists longer than this are not compared field by field.
const LONGEST: usize = 256;

/// Pointers to values that were said and are there with another value, or are not there.
pub(super) fn pointers(said: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let secret = said.get("kind").and_then(Value::as_str) == Some("Secret");
    for (key, said) in said.as_object().into_iter().flatten() {
        // Names and marks are checked elsewhere, and what a Secret holds is normalised as base64.
        if matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") || secret {
            continue;
        }
        compare(&format!("/{key}"), said, live.get(key), &mut found);
    }
    found
}

fn compare(at: &str, said: &Value, live: Option<&Value>, found: &mut Vec<String>) {
    match (said, live) {
        (Value::Object(said), Some(Value::Object(live))) => {
            for (key, said) in said {
                let key_text = key.replace('~', "~0").replace('/', "~1");
                compare(&format!("{at}/{key_text}"), said, live.get(key), found);
            }
        }
        // Lists that are merged may have more, and in another order.
        (Value::Array(said), Some(Value::Array(live))) => {
            if said.len() == live.len() && said.len() <= LONGEST {
                for (n, (said, live)) in said.iter().zip(live).enumerate() {
                    compare(&format!("{at}/{n}"), said, Some(live), found);
                }
            }
        }
        (said, _) if says_nothing(said) => {}
        (said, Some(live)) if same(said, live) => {}
        _ => found.push(at.to_owned()),
    }
}

/// Values that many kinds take for "not said".
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.iter().all(says_nothing),
        Value::Object(map) => map.values().all(says_nothing),
        Value::Bool(true) => false,
    }
}

fn same(said: &Value, live: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    said == live
        || matches!((text(said), text(live)), (Some(said), Some(live)) if said == live || same_quantity(&said, &live))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_values_are_named_and_other_spellings_are_none() {
        let said = json!({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 2, "paused": false, "name": "", "a/b": "x",
            "limits": {"cpu": 0.5, "memory": "1024Mi"}, "image": "example.com/web", "gone": "y", "list": [{"n": 1}, {"n": 2}],
        }});
        let live = json!({"kind": "Deployment", "metadata": {"name": "web", "labels": {"added": "x"}}, "spec": {
            "replicas": 2, "name": "chosen", "a/b": "z", "more": 1,
            "limits": {"cpu": "500m", "memory": "1Gi"}, "image": "mirror.example.com/web", "list": [{"n": 1}, {"n": 3}],
        }});
        assert_eq!(pointers(&said, &live), ["/spec/a~1b", "/spec/gone", "/spec/image", "/spec/list/1/n"]);
        assert_eq!(pointers(&live, &live), Vec::<String>::new());
    }
}
