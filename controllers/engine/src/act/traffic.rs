//! Effects of a `TrafficGroupIntent` on a deployment: it changes nothing that charts make, and its policies are an app of their own.

use emco_crds::traffic_group_intent::MadePolicies;

use super::edit::{Edit, What};
use super::effects::{Effects, Objects};
use crate::traffic::{self, Group, Server};

/// Effects of an intent. Its objects are read from what all others leave of the charts, and so known last.
pub fn effects<'a>(group: &Group<'a>) -> Effects<'a> {
    let makes = group.spec.made() == MadePolicies::Servers;
    let servers = group.spec.servers.iter().filter(|_| makes);
    let apps = servers.map(|server| server.app.as_str()).collect();
    Effects { edits: Vec::new(), objects: Objects::Drawn(apps) }
}

/// The policies of its servers on a cluster, as edits of nothing.
pub fn policies(group: &Group<'_>, servers: &[Server], release: &str) -> Vec<Edit> {
    let policy = |server: &Server| {
        let name = traffic::policy::name(release, group.name, &server.name);
        Edit {
            intent: group.name.to_owned(),
            origin: group.origin(&server.name),
            secret: false,
            what: What::Add(traffic::policy::object(&name, server)),
        }
    };
    servers.iter().map(policy).collect()
}
