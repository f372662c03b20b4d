use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "web", "generation": 3, "labels": {"app.kubernetes.io/name": "web"}},
        "spec": {"replicas": 2, "weight": 0.5, "big": 18_446_744_073_709_551_615_u64, "nothing": null},
        "status": {
            "phase": "Issued", "observedGeneration": 3, "ready": true, "names": ["a", "b", "c"],
            "conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": 3},
                {"type": "Issuing", "status": "False"},
            ],
        },
    })
}

/// `true`, `false`, or why there is no answer.
fn answer(source: &str) -> String {
    let program = match Program::compile(source) {
        Ok(program) => program,
        Err(why) => return format!("refused: {why}"),
    };
    let mut steps = MOST_STEPS;
    match program.is_true(&object(), &mut steps) {
        Ok(is) => is.to_string(),
        Err(failure) => format!("{failure:?}"),
    }
}

#[test]
fn expressions_of_flux_answer_as_in_flux() {
    for (source, wanted) in [
        ("status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')", true),
        (
            "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)",
            true,
        ),
        ("status.conditions.exists(e, e.type == 'Issuing' && e.status == 'True')", false),
        ("status.conditions.exists_one(e, e.status == 'True')", true),
        ("has(status.conditions) && size(status.conditions) == 2", true),
        ("has(status.lastError)", false),
        ("status.phase in ['Issued', 'Ready']", true),
        ("'app.kubernetes.io/name' in metadata.labels", true),
        ("metadata.labels['app.kubernetes.io/name'] == 'web'", true),
        ("status.conditions.map(c, c.type) == ['Ready', 'Issuing']", true),
        ("status.conditions.map(c, c.status == 'True', c.type) == ['Ready']", true),
        ("status.names.map(n, n + '!').size() == 3 && status.names[2] == 'c'", true),
        ("spec.replicas * 2 + 1 - 5 / 2 % 2 == 5", true),
        ("spec.weight < 1 && spec.replicas >= 2.0 && spec.big > 0", true),
        ("spec.nothing == null && spec.nothing != 'x'", true),
        (
            "status.phase.startsWith('Is') && status.phase.endsWith('ed') && status.phase.contains('ssu')",
            true,
        ),
        ("status.phase.matches('^I[a-z]+d$')", true),
        ("status.phase.lowerAscii() == 'issued' && string(spec.replicas) == '2' && int('7') == 7", true),
        ("status.ready ? !has(status.lastError) : false", true),
        ("-spec.replicas < 0 && double(spec.replicas) == 2.0", true),
        ("status == status && status != metadata", true),
        // The side that decides does so whatever becomes of the other one.
        ("status.absent == 1 || status.ready", true),
        ("!(status.ready && false) || status.absent", true),
        ("status.conditions.exists(e, e.observedGeneration == 3)", true),
        ("[0, 1].exists(n, 1 / n == 1)", true),
        ("[0, 2].all(n, 4 / n == 1)", false),
    ] {
        assert_eq!(answer(source), wanted.to_string(), "{source}");
    }
}

/// The crate that parses them has an evaluator of its own, without bounds.
#[test]
fn expressions_answer_as_the_crate_that_parses_them_answers() {
    for source in [
        "[1, 2, 3].filter(n, n > 1).map(n, n * n) == [4, 9]",
        "[1, 2, 3].all(n, n > 0) && [1, 2].exists(n, n == 2) && ![1, 1].exists_one(n, n == 1)",
        "'abc'.contains('b') && 'abc'.startsWith('a') && size('abc') == 3 && size([1]) == 1",
        "1 + 2 * 3 - 4 / 2 % 3 == 5 && 1.5 + 1.5 == 3.0 && -7 / 2 == -3 && -7 % 2 == -1",
        "(1 == 1 ? 'a' : 'b') + 'c' == 'ac' && 'a' < 'b' && !(2 <= 1)",
        "false && (1 / 0 == 1) || true",
        "[[1, 2], [3]].map(l, l.size()) == [2, 1] && 2 in [1, 2] && !(3 in [1, 2])",
    ] {
        let theirs = cel::Program::compile(source).unwrap().execute(&cel::Context::default());
        assert_eq!(theirs, Ok(cel::Value::Bool(true)), "{source}");
        assert_eq!(answer(source), "true", "{source}");
    }
}

