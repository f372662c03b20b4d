//! Every case of `tests/template/expected.json` must give what Go's own text/template gave. The file is written by
//! `main.go` beside it, from the texts of `cases.txt` and from combinations of constructs and values.
use super::exec::{Render, StackGuard};
use super::set::TemplateSet;
use crate::funcs::Shared;
use crate::limits::{Limits, Meter};
use crate::value::Value;

const DATA: &str = include_str!("../../tests/template/data.json");
const EXPECTED: &str = include_str!("../../tests/template/expected.json");

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Outcome {
    text: String,
    #[serde(default)]
    output: String,
    #[serde(default)]
    error: String,
}

fn run(text: &str) -> Outcome {
    let outcome = |output: String, error: String| Outcome { text: text.to_owned(), output, error };
    let failed = |error: String| outcome(String::new(), error);
    let mut set = TemplateSet::default();
    match super::parse("case", text.as_bytes().to_vec()) {
        Ok(templates) => set.add(templates),
        Err(error) => return failed(error.to_string()),
    }
    let shared = Shared::new(Meter::start(&Limits::default()), None, (0, 0));
    let render = Render::new(&shared, &set, None, StackGuard::here());
    let data = Value::from_json(&serde_json::from_str(DATA).unwrap());
    match render.file("case", &data) {
        Ok(output) => outcome(String::from_utf8_lossy(&output).into_owned(), String::new()),
        Err(error) => failed(error.to_string()),
    }
}

#[test]
fn cases_give_what_go_gives() {
    let cases: Vec<Outcome> = serde_json::from_str(EXPECTED).unwrap();
    let count = cases.len();
    let mut wrong = Vec::new();
    for mut expected in cases {
        // Helm removes what Go prints for nil, and the engine does too.
        expected.output = expected.output.replace("<no value>", "");
        let got = run(&expected.text);
        if got != expected {
            wrong.push(format!("{}\n  Go:   {expected:?}\n  here: {got:?}", expected.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
