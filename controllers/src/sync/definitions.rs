//! Reads what a cluster says of its own kinds: its definitions and its aggregated APIs. Used to prove that something is not
//! there (`docs/decisions/proof-of-absence.md`). Nothing is asked here.

use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::identity::split_api_version;
use serde_json::Value;

/// `v1.example.com` and `widgets.example.com` are of `example.com`; `v1.` is of the core group.
pub fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// Whether another server than the cluster's own answers for the kinds of an `APIService`.
pub fn is_aggregated(service: &Value) -> bool {
    service.pointer("/spec/service").is_some_and(|service| !service.is_null())
}

/// Whether that server answers.
pub fn is_available(service: &Value) -> bool {
    has_condition(service, "Available")
}

/// A definition whose names were never accepted never had an object.
pub fn was_established(definition: &Value) -> bool {
    has_condition(definition, "Established")
}

/// A kind that is not served in the version of an object, and what the cluster has of it instead.
pub fn not_served(apis: &ApiList, api_version: &str, kind: &str) -> String {
    let (group, _) = split_api_version(api_version);
    let text = format!("the cluster serves no kind {kind} of {api_version}");
    let others: Vec<&ApiResource> =
        apis.resources.iter().filter(|other| other.group == group && other.kind == kind).collect();
    let Some(first) = others.first() else { return text };
    let definition =
        if group.is_empty() { first.plural.clone() } else { format!("{}.{group}", first.plural) };
    let versions: Vec<&str> = others.iter().map(|other| other.version.as_str()).collect();
    format!(
        "{text}: its definition {definition} stays, with {} alone: change the apiVersion of the object, or have the version served",
        versions.join(", ")
    )
}

/// A definition whose kind is not served.
pub fn unserved(name: &str) -> String {
    format!("CustomResourceDefinition {name} is on the cluster, which does not serve its kind now")
}

/// An `APIService` whose server does not answer.
pub fn unavailable(name: &str) -> String {
    format!(
        "APIService {name} is not available, so its kinds cannot be seen: repair its server, or delete it"
    )
}

fn has_condition(object: &Value, wanted: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let is = |condition: &Value| condition["type"] == wanted && condition["status"] == "True";
    conditions.is_some_and(|all| all.iter().any(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_gone_is_named_beside_the_definition_that_stays() {
        let resource = |version: &str| ApiResource {
            group: "example.com".to_owned(),
            version: version.to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            namespaced: true,
            listable: true,
            watchable: true,
        };
        let apis = ApiList { resources: vec![resource("v2"), resource("v1")] };
        assert_eq!(
            not_served(&apis, "example.com/v1beta1", "Widget"),
            "the cluster serves no kind Widget of example.com/v1beta1: its definition widgets.example.com stays, with v2, v1 \
             alone: change the apiVersion of the object, or have the version served"
        );
        assert_eq!(
            not_served(&apis, "example.org/v1", "Widget"),
            "the cluster serves no kind Widget of example.org/v1"
        );
    }

    #[test]
    fn names_of_definitions_and_services_end_with_the_group() {
        for (name, group) in
            [("v1.", ""), ("v1.apps", "apps"), ("v1.example.com", "example.com"), ("w.a.b", "a.b")]
        {
            assert_eq!(group_of(name), group);
        }
    }
}
