//! Finds the servers of an intent on one cluster: their pods, the ports of these, and who may reach them.

use std::collections::BTreeMap;

use emco_crds::conditions::types::RENDERED;
use emco_crds::fields::{IntOrText, LabelSelector};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::traffic_group_intent::{self as api, PortRef};

use super::made::{Made, Service, ServicePort};
use super::{Group, peers, released};
use crate::refusal::Refusal;
use crate::terms::Candidate;
use crate::text::listed;

/// One cluster, and what apps make there.
#[derive(Debug)]
pub struct Place<'p> {
    /// The cluster.
    pub cluster: &'p Candidate<'p>,
    /// By app, those of intents too.
    pub apps: BTreeMap<&'p str, &'p Made<'p>>,
    /// Namespace of the logical cloud.
    pub namespace: &'p str,
    /// Release name.
    pub release: &'p str,
}

/// A server on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name in the intent.
    pub name: String,
    /// The app whose chart makes its Service.
    pub app: String,
    /// Its Service.
    pub service: String,
    /// The namespace of that, and of its pods.
    pub namespace: String,
    /// Labels of its pods.
    pub selector: BTreeMap<String, String>,
    /// Ports of its pods that clients may reach.
    pub ports: Vec<Port>,
    /// Those who may.
    pub clients: Vec<Client>,
}

/// A port of pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Which.
    pub target: Target,
}

/// A port of pods by number, or by the name that a container gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// By number.
    Number(i64),
    /// By name.
    Name(String),
}

/// A client that counts on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Its name in the intent.
    pub name: String,
    /// The app, where it is one.
    pub app: Option<String>,
    /// Sources of its connections.
    pub from: Vec<Peer>,
}

/// The source of connections.
#[derive(Clone, Debug, PartialEq)]
pub enum Peer {
    /// Pods of the cluster.
    Pods(Within, LabelSelector),
    /// Addresses.
    Block(String),
}

/// Namespaces of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// That of the server.
    Own,
    /// By name.
    Named(Vec<String>),
}

/// The servers of an intent that run on a cluster. Nothing is guessed: what is not found is refused.
pub fn draw(group: &Group<'_>, place: &Place<'_>) -> Result<Vec<Server>, Box<Refusal>> {
    let mut servers = Vec::new();
    for server in &group.spec.servers {
        if let Some(made) = place.apps.get(server.app.as_str()) {
            servers.push(Draw { group, place, server }.server(made)?);
        }
    }
    Ok(servers)
}

/// One server that is looked for.
pub(super) struct Draw<'d> {
    pub(super) group: &'d Group<'d>,
    pub(super) place: &'d Place<'d>,
    pub(super) server: &'d api::Server,
}

