//! Compares fields of two intents: where they meet, and whether the intents make different things of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{names, plain};

/// True for a field that is, holds, or lies in one of others.
pub fn meets(field: &str, others: &BTreeSet<String>) -> bool {
    holders(field, others).next().is_some() || holds_some(field, others)
}

/// Those of some fields that a field is or lies in.
fn holders<'a>(field: &'a str, others: &'a BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    let outer = |field: &&'a str| field.rsplit_once('/').map(|(outer, _)| outer);
    std::iter::successors(Some(field), outer).filter(move |outer| others.contains(*outer))
}

/// True where some of others lie in a field.
fn holds_some(field: &str, others: &BTreeSet<String>) -> bool {
    let inside = format!("{field}/");
    others.range(inside.clone()..).next().is_some_and(|inner| inner.starts_with(&inside))
}

/// The first field of `theirs` that is, holds, or lies in one of `ours`, where the two objects differ: one is as the one intent alone makes
/// it, the other as the other does. Where it is given, what both together `made` counts, too.
pub fn differing(
    (one, ours): (&Value, &BTreeSet<String>),
    (other, theirs): (&Value, &BTreeSet<String>),
    made: Option<&Value>,
) -> Option<String> {
    let differs = |field: &str| {
        let value = at(one, field);
        value != at(other, field) || made.is_some_and(|made| value != at(made, field))
    };
    let meet = |field: &str| holders(field, ours).any(&differs) || holds_some(field, ours) && differs(field);
    theirs.iter().find(|field| meet(field)).cloned()
}

/// A list of which an item that was taken by its place has another one in an object than it had before.
pub fn displaced(counted: &BTreeSet<(String, String)>, before: &Value, after: &Value) -> Option<String> {
    let stays = |list: &str, name: &str| {
        let (old, new) = (items(before, list), items(after, list));
        match old.iter().position(|item| *item == name) {
            Some(place) => old.get(..=place) == new.get(..=place),
            // The patch that takes it put it there.
            None => old == new,
        }
    };
    counted.iter().find(|(list, name)| !stays(list, name)).map(|(list, _)| list.clone())
}

/// The names of the items of a list; none where they have no names.
fn items<'a>(object: &'a Value, list: &str) -> Vec<&'a str> {
    at(object, list).and_then(Value::as_array).and_then(|items| names(items)).unwrap_or_default()
}

/// The value of a field.
fn at<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('/').skip(1).try_fold(object, |value, part| match value {
        Value::Array(items) => {
            let name = plain(part.strip_prefix('[')?.strip_suffix(']')?);
            items.iter().find(|item| item.get("name").and_then(Value::as_str) == Some(name.as_str()))
        }
        _ => value.get(plain(part)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: &[&str]) -> BTreeSet<String> {
        fields.iter().map(|field| (*field).to_owned()).collect()
    }

    #[test]
    fn fields_meet_where_one_holds_the_other() {
        let others = set(&["/a/b", "/abc", "/d"]);
        for field in ["/a/b", "/a", "/a/b/c", ""] {
            assert!(meets(field, &others), "{field}");
        }
        for field in ["/a/c", "/ab", "/dd"] {
            assert!(!meets(field, &others), "{field}");
        }
    }

    #[test]
    fn objects_differ_only_in_fields_that_meet_with_other_values() {
        let one = json!({"a": {"b": 1}, "c": [{"name": "web", "image": "x"}], "d": 1});
        let other = json!({"a": {"b": 2}, "c": [{"name": "log"}, {"name": "web", "image": "x"}], "d": 2});
        let found =
            |ours: &[&str], theirs: &[&str]| differing((&one, &set(ours)), (&other, &set(theirs)), None);
        assert_eq!(found(&["/a/b"], &["/a/b"]).as_deref(), Some("/a/b"));
        assert_eq!(found(&["/a"], &["/a/b"]).as_deref(), Some("/a/b"));
        assert_eq!(found(&["/a/b"], &["/a"]).as_deref(), Some("/a"));
        assert_eq!(found(&["/c/[web]/image"], &["/c/[web]/image"]), None);
        assert_eq!(found(&["/a/b"], &["/d"]), None);
    }

    #[test]
    fn what_both_together_made_is_to_be_what_each_makes() {
        let (alone, fields) = (json!({"args": ["a", "b"]}), set(&["/args"]));
        let found = |made: &Value| differing((&alone, &fields), (&alone, &fields), Some(made));
        assert_eq!(found(&json!({"args": ["a", "b"]})), None);
        assert_eq!(found(&json!({"args": ["a", "b", "b"]})).as_deref(), Some("/args"));
    }

    #[test]
    fn an_item_is_displaced_by_what_comes_or_goes_before_it() {
        let list = |names: &[&str]| {
            let items: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"c": items})
        };
        let before = list(&["log", "web"]);
        let after = |counted: &str, names: &[&str]| {
            displaced(&[("/c".to_owned(), counted.to_owned())].into(), &before, &list(names))
        };
        for names in [&["log", "web"][..], &["log", "web", "side"]] {
            assert_eq!(after("web", names), None, "{names:?}");
        }
        for names in [&["side", "log", "web"][..], &["web"], &[]] {
            assert_eq!(after("web", names).as_deref(), Some("/c"), "{names:?}");
        }
        assert_eq!(after("log", &["log"]), None);
        assert_eq!(after("mine", &["log", "web", "side"]).as_deref(), Some("/c"));
    }
}
