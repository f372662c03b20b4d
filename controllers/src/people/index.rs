//! Knows what the Secrets of a logical cloud hold, without anything that is secret.

use std::collections::BTreeMap;

use emco_engine::identity::ClusterId;
use emco_engine::people::{Slot, Stored};

/// One credential that is stored, without what is secret.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub stored: Stored,
    pub bytes: usize,
}

/// One Secret.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub uid: String,
    pub version: String,
    pub slot: Option<Slot>,
    pub entries: BTreeMap<ClusterId, Entry>,
    /// It has keys, of ours or of others.
    pub filled: bool,
}

/// What the Secrets of a logical cloud hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub(super) secrets: BTreeMap<String, Kept>,
    /// Whether the kubeconfig of all clusters is as it has to be.
    pub(super) merged: bool,
    /// A Secret of somebody else has a name that is needed.
    pub(super) taken: Option<String>,
}

impl Index {
    /// The stored credential of each cluster. Where two Secrets have one, for a process died while it divided them, the newer one.
    pub fn stored(&self) -> BTreeMap<ClusterId, Stored> {
        let mut all: BTreeMap<ClusterId, Stored> = BTreeMap::new();
        for (cluster, entry) in self.secrets.values().flat_map(|kept| &kept.entries) {
            match all.get(cluster) {
                Some(known) if known.issued >= entry.stored.issued => {}
                _ => drop(all.insert(cluster.clone(), entry.stored.clone())),
            }
        }
        all
    }

    /// Name of a Secret that is somebody else's and in the way.
    pub fn taken(&self) -> Option<&str> {
        self.taken.as_deref()
    }

    /// The version of a Secret that was read or written last.
    pub fn version_of(&self, name: &str) -> Option<&str> {
        self.secrets.get(name).map(|kept| kept.version.as_str())
    }

    /// Whether each cluster is in one Secret, and the kubeconfig of all is right.
    pub(super) fn in_order(&self) -> bool {
        let bits = self.bits();
        let slots = self.secrets.values().filter_map(|kept| Some((kept.slot?, &kept.entries)));
        let placed = |(slot, entries): (Slot, &BTreeMap<ClusterId, Entry>)| {
            entries.keys().all(|cluster| Slot::of(cluster, bits) == slot)
        };
        self.merged && slots.into_iter().all(placed)
    }

    /// Leading bits of the Secrets that hold something.
    pub(super) fn bits(&self) -> i32 {
        let filled = self.secrets.values().filter(|kept| !kept.entries.is_empty());
        filled.filter_map(|kept| Some(kept.slot?.bits)).max().unwrap_or_default()
    }

    pub(super) fn sizes(&self) -> BTreeMap<ClusterId, usize> {
        let entries = self.secrets.values().flat_map(|kept| &kept.entries);
        entries.map(|(cluster, entry)| (cluster.clone(), entry.bytes)).collect()
    }
}
