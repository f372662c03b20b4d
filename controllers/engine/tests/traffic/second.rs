//! Answers of another implementation: policies and connections of `tests/cases/reach.json`, as cyclonus judges them. `make soak STEP=reach`
//! compares many more, and writes this file anew where `EMCO_REACH_CASES` names it.

use emco_engine::traffic::proof::connection::{Connection, lets_through};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    policies: Vec<Value>,
    connections: Vec<Connection>,
    answers: Vec<bool>,
}

#[test]
fn three_hundred_connections_are_judged_as_cyclonus_judges_them() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/reach.json");
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    let mut judged = 0;
    for case in &cases {
        for (connection, answer) in case.connections.iter().zip(&case.answers) {
            assert_eq!(lets_through(&case.policies, connection), *answer, "{connection:?} {:?}", case.policies);
            judged += 1;
        }
    }
    assert_eq!(judged, 300);
}
