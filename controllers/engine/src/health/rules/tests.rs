use serde_json::json;

use super::*;

const WIDGETS: &str = "
- apiVersion: example.com/v1
  kind: Widget
  inProgress: has(status.phase) && status.phase == 'Building'
  failed: has(status.phase) && status.phase == 'Broken'
  current: status.phase == 'Done'
";

fn widget(status: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "generation": 2}, "status": status})
}

/// `R`, or a letter and the text.
fn short(rules: &Rules, object: &Value) -> String {
    let id = crate::identity::Identity::of(object);
    match rules.judge(&id.group, &id.kind).judge(object).health {
        Health::Ready => "R".to_owned(),
        Health::Progressing(text) => format!("P {text}"),
        Health::Failed(text) => format!("F {text}"),
        Health::Unknown(text) => format!("U {text}"),
    }
}

fn read(keys: &[(&str, &str)]) -> Rules {
    Rules::read(keys.iter().map(|(key, text)| (*key, Some(*text))))
}

#[test]
fn a_rule_judges_its_kind_in_the_order_of_flux() {
    let rules = read(&[("widgets.yaml", WIDGETS)]);
    assert_eq!((rules.faults(), rules.usable()), (&[][..], 1));
    for (status, wanted) in [
        (json!({"phase": "Done"}), "R"),
        (json!({"phase": "Building"}), "P its health rule says inProgress"),
        (json!({"phase": "Broken"}), "F its health rule says failed"),
        (json!({"phase": "Waiting"}), "P its health rule does not say current"),
        (
            json!({"phase": "Waiting", "conditions": [{"type": "Ready", "status": "False", "reason": "NoDisk", "message": "full"}]}),
            "P its health rule does not say current; Ready is not True: NoDisk: full",
        ),
        (
            json!({}),
            "U its health is unknown: current of its health rule needs the field phase, which the object does not have",
        ),
        (json!({"phase": "Done", "observedGeneration": 1}), "P generation 2 is not observed yet, 1 is"),
    ] {
        assert_eq!(short(&rules, &widget(&status)), wanted, "{status}");
    }
    let mut going = widget(&json!({"phase": "Done"}));
    going["metadata"]["deletionTimestamp"] = json!("2026-11-25T00:00:00Z");
    assert_eq!(short(&rules, &going), "P it is being deleted");
    // The version does not matter, the group does.
    let mut other = widget(&json!({"phase": "Waiting"}));
    other["apiVersion"] = json!("example.com/v1beta1");
    assert_eq!(short(&rules, &other), "P its health rule does not say current");
    other["apiVersion"] = json!("example.org/v1");
    assert_eq!(short(&rules, &other), "R");
}

#[test]
fn rules_without_faults_leave_all_other_kinds_to_the_built_in_ones() {
    let rules = read(&[("widgets.yaml", WIDGETS), ("empty.yaml", ""), ("none.yaml", "# nothing yet\n")]);
    assert_eq!(rules.faults(), []);
    for (group, kind) in [("", "Pod"), ("apps", "Deployment"), ("example.com", "Gadget")] {
        assert_eq!(rules.judge(group, kind), Judge::BuiltIn, "{group}/{kind}");
    }
    assert_eq!(Rules::default().judge("example.com", "Widget"), Judge::BuiltIn);
}

/// Each of them leaves the kind `Unknown`, and says where and what.
#[test]
fn a_rule_that_cannot_be_used_names_key_kind_field_and_fault() {
    let rule = |fields: &str| format!("- apiVersion: example.com/v1\n  kind: Widget\n  {fields}\n");
    let all = [
        rule("current: status.phase =="),
        rule("current: \"'Ready'\""),
        rule("current: now() > 1"),
        rule("current: status.ready\n  failed: size(status.names)"),
        rule("current: status.ready\n  inProgress: status.phase +"),
        rule("current: true"),
        rule("failed: status.failed"),
        rule("current: status.ready\n  curent: status.ready"),
        rule("current: status.ready") + &rule("current: status.phase == 'Done'"),
    ];
    let said = all.map(|text| {
        let rules = read(&[("my.yaml", &text)]);
        assert_eq!(rules.usable(), 0, "{text}");
        let done = widget(&json!({"phase": "Done", "ready": true, "failed": false, "names": []}));
        let health = short(&rules, &done);
        assert!(health.starts_with("U "), "{text}: {health}");
        let faults: Vec<String> = rules.faults().iter().map(ToString::to_string).collect();
        // Nothing else suffers.
        assert_eq!(rules.judge("example.com", "Gadget"), Judge::BuiltIn);
        format!("{}\n  -> {health}", faults.join("\n"))
    });
    insta::assert_snapshot!(said.join("\n"));
}

