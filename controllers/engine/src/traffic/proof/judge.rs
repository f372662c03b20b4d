//! Judges one cluster: who reaches its servers by all policies together, compared with the graph.

use std::collections::{BTreeMap, BTreeSet};

use super::ends::{self, Union, of_client};
use super::policies::{closing, opening, rules_of};
use super::rules::{End, Policy, Rule};
use super::target::{Door, Pods};
use crate::conditions::truncate;
use crate::traffic::Group;
use crate::traffic::graph::{Client, Place, Server};
use crate::traffic::made::Workload;

/// Findings that are kept of a cluster.
const MOST_FOUND: usize = 64;
/// Longest text of a finding, in bytes.
const LONGEST: usize = 512;

/// Ends that have no name: any pod of the server's namespace, of another one, and any address.
pub const STRANGERS: usize = 3;

/// Findings of a cluster.
#[derive(Debug, Default)]
pub struct Judged {
    /// Pairs of an end and a port that were judged.
    pub pairs: usize,
    /// More, or less, than the graph.
    pub found: BTreeSet<Found>,
    /// Things that have to be true besides.
    pub assumptions: BTreeSet<String>,
}

/// One difference from the graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Somebody reaches a server who is no client of it; otherwise a client does not.
    pub is_extra: bool,
    /// The server.
    pub to: String,
    /// Its port.
    pub port: String,
    /// The one end.
    pub from: String,
    /// The rule that decides: `NetworkPolicy retail/open ingress[0] (app catalog)`.
    pub by: String,
    /// The policy that decides, and who makes it; none where it is that there is none.
    pub policy: Option<(String, String)>,
    /// Set where the plan is refused for it.
    pub fails: bool,
}

/// A server with what of it counts for some pods.
pub struct Served<'j> {
    pub server: &'j Server,
    pub fails: bool,
    pub doors: BTreeSet<Door>,
    /// Clients, each with its ends.
    pub clients: Vec<(&'j Client, Vec<End>)>,
}

/// Pods, and all servers that lead to them.
pub struct Target<'j> {
    pub pods: Pods<'j>,
    pub served: Vec<Served<'j>>,
}

/// All pods of servers.
pub fn targets<'j>(place: &Place<'j>, drawn: &[(Group<'_>, &'j [Server])]) -> Vec<Target<'j>> {
    let mut targets: Vec<Target<'j>> = Vec::new();
    for (group, servers) in drawn {
        for server in *servers {
            for pods in Pods::behind(server, place) {
                let ends = |client: &'j Client| {
                    let ends = client.from.iter().map(|peer| of_client(peer, &server.namespace));
                    (client, ends.collect())
                };
                let served = Served {
                    server,
                    fails: group.spec.on_violation() == emco_crds::traffic_group_intent::OnViolation::Fail,
                    doors: pods.doors(server),
                    clients: server.clients.iter().map(ends).collect(),
                };
                match targets.iter_mut().find(|target| is_same(&target.pods, &pods)) {
                    Some(target) => target.served.push(served),
                    None => targets.push(Target { pods, served: vec![served] }),
                }
            }
        }
    }
    targets
}

fn is_same(one: &Pods<'_>, other: &Pods<'_>) -> bool {
    match (one.workload, other.workload) {
        (Some(one), Some(other)) => std::ptr::eq(one, other),
        (None, None) => (one.namespace, &one.labels) == (other.namespace, &other.labels),
        _ => false,
    }
}

/// Judges all pods of servers of a cluster.
pub fn judge(place: &Place<'_>, drawn: &[(Group<'_>, &[Server])], policies: &[Policy]) -> Judged {
    let mut judged = Judged::default();
    let workloads: Vec<(&str, &Workload<'_>)> = place
        .apps
        .iter()
        .flat_map(|(app, made)| made.workloads.iter().map(move |workload| (*app, workload)))
        .collect();
    for (app, made) in &place.apps {
        let words = |other: &String| {
            format!("{other} of app {app} lets nobody in: policies of its kind are not judged")
        };
        judged.assumptions.extend(made.others.iter().map(words));
    }
    for target in targets(place, drawn) {
        let judge = Judge::new(&target, policies, &workloads);
        judge.assume(place.release, &mut judged.assumptions);
        judge.extra(&mut judged.found);
        judge.lookalikes(&mut judged.found);
        judge.missing(&mut judged.found);
        let pairs =
            |served: &Served<'_>| served.doors.len() * (served.clients.len() + workloads.len() + STRANGERS);
        judged.pairs += target.served.iter().map(pairs).sum::<usize>();
    }
    judged
}

/// Some pods of servers, before the policies that are for them.
struct Judge<'j> {
    target: &'j Target<'j>,
    /// Those that close them.
    closing: Vec<&'j Policy>,
    /// Those that may open them.
    opening: Vec<&'j Policy>,
    /// Those that close pods from the inside.
    leaving: Vec<&'j Policy>,
    workloads: &'j [(&'j str, &'j Workload<'j>)],
}

