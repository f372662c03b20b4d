use serde_json::{Value, json};

use super::*;

fn harmless(rule: &Value) -> bool {
    is_harmless(&Rule::list(Some(&json!([rule])))[0])
}

fn rule(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": verbs})
}

#[test]
fn what_confines_a_namespace_is_read_and_never_written() {
    for resource in ["namespaces", "resourcequotas", "limitranges"] {
        assert!(harmless(&rule("", resource, &[], &["get", "list", "watch"])), "{resource}");
        for verb in ["create", "update", "patch", "delete", "deletecollection"] {
            assert!(!harmless(&rule("", resource, &[], &[verb])), "{verb} {resource}");
            assert!(!harmless(&rule("", resource, &["mine"], &["get", verb])), "{verb} {resource} mine");
        }
    }
    for resource in ["namespaces/status", "namespaces/finalize", "resourcequotas/status", "services/status"] {
        assert!(!harmless(&rule("", resource, &[], &["patch"])), "{resource}");
    }
    for (group, resource) in [("", "endpoints"), ("discovery.k8s.io", "endpointslices"), ("", "pods/status")]
    {
        assert!(!harmless(&rule(group, resource, &[], &["patch"])), "{resource} leads traffic of others");
    }
    let (scc, exceptions) = ("securitycontextconstraints", "policyexceptions");
    assert!(!harmless(&rule("security.openshift.io", scc, &["privileged"], &["use"])));
    assert!(!harmless(&rule("kyverno.io", exceptions, &[], &["create"])));
}

#[test]
fn no_rule_has_a_wildcard_in_any_place() {
    for [group, resource, verb] in [
        ["*", "pods", "get"],
        ["", "*", "get"],
        ["", "pods", "*"],
        ["", "*/status", "patch"],
        ["", "*/scale", "get"],
        ["", "pods/*", "get"],
    ] {
        assert!(!harmless(&rule(group, resource, &[], &[verb])), "{verb} {group}/{resource}");
    }
    assert!(!harmless(&json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})));
}

#[test]
fn a_status_of_ones_own_kinds_is_written() {
    assert!(harmless(&rule("example.com", "shops/status", &[], &["get", "patch", "update"])));
    assert!(harmless(&rule("apps", "deployments/scale", &[], &["patch"])));
}

#[test]
fn roles_to_bind_are_those_that_only_read() {
    let bind =
        |resource: &str, names: &[&str]| harmless(&rule(super::super::RBAC, resource, names, &["bind"]));
    assert!(bind("clusterroles", &["view"]));
    let others: [(&str, &[&str]); 6] = [
        ("clusterroles", &[]),
        ("clusterroles", &["edit"]),
        ("clusterroles", &["admin"]),
        ("clusterroles", &["view", "cluster-admin"]),
        ("roles", &[]),
        ("roles", &["neighbours"]),
    ];
    for (resource, names) in others {
        assert!(!bind(resource, names), "{resource} {names:?}");
    }
    assert!(!harmless(&rule(super::super::RBAC, "roles", &[], &["escalate"])));
    assert!(!harmless(&rule("", "serviceaccounts", &["default"], &["impersonate"])));
}

#[test]
fn objects_of_emco_are_read_and_never_written() {
    let all = rule("networking.k8s.io", "networkpolicies", &[""], &["deletecollection"]);
    assert!(!harmless(&all), "a collection has an empty name");
    let rbac = super::super::RBAC;
    for (group, resource) in [
        ("networking.k8s.io", "networkpolicies"),
        ("", "serviceaccounts"),
        (rbac, "roles"),
        (rbac, "rolebindings"),
    ] {
        assert!(harmless(&rule(group, resource, &[], &["get", "list", "watch", "create"])), "{resource}");
        assert!(harmless(&rule(group, resource, &["mine"], &["patch", "delete"])), "{resource}");
        let others: [&[&str]; 3] = [&[], &["emco-isolation"], &["mine", "emco:hub"]];
        for names in others {
            assert!(!harmless(&rule(group, resource, names, &["delete"])), "{resource} {names:?}");
        }
    }
    // A token of an account is whatever the account may.
    assert!(!harmless(&rule("", "serviceaccounts/token", &[], &["create"])));
    assert!(!harmless(&rule("", "serviceaccounts/token", &["emco-default"], &["create"])));
    assert!(harmless(&rule("", "serviceaccounts/token", &["mine"], &["create"])));
    assert!(!harmless(&rule("", "secrets", &["emco-login"], &["patch"])));
}
