//! Makes the account that deployments of a logical cloud are applied as, with its roles and bindings.

use emco_crds::logical_cloud::Permission;
use emco_crds::names::object;
use serde_json::{Value, json};

use super::Request;
use super::facts::account_name;
use crate::people::Wanted;
use crate::role::{Rights, Rule, is_of_the_cluster};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The account, and the roles and bindings of its permissions, in Helm's order of kinds. `rights` are those of derived ones. A person has the
/// same rights: who is named no more has none, however long the credentials hold.
pub(super) fn objects(request: &Request<'_>, rights: &Rights) -> Vec<Value> {
    let person = Wanted::of(request.spec, request.project, request.name, request.namespace);
    let names = Names {
        namespace: request.namespace,
        cloud: request.name,
        subjects: subjects(request, person.as_ref()),
    };
    let mut made = Made::default();
    if request.spec.permissions.is_empty() {
        made.bindings.push(names.binding(
            &account_name(request.name),
            request.namespace,
            "ClusterRole",
            "admin",
        ));
    }
    for permission in &request.spec.permissions {
        if permission.derived {
            made.derive(&names, permission, rights);
        } else {
            made.add(&names, permission);
        }
    }
    // No pod that a chart makes gets its token by itself.
    let account = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": request.namespace},
            "automountServiceAccountToken": false,
        })
    };
    let mut accounts = vec![account(&account_name(request.name))];
    accounts.extend(person.filter(Wanted::takes_tokens).map(|wanted| account(&wanted.person.account)));
    let Made { cluster_roles, cluster_bindings, roles, bindings } = made;
    [accounts, cluster_roles, cluster_bindings, roles, bindings].concat()
}

/// What the operator needs in the namespace itself, where its credentials are those of `kubectl emco cluster add` at a level below Admin:
/// they have no right there but by these bindings. On other clusters there is no role of these names, and they give nothing.
pub(super) fn of_hub(request: &Request<'_>) -> Vec<Value> {
    let (name, namespace) = (object::EDGE_ACCOUNT, object::EDGE_NAMESPACE);
    let hub = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let binding = |name: &str, role: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": request.namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [hub],
        })
    };
    let mut made = vec![binding(object::EDGE_TENANT_BINDING, object::EDGE_TENANT_ROLE)];
    if request.spec.permissions.iter().any(|one| one.derived || one.rules.is_some()) {
        made.push(binding(object::EDGE_CEILING_BINDING, object::EDGE_CEILING));
    }
    made
}

/// Who is bound to the permissions: the account of the deployments, and the person as the credentials name them.
fn subjects(request: &Request<'_>, person: Option<&Wanted>) -> Vec<Value> {
    let account =
        |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": request.namespace});
    let mut subjects = vec![account(&account_name(request.name))];
    if let Some(wanted) = person {
        if wanted.takes_certificates() {
            subjects.push(json!({"apiGroup": RBAC, "kind": "User", "name": wanted.person.user}));
        }
        if wanted.takes_tokens() {
            subjects.push(account(&wanted.person.account));
        }
    }
    subjects
}

#[derive(Default)]
struct Made {
    cluster_roles: Vec<Value>,
    cluster_bindings: Vec<Value>,
    roles: Vec<Value>,
    bindings: Vec<Value>,
}

impl Made {
    fn add(&mut self, names: &Names<'_>, permission: &Permission) {
        let Permission { name, cluster_role, rules, derived: _, scope: _, namespaces } = permission;
        if is_of_the_cluster(permission) {
            let own = names.beyond(name);
            if let Some(rules) = rules {
                self.cluster_roles.push(role("ClusterRole", json!({"name": own}), json!(rules)));
            }
            let given = cluster_role.as_deref().unwrap_or(&own);
            self.cluster_bindings.push(names.bind(
                "ClusterRoleBinding",
                json!({"name": own}),
                "ClusterRole",
                given,
            ));
            return;
        }
        for there in names.places(namespaces.as_deref()) {
            let own = names.called(name, there);
            if let Some(rules) = rules {
                self.roles.push(role("Role", json!({"name": own, "namespace": there}), json!(rules)));
            }
            self.bindings.push(match cluster_role {
                Some(given) => names.binding(&own, there, "ClusterRole", given),
                None => names.binding(&own, there, "Role", &own),
            });
        }
    }
}

impl Made {
    /// A role in each namespace with what is needed there, and with scope Cluster one for all that is needed elsewhere. They are there
    /// while nothing is needed, too: a binding that comes and goes would be heeded late.
    fn derive(&mut self, names: &Names<'_>, permission: &Permission, rights: &Rights) {
        let Permission { name, cluster_role: _, rules: _, derived: _, scope: _, namespaces } = permission;
        for there in names.places(namespaces.as_deref()) {
            let own = names.called(name, there);
            let metadata = json!({"name": own, "namespace": there});
            self.roles.push(role("Role", metadata, json_of(rights.within(there))));
            self.bindings.push(names.binding(&own, there, "Role", &own));
        }
        if is_of_the_cluster(permission) {
            let own = names.beyond(name);
            let rules = json_of(rights.beyond(names.namespace));
            self.cluster_roles.push(role("ClusterRole", json!({"name": own}), rules));
            self.cluster_bindings.push(names.bind(
                "ClusterRoleBinding",
                json!({"name": own}),
                "ClusterRole",
                &own,
            ));
        }
    }
}

fn json_of<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Value {
    rules.into_iter().map(Rule::to_json).collect()
}

/// How roles and bindings of a logical cloud are called, and whom they are for.
struct Names<'a> {
    namespace: &'a str,
    cloud: &'a str,
    subjects: Vec<Value>,
}

impl Names<'_> {
    /// Its namespace and further ones, which may name its own.
    fn places<'a>(&'a self, further: Option<&'a [String]>) -> impl Iterator<Item = &'a str> {
        let further = further.unwrap_or_default().iter().map(String::as_str);
        std::iter::once(self.namespace).chain(further.filter(|there| *there != self.namespace))
    }

    fn called(&self, permission: &str, there: &str) -> String {
        if there == self.namespace { self.within(permission) } else { self.beyond(permission) }
    }

    /// In the namespace of the logical cloud, which is its own.
    fn within(&self, permission: &str) -> String {
        format!("{}-{permission}", account_name(self.cloud))
    }

    /// Anywhere else, where other logical clouds have theirs. No part can hold a colon.
    fn beyond(&self, permission: &str) -> String {
        format!("emco:{}:{}:{permission}", self.namespace, self.cloud)
    }

    fn binding(&self, name: &str, namespace: &str, kind: &str, role: &str) -> Value {
        self.bind("RoleBinding", json!({"name": name, "namespace": namespace}), kind, role)
    }

    #[allow(clippy::needless_pass_by_value)] // becomes part of the object
    fn bind(&self, binding: &str, metadata: Value, kind: &str, role: &str) -> Value {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": self.subjects,
        })
    }
}

#[allow(clippy::needless_pass_by_value)] // becomes part of the object
fn role(kind: &str, metadata: Value, rules: Value) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules})
}