#[test]
fn what_cannot_be_answered_is_never_true() {
    insta::assert_snapshot!(
        [
            "status.absent",
            "absent.field == 1",
            "status.phase.absent",
            "!status.phase.absent",
            "has(status.phase.absent)",
            "!has(status.absent.field)",
            "status.phase",
            "status.names",
            "spec.replicas",
            "spec.nothing",
            "status.names[7] == 'x'",
            "status.phase > 1",
            "!status.phase",
            "status.phase && true",
            "spec.replicas / 0 == 1",
            "9223372036854775807 + spec.replicas > 0",
            "spec.replicas.all(e, true)",
            "size(spec.replicas) == 1",
            "status.conditions.all(e, e.observedGeneration == 3)",
            "status.ready ? status.phase : true",
        ]
        .map(|source| format!("{source}\n    {}", answer(source)))
        .join("\n")
    );
}

#[test]
fn what_does_not_compile_is_refused_with_a_phrase() {
    let deep = format!("{}status.ready{}", "(".repeat(500), ")".repeat(500));
    let chain = format!("status{}", ".a".repeat(500));
    let not = format!("{}status.ready", "!(".repeat(40).as_str()) + &")".repeat(40);
    let long = format!("status.ready || '{}' == 'a'", "a".repeat(LONGEST));
    assert_eq!(answer(&not), "true");
    insta::assert_snapshot!(
        [
            "",
            "status.",
            "status.ready &&",
            "status.ready = true",
            "status.ready; true",
            "'Ready'",
            "'Ready: ' + status.phase",
            "string(status.ready)",
            "size(status.names)",
            "1 + 1",
            "-1",
            "null",
            "[true]",
            "status.names.map(n, n == 'a')",
            "status.names.filter(n, n == 'a')",
            "status.ready ? 'yes' : 'no'",
            "status.names.all(1, true)",
            "has(status)",
            "now() > status.started",
            "timestamp(status.started) > timestamp('2026-01-01T00:00:00Z')",
            "{'a': 1}.size() == 1",
            "Certificate{name: 'a'} == 1",
            "b'abc' == b'abc'",
            "status.phase.matches(status.phase)",
            "status.phase.matches('(')",
            "status.phase.matches('(a{1000}){1000}')",
            "contains(status.phase, 'a')",
            "size(1, 2) == 1",
            deep.as_str(),
            chain.as_str(),
            long.as_str(),
        ]
        .map(|source| format!("{:.80}\n    {}", source, answer(source)))
        .join("\n")
    );
}

/// A list as long as an object can have, and expressions that go through it within itself, or double what they have.
#[test]
fn an_expression_that_would_not_end_is_cut_off() {
    let items: Vec<u32> = (0..20_000).collect();
    let object = json!({"l": items, "s": "a".repeat(100_000)});
    let doubled = |from: &str, step: &str| format!("{from}{} == [1]", step.repeat(40));
    for source in [
        "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))".to_owned(),
        "l.map(a, l.map(b, l)).size() > 0".to_owned(),
        doubled("[[0]]", ".map(a, a + a)"),
        doubled("['ab']", ".map(a, a + a)"),
        format!("[[0]]{}.all(a, a == a)", ".map(a, [a, a])".repeat(30)),
        "l.exists(a, s.contains('b') || s.matches('(a*)*b'))".to_owned(),
        // Neither an operator nor a macro gets over it.
        "l.all(a, l.all(b, l.all(c, true))) || true".to_owned(),
        "true || l.all(a, true)".to_owned() + " && l.all(a, l.all(b, true))",
        "l.exists(a, l.all(b, true) && false)".to_owned(),
    ] {
        let program = Program::compile(&source).unwrap();
        let mut steps = MOST_STEPS;
        let begun = std::time::Instant::now();
        let answer = program.is_true(&object, &mut steps);
        if source.starts_with("true ||") {
            assert_eq!(answer, Ok(true), "{source}");
            continue;
        }
        assert_eq!(answer, Err(Failure::TooCostly), "{source}");
        assert!(begun.elapsed().as_secs() < 5, "{source} took {:?}", begun.elapsed());
    }
    // A thousand items are no trouble.
    let program = Program::compile("l.filter(a, a >= 0).map(a, a + 1).all(a, a > 0)").unwrap();
    let object = json!({"l": (0..1000).collect::<Vec<u32>>()});
    assert_eq!(program.is_true(&object, &mut { MOST_STEPS }), Ok(true));
}

#[test]
fn no_answer_quotes_a_value_of_the_object() {
    let object = json!({"status": {"secret": "hunter2", "list": ["hunter2"], "map": {"k": "hunter2"}}});
    for source in [
        "status.secret",
        "status.secret > 1",
        "!status.secret",
        "status.list > status.map",
        "int(status.secret) == 1",
        "status.list[status.secret] == 1",
        "status.map[status.secret] == 1",
        "status.secret.all(e, true)",
    ] {
        let failure = Program::compile(source).unwrap().is_true(&object, &mut { MOST_STEPS }).unwrap_err();
        assert!(!format!("{failure:?}").contains("hunter2"), "{source}: {failure:?}");
    }
}
