//! Tells a report of a shard from a change of what the shard wants.

use std::collections::BTreeMap;

use emco_crds::SyncShard;

use crate::api::key_queue::Key;
use crate::object::meta;
use crate::triggers::Change;

/// What of a shard is another one by more than a report.
#[derive(PartialEq)]
struct Shown {
    uid: Option<String>,
    /// Of what it wants.
    generation: i64,
    is_deleting: bool,
    finalizers: Option<Vec<String>>,
    labels: Option<BTreeMap<String, String>>,
}

impl Shown {
    fn of(shard: &SyncShard) -> Self {
        let meta = &shard.metadata;
        Self {
            uid: meta.uid.clone(),
            generation: meta::generation(shard),
            is_deleting: meta::deleting(shard),
            finalizers: meta.finalizers.clone(),
            labels: meta.labels.clone(),
        }
    }
}

/// Shards as they were shown last, by namespace and name: one that was made again while the watch was cut takes the place of the one before.
#[derive(Default)]
pub struct Reports(BTreeMap<Key, Shown>);

impl Reports {
    /// Whether nothing but the status of a shard changed since it was shown last.
    pub fn is_only(&mut self, change: &Change<'_, SyncShard>) -> bool {
        let shard = change.object;
        let key = (meta::namespace(shard).to_owned(), meta::name(shard).to_owned());
        if change.gone {
            self.0.remove(&key);
            return false;
        }
        let now = Shown::of(shard);
        let same = self.0.get(&key) == Some(&now);
        if !same {
            self.0.insert(key, now);
        }
        same && shard.spec.abandoned.is_none()
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::OwnerKind;
    use emco_crds::sync_shard::Abandoned;

    use super::*;

    #[test]
    fn only_a_shard_that_wants_what_it_wanted_is_a_report() {
        let mut reports = Reports::default();
        let mut shard = SyncShard::default();
        shard.metadata.uid = Some("u".to_owned());
        shard.spec.owner.kind = OwnerKind::DeploymentIntentGroup;
        let mut is_only = |shard: &SyncShard, generation, gone| {
            let mut object = shard.clone();
            object.metadata.generation = Some(generation);
            reports.is_only(&Change { object: &object, gone })
        };
        assert!(!is_only(&shard, 1, false), "it is new");
        assert!(is_only(&shard, 1, false));
        assert!(!is_only(&shard, 2, false), "it wants something else");
        assert!(!is_only(&shard, 2, true), "it is gone");
        assert!(!is_only(&shard, 2, false), "it came back");
        let (mut of_cloud, mut ledger) = (shard.clone(), shard.clone());
        of_cloud.spec.owner.kind = OwnerKind::LogicalCloud;
        ledger.spec.abandoned = Some(Abandoned::default());
        assert!(is_only(&of_cloud, 2, false) && is_only(&shard, 2, false));
        assert!(!is_only(&ledger, 2, false), "it has no owner to report to");
    }

    #[test]
    fn a_shard_whose_metadata_changed_or_that_was_made_again_is_no_report() {
        let mut reports = Reports::default();
        let mut shard = SyncShard::default();
        shard.spec.owner.kind = OwnerKind::DeploymentIntentGroup;
        shard.metadata.name = Some("s".to_owned());
        let changes: [fn(&mut SyncShard); 4] = [
            |shard| shard.metadata.finalizers = Some(vec!["emco.io/rows".to_owned()]),
            |shard| shard.metadata.finalizers = None,
            |shard| shard.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into()),
            |shard| shard.metadata.uid = Some("another".to_owned()),
        ];
        let mut is_only = |shard: &SyncShard, gone| reports.is_only(&Change { object: shard, gone });
        assert!(!is_only(&shard, false), "it is new");
        for (number, change) in changes.into_iter().enumerate() {
            change(&mut shard);
            assert!(!is_only(&shard, false), "change {number}");
            assert!(is_only(&shard, false), "after change {number}");
        }
        // The one before is not remembered beside it.
        is_only(&shard, true);
        assert!(reports.0.is_empty());
    }
}
