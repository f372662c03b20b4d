//! Rights that the API server asks for beyond those to the object: nobody may give away more than they hold.

use serde_json::Value;

use super::{RBAC, Rule};
use crate::identity::kind_of;

/// A rule that has to be held where the object is, and the one name that it is about.
pub(super) struct Held {
    pub rule: Rule,
    pub name: Option<String>,
}

/// What has to be held to make or change an object: the rules of a role, and the right to bind the role of a binding.
pub(super) fn held(json: &Value) -> Vec<Held> {
    match kind_of(json) {
        (RBAC, "Role") => rules(json),
        (RBAC, "ClusterRole") if json.get("aggregationRule").is_none_or(Value::is_null) => rules(json),
        // Its rules are whatever others add: the API server asks for everything, or for this.
        (RBAC, "ClusterRole") => vec![named("clusterroles", "escalate", name(json, "/metadata/name"))],
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => {
            let resource = match name(json, "/roleRef/kind") {
                "Role" => "roles",
                _ => "clusterroles",
            };
            vec![named(resource, "bind", name(json, "/roleRef/name"))]
        }
        _ => Vec::new(),
    }
}

fn name<'a>(json: &'a Value, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn named(resource: &str, verb: &str, name: &str) -> Held {
    Held { rule: Rule::of(RBAC, resource, &[verb]), name: Some(name.to_owned()) }
}

fn rules(json: &Value) -> Vec<Held> {
    Rule::list(json.get("rules")).into_iter().map(|rule| Held { rule, name: None }).collect()
}
