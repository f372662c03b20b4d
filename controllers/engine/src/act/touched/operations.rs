//! Says which fields the operations of a JSON patch set, and which items of lists they take by their places.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Stated, below, names, plain};

/// The fields that operations set in an object, one after the other.
pub(super) fn stated(operations: &[Value], object: &Value) -> Stated {
    let mut reading = Reading { object, moved: BTreeSet::new(), stated: Stated::default() };
    for operation in operations {
        reading.read(operation);
    }
    reading.stated
}

struct Reading<'a> {
    object: &'a Value,
    /// Lists whose items have other places by operations before: what becomes of such a list tells.
    moved: BTreeSet<String>,
    stated: Stated,
}

/// The field that a path leads to.
struct Place {
    field: String,
    /// The list that it is an item of.
    list: Option<String>,
}

impl Reading<'_> {
    fn read(&mut self, operation: &Value) {
        let text = |field: &str| operation.get(field).and_then(Value::as_str).unwrap_or_default();
        let (path, from) = (text("path"), text("from"));
        match text("op") {
            "add" => self.sets(path, true),
            "replace" => self.sets(path, false),
            "remove" => self.takes(path),
            "move" => {
                self.takes(from);
                self.sets(path, true);
            }
            "copy" => {
                self.place(from, false);
                self.sets(path, true);
            }
            // A tested field stays as it is.
            _ => {}
        }
    }

    /// `comes`: an item that a path ends with is a new one.
    fn sets(&mut self, path: &str, comes: bool) {
        let place = self.place(path, comes);
        self.stated.fields.extend(place.map(|place| place.field));
    }

    fn takes(&mut self, path: &str) {
        if let Some(Place { field, list }) = self.place(path, false) {
            self.moved.extend(list);
            self.stated.fields.insert(field);
        }
    }

    /// `None` where an item comes into a list, or is not to be found in it.
    fn place(&mut self, path: &str, comes: bool) -> Option<Place> {
        let (mut field, mut list, mut value) = (String::new(), None, Some(self.object));
        let mut parts = path.split('/').skip(1).peekable();
        while let Some(part) = parts.next() {
            let Some(Value::Array(items)) = value else {
                value = value.and_then(|value| value.get(plain(part)));
                field.push('/');
                field.push_str(part);
                list = None;
                continue;
            };
            let names = match names(items) {
                Some(names) => names,
                None if items.is_empty() => Vec::new(),
                // A list without names is one field.
                None => break,
            };
            if self.moved.contains(&field) {
                return None;
            }
            let is_new = comes && parts.peek().is_none();
            let place = part.parse::<usize>().ok().filter(|_| !is_new);
            let found = place.and_then(|place| Some((*names.get(place)?, items.get(place)?)));
            let Some((name, item)) = found else {
                // An item at the end moves no other.
                if part != "-" {
                    self.moved.insert(field);
                }
                return None;
            };
            self.stated.counted.insert((field.clone(), name.to_owned()));
            let inside = below(&field, &format!("[{name}]"));
            list = Some(std::mem::replace(&mut field, inside));
            value = Some(item);
        }
        Some(Place { field, list })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(operations: &Value) -> (Vec<String>, Vec<(String, String)>) {
        let list = json!([{"name": "log"}, {"name": "web", "env": []}]);
        let object = json!({"c": list, "args": ["x"], "replicas": 1});
        let Stated { fields, counted } = stated(operations.as_array().unwrap(), &object);
        (fields.into_iter().collect(), counted.into_iter().collect())
    }

    fn item(list: &str, name: &str) -> (String, String) {
        (list.to_owned(), name.to_owned())
    }

    #[test]
    fn items_are_named_and_lists_without_names_are_one_field() {
        let (fields, counted) = of(&json!([
            {"op": "replace", "path": "/replicas", "value": 1},
            {"op": "test", "path": "/paused", "value": true},
            {"op": "replace", "path": "/c/1/image", "value": "a"},
            {"op": "replace", "path": "/args/0", "value": "y"},
            {"op": "add", "path": "/annotations/a~1b", "value": "y"},
        ]));
        assert_eq!(fields, ["/annotations/a~1b", "/args", "/c/[web]/image", "/replicas"]);
        assert_eq!(counted, [item("/c", "web")]);
    }

    #[test]
    fn an_item_that_comes_sets_no_other_item() {
        for place in ["0", "1", "2", "-"] {
            let (fields, counted) =
                of(&json!([{"op": "add", "path": format!("/c/{place}"), "value": {"name": "new"}}]));
            assert!(fields.is_empty() && counted.is_empty(), "{place}: {fields:?} {counted:?}");
        }
        let (fields, counted) = of(&json!([{"op": "add", "path": "/c/1/env/-", "value": {"name": "A"}}]));
        assert_eq!((fields.len(), counted), (0, vec![item("/c", "web")]));
    }

    #[test]
    fn items_of_a_list_that_an_operation_before_moved_are_not_guessed() {
        for moves in [
            json!({"op": "add", "path": "/c/0", "value": {"name": "new"}}),
            json!({"op": "move", "from": "/c/0", "path": "/c/-"}),
        ] {
            let (fields, _) = of(&json!([moves, {"op": "replace", "path": "/c/1/image", "value": "a"}]));
            assert!(!fields.iter().any(|field| field.ends_with("image")), "{fields:?}");
        }
        let appended = json!({"op": "add", "path": "/c/-", "value": {"name": "new"}});
        let (fields, _) = of(&json!([appended, {"op": "replace", "path": "/c/1/image", "value": "a"}]));
        assert_eq!(fields, ["/c/[web]/image"]);
    }
}
