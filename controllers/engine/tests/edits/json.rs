//! JSON patches, as RFC 6902 has them.

use emco_engine::edits::{Patch, patched};
use serde_json::{Value, json};

use crate::{deployment, refusal};

fn result(operations: &Value) -> Value {
    patched(&deployment(), &Patch::Json(operations.as_array().unwrap().clone())).unwrap()
}

fn refused(operations: &Value) -> String {
    refusal(&deployment(), &Patch::Json(operations.as_array().unwrap().clone()))
}

#[test]
fn every_operation_does_what_it_says() {
    let changed = result(&json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": null},
        {"op": "copy", "from": "/spec/replicas", "path": "/spec/copied"},
        {"op": "move", "from": "/spec/strategy/type", "path": "/spec/moved"},
        {"op": "remove", "path": "/spec/template"},
    ]));
    assert_eq!(changed["metadata"]["labels"], json!({"app": "web", "a/b": null}));
    let spec = json!({"replicas": 3, "copied": 3, "moved": "RollingUpdate", "strategy": {"rollingUpdate": {"maxSurge": 1}}});
    assert_eq!(changed["spec"], spec);
}

#[test]
fn items_of_lists_are_found_by_index_and_added_at_the_end() {
    let path = "/spec/template/spec/containers/0/args";
    let changed = result(&json!([
        {"op": "add", "path": format!("{path}/-"), "value": "--three"},
        {"op": "add", "path": format!("{path}/0"), "value": "--zero"},
        {"op": "remove", "path": format!("{path}/2")},
    ]));
    let args = &changed["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(*args, json!(["--zero", "--one", "--three"]));
}

#[test]
fn a_test_compares_numbers_and_not_how_they_are_written() {
    result(&json!([{"op": "test", "path": "/spec/replicas", "value": 2.0}]));
}

#[test]
fn a_refusal_names_the_operation_and_its_path() {
    let test = json!({"op": "test", "path": "/spec/replicas", "value": 2});
    let cases = [
        (json!({"op": "remove", "path": "/spec/nothing"}), "the object has nothing there"),
        (json!({"op": "replace", "path": "/spec/nothing", "value": 1}), "the object has nothing there"),
        (json!({"op": "test", "path": "/spec/nothing", "value": 1}), "the object has nothing there"),
        (
            json!({"op": "test", "path": "/spec/replicas", "value": 7}),
            "the object has another value there than the one to test for",
        ),
        (
            json!({"op": "add", "path": "/spec/nothing/below", "value": 1}),
            "the object has no map or list above it, or a list that is shorter: add what is missing first",
        ),
        (
            json!({"op": "copy", "from": "/spec/nothing", "path": "/spec/x"}),
            "the object has nothing at its path `from`",
        ),
        (json!({"op": "move", "from": "/spec", "path": "/spec/x"}), "a value cannot be moved into itself"),
        (json!({"op": "add", "path": "/spec/x"}), "it has no value; write null where null is meant"),
        (json!({"op": "put", "path": "/spec/x"}), "op has to be add, remove, replace, move, copy or test"),
    ];
    for (operation, fault) in cases {
        let path = operation["path"].as_str().unwrap();
        let expected = format!("operation 1 of the JSON patch, path \"{path}\": {fault}");
        assert_eq!(refused(&json!([test, operation])), expected);
    }
}

#[test]
fn a_path_without_a_slash_is_refused() {
    let said = refused(&json!([{"op": "remove", "path": "spec"}]));
    assert!(
        said.starts_with("operation 0 of the JSON patch, path \"spec\": a path is empty or begins with /"),
        "{said}"
    );
}

#[test]
fn an_index_beyond_the_end_is_refused() {
    for index in ["2", "00", "-"] {
        let path = format!("/spec/template/spec/containers/0/args/{index}");
        assert!(refused(&json!([{"op": "remove", "path": path}])).contains("nothing there"), "{index}");
    }
}

#[test]
fn copies_that_double_an_object_again_and_again_are_refused() {
    let mut operations = vec![json!({"op": "add", "path": "/x", "value": ["0123456789".repeat(100)]})];
    operations.extend((0..100).map(|_| json!({"op": "copy", "from": "/x", "path": "/x/-"})));
    let said = refused(&Value::Array(operations));
    let expected = [
        "the JSON patch copies more than 4 MiB: split it, or copy less",
        "the patch nests more than 120 levels, or makes the object do so: make it flatter",
    ];
    assert!(expected.contains(&said.as_str()), "{said}");
}
