//! Remembers the hub's answers to writes of shards until the watch shows the same. Harmless if lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::SyncShard;
use parking_lot::Mutex;

use crate::object::meta;

/// Most entries. Each is removed when the watch shows its object as new, so there are more only where objects went right after
/// they were written.
const MOST: usize = 1024;

/// The newest answers, by the uid of the shard.
#[derive(Default)]
pub struct WriteCache(Mutex<BTreeMap<String, Arc<SyncShard>>>);

impl WriteCache {
    /// The hub stored this.
    pub fn took(&self, shard: &SyncShard) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(meta::uid(shard).to_owned(), Arc::new(shard.clone()));
    }

    /// The shard as it was stored last: as the watch showed it, or as the hub answered since.
    pub fn newest(&self, shown: Arc<SyncShard>) -> Arc<SyncShard> {
        let mut known = self.0.lock();
        let uid = meta::uid(shown.as_ref());
        match known.get(uid) {
            None => shown,
            Some(answer) if meta::version(answer.as_ref()) > meta::version(shown.as_ref()) => {
                Arc::clone(answer)
            }
            Some(_) => {
                known.remove(uid);
                shown
            }
        }
    }

    /// The hub has another version than it answered with: the watch tells which.
    pub fn forget(&self, shard: &SyncShard) {
        self.0.lock().remove(meta::uid(shard));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(uid: &str, version: &str) -> Arc<SyncShard> {
        let mut shard = SyncShard::default();
        shard.metadata.uid = Some(uid.to_owned());
        shard.metadata.resource_version = Some(version.to_owned());
        Arc::new(shard)
    }

    #[test]
    fn an_answer_counts_until_the_watch_shows_it() {
        let answers = WriteCache::default();
        let version = |uid: &str, shown: &str| meta::version(answers.newest(shard(uid, shown)).as_ref());
        assert_eq!(version("a", "7"), 7);
        answers.took(&shard("a", "10"));
        assert_eq!(version("a", "9"), 10);
        assert_eq!(version("b", "9"), 9, "another object of the name");
        assert_eq!(version("a", "11"), 11);
        assert_eq!(version("a", "9"), 9, "it was shown, and is not kept");
        answers.took(&shard("a", "12"));
        answers.forget(&shard("a", "12"));
        assert_eq!(version("a", "11"), 11);
    }

    #[test]
    fn answers_on_what_is_never_shown_do_not_pile_up() {
        let answers = WriteCache::default();
        (0..3 * MOST).for_each(|n| answers.took(&shard(&n.to_string(), "1")));
        assert!(answers.0.lock().len() <= MOST);
    }
}
