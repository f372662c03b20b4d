//! Makes the admission policies that keep an account of a level below Admin to EMCO's namespaces: RBAC cannot limit a right by label.

use emco_crds::fields::Level;
use emco_crds::names::{annotation, label, object};
use serde_json::{Value, json};

use super::account::{ACCOUNT, labels};

/// Group, version and kind of such policies.
pub const GROUP: &str = "admissionregistration.k8s.io";
/// The first that is stable.
pub const VERSION: &str = "v1";
/// The kind.
pub const KIND: &str = "ValidatingAdmissionPolicy";

/// Label by which the owner of a cluster opens a namespace to permissions of level Privileged.
pub const OPENED: &str = "emco.io/permissions";
/// How the user names of people begin.
const PERSON: &str = "emco:";

/// One policy: what it is about, and what has to hold.
struct Policy {
    name: &'static str,
    group: &'static str,
    resources: &'static [&'static str],
    operations: &'static [&'static str],
    variables: Vec<(&'static str, String)>,
    validations: Vec<(String, String)>,
}

/// The policies and their bindings.
pub fn objects(level: Level) -> Vec<Value> {
    let mut policies = vec![namespaces(), role_bindings(level)];
    if level == Level::Privileged {
        policies.push(cluster_role_bindings());
    }
    policies.iter().flat_map(Policy::objects).collect()
}

/// Namespaces that logical clouds made, and no others.
fn namespaces() -> Policy {
    Policy {
        name: "emco-hub-namespaces",
        group: "",
        resources: &["namespaces", "namespaces/status", "namespaces/finalize"],
        operations: &["CREATE", "UPDATE", "DELETE"],
        variables: before(),
        // One that was released has the proof in place of the owner.
        validations: vec![(
            format!(
                "'{}' in variables.labels && ('{}' in variables.labels || '{}' in variables.annotations)",
                label::PROJECT,
                label::OWNER,
                annotation::MADE_FOR
            ),
            format!(
                "the account {ACCOUNT} of EMCO changes namespaces of logical clouds alone: those with the labels {} and {}",
                label::PROJECT,
                label::OWNER
            ),
        )],
    }
}

/// Bindings in such namespaces, of accounts and people of theirs.
fn role_bindings(level: Level) -> Policy {
    let of_cloud = format!("'{}' in variables.labels", label::PROJECT);
    let privileged = level == Level::Privileged;
    let place = if privileged { format!("{of_cloud} || '{OPENED}' in variables.labels") } else { of_cloud };
    let opened = if privileged { format!(" or {OPENED}") } else { String::new() };
    let own = format!(
        "(s.name == '{ACCOUNT}' && s.?namespace.orValue('') == '{}' && object.roleRef.name in ['{}', '{}'])",
        object::EDGE_NAMESPACE,
        object::EDGE_TENANT_ROLE,
        object::EDGE_CEILING
    );
    // An account of a logical cloud is in its own namespace, and at level Privileged has rights in others.
    let account =
        if privileged { accounts() } else { "s.?namespace.orValue('') == request.namespace".to_owned() };
    Policy {
        name: "emco-hub-bindings",
        group: emco_engine::role::RBAC,
        resources: &["rolebindings"],
        operations: &["CREATE", "UPDATE", "DELETE"],
        variables: vec![("labels", "namespaceObject.metadata.?labels.orValue({})".to_owned())],
        validations: vec![
            (
                place,
                format!(
                    "the account {ACCOUNT} of EMCO changes role bindings in namespaces with the label {}{opened} alone",
                    label::PROJECT
                ),
            ),
            subjects(&format!("({account} || {own})")),
        ],
    }
}

/// Bindings of level Privileged on the whole cluster. Which roles, the verb `bind` says.
fn cluster_role_bindings() -> Policy {
    Policy {
        name: "emco-hub-cluster-bindings",
        group: emco_engine::role::RBAC,
        resources: &["clusterrolebindings"],
        operations: &["CREATE", "UPDATE", "DELETE"],
        variables: before(),
        validations: vec![
            (
                format!(
                    "variables.subject.metadata.name.startsWith('{PERSON}') && '{}' in variables.labels",
                    label::OWNER
                ),
                format!(
                    "the account {ACCOUNT} of EMCO changes cluster role bindings of logical clouds alone: their names begin with \
                     {PERSON}"
                ),
            ),
            subjects(&accounts()),
        ],
    }
}

