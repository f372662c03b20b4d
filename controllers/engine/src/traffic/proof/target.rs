//! Pods that a server leads to, and what their ports are called.

use std::collections::{BTreeMap, BTreeSet};

use super::pods::Among;
use super::rules::{Policy, Rule, Span};
use crate::traffic::graph::{Place, Port, Server, Target};
use crate::traffic::made::Workload;

/// A port of pods: by number, or by name where no container is known that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// Protocol and number.
    Number(String, i64),
    /// Protocol and name.
    Name(String, String),
}

impl Door {
    /// `8080`, `UDP 53`, `web`.
    pub fn described(&self) -> String {
        match self {
            Self::Number(protocol, number) if protocol == "TCP" => number.to_string(),
            Self::Number(protocol, number) => format!("{protocol} {number}"),
            Self::Name(protocol, name) if protocol == "TCP" => name.clone(),
            Self::Name(protocol, name) => format!("{protocol} {name}"),
        }
    }
}

/// Pods behind servers: those of a workload, or such as the selector of a Service describes where nobody of the deployment makes them.
pub struct Pods<'p> {
    pub namespace: &'p str,
    pub labels: BTreeMap<&'p str, &'p str>,
    pub workload: Option<&'p Workload<'p>>,
}

impl<'p> Pods<'p> {
    /// Those behind a server.
    pub fn behind(server: &'p Server, place: &Place<'p>) -> Vec<Self> {
        let all = place.apps.values().flat_map(|made| &made.workloads);
        let behind = all.filter(|workload| workload.is_behind(&server.namespace, &server.selector));
        let known: Vec<Self> = behind.map(Self::of).collect();
        if !known.is_empty() {
            return known;
        }
        let labels = server.selector.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        vec![Self { namespace: &server.namespace, labels, workload: None }]
    }

    /// Those of a workload.
    pub fn of(workload: &'p Workload<'p>) -> Self {
        Self { namespace: workload.namespace, labels: workload.labels.clone(), workload: Some(workload) }
    }

    /// True for a policy that is for all of them, and stays.
    pub fn are_of(&self, policy: &Policy) -> bool {
        policy.lasts && policy.pods.among(self.namespace, &self.labels) == Among::All
    }

    /// True for a policy that is for some of them, as far as that is known.
    pub fn may_be_of(&self, policy: &Policy) -> bool {
        policy.pods.among(self.namespace, &self.labels) != Among::None
    }

    fn numbers(&self, protocol: &str, name: &str) -> Vec<i64> {
        let ports = self.workload.into_iter().flat_map(|workload| &workload.ports);
        let named = ports.filter(|port| port.name == name && port.protocol == protocol);
        named.map(|port| port.number).collect()
    }

    fn named(&self, protocol: &str, name: &str) -> Vec<Door> {
        if self.workload.is_none() {
            return vec![Door::Name(protocol.to_owned(), name.to_owned())];
        }
        let numbers = self.numbers(protocol, name).into_iter();
        numbers.map(|number| Door::Number(protocol.to_owned(), number)).collect()
    }

    /// The doors that a server has in them.
    pub fn doors(&self, server: &Server) -> BTreeSet<Door> {
        let of = |Port { protocol, target }: &Port| match target {
            Target::Number(number) => vec![Door::Number(protocol.clone(), *number)],
            Target::Name(name) => self.named(protocol, name),
        };
        server.ports.iter().flat_map(of).collect()
    }

    /// True for a rule that opens a door of theirs.
    pub fn opens(&self, rule: &Rule, door: &Door) -> bool {
        let Some(spans) = &rule.ports else { return true };
        spans.iter().any(|span| match (span, door) {
            (Span::Numbers(protocol, first, last), Door::Number(of, number)) => {
                protocol == of && (first..=last).contains(&number)
            }
            // All of the protocol, whatever their names are.
            (Span::Numbers(protocol, 1, 65_535), Door::Name(of, _)) => protocol == of,
            (Span::Numbers(..), Door::Name(..)) => false,
            (Span::Name(protocol, name), door) => self.named(protocol, name).contains(door),
        })
    }

    /// The doors that a rule opens, or the words for so many that no graph names them all.
    pub fn opened(&self, rule: &Rule, most: usize) -> Result<BTreeSet<Door>, String> {
        let Some(spans) = &rule.ports else { return Err("every port".to_owned()) };
        let mut doors = BTreeSet::new();
        for span in spans {
            match span {
                Span::Name(protocol, name) => doors.extend(self.named(protocol, name)),
                Span::Numbers(protocol, first, last) => {
                    let many =
                        usize::try_from(last.saturating_sub(*first)).unwrap_or_default() >= most.max(1);
                    if many {
                        return Err(if (*first, *last) == (1, 65_535) {
                            format!("every {protocol} port")
                        } else {
                            format!("{protocol} ports {first} to {last}")
                        });
                    }
                    doors.extend((*first..=*last).map(|number| Door::Number(protocol.clone(), number)));
                }
            }
        }
        Ok(doors)
    }
}
