//! Connections as cyclonus, which knows nothing of this project, judges them by the same policies.
//!
//! The file is written by `EMCO_REACH_CASES=FILE make soak STEP=reach`, which compares many more.

use emco_engine::traffic::proof::connection::{Connection, lets_through};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Judged {
    policies: Vec<Value>,
    connections: Vec<Connection>,
    /// True where one is let through.
    answers: Vec<bool>,
}

#[test]
fn three_hundred_connections_are_judged_as_cyclonus_judges_them() {
    let text = include_str!("second.json");
    let judged: Vec<Judged> = serde_json::from_str(text).unwrap();
    let mut open = 0;
    let mut all = 0;
    for case in &judged {
        assert_eq!(case.connections.len(), case.answers.len());
        for (connection, theirs) in case.connections.iter().zip(&case.answers) {
            assert_eq!(
                lets_through(&case.policies, connection),
                *theirs,
                "{connection:?} {:#?}",
                case.policies
            );
            open += usize::from(*theirs);
            all += 1;
        }
    }
    assert_eq!(all, 300);
    assert!((30..270).contains(&open), "{open} are open: both answers should be common");
}
