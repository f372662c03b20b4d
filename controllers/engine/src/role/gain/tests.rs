use serde_json::{Value, json};

use super::*;

fn gains(rules: &Value) -> BTreeSet<Gain> {
    Rule::list(Some(rules)).iter().flat_map(|rule| Gain::of_rule(rule, "")).collect()
}

fn told(rules: &Value, most: usize) -> Vec<String> {
    Gain::told(&gains(rules), most)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[test]
fn what_reaches_furthest_comes_first() {
    let rules = json!([
        rule("", &["configmaps"], &["get"]),
        rule("", &["nodes/proxy"], &["get"]),
        rule("admissionregistration.k8s.io", &["validatingwebhookconfigurations"], &["patch"]),
        rule("", &["pods/exec"], &["create"]),
        rule("", &["secrets"], &["get"]),
        rule(RBAC, &["rolebindings"], &["create"]),
        rule("", &["serviceaccounts"], &["impersonate"]),
        rule("", &["*"], &["get"]),
    ]);
    assert_eq!(
        told(&rules, 10),
        [
            "get *",
            "impersonate serviceaccounts",
            "create rolebindings.rbac.authorization.k8s.io",
            "get secrets",
            "create pods/exec",
            "patch validatingwebhookconfigurations.admissionregistration.k8s.io",
            "get nodes/proxy",
            "get configmaps",
        ]
    );
}

#[test]
fn a_great_right_of_a_long_rule_has_words_of_its_own() {
    let many: Vec<String> = (0..40).map(|number| format!("a{number:02}")).collect();
    let resources: Vec<&str> = many.iter().map(String::as_str).chain(["secrets"]).collect();
    let verbs: Vec<&str> = many.iter().map(String::as_str).chain(["get"]).collect();
    let told = told(&json!([rule("", &resources, &verbs)]), 10);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with(" secrets") && told[0].len() < 80, "{told:?}");
}

#[test]
fn many_great_rights_are_told_by_what_they_lead_to() {
    let secret = |number: usize| json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [format!("s{number:02}")], "verbs": ["get"]});
    let mut rules: Vec<Value> = (0..30).map(secret).collect();
    rules.push(rule("", &["pods/exec"], &["create"]));
    rules.push(rule("", &["pods"], &["get"]));
    let told = told(&json!(rules), 10);
    assert_eq!(told, ["get secrets s00 and 29 more rights to Secrets", "create pods/exec", "get pods"]);
}

#[test]
fn kinds_are_as_great_as_what_they_are() {
    let of = |group: &str, kind: &str, many: &str| Gain::of_kind(group, kind, many, "").reach;
    assert_eq!(of(RBAC, "RoleBinding", "RoleBindings"), Power::Rights);
    assert_eq!(of("", "Secret", "Secrets"), Power::Secrets);
    assert_eq!(of("admissionregistration.k8s.io", "X", "Xs"), Power::Admission);
    assert_eq!(of("apps", "Deployment", "Deployments"), Power::Usual);
    assert!(!Power::Usual.is_great() && Power::Nodes.is_great());
}
