//! Works out the rights that the account of a logical cloud needs for the objects of its deployments: to make, change and remove them,
//! and what the API server asks for beyond that. Reads are not the account's.

use std::collections::{BTreeMap, BTreeSet};

use super::{Kind, RBAC, Resource, Rule, defined, escalation};
use crate::apis::ApiList;
use crate::identity::{Identity, kind_of};
use crate::role::Derived;
use crate::set::ManifestSet;

/// To make, change and remove an object.
const KEEP: [&str; 3] = ["create", "delete", "patch"];
/// The same without its removal: objects of a chart's folder `crds` are never removed.
const MAKE: [&str; 2] = ["create", "patch"];

/// What confines a namespace: nothing in it gives itself more.
const CONFINING: [&str; 2] = ["resourcequotas", "limitranges"];
/// Roles of every cluster that leave what confines a namespace alone.
const USUAL: [&str; 3] = ["view", "edit", "admin"];

/// What sets of manifests ask of an account, before a cluster says which resources their kinds are.
#[derive(Clone, Default)]
pub struct Asked {
    kinds: BTreeSet<OfKind>,
    /// Rules that have to be held where an object is ("": on the whole cluster), for it gives them away.
    held: BTreeSet<(String, Rule)>,
    /// Kinds that the manifests themselves define.
    own: BTreeMap<Kind, Resource>,
}

/// Objects of one kind in one namespace ("": none).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OfKind {
    namespace: String,
    group: String,
    kind: String,
    removed: bool,
}

/// Rules of an account, by the place where they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rights {
    /// On the whole cluster.
    pub cluster: Vec<Rule>,
    /// By namespace.
    pub namespaces: BTreeMap<String, Vec<Rule>>,
}

impl Asked {
    /// What a set asks of an account: for its manifests that are applied as this account.
    pub fn of(set: &ManifestSet, account: &str) -> Self {
        let mut asked = Self { own: defined(&[set]), ..Self::default() };
        for manifest in set.manifests.iter().filter(|one| one.account.as_deref() == Some(account)) {
            let (group, kind) = kind_of(&manifest.json);
            let namespace = Identity::of(&manifest.json).namespace;
            for held in escalation::held(&manifest.json) {
                let names = held.name.into_iter().chain(held.rule.names.iter().cloned()).collect();
                asked.held.insert((namespace.clone(), Rule { names, ..held.rule }));
            }
            let (group, kind) = (group.to_owned(), kind.to_owned());
            asked.kinds.insert(OfKind { namespace, group, kind, removed: !manifest.crd_folder });
        }
        asked
    }

