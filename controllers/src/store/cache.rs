//! Keeps contents of revisions and summaries of placements while there is room. Harmless if lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::ClusterId;
use emco_engine::set::Assignment;
use emco_engine::snapshot::Running;

use crate::sync::content::set_bytes;

/// Bytes of contents kept in memory. Others are read again.
const MOST_BYTES: usize = 192 * 1024 * 1024;
/// Names of clusters that nobody uses any more are let go of beyond this number.
const MANY_NAMES: usize = 16 * 1024;

/// Prefix of keys of plans that wait: no uid begins so.
const WAITING: &str = "waiting/";

/// Key of the plan of an owner that waits, for [`Contents`].
pub fn waiting_key(owner_hash: &str) -> String {
    format!("{WAITING}{owner_hash}")
}

/// Contents read or written before, by uid of the AppContext, and plans that wait. What was not used longest leaves first.
#[derive(Default)]
pub struct Contents {
    by_uid: BTreeMap<String, Entry>,
    by_turn: BTreeMap<u64, String>,
    bytes: usize,
    turn: u64,
}

struct Entry {
    turn: u64,
    bytes: usize,
    running: Arc<Running>,
}

impl Contents {
    pub fn get(&mut self, uid: &str) -> Option<Arc<Running>> {
        self.turn += 1;
        let entry = self.by_uid.get_mut(uid)?;
        self.by_turn.remove(&entry.turn);
        entry.turn = self.turn;
        self.by_turn.insert(self.turn, uid.to_owned());
        Some(Arc::clone(&entry.running))
    }

