//! Keeps packs and sets while there is room: what was not used longest leaves first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::app_context::PackRef;
use emco_engine::identity::SetDigest;
use emco_engine::pack::Pack;
use emco_engine::set::ManifestSet;

use super::super::prepared::Prepared;
use super::Source;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Context(Source),
    /// Which sets a pack holds, or parts of: it outlives the pack.
    Index(String),
    Pack(String),
    Set(SetDigest),
}

impl Key {
    const fn is_small(&self) -> bool {
        matches!(self, Self::Context(_) | Self::Index(_))
    }
}

#[derive(Clone)]
enum Kept {
    Context(Vec<PackRef>),
    Index(Arc<BTreeSet<SetDigest>>),
    Pack(Arc<Pack>),
    Set(Arc<Prepared>),
}

struct Entry {
    kept: Kept,
    bytes: usize,
    used: u64,
    /// The revision it was asked for last.
    source: Option<Source>,
}

/// A bounded cache. Packs and sets are immutable and named by content, so they are never stale. The packs of a revision are
/// another matter: an owner that is made again under its name counts its revisions anew.
pub(super) struct Cache {
    entries: BTreeMap<Key, Entry>,
    /// Packs and sets by when they were used last.
    by_use: BTreeMap<u64, Key>,
    /// The same of what says where something is: it is small, and leaves after all that it spares reading.
    small_by_use: BTreeMap<u64, Key>,
    bytes: usize,
    small_bytes: usize,
    most: usize,
    clock: u64,
}

impl Cache {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            small_by_use: BTreeMap::new(),
            bytes: 0,
            small_bytes: 0,
            most,
            clock: 0,
        }
    }

    pub(super) fn packs_of(&mut self, source: &Source) -> Option<Vec<PackRef>> {
        match self.get(&Key::Context(source.clone()))? {
            Kept::Context(packs) => Some(packs),
            _ => None,
        }
    }

    pub(super) fn keep_packs_of(&mut self, source: Source, packs: Vec<PackRef>) {
        let bytes = 256 * (packs.len() + 1);
        self.keep(Key::Context(source), Kept::Context(packs), bytes);
    }

    pub(super) fn forget_packs_of(&mut self, source: &Source) {
        self.remove(&Key::Context(source.clone()));
    }

    /// Notes for which revision a pack and a set were asked for: when that is gone, they go.
    pub(super) fn asked(&mut self, source: &Source, pack: Option<&str>, set: Option<&SetDigest>) {
        let keys = [
            pack.map(|name| Key::Pack(name.to_owned())),
            pack.map(|name| Key::Index(name.to_owned())),
            set.map(|digest| Key::Set(digest.clone())),
        ];
        for key in keys.iter().flatten() {
            if let Some(entry) = self.entries.get_mut(key)
                && entry.source.as_ref() != Some(source)
            {
                entry.source = Some(source.clone());
            }
        }
    }

    /// Forgets what was asked for by revisions that are gone.
    pub(super) fn forget_gone(&mut self, is_there: impl Fn(&Source) -> bool) {
        let stays = |(key, entry): &(&Key, &Entry)| match (key, &entry.source) {
            (Key::Context(source), _) | (_, Some(source)) => is_there(source),
            (_, None) => true,
        };
        let gone = self.entries.iter().filter(|entry| !stays(entry)).map(|(key, _)| key.clone());
        for key in gone.collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    /// The sets that a pack holds, or parts of, also where the pack itself is not here any more.
    pub(super) fn sets_of(&mut self, pack: &str) -> Option<Arc<BTreeSet<SetDigest>>> {
        match self.get(&Key::Index(pack.to_owned()))? {
            Kept::Index(sets) => Some(sets),
            _ => None,
        }
    }

    pub(super) fn pack(&mut self, name: &str) -> Option<Arc<Pack>> {
        match self.get(&Key::Pack(name.to_owned()))? {
            Kept::Pack(pack) => Some(pack),
            _ => None,
        }
    }

    pub(super) fn keep_pack(&mut self, name: String, pack: Arc<Pack>) {
        let bytes = pack.size() + 256;
        let sets: BTreeSet<SetDigest> = pack.sets().cloned().collect();
        let size = 256 + sets.iter().map(|set| 64 + set.0.len()).sum::<usize>();
        self.keep(Key::Index(name.clone()), Kept::Index(Arc::new(sets)), size);
        self.keep(Key::Pack(name), Kept::Pack(pack), bytes);
    }

    pub(super) fn set(&mut self, digest: &SetDigest) -> Option<Arc<Prepared>> {
        match self.get(&Key::Set(digest.clone()))? {
            Kept::Set(set) => Some(set),
            _ => None,
        }
    }

    pub(super) fn keep_set(&mut self, digest: SetDigest, set: Arc<Prepared>) {
        let bytes = set_bytes(&set.set);
        self.keep(Key::Set(digest), Kept::Set(set), bytes);
    }

    fn get(&mut self, key: &Key) -> Option<Kept> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        let used = std::mem::replace(&mut entry.used, self.clock);
        let by_use = if key.is_small() { &mut self.small_by_use } else { &mut self.by_use };
        if let Some(key) = by_use.remove(&used) {
            by_use.insert(self.clock, key);
        }
        Some(entry.kept.clone())
    }

    fn remove(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        if key.is_small() {
            self.small_by_use.remove(&entry.used);
            self.small_bytes = self.small_bytes.saturating_sub(entry.bytes);
        } else {
            self.by_use.remove(&entry.used);
        }
    }

    /// What leaves next.
    fn oldest(&self) -> Option<Key> {
        let (small, large) = (self.small_by_use.values().next(), self.by_use.values().next());
        let is_too_much = self.small_bytes > self.most / 4;
        let first = if is_too_much { small.or(large) } else { large.or(small) };
        first.cloned()
    }

    fn keep(&mut self, key: Key, kept: Kept, bytes: usize) {
        self.remove(&key);
        self.clock += 1;
        let used = self.clock;
        self.bytes += bytes;
        if key.is_small() {
            self.small_by_use.insert(used, key.clone());
            self.small_bytes += bytes;
        } else {
            self.by_use.insert(used, key.clone());
        }
        self.entries.insert(key, Entry { kept, bytes, used, source: None });
        while self.bytes > self.most && self.entries.len() > 1 {
            let Some(oldest) = self.oldest() else { return };
            self.remove(&oldest);
        }
    }
}