    /// Adds what other sets ask.
    pub fn add(&mut self, other: &Self) {
        self.kinds.extend(other.kinds.iter().cloned());
        self.held.extend(other.held.iter().cloned());
        self.own.extend(other.own.iter().map(|(kind, resource)| (kind.clone(), resource.clone())));
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// What is asked, in words: `create NetworkPolicies`. Without what is not derived; namespaces other than `home` are named.
    pub fn phrases(&self, home: &str, derived: &Derived) -> BTreeSet<String> {
        let place = |namespace: &str| match namespace {
            "" => " of the whole cluster".to_owned(),
            there if there == home => String::new(),
            there => format!(" in {there}"),
        };
        let kinds = self.kinds_of(derived).filter(|of| derived.holds(&of.namespace)).map(|of| {
            let OfKind { namespace, group, kind, removed: _ } = of;
            // Groups of Kubernetes need not be told apart.
            let group = if group.contains('.') && !group.ends_with(".k8s.io") {
                format!(".{group}")
            } else {
                String::new()
            };
            format!("create {}{group}{}", plural(kind), place(namespace))
        });
        let held =
            self.held_of(derived).map(|(namespace, rule)| format!("{}{}", rule.phrase(), place(namespace)));
        kinds.chain(held).collect()
    }

    /// The rules for this on a cluster that serves `apis`. A kind that it does not serve has no rule: nothing can be made of it. Within
    /// namespaces, none of what confines them is among the rules.
    pub fn rights(&self, apis: &ApiList, derived: &Derived) -> Rights {
        let mut resources: BTreeMap<(String, &str, bool), BTreeSet<String>> = BTreeMap::new();
        for OfKind { namespace, group, kind, removed } in self.kinds_of(derived) {
            let served = apis.preferred(group, kind).map(|api| (api.plural.as_str(), api.namespaced));
            let own = || {
                let own = self.own.get(&(group.clone(), kind.clone()))?;
                Some((own.plural.as_str(), own.namespaced))
            };
            let Some((plural, namespaced)) = served.or_else(own) else { continue };
            let place = if namespaced { namespace.clone() } else { String::new() };
            if derived.holds(&place) {
                resources.entry((place, group.as_str(), *removed)).or_default().insert(plural.to_owned());
            }
        }
        let kept = resources.into_iter().map(|((place, group, removed), resources)| {
            let verbs: &[&str] = if removed { &KEEP } else { &MAKE };
            let rule = Rule {
                groups: vec![group.to_owned()],
                resources: resources.into_iter().collect(),
                verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
                ..Rule::default()
            };
            (place, rule)
        });
        let mut rights = Rights::default();
        for (place, rule) in kept.chain(self.held_of(derived).cloned()) {
            if place.is_empty() {
                rights.cluster.push(rule);
            } else {
                rights.namespaces.entry(place).or_default().push(rule);
            }
        }
        rights
    }

    /// Kinds of which rights are derived, if that is so where they are.
    fn kinds_of<'a>(&'a self, derived: &'a Derived) -> impl Iterator<Item = &'a OfKind> {
        self.kinds.iter().filter(move |of| derived.cluster || !of.is_confining())
    }

    /// Rules that are derived.
    fn held_of<'a>(&'a self, derived: &'a Derived) -> impl Iterator<Item = &'a (String, Rule)> {
        let holds = move |(place, rule): &&(String, Rule)| derived.holds(place) && is_harmless(rule);
        self.held.iter().filter(move |held| derived.cluster || holds(held))
    }
}

impl OfKind {
    /// Whether objects of the kind confine a namespace.
    fn is_confining(&self) -> bool {
        self.group.is_empty() && matches!(self.kind.as_str(), "ResourceQuota" | "LimitRange")
    }
}

/// Many objects of a kind.
fn plural(kind: &str) -> String {
    let mut before = kind.chars().rev().skip(1);
    let vowel = before.next().is_some_and(|before| "aeiou".contains(before));
    match kind.strip_suffix('y').filter(|_| !vowel) {
        Some(stem) => format!("{stem}ies"),
        None if kind == "Endpoints" => kind.to_owned(),
        None if ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// Whether a rule that a chart gives away, and so has to be held, leaves what confines its namespace alone.
fn is_harmless(rule: &Rule) -> bool {
    let Rule { groups, resources, names, urls, verbs } = rule;
    let has = |list: &[String], words: &[&str]| list.iter().any(|one| words.contains(&one.as_str()));
    let confining =
        resources.iter().any(|one| CONFINING.contains(&one.split('/').next().unwrap_or_default()));
    let binds = has(verbs, &["bind"]) && has(groups, &[RBAC]) && has(resources, &["clusterroles"]);
    let usual = !names.is_empty() && names.iter().all(|name| USUAL.contains(&name.as_str()));
    let all = [groups, resources, verbs].into_iter().any(|list| has(list, &["*"]));
    urls.is_empty() && !all && !confining && !has(verbs, &["escalate", "impersonate"]) && (!binds || usual)
}

impl Rights {
    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.cluster.len() + self.namespaces.values().map(Vec::len).sum::<usize>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rules that hold in a namespace.
    pub fn within(&self, namespace: &str) -> &[Rule] {
        self.namespaces.get(namespace).map_or(&[][..], Vec::as_slice)
    }

    /// Rules of the whole cluster and of all namespaces but one.
    pub fn beyond(&self, namespace: &str) -> BTreeSet<&Rule> {
        let others = self.namespaces.iter().filter(|(there, _)| *there != namespace);
        self.cluster.iter().chain(others.flat_map(|(_, rules)| rules)).collect()
    }
}

impl Rule {
    /// The rule in words: `get,list pods`, `bind clusterroles.rbac.authorization.k8s.io view`.
    fn phrase(&self) -> String {
        let Self { groups, resources, names, urls, verbs } = self;
        let groups: Vec<&str> = groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
        let groups = if groups.is_empty() { String::new() } else { format!(".{}", groups.join(",")) };
        let mut words = vec![verbs.join(","), format!("{}{groups}", resources.join(","))];
        words.extend([names, urls].into_iter().filter(|list| !list.is_empty()).map(|list| list.join(",")));
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }

    /// The first right of this rule that no rule of `had` gives, as in `create networkpolicies.networking.k8s.io`. Paths that are no
    /// resources are not looked at.
    pub fn lacks(&self, had: &[Self]) -> Option<String> {
        let names = |rule: &Self| match self.names.as_slice() {
            _ if rule.names.is_empty() => true,
            [] => false,
            wanted => wanted.iter().all(|name| rule.names.contains(name)),
        };
        let is_in = |list: &[String], wanted: &String| list.iter().any(|one| one == "*" || one == wanted);
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let gives = |rule: &Self| {
                        is_in(&rule.groups, group)
                            && is_in(&rule.resources, resource)
                            && is_in(&rule.verbs, verb)
                            && names(rule)
                    };
                    if !had.iter().any(gives) {
                        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                        return Some(format!("{verb} {resource}{group}"));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
