//! Removes fields that are said to be nothing where the schema of a custom kind has something there, by the API server's own answer.
//!
//! An object that is created or updated loses such a field without a word, as one that Helm or `kubectl apply` sends; server-side
//! apply refuses it. A field that may be nothing is not refused, and stays.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::ApiError;

/// Removes the fields that an answer to an apply refuses and the manifest says to be nothing, wherever in a list they are; false
/// when there are none.
pub fn leave_out_nulls(manifest: &mut Value, error: &ApiError) -> bool {
    let refused = refused(error);
    !refused.is_empty() && remove(manifest, &mut Vec::new(), &refused)
}

/// The names in a path, without places in lists.
type Names = Vec<String>;

fn refused(error: &ApiError) -> BTreeSet<Names> {
    let ApiError::Status { code, message, causes, .. } = error else { return BTreeSet::new() };
    // A forbidden field is not refused for being nothing.
    let counts = |cause: &str| *code == 422 && !cause.starts_with("Forbidden");
    let named = causes.iter().filter(|(_, cause)| counts(cause)).map(|(field, _)| field.as_str());
    let typed = message.contains("typed patch object").then(|| {
        let of_line = |line: &str| {
            let (before, _) = line.split_once(": expected ")?;
            Some(before.rsplit_once(": ").map_or(before, |(_, path)| path).trim().to_owned())
        };
        message.lines().filter_map(of_line).collect::<Vec<String>>()
    });
    let typed = typed.unwrap_or_default();
    named.chain(typed.iter().map(String::as_str)).map(names).filter(|names| !names.is_empty()).collect()
}

/// Servers write `spec.items[0].volumes`, `spec.items.0.volumes` or nothing for the place, and keys of maps in brackets or after a dot.
fn names(path: &str) -> Names {
    let parts = path.split(['.', '[', ']']).map(|part| part.trim_matches('"'));
    parts.filter(|part| !is_place(part)).map(str::to_owned).collect()
}

fn is_place(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

fn remove(value: &mut Value, at: &mut Names, refused: &BTreeSet<Names>) -> bool {
    let mut found = false;
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let depth = at.len();
            at.extend(names(key));
            let goes = value.is_null() && refused.contains(at);
            found |= goes || remove(value, at, refused);
            at.truncate(depth);
            !goes
        }),
        Value::Array(items) => {
            for item in items {
                found |= remove(item, at, refused);
            }
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn invalid(fields: &[&str]) -> ApiError {
        let cause = "Invalid value: (withheld): must be of type array: (withheld)";
        let causes = fields.iter().map(|field| ((*field).to_owned(), cause.to_owned())).collect();
        let (reason, message) = ("Invalid".to_owned(), "Widget.example.com \"x\" is invalid".to_owned());
        ApiError::Status { code: 422, reason, message, retry_after: None, causes }
    }

    #[test]
    fn what_is_nothing_and_refused_is_left_out_and_the_rest_stays() {
        let widget = json!({"spec": {"volumes": null, "note": null, "replicas": 1,
            "items": [{"name": "a", "mounts": null}, {"name": "b", "mounts": null, "more": null}],
            "labels": {"example.com/x": null, "y": "z"}}});
        for places in [
            ["spec.items[0].mounts", "spec.labels.example.com/x"],
            ["spec.items.0.mounts", "spec.labels[example.com/x]"],
            ["spec.items.mounts", "spec.labels.example.com/x"],
        ] {
            let mut manifest = widget.clone();
            let fields = [&["spec.volumes", "spec.replicas"][..], &places].concat();
            assert!(leave_out_nulls(&mut manifest, &invalid(&fields)));
            let kept = json!({"spec": {"note": null, "replicas": 1, "labels": {"y": "z"},
                "items": [{"name": "a"}, {"name": "b", "more": null}]}});
            assert_eq!(manifest, kept);
            assert!(!leave_out_nulls(&mut manifest, &invalid(&fields)), "nothing of it is left");
        }
    }

    #[test]
    fn an_answer_of_types_names_its_field_and_another_refusal_nothing() {
        let status = |code: u16, message: &str| {
            let (reason, message) = (String::new(), message.to_owned());
            ApiError::Status { code, reason, message, retry_after: None, causes: Vec::new() }
        };
        let typed = "failed to create typed patch object (n/x; example.com/v1, Kind=Widget): .spec.volumes: expected list, got (withheld)";
        let mut manifest = json!({"spec": {"volumes": null}});
        assert!(!leave_out_nulls(&mut manifest, &status(403, "spec.volumes: expected by a policy")));
        assert!(leave_out_nulls(&mut manifest, &status(500, typed)));
        assert_eq!(manifest, json!({"spec": {}}));
    }

    #[test]
    fn an_item_that_is_nothing_is_not_left_out() {
        let mut manifest = json!({"spec": {"items": [null, 1]}});
        assert!(!leave_out_nulls(&mut manifest, &invalid(&["spec.items[0]"])));
    }
}
