//! Works out the rights that the account of a logical cloud needs for the objects of its deployments: to make, change and remove them,
//! and what the API server asks for beyond that. Reads are not the account's.

use std::collections::{BTreeMap, BTreeSet};

use super::gain::Gain;
use super::harmless::{is_confining, is_harmless, is_ours, is_shared};
use super::{Kind, Resource, Rule, defined, escalation};
use crate::apis::ApiList;
use crate::identity::{Identity, kind_of};
use crate::role::Derived;
use crate::set::ManifestSet;

/// To make, change and remove an object.
const KEEP: [&str; 3] = ["create", "delete", "patch"];
/// The same without its removal: objects of a chart's folder `crds` are never removed.
const MAKE: [&str; 2] = ["create", "patch"];
/// The same where rights are listed: plans look at objects as the account, too.
const KEEP_AND_LOOK: [&str; 4] = ["create", "delete", "get", "patch"];
const MAKE_AND_LOOK: [&str; 3] = ["create", "get", "patch"];

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
    /// Of kinds that EMCO has objects of beside it: rights to others than those of the manifests are not derived.
    name: Option<String>,
}

/// One rule is made of these: kinds of a group, or one whose objects are named.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kept<'a> {
    place: String,
    group: &'a str,
    removed: bool,
    named: Option<String>,
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
            let Identity { namespace, name, .. } = Identity::of(&manifest.json);
            for held in escalation::held(&manifest.json) {
                let names = held.name.into_iter().chain(held.rule.names.iter().cloned()).collect();
                asked.held.insert((namespace.clone(), Rule { names, ..held.rule }));
            }
            let name = is_shared(group, kind).then_some(name);
            let (group, kind) = (group.to_owned(), kind.to_owned());
            asked.kinds.insert(OfKind { namespace, group, kind, removed: !manifest.crd_folder, name });
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
    pub fn gains(&self, home: &str, derived: &Derived) -> BTreeSet<Gain> {
        let place = |namespace: &str| match namespace {
            "" => " of the whole cluster".to_owned(),
            there if there == home => String::new(),
            there => format!(" in {there}"),
        };
        let kinds = self.kinds_of(derived).filter(|of| derived.holds(&of.namespace));
        let kinds =
            kinds.map(|of| Gain::of_kind(&of.group, &of.kind, &plural(&of.kind), &place(&of.namespace)));
        let held = self.held_of(derived).flat_map(|(namespace, rule)| Gain::of_rule(rule, &place(namespace)));
        kinds.chain(held).collect()
    }

    /// The rules for this on a cluster that serves `apis`. A kind that it does not serve has no rule: nothing can be made of it. Within
    /// namespaces, none of what confines them is among the rules.
    pub fn rights(&self, apis: &ApiList, derived: &Derived) -> Rights {
        self.rules(apis, derived, (&KEEP, &MAKE))
    }

    /// All rules for this, to be listed: whoever lists them decides what may be given.
    pub fn to_list(&self, apis: &ApiList) -> Rights {
        let all = Derived { namespaces: BTreeSet::new(), cluster: true };
        self.rules(apis, &all, (&KEEP_AND_LOOK, &MAKE_AND_LOOK))
    }

    fn rules(&self, apis: &ApiList, derived: &Derived, (keep, make): (&[&str], &[&str])) -> Rights {
        let mut all: BTreeMap<Kept<'_>, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
        for OfKind { namespace, group, kind, removed, name } in self.kinds_of(derived) {
            let served = apis.preferred(group, kind).map(|api| (api.plural.as_str(), api.namespaced));
            let own = || {
                let own = self.own.get(&(group.clone(), kind.clone()))?;
                Some((own.plural.as_str(), own.namespaced))
            };
            let Some((plural, namespaced)) = served.or_else(own) else { continue };
            let place = if namespaced { namespace.clone() } else { String::new() };
            if derived.holds(&place) {
                let named = name.is_some().then(|| plural.to_owned());
                let kept = Kept { place, group, removed: *removed, named };
                let (resources, names) = all.entry(kept).or_default();
                resources.insert(plural.to_owned());
                names.extend(name.clone());
            }
        }
        let kept = all.into_iter().map(|(Kept { place, group, removed, named: _ }, (resources, names))| {
            let verbs = if removed { keep } else { make };
            let rule = Rule {
                groups: vec![group.to_owned()],
                resources: resources.into_iter().collect(),
                names: names.into_iter().collect(),
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
        self.kinds.iter().filter(move |of| derived.cluster || of.is_harmless())
    }

    /// Rules that are derived.
    fn held_of<'a>(&'a self, derived: &'a Derived) -> impl Iterator<Item = &'a (String, Rule)> {
        let holds = move |(place, rule): &&(String, Rule)| derived.holds(place) && is_harmless(rule);
        self.held.iter().filter(move |held| derived.cluster || holds(held))
    }
}

impl OfKind {
    /// Its objects neither confine a namespace nor are EMCO's.
    fn is_harmless(&self) -> bool {
        !is_confining(&self.group, &self.kind) && !self.name.as_deref().is_some_and(is_ours)
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

impl Rights {
    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.cluster.len() + self.namespaces.values().map(Vec::len).sum::<usize>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds what another cluster asks for.
    pub fn add(&mut self, other: Self) {
        let join = |rules: &mut Vec<Rule>, more: Vec<Rule>| {
            rules.extend(more);
            rules.sort();
            rules.dedup();
        };
        join(&mut self.cluster, other.cluster);
        for (namespace, rules) in other.namespaces {
            join(self.namespaces.entry(namespace).or_default(), rules);
        }
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
