//! Finds what is wrong with an intent in itself, whatever deployment lists it, and that no rule of its kind sees.

use emco_crds::TrafficGroupIntentSpec;
use emco_crds::traffic_group_intent::{Client, Server};
use ipnet::IpNet;

use super::released;

/// A sentence that begins with the field and says what to do.
pub fn fault(spec: &TrafficGroupIntentSpec) -> Option<String> {
    spec.servers.iter().find_map(|server| {
        let at = format!("spec.servers[{}]", server.name);
        let Server { name: _, app: _, service, ports: _, clients } = server;
        let service = service.as_deref().and_then(|service| variable(&format!("{at}.service"), service));
        service.or_else(|| {
            clients.iter().find_map(|client| of_client(client, &format!("{at}.clients[{}]", client.name)))
        })
    })
}

fn of_client(client: &Client, at: &str) -> Option<String> {
    let Client { name: _, app: _, workload, pod_selector: _, namespaces: _, cidrs, clusters: _ } = client;
    let named = workload.as_ref().map(|workload| workload.name.as_str());
    let named = named.and_then(|name| variable(&format!("{at}.workload.name"), name));
    named.or_else(|| cidrs.iter().flatten().find_map(|cidr| of_cidr(cidr, &format!("{at}.cidrs"))))
}

/// Names are no templates: the release name alone is put into them.
fn variable(at: &str, text: &str) -> Option<String> {
    let text = released(text, "");
    let (_, rest) = text.split_once("{{")?;
    let name = rest.split("}}").next().unwrap_or_default().trim();
    Some(format!(
        "{at}: {{{{{name}}}}} is not known here: {{{{release}}}} is the only variable, write the rest out"
    ))
}

fn of_cidr(cidr: &str, at: &str) -> Option<String> {
    let Ok(net) = cidr.parse::<IpNet>() else {
        return Some(format!("{at}: {cidr} is no CIDR: write for example 10.1.0.0/16 or 2001:db8::/48"));
    };
    let whole = net.trunc();
    (whole != net).then(|| {
        format!("{at}: {cidr} has bits beyond its prefix: write {whole} for the whole network, or {}/{} for the one address", net.addr(), net.max_prefix_len())
    })
}
