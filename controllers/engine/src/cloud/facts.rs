//! Holds what a plan reads of the logical cloud that a deployment runs in, and names the account it is applied as.

use std::collections::BTreeSet;

use emco_crds::fields::Level;
use emco_crds::logical_cloud::Isolation;

use crate::identity::ClusterId;
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
