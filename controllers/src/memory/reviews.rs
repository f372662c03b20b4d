//! Answers an account that asks for its rules in a namespace: those of roles that are there and bound to it. It judges no request by them,
//! and has no roles of its own.

use serde_json::{Value, json};

use super::store::Store;
use crate::api::{Method, Request};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// Whether a request is such a review: nothing is written.
pub(super) fn is_one(request: &Request) -> bool {
    request.method == Method::Post && request.path.as_str() == REVIEWS
}

/// The answer, where a request is such a review.
pub(super) fn answer(store: &Store, request: &Request) -> Option<Value> {
    if !is_one(request) {
        return None;
    }
    let body = request.body.as_ref().and_then(|(_, bytes)| serde_json::from_slice::<Value>(bytes).ok());
    let namespace = body.as_ref().and_then(|body| body.pointer("/spec/namespace")).and_then(Value::as_str);
    let account = request.impersonate.as_deref().unwrap_or_default();
    let rules = rules(store, account, namespace.unwrap_or_default());
    Some(json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "status": {"incomplete": false, "nonResourceRules": [], "resourceRules": rules},
    }))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Rules that an account has in a namespace.
fn rules(store: &Store, account: &str, namespace: &str) -> Vec<Value> {
    let is_it = |subject: &Value| {
        let named =
            format!("system:serviceaccount:{}:{}", text(subject, "/namespace"), text(subject, "/name"));
        text(subject, "/kind") == "ServiceAccount" && named == account
    };
    let bound = |binding: &&Value| {
        let subjects = binding.get("subjects").and_then(Value::as_array);
        subjects.is_some_and(|subjects| subjects.iter().any(is_it))
    };
    let within = store.of_kind("RoleBinding").filter(|one| text(one, "/metadata/namespace") == namespace);
    let bindings = within.chain(store.of_kind("ClusterRoleBinding")).filter(bound);
    let mut all = Vec::new();
    for binding in bindings {
        let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let role = store.of_kind(kind).find(|role| {
            text(role, "/metadata/name") == name
                && (kind == "ClusterRole" || text(role, "/metadata/namespace") == namespace)
        });
        let rules = role.and_then(|role| role.get("rules")).and_then(Value::as_array);
        all.extend(rules.into_iter().flatten().cloned());
    }
    all
}
