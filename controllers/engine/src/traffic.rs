//! Servers of a deployment and their clients: the graph of what people name and charts make, the policies that carry it out, and the proof
//! that nobody else gets in. Pure: intents and manifests in, servers or a refusal out.
//!
//! Five steps. [`fault`] reads an intent alone; [`Made`] is what the graph reads of one app; [`draw`] finds servers and clients on one
//! cluster; [`policy::object`] makes the policy of a server; [`proof`] judges all policies of a cluster together.

use emco_crds::TrafficGroupIntentSpec;
use emco_crds::cluster::PolicySupport;

use crate::snapshot::ClusterFacts;

mod fault;
mod graph;
mod made;
mod peers;
pub mod policy;
pub mod proof;
mod reach;

pub use fault::fault;
pub use graph::{Client, Peer, Place, Port, Server, Target, Within, draw};
pub use made::{ContainerPort, Made, Service, ServicePort, Workload};
pub use reach::{contradiction, unreached};

/// Kind of the intents.
pub const KIND: &str = "TrafficGroupIntent";
/// Its short name, which the apps begin with that its intents make.
pub const SHORT: &str = "tgi";
/// The lack of a cluster that states `NotEnforced`.
pub const NEEDS: &str = "NetworkPolicy enforcement (spec.network.networkPolicy: Enforced)";

/// One intent that a deployment lists.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its spec.
    pub spec: &'a TrafficGroupIntentSpec,
}

impl Group<'_> {
    /// For messages: `TrafficGroupIntent storefront, spec.servers[catalog]`.
    pub fn origin(&self, server: &str) -> String {
        format!("{KIND} {}, spec.servers[{server}]", self.name)
    }
}

/// API groups of networks that enforce policies.
const ENFORCING: [&str; 5] =
    ["cilium.io", "crd.projectcalico.org", "crd.antrea.io", "k8s.ovn.org", "kubeovn.io"];

/// Says that NetworkPolicies have effect on a cluster, or have none: as its owner states, else as far as that is seen. `None`: it is not known.
pub fn enforcement(cluster: &ClusterFacts) -> Option<PolicySupport> {
    let seen = || {
        let apis = cluster.apis.as_deref()?;
        let enforces = |group: &str| ENFORCING.contains(&group);
        apis.resources.iter().any(|api| enforces(&api.group)).then_some(PolicySupport::Enforced)
    };
    cluster.network_policy.or_else(seen)
}

/// True for a cluster that states that policies have no effect there. Unknown is not without.
pub fn is_without(cluster: &ClusterFacts) -> bool {
    cluster.network_policy == Some(PolicySupport::NotEnforced)
}

/// The text with the release name in its place.
fn released(text: &str, release: &str) -> String {
    text.replace("{{release}}", release).replace("{{ release }}", release)
}

#[cfg(test)]
mod tests;