/// About what a set takes in memory: a parsed manifest is a few times its text.
pub fn set_bytes(set: &ManifestSet) -> usize {
    256 + set.manifests.iter().map(|m| 4 * size(&m.json) + 512).sum::<usize>()
}

/// About how long a value is as text.
fn size(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(key, item)| key.len() + size(item) + 4).sum::<usize>() + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_longest_leaves_first() {
        let mut cache = Cache::new(4 * 300);
        let digest = |n: i32| SetDigest(n.to_string());
        for n in 0..4 {
            let set = ManifestSet { digest: digest(n), app: "web".to_owned(), manifests: Vec::new() };
            cache.keep_set(digest(n), Arc::new(Prepared::of(Arc::new(set))));
        }
        assert!(cache.set(&digest(0)).is_some());
        let set = ManifestSet { digest: digest(9), app: "web".to_owned(), manifests: Vec::new() };
        cache.keep_set(digest(9), Arc::new(Prepared::of(Arc::new(set))));
        assert!(
            cache.set(&digest(0)).is_some()
                && cache.set(&digest(1)).is_none()
                && cache.set(&digest(9)).is_some()
        );
        assert!(cache.bytes <= cache.most);
        assert_eq!(cache.entries.len(), cache.by_use.len() + cache.small_by_use.len());
    }

    #[test]
    fn what_was_asked_for_a_revision_that_is_gone_is_forgotten() {
        let mut cache = Cache::new(1 << 20);
        let source = |revision| Source { namespace: "shop".to_owned(), owner: "o".to_owned(), revision };
        for n in 0..3 {
            let digest = SetDigest(n.to_string());
            let set = ManifestSet { digest: digest.clone(), app: "web".to_owned(), manifests: Vec::new() };
            cache.keep_set(digest.clone(), Arc::new(Prepared::of(Arc::new(set))));
            cache.asked(&source(n), None, Some(&digest));
            cache.keep_packs_of(source(n), Vec::new());
        }
        // The set of the first revision is that of the last one, too.
        cache.asked(&source(2), None, Some(&SetDigest("0".to_owned())));
        cache.forget_gone(|source| source.revision == 2);
        let has = |cache: &mut Cache, n: i64| cache.set(&SetDigest(n.to_string())).is_some();
        assert!(has(&mut cache, 0) && !has(&mut cache, 1) && has(&mut cache, 2));
        assert!(cache.packs_of(&source(1)).is_none() && cache.packs_of(&source(2)).is_some());
        cache.forget_gone(|_| false);
        assert!(
            cache.entries.is_empty()
                && cache.by_use.is_empty()
                && cache.small_by_use.is_empty()
                && cache.bytes == 0
        );
    }
}
