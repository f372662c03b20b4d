//! Keeps what is known of one kind on one cluster: of the whole cluster, or where that may not be listed, namespace by namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::Identity;

use super::super::errors::Trouble;
use super::pairs::Pairs;
use super::{Known, Seen};

/// Deleted Jobs and Pods remembered of one kind. What is forgotten counts as it does after a restart.
const MOST_ENDED: usize = 4096;

/// Where one watch looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On the whole cluster.
    #[default]
    Everywhere,
    /// In one namespace.
    Within(String),
}

impl Place {
    /// Whether objects of a namespace ("": of none) are seen there.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Within(own) => own == namespace,
        }
    }

    /// The namespace; "" = all.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Everywhere => "",
            Self::Within(own) => own,
        }
    }
}

/// What one watch has told.
#[derive(Default)]
pub struct Part {
    pub known: Known,
    /// Why what is known may be minutes old, or not be known: the kind cannot be watched, or its lists fail.
    pub unwatched: Option<Trouble>,
    /// The watch has told everything up to here.
    pub version: u64,
}

/// What is known of a kind.
#[derive(Default)]
pub struct KindStore {
    whole: Part,
    // By namespace, where the whole cluster may not be listed: what counts then.
    parts: Option<BTreeMap<String, Part>>,
    /// By namespace and name.
    pub objects: Pairs<Arc<Seen>>,
    // How Jobs and Pods of ours were last seen that are gone since; until one of the same name is there.
    ended: Pairs<Arc<Seen>>,
}

impl KindStore {
    /// What tells of objects of a namespace ("": of none); `None` where that namespace is not looked at yet.
    pub fn part(&self, namespace: &str) -> Option<&Part> {
        match &self.parts {
            Some(parts) if !namespace.is_empty() => parts.get(namespace),
            _ => Some(&self.whole),
        }
    }

    /// The same, to be changed.
    pub fn part_mut(&mut self, namespace: &str) -> Option<&mut Part> {
        match &mut self.parts {
            Some(parts) if !namespace.is_empty() => parts.get_mut(namespace),
            _ => Some(&mut self.whole),
        }
    }

    /// What the watch of a place tells; `None` where that watch does not count any more.
    pub fn at(&mut self, place: &Place) -> Option<&mut Part> {
        match place {
            Place::Everywhere => Some(&mut self.whole),
            Place::Within(namespace) => self.parts.as_mut()?.get_mut(namespace),
        }
    }

    /// Whether everything is known of objects of a namespace.
    pub fn is_listed(&self, namespace: &str) -> bool {
        self.part(namespace).is_some_and(|part| part.known == Known::All)
    }

    /// Whether it is looked at namespace by namespace.
    pub const fn is_split(&self) -> bool {
        self.parts.is_some()
    }

    /// The namespaces that are looked at one by one.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// Whether one of them is known, so that the whole need not be.
    pub fn is_known_in_parts(&self) -> bool {
        self.parts.iter().flat_map(BTreeMap::values).any(|part| part.known == Known::All)
    }

    /// The whole cluster may not be listed: these namespaces are looked at one by one. What was known of others is forgotten.
    pub fn split(&mut self, wanted: &BTreeSet<String>) {
        let parts = self.parts.get_or_insert_default();
        parts.retain(|namespace, _| wanted.contains(namespace));
        for namespace in wanted {
            parts.entry(namespace.clone()).or_default();
        }
        self.objects.retain(|namespace, _, _| wanted.contains(namespace));
    }

    /// The whole cluster may be listed again.
    pub fn unite(&mut self) {
        self.parts = None;
    }

    pub fn put(&mut self, id: &Identity, seen: Seen) {
        self.ended.remove(&id.namespace, &id.name);
        self.objects.insert(id.namespace.clone(), id.name.clone(), Arc::new(seen));
    }

    pub fn get(&self, id: &Identity) -> Option<&Arc<Seen>> {
        self.objects.get(&id.namespace, &id.name)
    }

    /// How a Job or Pod was last seen that is gone.
    pub fn ended(&self, id: &Identity) -> Option<&Arc<Seen>> {
        self.ended.get(&id.namespace, &id.name)
    }

    /// The watch told the end of an object.
    pub fn end(&mut self, id: &Identity, seen: Seen) {
        self.objects.remove(&id.namespace, &id.name);
        if seen.runs {
            self.ended.insert(id.namespace.clone(), id.name.clone(), Arc::new(seen));
            if self.ended.len() > MOST_ENDED {
                self.ended.pop_first();
            }
        }
    }

    /// Takes in a complete list of a place. Whether it shows what the watch had not delivered: a newer object, or the end of one. `None`
    /// where that place does not count any more.
    pub fn listed(&mut self, place: &Place, version: u64, objects: Vec<(Identity, Seen)>) -> Option<bool> {
        if *place == Place::Everywhere {
            self.unite();
        }
        let part = self.at(place)?;
        let (told, was_known) = (part.version, part.known == Known::All);
        (part.version, part.known) = (version, Known::All);
        let newer = |(id, seen): &(Identity, Seen)| {
            seen.version > told && self.get(id).is_none_or(|known| known.version < seen.version)
        };
        let mut missed = objects.iter().any(newer);
        let here = self.objects.iter().filter(|(namespace, ..)| place.covers(namespace));
        let older = here.filter(|(_, _, seen)| seen.version <= version).count();
        // Each name of the list that the store has takes one off; what remains is gone.
        let there =
            objects.iter().filter(|(id, _)| self.get(id).is_some_and(|known| known.version <= version));
        missed |= older > there.count();
        // Answers that are newer than the list stay.
        self.objects.retain(|namespace, _, seen| !place.covers(namespace) || seen.version > version);
        for (id, seen) in objects {
            if self.get(&id).is_none() {
                self.objects.insert(id.namespace, id.name, Arc::new(seen));
            }
        }
        Some(missed && was_known)
    }

    /// What was known of a place is worth nothing any more. Whether that is another state than before.
    pub fn unlisted(&mut self, place: &Place, known: Known) -> bool {
        let Some(part) = self.at(place) else { return false };
        let changed = part.known != known;
        (part.known, part.version) = (known, 0);
        self.objects.retain(|namespace, _, _| !place.covers(namespace));
        changed
    }
}
