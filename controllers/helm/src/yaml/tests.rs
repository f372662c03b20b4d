use super::*;
use proptest::prelude::*;
use serde_json::json;

fn read(text: &str) -> serde_json::Value {
    to_json(text.as_bytes()).unwrap()
}

#[test]
fn scalars_have_the_types_of_yaml_1_1() {
    let text = "a: yes\nb: 0644\nc: 0o644\nd: 0189\ne: 12e4567\nf: 1_000\ng: 2001-12-14\nh: 0x1F\ni: ~\nj: 1.5\nk: '1'\n";
    let want = json!({"a": true, "b": 420, "c": 420, "d": 189, "e": "12e4567", "f": 1000, "g": "2001-12-14",
        "h": 31, "i": null, "j": 1.5, "k": "1"});
    assert_eq!(read(text), want);
}

#[test]
fn keys_become_strings() {
    assert_eq!(read("on: 1\nn: 2\n3: 4\n1.5: 5\n"), json!({"true": 1, "false": 2, "3": 4, "1.5": 5}));
}

#[test]
fn merge_keys_are_applied_in_the_order_of_the_text() {
    assert_eq!(
        read("a: &a {x: 1, z: 2}\nb: {x: 0, <<: *a, z: 3}\n"),
        json!({"a": {"x": 1, "z": 2}, "b": {"x": 1, "z": 3}})
    );
}

#[test]
fn block_scalars_at_the_end_of_the_text_are_read() {
    assert_eq!(read("a: |\n  x\n  y"), json!({"a": "x\ny"}));
    assert_eq!(read("a: |+\n  x\n\n"), json!({"a": "x\n\n"}));
    assert_eq!(read("a: >-\n  x\n  y\n\n  z\n"), json!({"a": "x y\nz"}));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for i in 1..9 {
        let items = vec![format!("*a{}", i - 1); 10].join(",");
        text.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    let error = to_json(text.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "yaml: document contains excessive aliasing");
}

#[test]
fn a_long_text_repeated_by_aliases_is_refused() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 5000].join(","));
    assert!(to_json(text.as_bytes()).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    assert!(to_json("[".repeat(100_000).as_bytes()).is_err());
    assert!(to_json("- ".repeat(100_000).as_bytes()).is_err());
}

/// Whoever reads YAML need not care on which thread: three quarters of what threads have is enough, also without optimizations.
#[test]
fn what_is_as_deep_as_allowed_is_read_and_written_on_a_small_stack() {
    const LEVELS: usize = MAX_DEPTH - 2;
    let block: String = (0..LEVELS).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let shapes = [
        format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS)),
        format!("{}x{}", "{a: ".repeat(LEVELS), "}".repeat(LEVELS)),
        format!("{}x{}", "[a: ".repeat(LEVELS / 2), "]".repeat(LEVELS / 2)),
        format!("{}{{}}{}", "{<<: ".repeat(LEVELS), "}".repeat(LEVELS)),
        format!("{}x", "- ".repeat(LEVELS)),
        block,
    ];
    for shape in shapes {
        let begin = shape[..9].to_owned();
        let read = move || {
            let value = to_json(shape.as_bytes()).unwrap();
            assert_eq!(to_json(from_json(&value).as_bytes()), Ok(value));
            drop(to_value(shape.as_bytes()).unwrap());
        };
        let thread = std::thread::Builder::new().stack_size(3 << 19).name(begin);
        thread.spawn(read).unwrap().join().unwrap();
    }
}

#[test]
fn only_the_first_document_is_read_unless_all_are_asked_for() {
    assert_eq!(read("a: 1\n---\nb: 2\n"), json!({"a": 1}));
    assert_eq!(documents(b"---\na: 1\n---\n---\nb: 2\n...\n").unwrap(), [json!({"a": 1}), json!({"b": 2})]);
}

#[test]
fn strings_that_read_as_something_else_are_quoted() {
    let value = json!({"a": "yes", "b": "1", "c": "", "d": "a: b", "e": "x\ny\n", "f": " x", "g": "2001-01-01", "h": "1:20"});
    let want =
        "a: \"yes\"\nb: \"1\"\nc: \"\"\nd: 'a: b'\ne: |\n  x\n  y\nf: ' x'\ng: \"2001-01-01\"\nh: \"1:20\"\n";
    assert_eq!(from_json(&value), want);
}

#[test]
fn sequences_stand_in_their_keys_column_and_keys_are_in_natural_order() {
    let value = json!({"a10": [1, {"b": 2, "c": []}], "a2": {}});
    assert_eq!(from_json(&value), "a2: {}\na10:\n- 1\n- b: 2\n  c: []\n");
}

#[test]
fn errors_name_the_line() {
    assert_eq!(
        to_json(b"a: 1\nb: [\n").unwrap_err().to_string(),
        "yaml: line 2: did not find expected node content"
    );
    assert_eq!(
        to_json(b"a: b: c\n").unwrap_err().to_string(),
        "yaml: mapping values are not allowed in this context"
    );
}

fn documents_of_json() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n\t]{0,120}",
        "[a-z0-9.:#'\"&*!|>%@,\\[\\]{}?\n -]{0,30}",
        "(yes|no|on|0x1|1e3|~|null|<<|---|- a|2001-01-01|\\.inf)",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e9..1e9).prop_map(|float: f64| serde_json::Value::from(float.trunc() + 0.5)),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in documents_of_json()) {
        let text = from_json(&value);
        prop_assert_eq!(to_json(text.as_bytes()), Ok(value), "{}", text);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = documents(&bytes);
        let _ = to_value(&bytes);
    }

    #[test]
    fn any_yaml_like_text_is_read_or_refused(text in "[-a:?,\\[\\]{}&*!|>'\"%@`# \n\t0-9.~<]{0,80}") {
        let _ = documents(text.as_bytes());
    }
}

#[test]
fn whole_floats_read_as_the_integers_they_are_written_as() {
    for (text, integer) in [
        ("00000000016717097753082843272", json!(16_717_097_753_082_843_000_u64)),
        ("1.2345678901234567e18", json!(1_234_567_890_123_456_800_i64)),
        ("-1e3", json!(-1000)),
    ] {
        assert_eq!(read(text), integer, "{text}");
        assert_eq!(to_json(from_json(&integer).as_bytes()).unwrap(), integer);
    }
    assert!(read("1e20").is_f64());
}
