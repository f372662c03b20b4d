//! Keeps objects of many clusters as what they have in common: the same manifest on the next cluster is the same content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// About what an object takes besides its content: its places in maps, and its change.
const OBJECT: usize = 160;
/// About how many times the text of a content it takes in memory.
const PARSED: usize = 8;

/// The contents of all clusters.
pub(super) struct Contents {
    state: Mutex<State>,
    /// Bytes that they take, and their objects.
    bytes: Arc<AtomicUsize>,
    most: usize,
}

#[derive(Default)]
struct State {
    by_digest: BTreeMap<[u8; 32], Weak<Content>>,
    paths: BTreeSet<Arc<str>>,
    /// Contents there were when those that nobody has were forgotten last.
    swept: usize,
}

pub(super) struct Content {
    /// Without what differs from cluster to cluster.
    json: Value,
    size: usize,
    bytes: Arc<AtomicUsize>,
}

impl Drop for Content {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// An object of one cluster.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) content: Arc<Content>,
    /// Number of the object on its cluster; 0 for kube-system.
    pub(super) uid: u64,
    pub version: u64,
}

impl Contents {
    /// Of at most about so many bytes.
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::default(), bytes: Arc::default(), most }
    }

    /// A sentence where no more objects have room.
    pub fn is_full(&self) -> Option<String> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes > self.most).then(|| {
            format!(
                "the objects of all simulated clusters take {} MiB, and --memory allows {}: raise it, or apply less",
                bytes >> 20,
                self.most >> 20
            )
        })
    }

    /// Bytes that everything takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many contents there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.state.lock().by_digest.values().filter(|content| content.strong_count() > 0).count()
    }

    /// A path as all clusters have it.
    pub fn path(&self, path: &str) -> Arc<str> {
        let mut state = self.state.lock();
        if let Some(known) = state.paths.get(path) {
            return Arc::clone(known);
        }
        let fresh: Arc<str> = path.into();
        state.paths.insert(Arc::clone(&fresh));
        fresh
    }

    /// An object of a cluster, which has this number there.
    pub fn object(&self, mut json: Value, uid: u64, version: u64) -> Object {
        if let Some(metadata) = json["metadata"].as_object_mut() {
            metadata.remove("uid");
            metadata.remove("resourceVersion");
        }
        let text = json.to_string();
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let mut state = self.state.lock();
        let known = state.by_digest.get(&digest).and_then(Weak::upgrade);
        let content = known.unwrap_or_else(|| {
            let size = PARSED * text.len();
            self.bytes.fetch_add(size, Ordering::Relaxed);
            let content = Arc::new(Content { json, size, bytes: Arc::clone(&self.bytes) });
            state.by_digest.insert(digest, Arc::downgrade(&content));
            content
        });
        if state.by_digest.len() > 1024 + 2 * state.swept {
            state.by_digest.retain(|_, content| content.strong_count() > 0);
            state.swept = state.by_digest.len();
        }
        Object { content, uid, version }
    }

    /// So many objects came, or went.
    pub fn counted(&self, came: bool) {
        if came {
            self.bytes.fetch_add(OBJECT, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(OBJECT, Ordering::Relaxed);
        }
    }
}

impl Object {
    /// Number of the object on its cluster.
    pub fn uid(&self) -> u64 {
        self.uid
    }

    /// What it has in common with others.
    pub fn content(&self) -> &Value {
        &self.content.json
    }

    /// As the cluster of this number answers it.
    pub fn json(&self, cluster: usize) -> Value {
        let mut json = self.content.json.clone();
        json["metadata"]["uid"] = Value::String(uid(cluster, self.uid));
        json["metadata"]["resourceVersion"] = Value::String(self.version.to_string());
        json
    }

    /// What a watch says last of it.
    pub fn last(&self, cluster: usize, version: u64) -> Value {
        let json = self.json(cluster);
        let mut last =
            json!({"apiVersion": json["apiVersion"], "kind": json["kind"], "metadata": json["metadata"]});
        last["metadata"]["resourceVersion"] = Value::String(version.to_string());
        last
    }
}

fn uid(cluster: usize, number: u64) -> String {
    match number {
        0 => format!("77777777-0000-0000-0000-{cluster:012}"),
        _ => format!("77777777-{cluster:012}-{number:012}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "uid": "u", "resourceVersion": "9"}, "data": {"text": text}})
    }

    #[test]
    fn equal_objects_of_clusters_share_their_content_until_the_last_is_gone() {
        let contents = Contents::new(1 << 20);
        let all: Vec<Object> = (0..100).map(|n| contents.object(map("x"), n + 1, n)).collect();
        let other = contents.object(map("y"), 1, 1);
        assert_eq!(contents.count(), 2);
        assert_eq!(all[3].json(7)["metadata"]["uid"], "77777777-000000000007-000000000004");
        assert_eq!(all[3].json(7)["metadata"]["resourceVersion"], "3");
        let taken = contents.bytes();
        drop(all);
        assert!(contents.bytes() < taken && contents.count() == 1);
        drop(other);
        assert_eq!((contents.bytes(), contents.count()), (0, 0));
    }

    #[test]
    fn what_has_no_room_is_said_in_a_sentence() {
        let contents = Contents::new(1024);
        let held = contents.object(map(&"x".repeat(2000)), 1, 1);
        assert!(contents.is_full().unwrap().contains("--memory"));
        drop(held);
        assert_eq!(contents.is_full(), None);
    }
}