/// It may be meant for any kind, so none is ready by accident that has no rule of its own.
#[test]
fn an_entry_that_names_no_kind_leaves_every_custom_kind_unknown() {
    let forgotten = "- apiVersion: example.com/v1\n  kind: Gadget\n  current: status.ok\n  apiVersion: example.com/v1\n  kind: Other\n  current: status.ok\n";
    let texts = [
        forgotten,
        "- kind: A\n---\n- kind: B\n",
        "- {",
        "kind: Widget",
        "- kind: Gadget\n  current: status.ready\n",
        "- just text",
        "- 1",
    ];
    let said = texts.map(|text| {
        let rules = read(&[("broken.yaml", text), ("widgets.yaml", WIDGETS)]);
        assert_eq!(short(&rules, &widget(&json!({"phase": "Done"}))), "R", "a kind with a rule: {text}");
        assert_eq!(rules.judge("apps", "Deployment"), Judge::BuiltIn, "{text}");
        let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}});
        short(&rules, &gadget)
    });
    insta::assert_snapshot!(said.join("\n"));
    let binary = Rules::read([("icon.png", None)]);
    assert!(matches!(binary.judge("example.com", "Widget"), Judge::Nothing(_)));
    let many = (0..=MOST).map(|n| format!("- {{apiVersion: e.com/v1, kind: K{n}, current: status.ok}}\n"));
    let rules = read(&[("many.yaml", &many.collect::<String>())]);
    assert_eq!((rules.usable(), rules.faults().len()), (MOST, 1));
    assert!(matches!(rules.judge("example.com", "Widget"), Judge::Nothing(_)));
}

/// What unfolds to thousands of millions of values is refused, not unfolded.
#[test]
fn a_text_that_unfolds_without_end_is_refused() {
    let ones = vec!["1"; 20_000].join(",");
    let text = format!("- &a [{ones}]\n{}", "- *a\n".repeat(20_000));
    let rules = read(&[("bomb.yaml", &text)]);
    assert_eq!(rules.faults().len(), 1);
    assert!(matches!(rules.judge("example.com", "Widget"), Judge::Nothing(_)));
}

/// Classes are Unicode's, and large when compiled: they cost more steps, and are not refused.
#[test]
fn patterns_with_classes_are_used_within_the_steps() {
    let text = r"
- apiVersion: example.com/v1
  kind: Widget
  current: status.phase.matches(r'^\w+-\d$')
";
    let rules = read(&[("my.yaml", text)]);
    assert_eq!(rules.faults(), []);
    assert_eq!(short(&rules, &widget(&json!({"phase": "ready-1"}))), "R");
    let long = "a".repeat(50_000);
    let judgement = rules.judge("example.com", "Widget").judge(&widget(&json!({"phase": long})));
    assert_eq!(judgement.fault.unwrap().reason(), "TooCostly");
}

/// What is kept of a pattern is many times its text.
#[test]
fn patterns_of_all_rules_together_are_bounded() {
    let of = |n: usize| {
        format!(
            "- {{apiVersion: e.com/v1, kind: K{n}, current: \"status.a.matches('x') || status.b.matches('y')\"}}\n"
        )
    };
    let rules = read(&[("many.yaml", &(0..=MOST_PATTERNS / 2).map(of).collect::<String>())]);
    assert_eq!(rules.usable(), MOST_PATTERNS / 2);
    let said: Vec<String> = rules.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "key many.yaml, rule of K50 (e.com/v1), field current: the expression is the one with which all rules say matches more than 100 times: use contains, or =="
        ]
    );
}

/// It is no reason to list a kind that a rule has another place or a broken key another fault.
#[test]
fn rules_that_judge_alike_are_the_same() {
    let moved = read(&[("other.yaml", &WIDGETS.replace("/v1", "/v2"))]);
    let rules = read(&[("widgets.yaml", WIDGETS)]);
    assert_eq!(rules.judge("example.com", "Widget"), moved.judge("example.com", "Widget"));
    let changed = read(&[("widgets.yaml", &WIDGETS.replace("'Done'", "'Over'"))]);
    assert_ne!(rules.judge("example.com", "Widget"), changed.judge("example.com", "Widget"));
    let broken = ["- {", "- {}"].map(|text| read(&[("my.yaml", text)]).judge("example.com", "Gadget"));
    assert_eq!(broken[0], broken[1]);
    assert!(matches!(broken[0], Judge::Nothing(_)));
}

#[test]
fn a_rule_for_a_kind_of_kubernetes_is_refused_and_changes_nothing() {
    let rules = read(&[("my.yaml", "- {apiVersion: apps/v1, kind: Deployment, current: 'status.ok'}")]);
    assert_eq!(rules.judge("apps", "Deployment"), Judge::BuiltIn);
    let faults: Vec<String> = rules.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "key my.yaml, rule of Deployment (apps/v1): kinds of Kubernetes itself have built-in rules: remove it"
        ]
    );
}

#[test]
fn a_rule_without_an_answer_says_which_field_and_why() {
    let rules = read(&[(
        "my.yaml",
        "
- apiVersion: example.com/v1
  kind: Widget
  failed: status.items.all(a, status.items.all(b, status.items.all(c, true)))
  current: status.phase
",
    )]);
    let items: Vec<u32> = (0..1000).collect();
    for (status, field, reason) in [
        (json!({"items": items}), "failed", "TooCostly"),
        (json!({"items": "x"}), "failed", "EvaluationFailed"),
        (json!({}), "failed", "FieldAbsent"),
    ] {
        let judgement = rules.judge("example.com", "Widget").judge(&widget(&status));
        let failure = judgement.fault.unwrap();
        assert_eq!((failure.field, failure.reason()), (field, reason));
        assert!(matches!(judgement.health, Health::Unknown(_)));
    }
    let rules = read(&[("my.yaml", "- {apiVersion: example.com/v1, kind: Widget, current: status.phase}")]);
    let judgement = rules.judge("example.com", "Widget").judge(&widget(&json!({"phase": "Ready"})));
    assert_eq!(judgement.fault.unwrap().reason(), "NotBoolean");
    assert_eq!(
        judgement.health,
        Health::Unknown(
            "its health is unknown: current of its health rule answers text, not true or false".to_owned()
        )
    );
}
