//! Puts an object into the namespace of its logical cloud, and refuses what its level does not allow.

use emco_crds::conditions::types::RENDERED;
use emco_crds::fields::Level;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use serde_json::Value;

use super::Object;
use crate::cloud::CloudFacts;
use crate::cloud::account_parts;
use crate::identity::{Identity, kind_of};
use crate::refusal::Refusal;

/// What fits where level Standard does not: no permission of that has either of these fields.
const INSTEAD: &str = "use a logical cloud of level Privileged, and give it";
/// What a permission for objects of the whole cluster says.
const EVERYWHERE: &str = "scope: Cluster";
/// Group of all service accounts of the namespace that follows.
const ACCOUNTS_OF: &str = "system:serviceaccounts:";

pub(super) fn place_in_namespace(
    app: &str,
    object: &Object,
    json: &mut Value,
    namespaced: bool,
    cloud: &CloudFacts,
) -> Result<(), Box<Refusal>> {
    let refuse = |what: &str, permission: &str| {
        let Object { json, source, .. } = object;
        let identity = Identity::of(json);
        let CloudFacts { name, level, .. } = cloud;
        let instead = if level == Level::Privileged.as_str() { "give it" } else { INSTEAD };
        let text = format!(
            "app {app}: {source} makes {identity}, {what}, and logical cloud {name} has level {level}: change the values, or \
             {instead} a permission with {permission} (spec.permissions); `kubectl emco role my-deployment --permissions` prints all that are needed"
        );
        Err(Refusal::new(RENDERED, Reason::NotAllowedByLevel, text))
    };
    let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut) else { return Ok(()) };
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !namespaced {
        // An API server ignores it, but it would be another identity.
        metadata.remove("namespace");
        return if cloud.reaches(None) {
            Ok(())
        } else {
            refuse("which belongs to the whole cluster", EVERYWHERE)
        };
    }
    if given.is_empty() {
        metadata.insert("namespace".to_owned(), Value::from(cloud.namespace.as_str()));
    } else if !cloud.reaches(Some(given)) {
        return refuse("outside its namespace", &format!("namespaces: [{given}]"));
    }
    match outsider(json, cloud) {
        Some(who) => refuse(&format!("which gives rights to {who}, outside its namespace"), EVERYWHERE),
        None => Ok(()),
    }
}

/// Whom a binding gives rights in the namespace, though it is no service account of the logical cloud's namespaces. A cluster would let it:
/// who has a right may give it away.
pub fn outsider(json: &Value, cloud: &CloudFacts) -> Option<String> {
    if cloud.reaches(None) || kind_of(json) != ("rbac.authorization.k8s.io", "RoleBinding") {
        return None;
    }
    json.get("subjects").and_then(Value::as_array).into_iter().flatten().find_map(|subject| {
        let text = |key: &str| subject.get(key).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let (who, within) = match kind {
            // Without a namespace no API server takes it.
            "ServiceAccount" => {
                let there = text("namespace");
                (format!("service account {there}/{name}"), (!there.is_empty()).then_some(there)?)
            }
            "User" => (format!("user {name}"), account_parts(name).map_or("", |(there, _)| there)),
            "Group" => (format!("group {name}"), name.strip_prefix(ACCOUNTS_OF).unwrap_or_default()),
            // Neither does it take another kind.
            _ => return None,
        };
        (!cloud.reaches(Some(within))).then_some(who)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::role::Reach;

    fn cloud(reach: Reach) -> CloudFacts {
        CloudFacts {
            name: "edge".to_owned(),
            level: "Privileged".to_owned(),
            namespace: "shop".to_owned(),
            reach,
            derived: None,
            isolation: emco_crds::logical_cloud::Isolation::None,
            clusters: BTreeSet::new(),
        }
    }

    fn found(kind: &str, name: &str, namespace: Option<&str>, cloud: &CloudFacts) -> Option<String> {
        let mut subject = json!({"kind": kind, "name": name});
        if let Some(namespace) = namespace {
            subject["namespace"] = json!(namespace);
        }
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "one"},
            "subjects": [{"kind": "ServiceAccount", "name": "own", "namespace": "shop"}, subject],
        });
        outsider(&binding, cloud)
    }

    #[test]
    fn only_accounts_of_reached_namespaces_are_given_rights() {
        let own = cloud(Reach::default());
        let listed = cloud(Reach { namespaces: BTreeSet::from(["logs".to_owned()]), cluster: false });
        let all = cloud(Reach { namespaces: BTreeSet::new(), cluster: true });
        for (kind, name, namespace, by_own, by_listed) in [
            ("ServiceAccount", "web", Some("shop"), true, true),
            ("ServiceAccount", "web", Some("logs"), false, true),
            ("ServiceAccount", "web", Some("kube-system"), false, false),
            ("User", "system:serviceaccount:shop:web", None, true, true),
            ("User", "system:serviceaccount:logs:web", None, false, true),
            ("User", "ann", None, false, false),
            ("User", "emco:other:edge:ann", None, false, false),
            ("Group", "system:serviceaccounts:shop", None, true, true),
            ("Group", "system:serviceaccounts", None, false, false),
            ("Group", "system:authenticated", None, false, false),
        ] {
            for (cloud, may) in [(&own, by_own), (&listed, by_listed), (&all, true)] {
                let found = found(kind, name, namespace, cloud);
                assert_eq!(
                    found.is_none(),
                    may,
                    "{kind} {name} {namespace:?} by {:?}: {found:?}",
                    cloud.reach
                );
            }
        }
        assert_eq!(
            found("ServiceAccount", "web", Some("logs"), &own).as_deref(),
            Some("service account logs/web")
        );
    }

    #[test]
    fn other_kinds_with_subjects_are_no_bindings() {
        let own = cloud(Reach::default());
        let json = json!({"apiVersion": "example.com/v1", "kind": "RoleBinding", "subjects": [{"kind": "User", "name": "ann"}]});
        assert_eq!(outsider(&json, &own), None);
    }
}
