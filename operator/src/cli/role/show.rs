//! Writes roles as objects that kubectl applies, each rule below the objects that need it.

use std::collections::BTreeSet;

use emco_engine::role::{Needed, RBAC, Roles};
use emco_helm::yaml;
use serde_json::{Map, Value, json};

/// Objects that a comment names.
const NAMED: usize = 3;

/// Whom the roles are bound to, as bindings have it.
pub type Subject = Value;

/// A role or a binding, with what its rules are for.
pub struct Written<'a> {
    object: Value,
    rules: &'a [Needed],
}

impl<'a> Written<'a> {
    /// An object, and the rules that it has besides what it says, each with what it is for.
    pub const fn new(object: Value, rules: &'a [Needed]) -> Self {
        Self { object, rules }
    }

    /// The object with its rules.
    pub fn json(&self) -> Value {
        let Self { object, rules } = self;
        let mut object = object.clone();
        if !rules.is_empty() {
            object["rules"] = rules.iter().map(|needed| needed.rule.to_json()).collect();
        }
        object
    }
}

/// The objects, in the order in which they are applied.
pub fn objects<'a>(roles: &'a Roles, name: &str, subject: Option<&Subject>) -> Vec<Written<'a>> {
    let cluster = Some((None, roles.cluster.as_slice())).filter(|(_, rules)| !rules.is_empty());
    let within =
        roles.namespaces.iter().map(|(namespace, rules)| (Some(namespace.as_str()), rules.as_slice()));
    let mut all = Vec::new();
    for (namespace, rules) in cluster.into_iter().chain(within) {
        let prefix = if namespace.is_some() { "" } else { "Cluster" };
        let mut metadata = Map::from_iter([("name".to_owned(), Value::from(name))]);
        metadata.extend(namespace.map(|namespace| ("namespace".to_owned(), Value::from(namespace))));
        let version = format!("{RBAC}/v1");
        let kind = format!("{prefix}Role");
        all.push(Written {
            object: json!({"apiVersion": version, "kind": kind, "metadata": metadata}),
            rules,
        });
        if let Some(subject) = subject {
            let binding = json!({
                "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}, "subjects": [subject],
            });
            all.push(Written { object: binding, rules: &[] });
        }
    }
    all
}

/// As YAML, below a heading of one line.
pub fn text(heading: &str, objects: &[Written<'_>]) -> String {
    let mut text = format!("# {}\n", in_a_line(heading));
    for (at, Written { object, rules }) in objects.iter().enumerate() {
        if at > 0 {
            text.push_str("---\n");
        }
        text.push_str(&yaml::from_json(object));
        if !rules.is_empty() {
            text.push_str("rules:\n");
        }
        for Needed { rule, because } in *rules {
            text.push_str(&format!("# {}\n", in_a_line(&because_of(because))));
            for (at, line) in yaml::from_json(&rule.to_json()).lines().enumerate() {
                text.push_str(if at == 0 { "- " } else { "  " });
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// As a `List` in JSON.
pub fn list(objects: &[Written<'_>]) -> Value {
    let items: Vec<Value> = objects.iter().map(Written::json).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn because_of(because: &BTreeSet<String>) -> String {
    let mut named: Vec<&str> = because.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", because.len().saturating_sub(NAMED));
    if because.len() > NAMED {
        named.push(&more);
    }
    named.join(", ")
}

/// A comment ends where its line ends, and names come from charts.
fn in_a_line(text: &str) -> String {
    text.chars()
        .map(
            |char| {
                if char.is_control() || matches!(char, '\u{85}' | '\u{2028}' | '\u{2029}') {
                    ' '
                } else {
                    char
                }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use emco_engine::role::Rule;

    use super::*;

    fn needed(resource: &str, because: &[&str]) -> Needed {
        let rule = Rule {
            groups: vec![String::new()],
            resources: vec![resource.to_owned()],
            verbs: vec!["get".to_owned(), "patch".to_owned()],
            ..Rule::default()
        };
        Needed { rule, because: because.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn roles(because: &[&str]) -> Roles {
        Roles {
            cluster: vec![needed("nodes", because)],
            namespaces: [("shop".to_owned(), vec![needed("configmaps", &["ConfigMap/shop/a (app web)"])])]
                .into(),
            ..Roles::default()
        }
    }

    #[test]
    fn each_rule_stands_below_what_needs_it() {
        let roles = roles(&["a", "b", "c", "d", "e"]);
        let account = json!({"kind": "ServiceAccount", "namespace": "emco-system", "name": "emco"});
        insta::assert_snapshot!(text("What it needs", &objects(&roles, "emco:team:till", Some(&account))));
    }

    #[test]
    fn a_name_of_a_chart_adds_no_rule() {
        let roles = roles(&["a\n- apiGroups: ['*']\u{2028}b\rc"]);
        let text = text("one\ntwo", &objects(&roles, "n", None));
        assert!(text.contains("# a - apiGroups: ['*'] b c\n") && text.starts_with("# one two\n"), "{text}");
        let parsed: Vec<Value> =
            text.split("---\n").map(|document| yaml::to_json(document.as_bytes()).unwrap()).collect();
        assert_eq!(
            parsed.iter().map(|one| one["rules"].as_array().unwrap().len()).collect::<Vec<_>>(),
            [1, 1]
        );
        assert_eq!(Value::from(parsed), list(&objects(&roles, "n", None))["items"]);
    }
}
