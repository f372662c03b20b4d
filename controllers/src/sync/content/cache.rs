//! Keeps packs and sets while there is room: what was not used longest leaves first.

use std::collections::BTreeMap;
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
    Pack(String),
    Set(SetDigest),
}

#[derive(Clone)]
enum Kept {
    Context(Vec<PackRef>),
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
    bytes: usize,
    most: usize,
    clock: u64,
}

impl Cache {
    pub(super) const fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), bytes: 0, most, clock: 0 }
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
        if let Some(before) = self.entries.remove(&Key::Context(source.clone())) {
            self.bytes = self.bytes.saturating_sub(before.bytes);
        }
    }

    /// Notes for which revision a pack and a set were asked for: when that is gone, they go.
    pub(super) fn asked(&mut self, source: &Source, pack: Option<&str>, set: Option<&SetDigest>) {
        let keys = [pack.map(|name| Key::Pack(name.to_owned())), set.map(|digest| Key::Set(digest.clone()))];
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
        self.entries.retain(|key, entry| match (key, &entry.source) {
            (Key::Context(source), _) | (_, Some(source)) => is_there(source),
            (_, None) => true,
        });
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
    }

    pub(super) fn pack(&mut self, name: &str) -> Option<Arc<Pack>> {
        match self.get(&Key::Pack(name.to_owned()))? {
            Kept::Pack(pack) => Some(pack),
            _ => None,
        }
    }

    pub(super) fn keep_pack(&mut self, name: String, pack: Arc<Pack>) {
        let bytes = pack.size() + 256;
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
        entry.used = self.clock;
        Some(entry.kept.clone())
    }

    fn keep(&mut self, key: Key, kept: Kept, bytes: usize) {
        self.clock += 1;
        let used = self.clock;
        if let Some(before) = self.entries.insert(key, Entry { kept, bytes, used, source: None }) {
            self.bytes = self.bytes.saturating_sub(before.bytes);
        }
        self.bytes += bytes;
        while self.bytes > self.most && self.entries.len() > 1 {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            let Some(entry) = oldest.and_then(|key| self.entries.remove(&key)) else { return };
            self.bytes = self.bytes.saturating_sub(entry.bytes);
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
        assert!(cache.entries.is_empty() && cache.bytes == 0);
    }
}
