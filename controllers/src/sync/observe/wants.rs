//! Keeps which kinds owners need, in which namespaces, and as which account they write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::apis::ApiResource;

use super::KindKey;
use super::store::Place;

/// A kind that an owner needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The kind, as the cluster serves it.
    pub resource: ApiResource,
    /// Namespaces of its objects ("": none).
    pub namespaces: BTreeSet<String>,
}

/// Which watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchKey {
    /// Of this kind.
    pub kind: KindKey,
    /// There.
    pub place: Place,
}

/// What a watch looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The kind, as the cluster serves it.
    pub resource: ApiResource,
    /// Who may see it there, where the credentials of the Cluster may not.
    pub account: Option<Arc<str>>,
}

/// What one owner needs.
#[derive(Default, PartialEq, Eq)]
struct Want {
    kinds: BTreeMap<KindKey, BTreeSet<String>>,
    account: Option<Arc<str>>,
}

/// What all owners need.
#[derive(Default)]
pub struct Wants {
    owners: BTreeMap<String, Want>,
    resources: BTreeMap<KindKey, ApiResource>,
}

impl Wants {
    /// Records what an owner needs; an owner that needs none is forgotten. Whether that is something else than before.
    pub fn set(&mut self, owner: &str, wanted: &[Wanted], account: Option<&Arc<str>>) -> bool {
        let key = |one: &Wanted| (one.resource.group.clone(), one.resource.kind.clone());
        let kinds: BTreeMap<_, _> = wanted.iter().map(|one| (key(one), one.namespaces.clone())).collect();
        let want = Want { kinds, account: account.cloned() };
        let mut changed = self.owners.get(owner).is_none_or(|before| *before != want);
        for one in wanted {
            // The last word counts: the version that a kind was watched in may not be served any more.
            let known = self.resources.insert(key(one), one.resource.clone());
            changed |= known.is_none_or(|known| known != one.resource);
        }
        if !changed {
            return false;
        }
        if wanted.is_empty() {
            self.owners.remove(owner);
        } else {
            self.owners.insert(owner.to_owned(), want);
        }
        let needed: BTreeSet<&KindKey> = self.owners.values().flat_map(|want| want.kinds.keys()).collect();
        self.resources.retain(|kind, _| needed.contains(kind));
        true
    }

    /// Kinds that somebody needs.
    pub fn resources(&self) -> impl Iterator<Item = (&KindKey, &ApiResource)> {
        self.resources.iter()
    }

    /// Whether objects of a kind are in namespaces.
    pub fn is_namespaced(&self, kind: &KindKey) -> bool {
        self.resources.get(kind).is_some_and(|resource| resource.namespaced)
    }

    /// Owners that need a kind there.
    pub fn owners(&self, kind: &KindKey, place: &Place) -> impl Iterator<Item = &str> {
        let needs = move |want: &Want| {
            want.kinds.get(kind).is_some_and(|all| match place {
                Place::Everywhere => true,
                Place::Within(namespace) => all.contains(namespace),
            })
        };
        self.owners.iter().filter(move |(_, want)| needs(want)).map(|(owner, _)| owner.as_str())
    }

    /// Namespaces in which somebody needs a kind.
    pub fn namespaces(&self, kind: &KindKey) -> BTreeSet<String> {
        let all = self.owners.values().filter_map(|want| want.kinds.get(kind)).flatten();
        all.filter(|namespace| !namespace.is_empty()).cloned().collect()
    }

    /// The account of one that needs a kind in a namespace. (A namespace has one logical cloud.)
    pub fn account(&self, kind: &KindKey, place: &Place) -> Option<Arc<str>> {
        let Place::Within(namespace) = place else { return None };
        let needs = |want: &&Want| want.kinds.get(kind).is_some_and(|all| all.contains(namespace));
        self.owners.values().filter(needs).find_map(|want| want.account.clone())
    }
}
