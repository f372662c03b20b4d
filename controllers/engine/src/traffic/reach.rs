//! Checks an intent against where apps go, and intents against each other.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::graph::Server;
use super::{Group, KIND};
use crate::identity::ClusterId;
use crate::refusal::Refusal;
use crate::snapshot::ClusterFacts;
use crate::terms::{self, Candidate};
use crate::text::listed;

/// A client of the deployment that is on no cluster of its server: a policy knows the pods of its own cluster alone. `clusters` are those
/// of an app.
pub fn unreached<'c>(
    group: &Group<'_>,
    clusters: impl Fn(&str) -> Vec<&'c ClusterFacts>,
) -> Result<(), Box<Refusal>> {
    let clients = || group.spec.servers.iter().flat_map(|server| &server.clients);
    let apps = group
        .spec
        .servers
        .iter()
        .map(|server| &server.app)
        .chain(clients().filter_map(|client| client.app.as_ref()));
    let apps: BTreeSet<&str> = apps.map(String::as_str).collect();
    // Each once: many clients are of one app.
    let known: BTreeMap<&str, BTreeMap<&ClusterId, &ClusterFacts>> = apps
        .into_iter()
        .map(|app| (app, clusters(app).into_iter().map(|facts| (&facts.id, facts)).collect()))
        .collect();
    let none = BTreeMap::new();
    for server in &group.spec.servers {
        let there = known.get(server.app.as_str()).unwrap_or(&none);
        for client in &server.clients {
            let Some(app) = &client.app else { continue };
            let of_client = known.get(app.as_str()).unwrap_or(&none);
            let counts = |facts: &ClusterFacts| {
                let terms = client.clusters.as_ref();
                of_client.contains_key(&facts.id)
                    && terms.is_none_or(|terms| terms::any_matches(terms, &Candidate::new(facts)))
            };
            if there.is_empty() || there.values().any(|facts| counts(facts)) {
                continue;
            }
            let names = |all: &BTreeMap<&ClusterId, &ClusterFacts>| {
                listed(&all.keys().map(ToString::to_string).collect::<Vec<_>>())
            };
            let text = format!(
                "{}.clients[{}]: app {app} is on no cluster of app {} where it counts ({app} is on {}; {} is on {}): pods of other clusters \
                 come with addresses, which are named by cidrs",
                group.origin(&server.name),
                client.name,
                server.app,
                names(of_client),
                server.app,
                names(there),
            );
            return Err(Refusal::new(RENDERED, Reason::TargetMissing, text));
        }
    }
    Ok(())
}

/// Two intents that say different things of one server. Who may reach it is the union of both; all else has to be the same.
pub fn contradiction(drawn: &[(Group<'_>, &[Server])]) -> Option<Box<Refusal>> {
    drawn.iter().enumerate().find_map(|(at, (one, servers))| {
        drawn.iter().skip(at + 1).find_map(|(other, theirs)| {
            let server = servers.iter().find(|server| {
                theirs.iter().any(|other| {
                    (&other.namespace, &other.service) == (&server.namespace, &server.service)
                })
            })?;
            let (a, b) = (one.spec, other.spec);
            let (field, says, says_other) = if a.made() != b.made() {
                ("networkPolicy", a.made().as_str(), b.made().as_str())
            } else if a.unsupported() != b.unsupported() {
                ("unsupported", a.unsupported().as_str(), b.unsupported().as_str())
            } else {
                return None;
            };
            let text = format!(
                "{KIND} {} and {} both name Service {} of app {}, and spec.{field} is {says} in the one and {says_other} in the other: set it \
                 to the same in both, or name the server in one of them",
                one.name, other.name, server.service, server.app
            );
            Some(Refusal::new(RENDERED, Reason::EditConflict, text))
        })
    })
}