/// What it was before counts: a label that comes with a change gives no right to make it.
fn before() -> Vec<(&'static str, String)> {
    vec![
        ("subject", "oldObject == null ? object : oldObject".to_owned()),
        ("labels", "variables.subject.metadata.?labels.orValue({})".to_owned()),
        ("annotations", "variables.subject.metadata.?annotations.orValue({})".to_owned()),
    ]
}

/// Who may be bound: people, and service accounts of which this holds. Taking a binding away takes no such care.
fn subjects(account: &str) -> (String, String) {
    let person = format!("(s.kind == 'User' && s.name.startsWith('{PERSON}'))");
    let all = format!("{person} || (s.kind == 'ServiceAccount' && {account})");
    let expression = format!("request.operation == 'DELETE' || object.?subjects.orValue([]).all(s, {all})");
    let message =
        format!("the account {ACCOUNT} of EMCO binds roles to accounts and people of logical clouds alone");
    (expression, message)
}

/// Accounts of logical clouds, and never the operator's own.
fn accounts() -> String {
    format!("(s.name.startsWith('emco-') && s.?namespace.orValue('') != '{}')", object::EDGE_NAMESPACE)
}

impl Policy {
    /// The policy, and its binding.
    fn objects(&self) -> [Value; 2] {
        let Self { name, group, resources, operations, variables, validations } = self;
        let metadata = json!({"name": name, "labels": labels()});
        let who = format!("system:serviceaccount:{}:{ACCOUNT}", object::EDGE_NAMESPACE);
        let pairs = |all: &[(&str, String)]| -> Vec<Value> {
            all.iter().map(|(name, expression)| json!({"name": name, "expression": expression})).collect()
        };
        let validations: Vec<Value> = validations
            .iter()
            .map(|(expression, message)| json!({"expression": expression, "message": message, "reason": "Forbidden"}))
            .collect();
        let version = format!("{GROUP}/{VERSION}");
        let policy = json!({
            "apiVersion": version, "kind": KIND, "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": resources},
                ]},
                "matchConditions": [{"name": "the-account", "expression": format!("request.userInfo.username == '{who}'")}],
                "variables": pairs(variables),
                "validations": validations,
            },
        });
        let binding = json!({
            "apiVersion": version, "kind": format!("{KIND}Binding"), "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        [policy, binding]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expressions(level: Level) -> Vec<String> {
        let all = objects(level);
        let policies = all.iter().filter(|object| object["kind"] == KIND);
        let validations = policies.flat_map(|policy| policy["spec"]["validations"].as_array().unwrap());
        validations.map(|one| one["expression"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_policy_is_bound_and_about_the_account_alone() {
        for (level, number) in [(Level::Standard, 2), (Level::Privileged, 3)] {
            let all = objects(level);
            let (policies, bindings): (Vec<_>, Vec<_>) =
                all.iter().partition(|object| object["kind"] == KIND);
            assert_eq!((policies.len(), bindings.len()), (number, number));
            for (policy, binding) in policies.iter().zip(&bindings) {
                assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
                assert_eq!(
                    policy["spec"]["matchConditions"][0]["expression"],
                    "request.userInfo.username == 'system:serviceaccount:emco-system:emco-hub'"
                );
            }
        }
    }

    #[test]
    fn level_privileged_also_reaches_namespaces_that_their_owner_opened() {
        let standard = expressions(Level::Standard);
        assert_eq!(
            standard[0],
            "'emco.io/project' in variables.labels && ('emco.io/owner' in variables.labels || 'emco.io/made-for' in variables.annotations)"
        );
        assert_eq!(standard[1], "'emco.io/project' in variables.labels");
        let privileged = expressions(Level::Privileged);
        assert_eq!(privileged[0], standard[0]);
        assert_eq!(
            privileged[1],
            "'emco.io/project' in variables.labels || 'emco.io/permissions' in variables.labels"
        );
    }
}