impl Draw<'_> {
    /// A refusal that names the server, a field of it, and the cluster.
    pub(super) fn refuse(&self, reason: Reason, field: &str, what: &str) -> Box<Refusal> {
        let origin = self.group.origin(&self.server.name);
        let on = &self.place.cluster.facts.id;
        Refusal::new(RENDERED, reason, format!("{origin}{field}: on {on}, {what}"))
    }

    fn server(&self, made: &Made<'_>) -> Result<Server, Box<Refusal>> {
        let service = self.service(made)?;
        let selector: BTreeMap<String, String> =
            service.selector.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut ports = Vec::new();
        for port in self.ports(service)? {
            ports.push(self.port(service, port, &selector)?);
        }
        ports.sort();
        ports.dedup();
        Ok(Server {
            name: self.server.name.clone(),
            app: self.server.app.clone(),
            service: service.name.to_owned(),
            namespace: service.namespace.to_owned(),
            selector,
            ports,
            clients: peers::clients(self, service.namespace)?,
        })
    }

    fn service<'m>(&self, made: &'m Made<'m>) -> Result<&'m Service<'m>, Box<Refusal>> {
        let app = &self.server.app;
        let missing = |what: &str| self.refuse(Reason::TargetMissing, ".service", what);
        let names: Vec<String> = made.services.iter().map(|service| service.name.to_owned()).collect();
        let service = match (&self.server.service, made.services.as_slice()) {
            (_, []) => {
                return Err(missing(&format!(
                    "app {app} makes no Service: a server is one; add it to the chart, or by a GenericActionIntent"
                )));
            }
            (None, [service]) => service,
            (None, _) => {
                let (all, number) = (listed(&names), names.len());
                return Err(missing(&format!("app {app} makes {number} Services ({all}): name one of them")));
            }
            (Some(wanted), all) => {
                let wanted = released(wanted, self.place.release);
                let found = all.iter().find(|service| service.name == wanted);
                found.ok_or_else(|| {
                    let all = listed(&names);
                    missing(&format!(
                        "app {app} makes no Service {wanted} (it makes {all}): name another one"
                    ))
                })?
            }
        };
        let name = service.name;
        if service.is_external {
            return Err(missing(&format!(
                "Service {name} is of type ExternalName: it stands for a name elsewhere and has no pods that a policy could fence; name \
                 another Service, or remove the server"
            )));
        }
        if service.selector.is_empty() {
            return Err(missing(&format!(
                "Service {name} has no selector: which pods answer is written by others, so that no policy can be made for them; give it a \
                 selector, name another Service, or remove the server"
            )));
        }
        Ok(service)
    }

    /// Ports of the Service that the server names.
    fn ports<'m>(&self, service: &'m Service<'m>) -> Result<Vec<&'m ServicePort<'m>>, Box<Refusal>> {
        let Some(wanted) = &self.server.ports else {
            if service.ports.is_empty() {
                let what =
                    format!("Service {} has no ports: name those of its pods in the chart", service.name);
                return Err(self.refuse(Reason::TargetMissing, ".ports", &what));
            }
            return Ok(service.ports.iter().collect());
        };
        let mut found = Vec::new();
        for PortRef(wanted) in wanted {
            let is = |port: &&ServicePort<'_>| match wanted {
                IntOrText::Int(number) => port.number == *number,
                IntOrText::Text(name) => port.name == name || name.parse::<i64>() == Ok(port.number),
            };
            let before = found.len();
            found.extend(service.ports.iter().filter(is));
            if found.len() == before {
                let what = format!(
                    "Service {} has no port {wanted} (it has {}): name another one",
                    service.name,
                    listed(&service.ports.iter().map(described).collect::<Vec<_>>())
                );
                return Err(self.refuse(Reason::TargetMissing, ".ports", &what));
            }
        }
        Ok(found)
    }

    /// The pods' port behind one of the Service. A name has to be known to a container: a policy with another one would open nothing.
    fn port(
        &self,
        service: &Service<'_>,
        port: &ServicePort<'_>,
        selector: &BTreeMap<String, String>,
    ) -> Result<Port, Box<Refusal>> {
        let protocol = port.protocol.to_owned();
        let Some(name) = port.target_name else {
            return Ok(Port { protocol, target: Target::Number(port.target) });
        };
        let behind = self.place.apps.values().flat_map(|made| &made.workloads);
        let mut behind = behind.filter(|workload| workload.is_behind(service.namespace, selector));
        let is = |of: &super::ContainerPort<'_>| of.name == name && of.protocol == port.protocol;
        if behind.any(|workload| workload.ports.iter().any(is)) {
            return Ok(Port { protocol, target: Target::Name(name.to_owned()) });
        }
        let what = format!(
            "port {} of Service {} leads to port {name} of its pods, and no container behind it names a {protocol} port so: give a container \
             that port, or give targetPort a number, in the chart or by a GenericActionIntent",
            described(port),
            service.name
        );
        Err(self.refuse(Reason::TargetMissing, ".ports", &what))
    }
}

/// For messages: `http (9000)`.
fn described(port: &ServicePort<'_>) -> String {
    if port.name.is_empty() { port.number.to_string() } else { format!("{} ({})", port.name, port.number) }
}
