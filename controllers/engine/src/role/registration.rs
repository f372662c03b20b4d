//! Works out what the account of `kubectl emco cluster add` may do on a cluster at a level below Admin, each rule with its reason.
//!
//! What reaches beyond EMCO's namespaces is little: namespaces, role bindings, and reads of what holds no content of anybody. All else
//! holds where a logical cloud binds the role of its namespace, and there alone.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::fields::Level;
use emco_crds::names::object;

use super::{Needed, RBAC, Rule};
use crate::apis::{ApiList, ApiResource};

/// To read and follow objects.
const READ: [&str; 3] = ["get", "list", "watch"];
/// To read objects.
const LOOK: [&str; 2] = ["get", "list"];
/// To follow objects.
const FOLLOW: [&str; 2] = ["list", "watch"];
/// To make, change and remove objects by server-side apply.
const WRITE: [&str; 3] = ["create", "patch", "delete"];
/// The role that a logical cloud without permissions gives its account.
const USUAL: &str = "admin";
/// The signer of client certificates.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const CERTIFICATES: &str = "certificates.k8s.io";

/// What a logical cloud makes in its namespace besides roles and bindings.
const CONFINING: [(&str, &str, &str); 4] = [
    ("", "resourcequotas", "quotas of logical clouds"),
    ("", "limitranges", "limit ranges of logical clouds"),
    ("", "serviceaccounts", "accounts of logical clouds and of their people"),
    ("networking.k8s.io", "networkpolicies", "isolation of logical clouds"),
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Registration<'a> {
    /// `Standard` or `Privileged`; at level Admin the account may do everything, and no rules are made.
    pub level: Level,
    /// What the cluster serves.
    pub apis: &'a ApiList,
    /// Whether the owner of the cluster made a `ClusterRole` `emco-ceiling`: then `admin` may be given only where it is named.
    pub ceiling: bool,
    /// Further `ClusterRole`s that may be given.
    pub may_bind: &'a [String],
    /// Whether clusters sign certificates of people.
    pub certificates: bool,
    /// Whether clusters issue tokens of people.
    pub tokens: bool,
}

/// The rules, by the role that has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrationRoles {
    /// Of the `ClusterRole` that holds everywhere.
    pub cluster: Vec<Needed>,
    /// Of the `ClusterRole` that logical clouds bind in their namespaces.
    pub tenant: Vec<Needed>,
    /// Of the Role in EMCO's own namespace.
    pub own: Vec<Needed>,
}

impl Registration<'_> {
    /// All rules.
    pub fn roles(&self) -> RegistrationRoles {
        RegistrationRoles { cluster: self.cluster(), tenant: self.tenant(), own: own() }
    }

    /// The `ClusterRole`s that logical clouds may bind, by name.
    pub fn bindable(&self) -> BTreeSet<&str> {
        let usual = (!self.ceiling).then_some(USUAL);
        let always = [object::EDGE_TENANT_ROLE, object::EDGE_CEILING];
        always.into_iter().chain(usual).chain(self.may_bind.iter().map(String::as_str)).collect()
    }

    fn cluster(&self) -> Vec<Needed> {
        let definitions = "proof that a kind that is not served has no objects";
        let mut rules = vec![
            needed(
                "",
                "namespaces",
                &READ,
                "who the cluster is, whether it answers, and namespaces of logical clouds",
            ),
            needed("", "namespaces", &WRITE, "namespaces of logical clouds"),
            needed("", "nodes", &FOLLOW, "what nodes offer, in the status of the Cluster"),
            needed("apiextensions.k8s.io", "customresourcedefinitions", &LOOK, definitions),
            needed("apiregistration.k8s.io", "apiservices", &LOOK, definitions),
            needed(
                RBAC,
                "rolebindings",
                &READ,
                "rights of logical clouds' accounts, and of the operator in their namespaces",
            ),
            needed(
                RBAC,
                "rolebindings",
                &WRITE,
                "rights of logical clouds' accounts, and of the operator in their namespaces",
            ),
            needed(RBAC, "roles", &FOLLOW, "permissions of logical clouds that list rules or derive them"),
        ];
        rules.extend(CONFINING.map(|(group, resource, why)| needed(group, resource, &FOLLOW, why)));
        let names = self.bindable().into_iter().map(str::to_owned).collect();
        let bind = needed(
            RBAC,
            "clusterroles",
            &["bind"],
            "roles that logical clouds may give their accounts, and no others",
        );
        rules.push(Needed { rule: Rule { names, ..bind.rule }, ..bind });
        if self.certificates {
            rules.extend(certificates());
        }
        if self.level == Level::Privileged {
            let why = "permissions of scope Cluster";
            rules.push(needed(RBAC, "clusterrolebindings", &READ, why));
            rules.push(needed(RBAC, "clusterrolebindings", &WRITE, why));
            rules.extend(reads(
                self.apis,
                |_| true,
                &[],
                "objects in further namespaces and of the whole cluster: what is there, and how it is",
            ));
        }
        rules
    }

    fn tenant(&self) -> Vec<Needed> {
        let mut rules = vec![needed(
            "",
            "serviceaccounts",
            &["impersonate"],
            "deployments are applied and removed as the account of their logical cloud",
        )];
        if self.tokens {
            rules.push(needed(
                "",
                "serviceaccounts/token",
                &["create"],
                "tokens of people, of credentials.type ServiceAccountToken and Auto",
            ));
        }
        rules.extend(CONFINING.map(|(group, resource, why)| needed(group, resource, &WRITE, why)));
        rules.push(needed(
            RBAC,
            "roles",
            &WRITE,
            "permissions of logical clouds that list rules or derive them",
        ));
        rules.extend(reads(
            self.apis,
            |kind| kind.namespaced,
            &["delete"],
            "what deployments have in the namespace, how it is, whether it holds anything of others; removal of what an account may not \
             remove any more",
        ));
        rules
    }
}

