//! What the hub answered to writes of shards in, shards as they are stored out: an answer says what the watch says a moment
//! later. Harmless if lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::SyncShard;
use parking_lot::Mutex;

use crate::objects;

/// Answers kept. Each is let go of when the watch shows its object as new, so there are more only where objects went
/// right after they were written.
const MOST: usize = 1024;

/// The newest answers, by the uid of the shard.
#[derive(Default)]
pub struct Answers(Mutex<BTreeMap<String, Arc<SyncShard>>>);

impl Answers {
    /// The hub stored this.
    pub fn took(&self, shard: &SyncShard) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(objects::uid(shard).to_owned(), Arc::new(shard.clone()));
    }

    /// The shard as it was stored last: as the watch showed it, or as the hub answered since.
    pub fn newest(&self, shown: Arc<SyncShard>) -> Arc<SyncShard> {
        let mut known = self.0.lock();
        let uid = objects::uid(shown.as_ref());
        match known.get(uid) {
            None => shown,
            Some(answer) if objects::version(answer.as_ref()) > objects::version(shown.as_ref()) => {
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
        self.0.lock().remove(objects::uid(shard));
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
        let answers = Answers::default();
        let version = |uid: &str, shown: &str| objects::version(answers.newest(shard(uid, shown)).as_ref());
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
        let answers = Answers::default();
        (0..3 * MOST).for_each(|n| answers.took(&shard(&n.to_string(), "1")));
        assert!(answers.0.lock().len() <= MOST);
    }
}
