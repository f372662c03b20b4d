//! Takes shards from the watch and from the hub's answers to our writes, and hands on the newest version of each. An
//! answer comes before the watch shows the same, and mostly before the watch shows what was before it: nobody acts on
//! the past.

use std::collections::BTreeMap;

use emco_crds::SyncShard;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::object::meta;

/// Namespace and name.
pub type ShardKey = (String, String);

/// What is read of every shard: as many entries as there are shards.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    mail: Notify,
}

#[derive(Default)]
struct State {
    /// Newest version of each shard that came since the last look; `None`: it is gone.
    mail: BTreeMap<ShardKey, Option<SyncShard>>,
    newest: BTreeMap<ShardKey, Newest>,
}

/// The version that came last.
struct Newest {
    uid: Option<String>,
    version: u64,
    /// It came as an answer, and the watch did not show it yet. What the watch shows otherwise is true whatever its number:
    /// a hub that was restored counts anew.
    answered: bool,
}

impl Inbox {
    /// The watch shows a shard, new or changed.
    pub fn shown(&self, shard: SyncShard) {
        self.put(shard, false);
    }

    /// The hub answered that this is stored. Of a shard that the watch does not show, or no longer, it says nothing.
    pub fn answered(&self, shard: SyncShard) {
        self.put(shard, true);
    }

    fn put(&self, shard: SyncShard, answered: bool) {
        let key = (meta::namespace(&shard).to_owned(), meta::name(&shard).to_owned());
        let (uid, version) = (shard.metadata.uid.clone(), meta::version(&shard));
        let mut state = self.state.lock();
        let past = match state.newest.get(&key).filter(|before| before.uid == uid) {
            Some(before) if answered => version <= before.version,
            Some(before) => before.answered && version < before.version,
            None => answered,
        };
        if past {
            return;
        }
        state.newest.insert(key.clone(), Newest { uid, version, answered });
        state.mail.insert(key, Some(shard));
        drop(state);
        self.ring();
    }

    /// The watch shows that a shard is not there any more.
    pub fn gone(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let mut state = self.state.lock();
        state.newest.remove(&key);
        state.mail.insert(key, None);
        drop(state);
        self.ring();
    }

    /// Makes whoever waits look.
    pub fn ring(&self) {
        self.mail.notify_one();
    }

    /// Waits for something to be there, or for a ring.
    pub async fn notified(&self) {
        self.mail.notified().await;
    }

    /// Everything that came since the last look.
    pub fn take(&self) -> BTreeMap<ShardKey, Option<SyncShard>> {
        std::mem::take(&mut self.state.lock().mail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(uid: &str, version: u64) -> SyncShard {
        let mut shard = SyncShard::default();
        shard.metadata.namespace = Some("team-a".to_owned());
        shard.metadata.name = Some("s".to_owned());
        shard.metadata.uid = Some(uid.to_owned());
        shard.metadata.resource_version = Some(version.to_string());
        shard
    }

    fn taken(inbox: &Inbox) -> Vec<Option<u64>> {
        inbox.take().into_values().map(|shard| shard.map(|shard| meta::version(&shard))).collect()
    }

    #[test]
    fn what_was_before_an_answer_is_the_past() {
        let inbox = Inbox::default();
        inbox.shown(shard("a", 5));
        inbox.answered(shard("a", 8));
        assert_eq!(taken(&inbox), [Some(8)]);
        inbox.shown(shard("a", 6));
        assert_eq!(taken(&inbox), [], "a status that was written before");
        inbox.shown(shard("a", 8));
        assert_eq!(taken(&inbox), [Some(8)]);
    }

    #[test]
    fn an_answer_that_comes_after_the_watch_showed_more_is_the_past() {
        let inbox = Inbox::default();
        inbox.shown(shard("a", 9));
        inbox.answered(shard("a", 8));
        inbox.answered(shard("a", 9));
        assert_eq!(taken(&inbox), [Some(9)]);
        inbox.shown(shard("a", 10));
        assert_eq!(taken(&inbox), [Some(10)]);
    }

    #[test]
    fn a_hub_that_was_restored_is_believed() {
        let inbox = Inbox::default();
        inbox.shown(shard("a", 80));
        inbox.answered(shard("a", 90));
        inbox.shown(shard("a", 90));
        inbox.shown(shard("a", 40));
        assert_eq!(taken(&inbox), [Some(40)]);
    }

    #[test]
    fn another_object_of_the_name_counts_anew() {
        let inbox = Inbox::default();
        inbox.shown(shard("a", 80));
        inbox.answered(shard("a", 90));
        inbox.shown(shard("b", 7));
        assert_eq!(taken(&inbox), [Some(7)]);
        inbox.gone("team-a", "s");
        inbox.answered(shard("b", 9));
        assert_eq!(taken(&inbox), [None], "an answer that comes late brings nothing back");
        inbox.shown(shard("b", 3));
        assert_eq!(taken(&inbox), [Some(3)]);
    }
}
