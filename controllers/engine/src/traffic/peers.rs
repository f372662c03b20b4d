//! Finds where the connections of clients come from on one cluster: labels of pods, and addresses.

use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::traffic_group_intent::{self as api, ClientWorkload};

use super::graph::{Client, Draw, Peer, Within};
use super::made::{Made, Workload};
use super::released;
use crate::refusal::Refusal;
use crate::terms;
use crate::text::listed;

/// The clients that count on the cluster. One whose app is not there has no pods there.
pub(super) fn clients(draw: &Draw<'_>, namespace: &str) -> Result<Vec<Client>, Box<Refusal>> {
    let counts = |client: &&api::Client| {
        client.clusters.as_ref().is_none_or(|terms| terms::any_matches(terms, draw.place.cluster))
    };
    let mut clients = Vec::new();
    for client in draw.server.clients.iter().filter(counts) {
        let from = from(draw, client, namespace)?;
        if !from.is_empty() {
            clients.push(Client { name: client.name.clone(), app: client.app.clone(), from });
        }
    }
    Ok(clients)
}

fn from(draw: &Draw<'_>, client: &api::Client, namespace: &str) -> Result<Vec<Peer>, Box<Refusal>> {
    let api::Client { name: _, app, workload, pod_selector, namespaces, cidrs, clusters: _ } = client;
    if let Some(app) = app {
        let Some(made) = draw.place.apps.get(app.as_str()) else { return Ok(Vec::new()) };
        return of_app(draw, client, (app.as_str(), *made), workload.as_ref(), namespace);
    }
    if let Some(selector) = pod_selector {
        let within = match namespaces {
            Some(names) => Within::Named(names.clone()),
            None => within(draw.place.namespace, namespace),
        };
        return Ok(vec![Peer::Pods(within, selector.clone())]);
    }
    Ok(cidrs.iter().flatten().map(|cidr| Peer::Block(cidr.clone())).collect())
}

fn within(of: &str, server: &str) -> Within {
    if of == server { Within::Own } else { Within::Named(vec![of.to_owned()]) }
}

fn of_app(
    draw: &Draw<'_>,
    client: &api::Client,
    (app, made): (&str, &Made<'_>),
    wanted: Option<&ClientWorkload>,
    namespace: &str,
) -> Result<Vec<Peer>, Box<Refusal>> {
    let field = format!(".clients[{}]", client.name);
    let missing = |what: &str| draw.refuse(Reason::TargetMissing, &field, what);
    let all = || listed(&made.workloads.iter().map(Workload::described).collect::<Vec<_>>());
    let found: Vec<&Workload<'_>> = match wanted {
        None => made.workloads.iter().collect(),
        Some(ClientWorkload { kind, name }) => {
            let name = released(name, draw.place.release);
            let is = |workload: &&Workload<'_>| workload.kind == kind && workload.name == name;
            let found: Vec<_> = made.workloads.iter().filter(is).collect();
            if found.is_empty() && !made.workloads.is_empty() {
                let what = format!("app {app} makes no {kind} {name} (it makes {}): change workload", all());
                return Err(missing(&what));
            }
            found
        }
    };
    if found.is_empty() {
        return Err(missing(&format!(
            "app {app} makes no workload, so that no pods are known to be its own: name them by podSelector, or their addresses by cidrs"
        )));
    }
    let mut from = Vec::new();
    for workload in found {
        let Some(selector) = &workload.selector else {
            return Err(missing(&format!(
                "pods of {} of app {app} have no labels, so that no policy can tell them from others: give them one in the chart, or by a \
                 GenericActionIntent",
                workload.described()
            )));
        };
        let peer = Peer::Pods(within(workload.namespace, namespace), selector.clone());
        if !from.contains(&peer) {
            from.push(peer);
        }
    }
    Ok(from)
}
