//! Counts the room that archives take of their namespace's share, also while they are written.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::{Kept, OF_NAMESPACE};
use crate::api::key_queue::Key;

/// An archive that takes room of its namespace.
pub struct Archive {
    pub bytes: usize,
    pub parts: Parts,
}

/// How much of an archive the hub has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// All parts.
    Whole,
    /// Perhaps some parts: writing them failed, or they are being deleted.
    Torn,
    /// So many reconciles are writing it.
    Written(usize),
}

#[derive(Default)]
pub struct Known {
    /// Whether the hub was asked.
    pub listed: bool,
    /// By the owner label of their namespace, then by the name of their parts without its number.
    pub archives: BTreeMap<String, BTreeMap<String, Archive>>,
    /// `CompositeApp`s with a chart that there was no room for, by owner label.
    pub refused: BTreeMap<String, BTreeSet<Key>>,
}

impl Known {
    pub fn get(&mut self, owner: &str, name: &str) -> Option<&mut Archive> {
        self.archives.get_mut(owner)?.get_mut(name)
    }

    /// Takes the room for an archive that is to be written; `None` says that the caller writes it.
    pub fn reserve(&mut self, owner: &str, name: &str, bytes: usize) -> Option<Kept> {
        let of_namespace = self.archives.entry(owner.to_owned()).or_default();
        let all: usize = of_namespace.values().map(|archive| archive.bytes).sum();
        match of_namespace.get_mut(name) {
            Some(Archive { parts: Parts::Whole, .. }) => return Some(Kept::Yes),
            Some(Archive { parts: Parts::Written(writers), .. }) => *writers += 1,
            Some(archive) => archive.parts = Parts::Written(1),
            None if all + bytes > OF_NAMESPACE => return Some(Kept::Full),
            None => {
                of_namespace.insert(name.to_owned(), Archive { bytes, parts: Parts::Written(1) });
            }
        }
        None
    }

    /// One of those who write an archive is done.
    fn written(&mut self, owner: &str, name: &str, whole: bool) {
        if let Some(archive) = self.get(owner, name)
            && let Parts::Written(writers) = archive.parts
        {
            archive.parts = match (whole, writers) {
                (true, _) => Parts::Whole,
                (false, 0 | 1) => Parts::Torn,
                (false, writers) => Parts::Written(writers - 1),
            };
        }
    }
}

/// Ends the writing of an archive, also where nobody waits for its end any more.
pub struct Writing<'a> {
    pub known: &'a Mutex<Known>,
    pub owner: &'a str,
    pub name: &'a str,
    pub whole: bool,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.known.lock().written(self.owner, self.name, self.whole);
    }
}
