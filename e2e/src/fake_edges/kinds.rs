//! Says which kinds the servers know, as discovery does, and whose collection a path is.

use serde_json::{Value, json};

/// Of a kind that they know.
pub(super) struct Known {
    /// Empty for the core group.
    group: &'static str,
    pub kind: &'static str,
    plural: &'static str,
    namespaced: bool,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const APPS: &str = "apps";
/// Named ones.
const GROUPS: [&str; 2] = [APPS, RBAC];
const KINDS: [Known; 8] = [
    Known { group: "", kind: "ConfigMap", plural: "configmaps", namespaced: true },
    Known { group: "", kind: "Secret", plural: "secrets", namespaced: true },
    Known { group: "", kind: "ServiceAccount", plural: "serviceaccounts", namespaced: true },
    Known { group: "", kind: "ResourceQuota", plural: "resourcequotas", namespaced: true },
    Known { group: "", kind: "Namespace", plural: "namespaces", namespaced: false },
    Known { group: "", kind: "Node", plural: "nodes", namespaced: false },
    Known { group: APPS, kind: "Deployment", plural: "deployments", namespaced: true },
    Known { group: RBAC, kind: "RoleBinding", plural: "rolebindings", namespaced: true },
];
/// Nothing is defined there besides: who asks is told so.
const DEFINITIONS: [&str; 2] = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiregistration.k8s.io/v1/apiservices",
];

impl Known {
    /// Its `apiVersion`.
    pub fn version(&self) -> String {
        version(self.group)
    }
}

fn version(group: &str) -> String {
    if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") }
}

/// The kind whose collection a path is.
pub(super) fn collection(path: &str) -> Option<&'static Known> {
    KINDS.iter().find(|kind| {
        let of_group = if kind.group.is_empty() {
            path.strip_prefix("/api/v1/")
        } else {
            path.strip_prefix("/apis/")
                .and_then(|rest| rest.strip_prefix(kind.group))
                .and_then(|rest| rest.strip_prefix("/v1/"))
        };
        of_group.is_some_and(|rest| {
            let parts: Vec<&str> = rest.split('/').collect();
            match parts.as_slice() {
                [plural] => *plural == kind.plural,
                ["namespaces", _, plural] => kind.namespaced && *plural == kind.plural,
                _ => false,
            }
        })
    })
}

/// The path of an object of a kind that they know.
pub(super) fn place(object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_it = |known: &&Known| known.kind == text("/kind") && known.version() == text("/apiVersion");
    let known = KINDS.iter().find(is_it)?;
    let base =
        if known.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}/v1", known.group) };
    let space =
        if known.namespaced { format!("/namespaces/{}", text("/metadata/namespace")) } else { String::new() };
    Some(format!("{base}{space}/{}/{}", known.plural, text("/metadata/name")))
}

/// What is answered of the server itself.
pub(super) fn discovery(path: &str) -> Option<Value> {
    Some(match path {
        "/version" => json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}),
        "/readyz" | "/livez" => json!("ok"),
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => {
            let groups = GROUPS.map(|name| {
                let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
                json!({"name": name, "versions": [version], "preferredVersion": version})
            });
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        "/api/v1" => resources(""),
        _ if named_group(path).is_some() => resources(named_group(path).unwrap_or_default()),
        _ if DEFINITIONS.contains(&path) => {
            json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []})
        }
        _ => return None,
    })
}

/// The group whose resources a path asks for.
fn named_group(path: &str) -> Option<&'static str> {
    let asked = path.strip_prefix("/apis/").and_then(|rest| rest.strip_suffix("/v1"))?;
    GROUPS.into_iter().find(|group| *group == asked)
}

fn resources(group: &str) -> Value {
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    let of_group = KINDS.iter().filter(|kind| kind.group == group);
    let resources: Vec<Value> = of_group
        .map(|kind| {
            json!({"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced, "verbs": verbs})
        })
        .collect();
    json!({"kind": "APIResourceList", "groupVersion": version(group), "resources": resources})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_collection_where_it_ends_with_a_kind() {
        let of = |path: &str| collection(path).map(|kind| kind.kind);
        assert_eq!(of("/api/v1/nodes"), Some("Node"));
        assert_eq!(of("/api/v1/namespaces/nodes"), None, "a namespace of that name");
        assert_eq!(of("/api/v1/namespaces/shop/secrets"), Some("Secret"));
        assert_eq!(of("/api/v1/namespaces/shop/secrets/secrets"), None);
        assert_eq!(of("/apis/rbac.authorization.k8s.io/v1/rolebindings"), Some("RoleBinding"));
        assert_eq!(of("/api/v1/rolebindings"), None);
        assert_eq!(of("/apis/apps/v1/namespaces/shop/deployments"), Some("Deployment"));
        assert_eq!(of("/apis/apps/v1/rolebindings"), None);
    }

    #[test]
    fn an_object_is_in_the_collection_of_its_kind() {
        let of = |version: &str, kind: &str| {
            let metadata = json!({"name": "one", "namespace": "shop"});
            place(&json!({"apiVersion": version, "kind": kind, "metadata": metadata}))
        };
        assert_eq!(of("v1", "ConfigMap").as_deref(), Some("/api/v1/namespaces/shop/configmaps/one"));
        assert_eq!(of("v1", "Namespace").as_deref(), Some("/api/v1/namespaces/one"));
        let binding = of("rbac.authorization.k8s.io/v1", "RoleBinding");
        assert_eq!(
            binding.as_deref(),
            Some("/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/one")
        );
        let workload = of("apps/v1", "Deployment");
        assert_eq!(workload.as_deref(), Some("/apis/apps/v1/namespaces/shop/deployments/one"));
        assert_eq!(of("batch/v1", "Job"), None);
    }

    #[test]
    fn discovery_names_each_kind_in_its_group() {
        let plurals = |path: &str| {
            let found = discovery(path).unwrap();
            found["resources"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(plurals("/apis/rbac.authorization.k8s.io/v1"), ["rolebindings"]);
        assert_eq!(plurals("/apis/apps/v1"), ["deployments"]);
        assert_eq!(plurals("/api/v1").len(), KINDS.len() - 2);
        assert_eq!(discovery("/apis").unwrap()["groups"].as_array().unwrap().len(), GROUPS.len());
        assert_eq!(discovery("/api/v1/nodes"), None);
    }
}
