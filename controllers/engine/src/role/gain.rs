//! Says a right in words, and how far it reaches: what reaches furthest comes first.

use std::collections::{BTreeMap, BTreeSet};

use super::harmless::reads;
use super::{RBAC, Rule};
use crate::conditions::truncate;
use crate::text::counted;

/// Longest list of verbs, resources, names or paths, in bytes: none pushes the next one out of a message.
const LONGEST: usize = 60;

/// A right that an account gains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain {
    /// The goal.
    pub reach: Power,
    /// In words: `create NetworkPolicies`, `get,list pods`.
    pub words: String,
}

/// The goal of a right, from the most to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// To whatever there is.
    All,
    /// To act as somebody else.
    Others,
    /// To give rights.
    Rights,
    /// To read or write Secrets.
    Secrets,
    /// To get into running containers.
    Exec,
    /// To judge and change what others write.
    Admission,
    /// To machines.
    Nodes,
    /// To the objects of a tenant.
    Usual,
}

/// Resources as which somebody acts by the verb `impersonate`.
const IDENTITIES: [&str; 5] = ["users", "groups", "serviceaccounts", "uids", "userextras"];

impl Power {
    /// Of a resource, as URLs have it, and a verb.
    fn of(group: &str, resource: &str, verb: &str) -> Self {
        let kind = resource.split('/').next().unwrap_or_default();
        let changes = !reads(verb);
        match (group, resource) {
            _ if kind.contains('*') => Self::All,
            _ if verb == "impersonate" => Self::Others,
            _ if verb == "*" && IDENTITIES.contains(&kind) => Self::Others,
            (_, "serviceaccounts/token" | "certificatesigningrequests/approval" | "signers") => Self::Others,
            (RBAC | "*", _) if changes => Self::Rights,
            ("" | "*", _) if kind == "secrets" => Self::Secrets,
            (
                "" | "*",
                "pods/exec"
                | "pods/attach"
                | "pods/portforward"
                | "pods/proxy"
                | "pods/ephemeralcontainers"
                | "services/proxy",
            ) => Self::Exec,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) if changes => Self::Admission,
            ("" | "*", _) if kind == "nodes" && (changes || resource != kind) => Self::Nodes,
            _ => Self::Usual,
        }
    }

    /// Not to be overlooked by who approves.
    pub fn is_great(self) -> bool {
        self != Self::Usual
    }

    fn goal(self) -> &'static str {
        match self {
            Self::All => "to everything",
            Self::Others => "to act as others",
            Self::Rights => "to roles and bindings",
            Self::Secrets => "to Secrets",
            Self::Exec => "to get into Pods",
            Self::Admission => "to admission and APIs",
            Self::Nodes => "to nodes",
            Self::Usual => "to objects",
        }
    }
}

impl Gain {
    /// To make objects of a kind, of which many are called so.
    pub(super) fn of_kind(group: &str, kind: &str, many: &str, place: &str) -> Self {
        // Groups of Kubernetes need not be told apart.
        let named = group.contains('.') && !group.ends_with(".k8s.io");
        let of = if named { format!(".{group}") } else { String::new() };
        let plural = format!("{}s", kind.to_lowercase());
        Self { reach: Power::of(group, &plural, "create"), words: format!("create {many}{of}{place}") }
    }

    /// All that a rule gives, apart by how far it reaches: `get,list pods`, `bind clusterroles.rbac.authorization.k8s.io view`.
    pub(super) fn of_rule(rule: &Rule, place: &str) -> Vec<Self> {
        let Rule { groups, resources, names, urls, verbs } = rule;
        let mut parts: BTreeMap<Power, Vec<&str>> = BTreeMap::new();
        for resource in resources {
            let pairs = groups.iter().flat_map(|group| verbs.iter().map(move |verb| (group, verb)));
            let reach = pairs.map(|(group, verb)| Power::of(group, resource, verb)).min();
            parts.entry(reach.unwrap_or(Power::Usual)).or_default().push(resource);
        }
        if !urls.is_empty() {
            parts.entry(Power::Usual).or_default();
        }
        let groups: Vec<&str> = groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
        let groups = if groups.is_empty() { String::new() } else { format!(".{}", groups.join(",")) };
        let short = |list: &[String]| truncate(&list.join(","), LONGEST);
        let say = |(reach, resources): (Power, Vec<&str>)| {
            let resources =
                format!("{}{}", truncate(&resources.join(","), LONGEST), truncate(&groups, LONGEST));
            let mut words = vec![short(verbs), resources, short(names), short(urls)];
            words.retain(|word| !word.is_empty());
            Self { reach, words: format!("{}{place}", words.join(" ")) }
        };
        parts.into_iter().map(say).collect()
    }

    /// The great ones in at most `most` lines, then the usual ones. More than that of great ones are told by what they lead to, and
    /// counted: none is left out.
    pub fn told(gained: &BTreeSet<Self>, most: usize) -> Vec<String> {
        let (great, usual): (Vec<&Self>, Vec<&Self>) = gained.iter().partition(|gain| gain.reach.is_great());
        let mut told: Vec<String> = Vec::new();
        if great.len() <= most {
            told.extend(great.iter().map(|gain| gain.words.clone()));
        } else {
            for same in great.chunk_by(|one, next| one.reach == next.reach) {
                let Some((first, others)) = same.split_first() else { continue };
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(" and {} {}", counted(more, "more right"), first.reach.goal()),
                };
                told.push(format!("{}{more}", truncate(&first.words, 4 * LONGEST - more.len())));
            }
        }
        told.extend(usual.iter().map(|gain| gain.words.clone()));
        told
    }
}

#[cfg(test)]
mod tests;
