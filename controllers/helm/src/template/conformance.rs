//! Every case of `tests/template/cases.txt` must give what Go's own text/template gave.
use super::exec::{Render, StackGuard};
use super::set::TemplateSet;
use crate::funcs::Shared;
use crate::limits::{Limits, Meter};
use crate::value::Value;

const CASES: &str = include_str!("../../tests/template/cases.txt");
const DATA: &str = include_str!("../../tests/template/data.json");
const EXPECTED: &str = include_str!("../../tests/template/expected.json");

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Outcome {
    #[serde(default)]
    output: String,
    #[serde(default)]
    error: String,
}

fn run(text: &str) -> Outcome {
    let failed = |error: String| Outcome { output: String::new(), error };
    let mut set = TemplateSet::default();
    match super::parse("case", text.as_bytes().to_vec()) {
        Ok(templates) => set.add(templates),
        Err(error) => return failed(error.to_string()),
    }
    let shared = Shared::new(Meter::start(&Limits::default()), None, (0, 0));
    let render = Render::new(&shared, &set, None, StackGuard::here());
    let data = Value::from_json(&serde_json::from_str(DATA).unwrap());
    match render.file("case", &data) {
        Ok(output) => Outcome { output: String::from_utf8_lossy(&output).into_owned(), error: String::new() },
        Err(error) => failed(error.to_string()),
    }
}

#[test]
fn cases_give_what_go_gives() {
    let expected: Vec<Outcome> = serde_json::from_str(EXPECTED).unwrap();
    let cases: Vec<&str> = CASES.trim_end_matches('\n').split("\n%%\n").collect();
    assert_eq!(cases.len(), expected.len(), "run main.go after changing the cases");
    let mut wrong = Vec::new();
    for (text, mut expected) in cases.into_iter().zip(expected) {
        // Helm removes what Go prints for nil, and the engine does too.
        expected.output = expected.output.replace("<no value>", "");
        let got = run(text);
        if got != expected {
            wrong.push(format!("{text}\n  Go:   {expected:?}\n  here: {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
