//! Every pair of an end and a server's port on a cluster: whether it is open, whether it is to be, and the rule that decides.

use super::ends::Union;
use super::judge::{Served, Target, ends_of, has, ruled, targets};
use super::policies::{closing, opening, rules_of};
use super::rules::{End, Policy, Rule};
use super::target::Door;
use crate::traffic::Group;
use crate::traffic::graph::{Place, Server};
use crate::traffic::made::Workload;

/// One pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The one end.
    pub from: String,
    /// The server.
    pub to: String,
    /// Its port.
    pub port: String,
    /// Set where connections get through.
    pub open: bool,
    /// Set where the graph says so.
    pub wanted: bool,
    /// The rule that decides.
    pub by: String,
}

/// One who asks.
enum Who<'w> {
    Client(&'w str, &'w [End]),
    Workload(&'w str, &'w Workload<'w>),
    /// A pod without labels.
    Stranger(&'w str, &'static str),
    Address,
}

/// A namespace that no policy names.
const ELSEWHERE: &str = "\0elsewhere";

pub fn cells(place: &Place<'_>, drawn: &[(Group<'_>, &[Server])], policies: &[Policy]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for target in targets(place, drawn) {
        let (closing, opening) = (closing(&target, policies), opening(&target, policies));
        for served in &target.served {
            let Served { server, doors, clients, .. } = served;
            let clients = clients.iter().map(|(client, ends)| Who::Client(&client.name, ends));
            let workloads = place.apps.iter().flat_map(|(app, made)| {
                made.workloads.iter().map(move |workload| Who::Workload(app, workload))
            });
            let strangers = [
                Who::Stranger(&server.namespace, "any other pod of its namespace"),
                Who::Stranger(ELSEWHERE, "any pod of another namespace"),
                Who::Address,
            ];
            let all: Vec<Who<'_>> = clients.chain(workloads).chain(strangers).collect();
            for (who, door) in all.iter().flat_map(|who| doors.iter().map(move |door| (who, door))) {
                let wanted = who.is_wanted(&target, door);
                // A client's own pods are said by its name alone.
                if matches!(who, Who::Workload(..)) && wanted {
                    continue;
                }
                let (open, by) = decided(who, &target, (&closing, &opening), door);
                let (from, to, port) = (who.described(), server.name.clone(), door.described());
                cells.push(Cell { from, to, port, open, wanted, by });
            }
        }
    }
    cells
}

fn decided(
    who: &Who<'_>,
    target: &Target<'_>,
    (closing, opening): (&[&Policy], &[&Policy]),
    door: &Door,
) -> (bool, String) {
    if closing.is_empty() {
        return (true, "no NetworkPolicy selects its pods".to_owned());
    }
    let mut rules = rules_of(opening);
    let open = rules.find(|(_, _, rule)| target.pods.opens(rule, door) && who.is_let_in(rule));
    if let Some((policy, at, _)) = open {
        return (true, ruled(policy, "ingress", at));
    }
    let names: Vec<String> = closing.iter().map(|policy| policy.name.clone()).collect();
    (false, format!("no rule of {}", crate::text::listed(&names)))
}

impl Who<'_> {
    fn described(&self) -> String {
        match self {
            Self::Client(name, _) => (*name).to_owned(),
            Self::Workload(app, workload) => format!("{} of app {app}", workload.described()),
            Self::Stranger(_, words) => (*words).to_owned(),
            Self::Address => "any address".to_owned(),
        }
    }

    fn is_let_in(&self, rule: &Rule) -> bool {
        let ends: Vec<&End> = ends_of(rule).collect();
        match self {
            Self::Client(_, own) => {
                let all = Union::of(ends.iter().copied());
                own.iter().all(|end| all.holds(end))
            }
            Self::Workload(_, workload) => ends.iter().any(|end| has(end, workload)),
            Self::Stranger(namespace, _) => ends.iter().any(|end| match end {
                End::Anybody => true,
                End::Pods(set) => set.has(namespace, |_| None),
                End::Block(..) => false,
            }),
            Self::Address => ends.iter().any(|end| match end {
                End::Anybody => true,
                End::Pods(_) => false,
                End::Block(cidr, except) => cidr.prefix_len() == 0 && except.is_empty(),
            }),
        }
    }

    /// True where a client's ends hold it.
    fn is_wanted(&self, target: &Target<'_>, door: &Door) -> bool {
        let served = target.served.iter().filter(|served| served.doors.contains(door));
        let mut clients = served.flat_map(|served| &served.clients);
        match self {
            Self::Client(..) => true,
            Self::Workload(app, workload) => clients.any(|(client, ends)| {
                client.app.as_deref().is_none_or(|of| of == *app) && ends.iter().any(|end| has(end, workload))
            }),
            Self::Stranger(namespace, _) => clients.any(|(client, ends)| {
                client.app.is_none()
                    && ends.iter().any(|end| matches!(end, End::Pods(set) if set.has(namespace, |_| None)))
            }),
            Self::Address => clients.any(|(_, ends)| {
                ends.iter().any(|end| matches!(end, End::Block(cidr, _) if cidr.prefix_len() == 0))
            }),
        }
    }
}
