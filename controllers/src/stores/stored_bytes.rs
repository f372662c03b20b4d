//! Adds up what stored revisions take, by namespace and together, without a walk over all of them; and knows who waits for room.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::AppContext;
use parking_lot::Mutex;

use crate::object::meta;

/// Those of one namespace.
#[derive(Default)]
struct Within {
    /// Packs of each revision.
    revisions: BTreeMap<String, Vec<(String, u64)>>,
    /// How many revisions name a pack, and its bytes: each counts once.
    packs: BTreeMap<String, (usize, u64)>,
    bytes: u64,
}

#[derive(Default)]
struct All {
    namespaces: BTreeMap<String, Within>,
    bytes: u64,
    /// Namespace and name of deployments that found no room, and whether it was the installation that had none.
    waiting: BTreeSet<(String, String, bool)>,
}

/// The index. The watch of revisions keeps it.
#[derive(Default)]
pub struct StoredBytes(Mutex<All>);

impl StoredBytes {
    /// Takes in what the watch shows, or what this process stored. Answers who waited for room that may be there now.
    pub fn note(&self, context: &AppContext, gone: bool) -> Vec<(String, String)> {
        let (namespace, name) = (meta::namespace(context), meta::name(context));
        let mut all = self.0.lock();
        let All { namespaces, bytes, waiting } = &mut *all;
        if gone {
            let Some(within) = namespaces.get_mut(namespace) else { return Vec::new() };
            let freed = within.forget(name);
            *bytes = bytes.saturating_sub(freed);
            if within.revisions.is_empty() {
                namespaces.remove(namespace);
            }
            let woken: Vec<_> =
                waiting.iter().filter(|(of, _, whole)| *whole || of == namespace).cloned().collect();
            waiting.retain(|one| !woken.contains(one));
            return woken.into_iter().map(|(namespace, name, _)| (namespace, name)).collect();
        }
        let within = namespaces.entry(namespace.to_owned()).or_default();
        if !within.revisions.contains_key(name) {
            *bytes += within.add(name, context);
        }
        Vec::new()
    }

    /// What a namespace has.
    pub fn within(&self, namespace: &str) -> u64 {
        self.0.lock().namespaces.get(namespace).map_or(0, |within| within.bytes)
    }

    /// What the installation has.
    pub fn all(&self) -> u64 {
        self.0.lock().bytes
    }

    /// A deployment found no room: it is woken when some revision goes, of its namespace or, `whole`, of any.
    pub fn waits(&self, namespace: &str, name: &str, whole: bool) {
        self.0.lock().waiting.insert((namespace.to_owned(), name.to_owned(), whole));
    }

    /// Begins anew with these.
    #[cfg(test)]
    pub fn rebuild(&self, contexts: &[std::sync::Arc<AppContext>]) {
        *self.0.lock() = All::default();
        for context in contexts {
            self.note(context, false);
        }
    }
}

impl Within {
    /// The bytes that came.
    fn add(&mut self, name: &str, context: &AppContext) -> u64 {
        let packs = context.spec.packs.iter();
        let packs: Vec<(String, u64)> =
            packs.map(|pack| (pack.name.clone(), u64::try_from(pack.bytes).unwrap_or_default())).collect();
        let mut came = 0;
        for (pack, bytes) in &packs {
            let (named, _) = self.packs.entry(pack.clone()).or_insert((0, *bytes));
            *named += 1;
            if *named == 1 {
                came += bytes;
            }
        }
        self.bytes += came;
        self.revisions.insert(name.to_owned(), packs);
        came
    }

    /// The bytes that went.
    fn forget(&mut self, name: &str) -> u64 {
        let mut went = 0;
        for (pack, _) in self.revisions.remove(name).unwrap_or_default() {
            let Some((named, bytes)) = self.packs.get_mut(&pack) else { continue };
            *named -= 1;
            if *named == 0 {
                went += *bytes;
                self.packs.remove(&pack);
            }
        }
        self.bytes = self.bytes.saturating_sub(went);
        went
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::app_context::{AppContextSpec, PackRef};

    use super::*;

    fn context(namespace: &str, name: &str, packs: &[(&str, i64)]) -> AppContext {
        let pack = |(name, bytes): &(&str, i64)| PackRef {
            name: (*name).to_owned(),
            bytes: *bytes,
            ..PackRef::default()
        };
        let packs = packs.iter().map(pack).collect();
        let mut context = AppContext::new(name, AppContextSpec { packs, ..AppContextSpec::default() });
        context.metadata.namespace = Some(namespace.to_owned());
        context
    }

    #[test]
    fn a_pack_counts_once_until_the_last_revision_that_names_it_goes() {
        let stored = StoredBytes::default();
        let (one, two) = (context("a", "x-1", &[("p", 10), ("q", 5)]), context("a", "x-2", &[("p", 10)]));
        for context in [&one, &two, &one, &context("b", "y-1", &[("p", 7)])] {
            stored.note(context, false);
        }
        assert_eq!((stored.within("a"), stored.within("b"), stored.all()), (15, 7, 22));
        stored.note(&one, true);
        assert_eq!((stored.within("a"), stored.all()), (10, 17));
        stored.note(&one, true);
        stored.note(&two, true);
        assert_eq!((stored.within("a"), stored.all()), (0, 7));
    }

    #[test]
    fn who_waits_for_room_is_woken_once_when_a_revision_goes() {
        let stored = StoredBytes::default();
        let (a, b) = (context("a", "x-1", &[("p", 1)]), context("b", "y-1", &[("p", 1)]));
        for context in [&a, &b] {
            stored.note(context, false);
        }
        stored.waits("a", "shop", false);
        stored.waits("b", "till", true);
        let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        assert_eq!(stored.note(&b, true), [pair("b", "till")]);
        assert_eq!(stored.note(&a, true), [pair("a", "shop")]);
        assert!(stored.note(&a, true).is_empty());
    }
}