/// In EMCO's own namespace.
fn own() -> Vec<Needed> {
    let named = |resource: &str, name: &str, verbs: &[&str], why: &str| {
        let needed = needed("", resource, verbs, why);
        Needed { rule: Rule { names: vec![name.to_owned()], ..needed.rule }, ..needed }
    };
    let rotate =
        "a new token of the account itself, and the end of the old one, for the command cluster rotate";
    vec![
        needed("", "configmaps", &["create"], "the claim: which hub the cluster belongs to"),
        named(
            "configmaps",
            object::EDGE_CLAIM,
            &["get", "patch", "update", "delete"],
            "the claim: which hub the cluster belongs to",
        ),
        named("serviceaccounts", object::EDGE_ACCOUNT, &["get"], rotate),
        named("serviceaccounts/token", object::EDGE_ACCOUNT, &["create"], rotate),
        needed("", "secrets", &["get", "list", "watch", "create", "delete"], rotate),
    ]
}

fn certificates() -> [Needed; 3] {
    let why = "certificates of people, of credentials.type ClientCertificate and Auto";
    let sign = needed(CERTIFICATES, "signers", &["approve"], why);
    [
        needed(CERTIFICATES, "certificatesigningrequests", &["get", "create", "delete"], why),
        needed(CERTIFICATES, "certificatesigningrequests/approval", &["update"], why),
        Needed { rule: Rule { names: vec![SIGNER.to_owned()], ..sign.rule }, ..sign },
    ]
}

/// Reads of all kinds that a cluster serves now, by name, and these verbs: no wildcard gives those that somebody defines later.
fn reads(apis: &ApiList, which: impl Fn(&ApiResource) -> bool, more: &[&str], why: &str) -> Vec<Needed> {
    let mut groups: BTreeMap<(&str, bool), BTreeSet<&str>> = BTreeMap::new();
    for kind in apis.resources.iter().filter(|kind| kind.listable && which(kind)) {
        groups.entry((kind.group.as_str(), kind.watchable)).or_default().insert(&kind.plural);
    }
    let rules = groups.into_iter().map(|((group, watchable), resources)| {
        let read: &[&str] = if watchable { &READ } else { &LOOK };
        let mut needed = needed(group, "", &[read, more].concat(), why);
        needed.rule.resources = resources.into_iter().map(str::to_owned).collect();
        needed
    });
    rules.collect()
}

fn needed(group: &str, resource: &str, verbs: &[&str], why: &str) -> Needed {
    Needed { rule: Rule::of(group, resource, verbs), because: BTreeSet::from([why.to_owned()]) }
}

#[cfg(test)]
mod tests;
