//! Makes the roles that an account of a level below Admin has on a cluster, and says what is left without policies.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use emco_controllers::remote::served;
use emco_crds::fields::Level;
use emco_crds::names::object;
use emco_engine::role::{Needed, RBAC, Registration, RegistrationRoles};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::account::{ACCOUNT, labels};
use super::target::Target;
use super::{people, policy};
use crate::cli::absence::find;
use crate::cli::args::{AddArgs, Level as Wanted, People};
use crate::cli::role::show::Written;

/// A role that would be level Admin by another name.
const EVERYTHING: &str = "cluster-admin";

/// What an account is to have.
pub struct Asked<'a> {
    /// For which level.
    pub level: Wanted,
    /// Further roles that it may bind.
    pub may_bind: &'a [String],
    /// Credentials that the cluster issues to people.
    pub people: &'a [People],
}

impl<'a> Asked<'a> {
    /// By the command that adds a cluster.
    pub fn by(args: &'a AddArgs) -> Self {
        Self { level: args.level(), may_bind: &args.may_bind, people: &args.people }
    }
}

/// Whether the owner of a cluster made a ceiling. An account that may not read it knows it by its right to bind it.
async fn has_ceiling(target: &Target) -> kube::Result<bool> {
    if !may(target, "get").await? {
        return may(target, "bind").await;
    }
    let roles = Api::<ClusterRole>::all(target.client.clone());
    Ok(find(&roles, object::EDGE_CEILING).await?.is_some())
}

/// Whether whoever asks may do that with the ceiling.
async fn may(target: &Target, verb: &str) -> kube::Result<bool> {
    let right = ResourceAttributes {
        group: Some(RBAC.to_owned()),
        resource: Some("clusterroles".to_owned()),
        name: Some(object::EDGE_CEILING.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(right), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(target.client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// What an account of a level below Admin has.
pub struct Confined {
    level: Level,
    roles: RegistrationRoles,
    /// Whether the cluster serves admission policies.
    policies: bool,
    /// Whether the owner of the cluster made a ceiling.
    ceiling: bool,
}

impl Confined {
    /// What is asked for; `None` at level Admin.
    ///
    /// # Errors
    /// A role that is not there; a cluster that does not say what it serves.
    pub async fn read(target: &Target, asked: &Asked<'_>) -> anyhow::Result<Option<Self>> {
        if asked.level == Wanted::Admin {
            return Ok(None);
        }
        let roles = Api::<ClusterRole>::all(target.client.clone());
        let ceiling = has_ceiling(target).await.map_err(|error| target.failed(&error))?;
        for name in asked.may_bind {
            if find(&roles, name).await.map_err(|error| target.failed(&error))?.is_none() {
                bail!(
                    "--may-bind {name}: there is no ClusterRole {name} on the cluster {}: make it first, or leave it out",
                    target.server
                );
            }
        }
        let apis = served(target.client.clone(), &target.server).await;
        let (apis, _) = apis.with_context(|| format!("{} does not say what it serves", target.server))?;
        let registration = Registration {
            level: asked.level.stored(),
            apis: &apis,
            ceiling,
            may_bind: asked.may_bind,
            certificates: asked.people.contains(&People::ClientCertificate),
            tokens: asked.people.contains(&People::ServiceAccountToken),
        };
        let policies = apis.find(policy::GROUP, policy::VERSION, policy::KIND).is_some();
        Ok(Some(Self {
            level: registration.level,
            roles: registration.roles(),
            policies,
            ceiling: registration.ceiling,
        }))
    }

    /// The objects, each with what its rules are for. Policies come first: no right is there before what confines it.
    pub fn objects(&self) -> Vec<Written<'_>> {
        let mut all = Vec::new();
        if self.policies {
            let policies = policy::objects(self.level).into_iter().chain(people::objects());
            all.extend(policies.map(|object| Written::new(object, &[])));
        }
        let cluster_role = |name: &str| rbac("ClusterRole", &json!({"name": name, "labels": labels()}));
        all.push(Written::new(cluster_role(ACCOUNT), &self.roles.cluster));
        all.push(Written::new(cluster_role(object::EDGE_TENANT_ROLE), &self.roles.tenant));
        let own = json!({"name": ACCOUNT, "namespace": object::EDGE_NAMESPACE, "labels": labels()});
        all.push(Written::new(rbac("Role", &own), &self.roles.own));
        let mut binding = rbac("RoleBinding", &own);
        binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT});
        binding["subjects"] =
            json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": object::EDGE_NAMESPACE}]);
        all.push(Written::new(binding, &[]));
        all
    }

    /// What whoever adds the cluster has to know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.policies {
            notes.push(format!(
                "warning: the cluster serves no {}.{}, so nothing there keeps the account {ACCOUNT} to EMCO's namespaces: it may change \
                 and delete any namespace, and bind {} in any; and people may get tokens of the accounts of deployments",
                policy::KIND,
                policy::GROUP,
                self.bindable().into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.ceiling {
            notes.push(format!(
                "there is no ClusterRole {} on the cluster: logical clouds may have the role admin, and no rules of their own",
                object::EDGE_CEILING
            ));
        }
        notes
    }

    fn bindable(&self) -> BTreeSet<&str> {
        let binds = |needed: &&Needed| needed.rule.verbs.iter().any(|verb| verb == "bind");
        let names = self.roles.cluster.iter().filter(binds).flat_map(|needed| &needed.rule.names);
        names.map(String::as_str).collect()
    }
}

/// Objects that an account of another level had, which it has no more. `narrow`: its role is of the cluster's own, and it has one in its
/// namespace besides, to renew its token.
pub fn left_over(confined: bool, narrow: bool) -> Vec<Value> {
    if confined {
        // Standard and Privileged have objects of the same names, and a policy more confines more.
        return Vec::new();
    }
    let mut all = policy::objects(Level::Privileged);
    all.extend(people::objects());
    // The bindings go before the policies that they bind.
    all.reverse();
    if !narrow {
        let own = json!({"name": ACCOUNT, "namespace": object::EDGE_NAMESPACE});
        all.extend([rbac("RoleBinding", &own), rbac("Role", &own)]);
    }
    all.push(rbac("ClusterRole", &json!({"name": object::EDGE_TENANT_ROLE})));
    all
}

fn rbac(kind: &str, metadata: &Value) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata})
}

/// Refuses flags that contradict each other.
pub fn refuse(args: &AddArgs) -> anyhow::Result<()> {
    let admin = args.level() == Wanted::Admin;
    if !admin && args.cluster_role.is_some() {
        bail!(
            "--cluster-role names the role of the account, and --level {:?} makes one: leave one of them out",
            args.level()
        );
    }
    let given = [(!args.may_bind.is_empty(), "--may-bind"), (!args.people.is_empty(), "--people")];
    if let Some((_, flag)) = given.iter().find(|(given, _)| admin && *given) {
        bail!(
            "{flag} adds to a level below Admin, which {} is not: leave one of them out",
            if args.cluster_role.is_some() { "a role of --cluster-role" } else { "--level Admin" }
        );
    }
    if args.may_bind.iter().any(|name| name == EVERYTHING) {
        bail!("--may-bind {EVERYTHING} would let the account do everything: that is --level Admin");
    }
    Ok(())
}
