//! Holds what a plan reads of the logical cloud that a deployment runs in, and names the account it is applied as.

use std::collections::BTreeSet;

use emco_crds::conditions::types::RESOLVED;
use emco_crds::fields::Level;
use emco_crds::logical_cloud::Isolation;
use emco_crds::names::object::DEFAULT_LOGICAL_CLOUD;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use crate::identity::ClusterId;
use crate::refusal::Refusal;
use crate::role::{Derived, Reach};

/// How the user names of `ServiceAccounts` begin.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Name of the `ServiceAccount` that deployments of a logical cloud are applied as.
pub fn account_name(cloud: &str) -> String {
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

/// Refuses a deployment whose logical cloud does not exist, and names what makes it.
pub fn missing(name: &str, namespace: &str, project: &str) -> Box<Refusal> {
    let make = if name == DEFAULT_LOGICAL_CLOUD {
        format!("write spec.logicalCloud: {{}} into Project {project}, which makes it, or create it")
    } else {
        "create it".to_owned()
    };
    let text = format!(
        "LogicalCloud {name} does not exist in namespace {namespace}: {make}, or change spec.logicalCloudRef"
    );
    Refusal::new(RESOLVED, Reason::LogicalCloudNotFound, text)
}

/// The logical cloud a deployment runs in.
#[derive(Clone, Debug)]
pub struct CloudFacts {
    /// Name of the `LogicalCloud`.
    pub name: String,
    /// `Standard`, `Privileged` or `Admin`.
    pub level: String,
    /// Namespace on the clusters.
    pub namespace: String,
    /// Where its level and permissions let deployments have objects beside that.
    pub reach: Reach,
    /// Where the rights of its account follow what is deployed; `None` = they are listed.
    pub derived: Option<Derived>,
    /// Isolation of its namespace.
    pub isolation: Isolation,
    /// Candidates: clusters that the cloud has and the project's grants allow.
    pub clusters: BTreeSet<ClusterId>,
}

impl CloudFacts {
    /// The account of the clusters that its deployments are applied as; none at level Admin.
    pub fn account(&self) -> Option<String> {
        (self.level != Level::Admin.as_str()).then(|| account(&self.namespace, &self.name))
    }

    /// Whether its deployments may have objects in a namespace; without one, of the whole cluster.
    pub fn reaches(&self, namespace: Option<&str>) -> bool {
        self.reach.cluster
            || namespace.is_some_and(|there| there == self.namespace || self.reach.namespaces.contains(there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_that_a_project_would_make_is_named_with_the_line_that_does() {
        let of = |name: &str| missing(name, "shop-apps", "shop").message;
        assert_eq!(
            of("default"),
            "LogicalCloud default does not exist in namespace shop-apps: write spec.logicalCloud: {} into Project shop, which makes \
             it, or create it, or change spec.logicalCloudRef"
        );
        let said = of("edge");
        assert!(said.ends_with("shop-apps: create it, or change spec.logicalCloudRef"), "{said}");
    }
}
