//! Holds what is known of one cluster, and whom it concerns.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::KindKey;
use super::pairs::Pairs;
use super::store::{KindStore, Place};
use super::taken::Taken;
use super::wants::{Wants, WatchKey, Watched};

#[derive(Default)]
pub struct Inner {
    pub kinds: Pairs<KindStore>,
    pub wants: Wants,
    pub bells: BTreeMap<String, watch::Sender<u64>>,
    pub taken: Taken,
}

impl Inner {
    pub fn ring(&self, owner: &str) {
        if let Some(bell) = self.bells.get(owner) {
            bell.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    pub fn ring_all(&self, kind: &KindKey, place: &Place) {
        for owner in self.wants.owners(kind, place) {
            self.ring(owner);
        }
    }

    pub fn store(&self, kind: &KindKey) -> Option<&KindStore> {
        self.kinds.get(&kind.0, &kind.1)
    }

    pub fn store_mut(&mut self, kind: &KindKey) -> Option<&mut KindStore> {
        self.kinds.get_mut(&kind.0, &kind.1)
    }

    /// The namespaces of a kind that are looked at one by one are those that somebody needs.
    pub fn split(&mut self, kind: &KindKey) {
        let wanted = self.wants.namespaces(kind);
        if let Some(store) = self.store_mut(kind) {
            store.split(&wanted);
        }
    }

    /// The watches that all of it takes.
    pub fn watches(&self) -> BTreeMap<WatchKey, Watched> {
        let mut all = BTreeMap::new();
        for (kind, resource) in self.wants.resources() {
            let store = self.store(kind);
            let within = store.into_iter().flat_map(KindStore::namespaces);
            let within = within.map(|namespace| Place::Within(namespace.to_owned()));
            for place in std::iter::once(Place::Everywhere).chain(within) {
                let account = self.wants.account(kind, &place);
                all.insert(
                    WatchKey { kind: kind.clone(), place },
                    Watched { resource: resource.clone(), account },
                );
            }
        }
        all
    }
}
