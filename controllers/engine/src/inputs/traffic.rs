//! Puts intents of traffic into the digest of inputs: all that they say.

use emco_crds::TrafficGroupIntentSpec;
use emco_crds::traffic_group_intent::{
    Client, ClientWorkload, MadePolicies, OnViolation, Server, Unsupported,
};
use serde_json::{Value, json};

use super::{Fields, selector_of, term_of};

pub(super) fn put(out: &mut Fields, spec: &TrafficGroupIntentSpec) {
    let TrafficGroupIntentSpec { network_policy: _, unsupported: _, on_violation: _, servers } = spec;
    let made = Some(spec.made()).filter(|made| *made != MadePolicies::default());
    out.some("networkPolicy", made.map(MadePolicies::as_str));
    let unsupported = Some(spec.unsupported()).filter(|of| *of != Unsupported::default());
    out.some("unsupported", unsupported.map(Unsupported::as_str));
    let violation = Some(spec.on_violation()).filter(|on| *on != OnViolation::default());
    out.some("onViolation", violation.map(|on| format!("{on:?}")));
    out.list("servers", servers.iter().map(server_of));
}

fn server_of(server: &Server) -> Value {
    let Server { name, app, service, ports, clients } = server;
    let mut out = Fields::new();
    out.put("name", name.as_str().into());
    out.put("app", app.as_str().into());
    out.some("service", service.as_deref());
    out.list("ports", ports.iter().flatten().map(|port| json!(port)));
    out.list("clients", clients.iter().map(client_of));
    out.done()
}

fn client_of(client: &Client) -> Value {
    let Client { name, app, workload, pod_selector, namespaces, cidrs, clusters } = client;
    let mut out = Fields::new();
    out.put("name", name.as_str().into());
    out.some("app", app.as_deref());
    if let Some(ClientWorkload { kind, name }) = workload {
        out.put("workload", json!({"kind": kind, "name": name}));
    }
    if let Some(selector) = pod_selector {
        // An empty selector means all pods; no selector means none of its own.
        out.put("podSelector", selector_of(selector));
    }
    out.list("namespaces", namespaces.iter().flatten().map(|name| name.as_str().into()));
    out.list("cidrs", cidrs.iter().flatten().map(|cidr| cidr.as_str().into()));
    if let Some(terms) = clusters {
        out.put("clusters", terms.iter().map(term_of).collect());
    }
    out.done()
}