    pub fn put(&mut self, uid: String, running: Arc<Running>) {
        self.forget(&uid);
        self.turn += 1;
        let bytes = bytes(&running);
        self.bytes += bytes;
        self.by_turn.insert(self.turn, uid.clone());
        self.by_uid.insert(uid, Entry { turn: self.turn, bytes, running });
        while self.bytes > MOST_BYTES && self.by_uid.len() > 1 {
            let Some((_, oldest)) = self.by_turn.pop_first() else { break };
            self.forget(&oldest);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// Forgets all other AppContexts.
    pub fn keep_only(&mut self, is_there: impl Fn(&str) -> bool) {
        let stays = |uid: &str| uid.starts_with(WAITING) || is_there(uid);
        let gone: Vec<_> = self.by_uid.keys().filter(|uid| !stays(uid)).cloned().collect();
        for uid in gone {
            self.forget(&uid);
        }
    }

    /// What was read may no longer be what is stored.
    pub fn forget(&mut self, uid: &str) {
        if let Some(entry) = self.by_uid.remove(uid) {
            self.by_turn.remove(&entry.turn);
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }
}

/// About what a content takes.
fn bytes(running: &Running) -> usize {
    let sets: usize = running.sets.values().map(|set| set_bytes(set)).sum();
    let cells: usize = running.assignment.values().map(|apps| 128 + 256 * apps.len()).sum();
    // Equal ones are shared.
    let mut fields = BTreeMap::new();
    for cell in running.assignment.values().flat_map(BTreeMap::values) {
        if let Some(provenance) = &cell.provenance {
            fields.entry(Arc::as_ptr(provenance).addr()).or_insert_with(|| provenance.size());
        }
    }
    1024 + sets + cells + fields.into_values().sum::<usize>()
}

/// Which clusters had which app: all that the removal budget asks of a revision.
pub type PlacementSummary = Arc<BTreeMap<String, Vec<Arc<ClusterId>>>>;

/// Placements of revisions of the last day, by owner and uid. A deployment that keeps its clusters has one for all of them.
#[derive(Default)]
pub struct Placements {
    names: BTreeSet<Arc<ClusterId>>,
    by_owner: BTreeMap<String, BTreeMap<String, PlacementSummary>>,
}

impl Placements {
    pub fn get(&self, owner: &str, uid: &str) -> Option<PlacementSummary> {
        self.by_owner.get(owner)?.get(uid).map(Arc::clone)
    }

    /// Remembers where a revision put its apps.
    pub fn put(&mut self, owner: &str, uid: &str, assignment: &Assignment) -> PlacementSummary {
        if self.names.len() > MANY_NAMES {
            self.names.retain(|name| Arc::strong_count(name) > 1);
        }
        let mut apps: BTreeMap<String, Vec<Arc<ClusterId>>> = BTreeMap::new();
        for (cluster, has) in assignment {
            let name = self.name(cluster);
            for app in has.keys() {
                apps.entry(app.clone()).or_default().push(Arc::clone(&name));
            }
        }
        let known = self.by_owner.entry(owner.to_owned()).or_default();
        let same = known.values().find(|known| ***known == apps).map(Arc::clone);
        let footprint = same.unwrap_or_else(|| Arc::new(apps));
        known.insert(uid.to_owned(), Arc::clone(&footprint));
        footprint
    }

    fn name(&mut self, cluster: &ClusterId) -> Arc<ClusterId> {
        if let Some(name) = self.names.get(cluster) {
            return Arc::clone(name);
        }
        let name = Arc::new(cluster.clone());
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Forgets all of an owner but these.
    pub fn keep(&mut self, owner: &str, uids: &BTreeSet<&str>) {
        let Some(known) = self.by_owner.get_mut(owner) else { return };
        known.retain(|uid, _| uids.contains(uid.as_str()));
        if known.is_empty() {
            self.by_owner.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use emco_engine::identity::SetDigest;
    use emco_engine::set::{Assigned, ManifestSet, Phase, SetManifest};
    use serde_json::json;

    use super::*;

    fn of_bytes(bytes: usize) -> Arc<Running> {
        let manifest = SetManifest {
            digest: String::new(),
            phase: Phase::Main,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json: json!({"data": "x".repeat(bytes / 4)}),
        };
        let digest = SetDigest("s".to_owned());
        let set = ManifestSet { digest: digest.clone(), app: "web".to_owned(), manifests: vec![manifest] };
        Arc::new(Running { sets: [(digest, Arc::new(set))].into(), ..Running::default() })
    }

    #[test]
    fn contents_are_kept_by_their_bytes_and_not_by_their_number() {
        let mut contents = Contents::default();
        for n in 0..2000 {
            contents.put(n.to_string(), of_bytes(1000));
        }
        assert!((0..2000).all(|n| contents.get(&n.to_string()).is_some()), "small ones are all there");
        for n in 0..4 {
            assert!(contents.get("0").is_some(), "what is used stays");
            contents.put(format!("large {n}"), of_bytes(MOST_BYTES / 3));
        }
        assert!(contents.bytes <= MOST_BYTES);
        assert!(contents.get("large 3").is_some() && contents.get("0").is_some());
        assert!(contents.get("large 0").is_none() && contents.get("1").is_none());
        assert_eq!(contents.by_uid.len(), contents.by_turn.len());
        contents.put("huge".to_owned(), of_bytes(MOST_BYTES * 2));
        assert!(contents.get("huge").is_some(), "the newest is kept whatever its size");
    }

    #[test]
    fn revisions_on_the_same_clusters_share_one_footprint() {
        let assigned = Assigned {
            set: SetDigest("s".to_owned()),
            render_key: String::new(),
            now: 0,
            release_revision: 1,
            findings: None,
            provenance: None,
            rendered_revision: None,
            tests: None,
            edits: None,
        };
        let on = |clusters: &[&str]| -> Assignment {
            let row =
                |name: &&str| (ClusterId::new("acme", name), [("web".to_owned(), assigned.clone())].into());
            clusters.iter().map(row).collect()
        };
        let mut all = Placements::default();
        let first = all.put("shop", "1", &on(&["a", "b"]));
        assert!(Arc::ptr_eq(&first, &all.put("shop", "2", &on(&["a", "b"]))));
        let third = all.put("shop", "3", &on(&["b"]));
        assert!(Arc::ptr_eq(&first["web"][1], &third["web"][0]), "a name is there once");
        all.keep("shop", &BTreeSet::from(["3"]));
        assert!(all.get("shop", "1").is_none() && all.get("shop", "3").is_some());
        all.keep("shop", &BTreeSet::new());
        assert!(all.by_owner.is_empty());
    }
}
