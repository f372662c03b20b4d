//! Makes the account that deployments of a logical cloud are applied as, and says where it has rights.

use std::collections::BTreeSet;

use emco_crds::LogicalCloudSpec;
use emco_crds::fields::Level;
use emco_crds::logical_cloud::{Permission, PermissionScope};
use serde_json::{Value, json};

use super::Request;

const RBAC: &str = "rbac.authorization.k8s.io";
/// How the user names of `ServiceAccounts` begin.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Name of the `ServiceAccount` that deployments of a logical cloud are applied as.
fn account_name(cloud: &str) -> String {
    format!("emco-{cloud}")
}

/// The user that clusters see while something of a logical cloud is written to them.
pub fn account(namespace: &str, cloud: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{}", account_name(cloud))
}

/// Namespace and name of the `ServiceAccount` of such a user.
pub fn account_parts(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
}

/// Where deployments of a logical cloud may have objects, beside its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// In these namespaces.
    pub namespaces: BTreeSet<String>,
    /// In all of them, and objects of the whole cluster.
    pub cluster: bool,
}

impl Reach {
    /// What level and permissions give. What the account may really do there, the cluster decides.
    pub fn of(spec: &LogicalCloudSpec) -> Self {
        match spec.level {
            Level::Admin => Self { namespaces: BTreeSet::new(), cluster: true },
            Level::Standard => Self::default(),
            Level::Privileged => Self {
                namespaces: spec
                    .permissions
                    .iter()
                    .flat_map(|one| one.namespaces.iter().flatten())
                    .cloned()
                    .collect(),
                cluster: spec.permissions.iter().any(is_of_the_cluster),
            },
        }
    }
}

fn is_of_the_cluster(permission: &Permission) -> bool {
    permission.scope == Some(PermissionScope::Cluster)
}

/// The account, and the roles and bindings of its permissions, in Helm's order of kinds.
pub(super) fn objects(request: &Request<'_>) -> Vec<Value> {
    let names = Names { namespace: request.namespace, cloud: request.name };
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
        made.add(&names, permission);
    }
    // No pod that a chart makes gets its token by itself.
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": account_name(request.name), "namespace": request.namespace},
        "automountServiceAccountToken": false,
    });
    let Made { cluster_roles, cluster_bindings, roles, bindings } = made;
    [vec![account], cluster_roles, cluster_bindings, roles, bindings].concat()
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
        let Permission { name, cluster_role, rules, scope: _, namespaces } = permission;
        if is_of_the_cluster(permission) {
            let own = names.beyond(name);
            if let Some(rules) = rules {
                self.cluster_roles.push(role("ClusterRole", json!({"name": own}), rules));
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
        // The set of namespaces may name the logical cloud's own.
        let further =
            namespaces.iter().flatten().map(String::as_str).filter(|there| *there != names.namespace);
        for there in std::iter::once(names.namespace).chain(further) {
            let own = if there == names.namespace { names.within(name) } else { names.beyond(name) };
            if let Some(rules) = rules {
                self.roles.push(role("Role", json!({"name": own, "namespace": there}), rules));
            }
            self.bindings.push(match cluster_role {
                Some(given) => names.binding(&own, there, "ClusterRole", given),
                None => names.binding(&own, there, "Role", &own),
            });
        }
    }
}

/// How roles and bindings of a logical cloud are called.
struct Names<'a> {
    namespace: &'a str,
    cloud: &'a str,
}

impl Names<'_> {
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
            "subjects": [{"kind": "ServiceAccount", "name": account_name(self.cloud), "namespace": self.namespace}],
        })
    }
}

#[allow(clippy::needless_pass_by_value)] // becomes part of the object
fn role(kind: &str, metadata: Value, rules: &[emco_crds::logical_cloud::PolicyRule]) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules})
}
