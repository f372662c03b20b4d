//! Holds what is known of one cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::cluster::PolicySupport;

use crate::apis::ApiList;
use crate::hardware::NodeFacts;
use crate::identity::ClusterId;

/// `Cluster.spec.scheduling`, and what deletion makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// May take new work.
    Enabled,
    /// Keeps what it has and takes nothing new: cordoned, or held while it is being deleted.
    Cordoned,
    /// Loses what it has where that is possible.
    Drained,
}

/// What is known of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFacts {
    /// `provider/cluster`.
    pub id: ClusterId,
    /// The Cluster's labels. The virtual ones are added by the planner.
    pub labels: BTreeMap<String, String>,
    /// `spec.properties`.
    pub properties: BTreeMap<String, String>,
    /// Whether it may take work.
    pub scheduling: Scheduling,
    /// Whether the last probe reached it. Ranks choices of `anyOf`, nothing else.
    pub reachable: bool,
    /// Its objects are files on a branch, which an agent there applies.
    pub by_git: bool,
    /// UID of its `kube-system` namespace; `None` before the first contact.
    pub uid: Option<String>,
    /// `v1.36.3`; `None` before the first contact.
    pub kubernetes_version: Option<String>,
    /// What it serves; `None` before the first contact.
    pub apis: Option<Arc<ApiList>>,
    /// Its nodes; `None` where no deployment asks for them.
    pub nodes: Option<Arc<NodeFacts>>,
    /// `spec.network.networkPolicy`, where its owner states that.
    pub network_policy: Option<PolicySupport>,
}