impl<'j> Judge<'j> {
    fn new(
        target: &'j Target<'j>,
        policies: &'j [Policy],
        workloads: &'j [(&'j str, &'j Workload<'j>)],
    ) -> Self {
        Self {
            target,
            closing: closing(target, policies),
            opening: opening(target, policies),
            leaving: policies.iter().filter(|policy| policy.egress.is_some()).collect(),
            workloads,
        }
    }

    fn found(&self, from: &str, port: &str, by: &str, policy: Option<&Policy>, is_extra: bool) -> Found {
        let has = |served: &&Served<'_>| served.doors.iter().any(|door| door.described() == port);
        let server = self.target.served.iter().find(has).or_else(|| self.target.served.first());
        Found {
            is_extra,
            to: server.map(|served| served.server.name.clone()).unwrap_or_default(),
            port: truncate(port, LONGEST),
            from: truncate(from, LONGEST),
            by: truncate(by, LONGEST),
            policy: policy.map(|policy| (policy.name.clone(), policy.maker.clone())),
            fails: self.fails(),
        }
    }

    fn fails(&self) -> bool {
        self.target.served.iter().any(|served| served.fails)
    }

    fn doors(&self) -> BTreeSet<&'j Door> {
        self.target.served.iter().flat_map(|served| &served.doors).collect()
    }

    /// Ends of all clients that may reach a door.
    fn clients(&self, door: &Door) -> Union<'j> {
        let served = self.target.served.iter().filter(|served| served.doors.contains(door));
        Union::of(served.flat_map(|served| &served.clients).flat_map(|(_, ends)| ends))
    }

    /// Rules that let in others than clients, or to other ports.
    fn extra(&self, found: &mut BTreeSet<Found>) {
        if self.closing.is_empty() {
            let by = "no NetworkPolicy selects its pods";
            keep(found, self.found(&ends::described(&End::Anybody), "every port", by, None, true));
            return;
        }
        let clients: BTreeMap<&Door, Union<'_>> =
            self.doors().into_iter().map(|door| (door, self.clients(door))).collect();
        let nobody = Union::of([]);
        for (policy, at, rule) in rules_of(&self.opening) {
            let doors = self.target.pods.opened(rule, clients.len());
            for end in ends_of(rule) {
                if is_full(found, self.fails()) {
                    return;
                }
                let port = match &doors {
                    Err(words) => Some(words.clone()),
                    Ok(doors) => {
                        let open = |door: &&Door| !clients.get(door).unwrap_or(&nobody).holds(end);
                        doors.iter().find(open).map(Door::described)
                    }
                };
                if let Some(port) = port {
                    let by = ruled(policy, "ingress", at);
                    keep(found, self.found(&ends::described(end), &port, &by, Some(policy), true));
                }
            }
        }
    }

    /// Workloads of the deployment that are let in because their pods look like those of a client.
    fn lookalikes(&self, found: &mut BTreeSet<Found>) {
        for door in self.doors() {
            let clients = self.clients(door);
            let among: Vec<(&Policy, usize, &End)> = rules_of(&self.opening)
                .filter(|(_, _, rule)| self.target.pods.opens(rule, door))
                .flat_map(|(policy, at, rule)| ends_of(rule).map(move |end| (policy, at, end)))
                .filter(|(_, _, end)| matches!(end, End::Pods(_)) && clients.holds(end))
                .collect();
            for (app, workload) in self.workloads {
                let lets_in = among.iter().find(|(_, _, end)| has(end, workload));
                let Some((policy, at, _)) = lets_in.filter(|_| !self.is_client(app, workload, door)) else {
                    continue;
                };
                let from = format!("{} of app {app} (it looks like a client)", workload.described());
                let by = ruled(policy, "ingress", *at);
                keep(found, self.found(&from, &door.described(), &by, Some(policy), true));
            }
        }
    }

    /// True where pods of a workload are those of a client: of its app, or such as are named by their labels.
    fn is_client(&self, app: &str, workload: &Workload<'_>, door: &Door) -> bool {
        let served = self.target.served.iter().filter(|served| served.doors.contains(door));
        served.flat_map(|served| &served.clients).any(|(client, ends)| {
            client.app.as_deref().is_none_or(|of| of == app) && ends.iter().any(|end| has(end, workload))
        })
    }

    /// Clients that no policy lets in, or that one does not let out.
    fn missing(&self, found: &mut BTreeSet<Found>) {
        for door in self.doors() {
            // A policy for some of the pods lets nobody in to all of them.
            let rules = rules_of(&self.closing).map(|(_, _, rule)| rule);
            let open = Union::of(rules.filter(|rule| self.target.pods.opens(rule, door)).flat_map(ends_of));
            for served in self.target.served.iter().filter(|served| served.doors.contains(door)) {
                for (client, ends) in &served.clients {
                    if let Some((by, policy)) = self.refused(client, ends, (door, &open)) {
                        let missing = self.found(&client.name, &door.described(), &by, policy, false);
                        let to = served.server.name.clone();
                        keep(found, Found { to, fails: served.fails, ..missing });
                    }
                }
            }
        }
    }

    fn refused(
        &self,
        client: &Client,
        ends: &[End],
        (door, open): (&Door, &Union<'_>),
    ) -> Option<(String, Option<&'j Policy>)> {
        if !self.closing.is_empty() && !ends.iter().all(|end| open.holds(end)) {
            let names: Vec<String> = self.closing.iter().map(|policy| policy.name.clone()).collect();
            let by = format!("no rule of {} lets it in", crate::text::listed(&names));
            return Some((by, self.closing.first().copied()));
        }
        let of_app = self.workloads.iter().filter(|(app, _)| client.app.as_deref() == Some(*app));
        let mut of_app = of_app.filter(|(_, workload)| ends.iter().any(|end| has(end, workload)));
        of_app.find_map(|(_, workload)| {
            let pods = Pods::of(workload);
            let mut leaving = self.leaving.iter().copied().filter(|policy| pods.are_of(policy));
            let first = leaving.next()?;
            let lets_out =
                |policy: &Policy| policy.egress.iter().flatten().any(|rule| self.lets_out(rule, door));
            if lets_out(first) || leaving.any(lets_out) {
                return None;
            }
            let by = format!("no rule of {} egress ({}) lets it out", first.name, first.maker);
            Some((by, Some(first)))
        })
    }

    fn lets_out(&self, rule: &Rule, door: &Door) -> bool {
        let to = |end: &End| match end {
            End::Anybody => true,
            End::Pods(set) => {
                let Pods { namespace, labels, .. } = &self.target.pods;
                set.has(namespace, |key| labels.get(key).copied())
            }
            End::Block(..) => false,
        };
        self.target.pods.opens(rule, door) && ends_of(rule).any(to)
    }

    /// Notes what nobody can tell from manifests.
    fn assume(&self, release: &str, assumptions: &mut BTreeSet<String>) {
        for served in &self.target.served {
            let app = &served.server.app;
            match self.target.pods.workload {
                None => {
                    assumptions.insert(format!(
                        "pods of Service {} of app {app}, which others make, have the labels of its selector and no more",
                        served.server.service
                    ));
                }
                Some(workload) if workload.host_network => {
                    assumptions.insert(format!(
                        "pods of {} of app {app} have the addresses of their nodes: whoever reaches these reaches them",
                        workload.described()
                    ));
                }
                Some(_) => {}
            }
            for (client, ends) in &served.clients {
                let Some(app) = &client.app else { continue };
                for end in ends {
                    if let End::Pods(set) = end
                        && !set.is_of_release(release)
                    {
                        assumptions.insert(format!("{} are taken for app {app}", set.described()));
                    }
                }
                let of_app = self.workloads.iter().filter(|(of, _)| of == app);
                for (_, workload) in of_app.filter(|(_, workload)| workload.host_network) {
                    assumptions.insert(format!(
                        "pods of {} of app {app} have the addresses of their nodes, by which no policy tells them",
                        workload.described()
                    ));
                }
            }
        }
    }
}

/// The ends of a rule; one without any is for everybody.
pub fn ends_of(rule: &Rule) -> impl Iterator<Item = &End> {
    let everybody = rule.ends.is_none().then_some(&End::Anybody);
    everybody.into_iter().chain(rule.ends.iter().flatten())
}

/// True where pods of a workload are among an end.
pub fn has(end: &End, workload: &Workload<'_>) -> bool {
    match end {
        End::Anybody => true,
        End::Pods(set) => set.has(workload.namespace, |key| workload.labels.get(key).copied()),
        End::Block(..) => false,
    }
}

/// `NetworkPolicy retail/open ingress[0] (app catalog)`.
pub fn ruled(policy: &Policy, direction: &str, at: usize) -> String {
    format!("{} {direction}[{at}] ({})", policy.name, policy.maker)
}

/// True where so many findings are kept that no more are needed to know what is wrong. One that refuses the plan always counts.
fn is_full(found: &BTreeSet<Found>, fails: bool) -> bool {
    found.len() >= MOST_FOUND && (!fails || found.iter().any(|kept| kept.fails))
}

fn keep(found: &mut BTreeSet<Found>, one: Found) {
    if !is_full(found, one.fails) {
        found.insert(one);
    }
}
