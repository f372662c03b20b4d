//! Makes the admission policy that keeps people of logical clouds to their own credentials: what they may do ends with them.

use emco_crds::names::{label, object};
use serde_json::{Value, json};

use super::account::{ACCOUNT, labels};
use super::policy::{GROUP, KIND, VERSION};

/// Its name.
pub const NAME: &str = "emco-hub-people";

/// Whoever asks, and whatever for, has a service account of EMCO's in mind where the name begins so.
const OURS: &str = "emco-";
/// How the user name of a person ends who has tokens of an account.
const PERSON_ACCOUNT: &str = "^system:serviceaccount:[^:]+:emco-.+-user-[0-9a-f]{8}$";
const TOKEN: &str = "kubernetes.io/service-account-token";
const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// What is refused in namespaces of logical clouds, with the sentence about it.
fn validations() -> [(String, String); 4] {
    let accounts = "accounts of logical clouds are EMCO's: deployments are applied as them";
    [
        (
            format!("request.resource.resource != 'serviceaccounts' || !request.name.startsWith('{OURS}')"),
            format!("{accounts}, and nobody else gets a token of theirs"),
        ),
        (
            format!(
                "request.resource.resource != 'secrets' || object.?type.orValue('') != '{TOKEN}' || \
                 !object.metadata.?annotations[?'{TOKEN_OF}'].orValue('').startsWith('{OURS}')"
            ),
            format!("{accounts}, and no Secret has a token of theirs"),
        ),
        (
            format!(
                "request.resource.resource != 'pods' || !object.spec.?serviceAccountName.orValue('').startsWith('{OURS}')"
            ),
            format!("{accounts}, and no pod runs as them: give it an account of its own"),
        ),
        (
            format!(
                "request.resource.resource != 'rolebindings' || !(request.userInfo.username.startsWith('emco:') || \
                 request.userInfo.username.matches('{PERSON_ACCOUNT}'))"
            ),
            "people of logical clouds give rights to nobody: the logical cloud's permissions do, and charts"
                .to_owned(),
        ),
    ]
}

/// The policy and its binding. It is about everybody but the operator, and nodes, which renew the tokens of pods that run already.
pub fn objects() -> [Value; 2] {
    let metadata = json!({"name": NAME, "labels": labels()});
    let version = format!("{GROUP}/{VERSION}");
    let hub = format!("system:serviceaccount:{}:{ACCOUNT}", object::EDGE_NAMESPACE);
    let rule = |group: &str, resource: &str, operations: &[&str]| json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": operations});
    let validations: Vec<Value> = validations()
        .iter()
        .map(|(expression, message)| json!({"expression": expression, "message": message, "reason": "Forbidden"}))
        .collect();
    let policy = json!({
        "apiVersion": version, "kind": KIND, "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{"key": label::PROJECT, "operator": "Exists"}]},
                "resourceRules": [
                    rule("", "serviceaccounts/token", &["CREATE"]),
                    rule("", "secrets", &["CREATE", "UPDATE"]),
                    rule("", "pods", &["CREATE"]),
                    rule(emco_engine::role::RBAC, "rolebindings", &["CREATE", "UPDATE"]),
                ],
            },
            "matchConditions": [{
                "name": "neither-emco-nor-a-node",
                "expression": format!("request.userInfo.username != '{hub}' && !('system:nodes' in request.userInfo.groups)"),
            }],
            "validations": validations,
        },
    });
    let binding = json!({
        "apiVersion": version, "kind": format!("{KIND}Binding"), "metadata": metadata,
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    [policy, binding]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_holds_in_namespaces_of_logical_clouds_alone() {
        let [policy, binding] = objects();
        let selector = &policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0];
        assert_eq!((&selector["key"], &selector["operator"]), (&json!("emco.io/project"), &json!("Exists")));
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(condition.contains("'system:serviceaccount:emco-system:emco-hub'"), "{condition}");
    }

    #[test]
    fn each_kind_that_is_looked_at_has_a_sentence() {
        let [policy, _] = objects();
        let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap();
        let validations = policy["spec"]["validations"].as_array().unwrap();
        for (rule, validation) in rules.iter().zip(validations) {
            let resource = rule["resources"][0].as_str().unwrap().split('/').next().unwrap();
            let expression = validation["expression"].as_str().unwrap();
            assert!(
                expression.starts_with(&format!("request.resource.resource != '{resource}'")),
                "{expression}"
            );
        }
        assert_eq!(rules.len(), validations.len());
    }
}
