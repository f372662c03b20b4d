//! Packs manifest sets, assignments and identity sets, and reads packs back: the stored form of a revision.
//!
//! A pack is one immutable `ConfigMap` or `Secret` (for manifests of kind Secret) of at most [`LARGEST`] bytes under the key
//! [`KEY`]. Format 1: the magic `EMCOPK01`, SHA-256 of all that follows, the length of the index (four bytes, little
//! endian), the index as JSON, zstd frames. A frame may need another one of its pack as dictionary: the first variant of an
//! app stands whole, its siblings cost what differs. Format 2 has pieces of manifests besides: one that no pack can hold
//! stands in several. A pack without pieces has format 1.

mod codec;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::app_context::PackKind;
use serde::{Deserialize, Serialize};

use crate::identity::{ClusterId, Identity, SetDigest};
use crate::rollout::Waves;
use crate::set::provenance::Provenance;
use crate::set::{Assigned, Assignment, Findings};

pub use read::{assemble, salvage};
pub use write::{write_assignment, write_identities, write_sets, write_waves};

/// Largest pack, in bytes: below the limit of `ConfigMaps` and Secrets with room for metadata.
pub const LARGEST: usize = 900 * 1024;
/// Key of `binaryData` (`ConfigMap`) or `data` (`Secret`).
pub const KEY: &str = "pack";
/// Type of the Secrets.
pub const SECRET_TYPE: &str = "emco.io/manifests";
/// Largest decompressed frame, in bytes. What is larger was not written by us.
const LARGEST_FRAME: usize = 64 * 1024 * 1024;

/// A pack to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackObject {
    /// `emco-pack-<16 digits of the owner's uid>-<16 digits of the content>`.
    pub name: String,
    /// What to store it as.
    pub kind: PackKind,
    /// SHA-256 of the bytes, 64 hexadecimal digits.
    pub digest: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Why a pack could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// The bytes are something else.
    #[error("the content is no pack: it does not begin with EMCOPK")]
    NotAPack,
    /// Written by a later version.
    #[error("the pack has format {0} and this version reads formats up to {FORMAT}: upgrade the operator", FORMAT = codec::FORMAT)]
    Newer(u32),
    /// Bytes are missing or changed.
    #[error("the pack is torn or was changed: its bytes do not have the digest it states")]
    Torn,
    /// The digest is right and the content is not what its format says.
    #[error("the pack cannot be read: {0}")]
    Corrupt(String),
    /// No pack at hand holds it, or not all of it.
    #[error("no pack holds all of {0}")]
    Missing(String),
    /// Something besides manifests that no pack can hold.
    #[error("{0} is too large: compressed, it must fit into {LARGEST} bytes")]
    TooLarge(String),
}

/// What stands in front of the frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    /// Frames, one after the other.
    frames: Vec<Frame>,
    /// Names of apps, for `Part::app`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    apps: Vec<String>,
    /// Parts of sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sets: Vec<Part>,
    /// Which clusters have what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assignment: Option<Slice>,
    /// Frame with a list of identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identities: Option<usize>,
    /// Frame with the waves of a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waves: Option<usize>,
}

/// One zstd frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Frame {
    /// Compressed length.
    #[serde(rename = "c")]
    compressed: usize,
    /// Length of the content.
    #[serde(rename = "r")]
    raw: usize,
    /// The frame whose content is the dictionary of this one.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    dictionary: Option<usize>,
}

/// Manifests of one set: all, or those that this pack holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    #[serde(rename = "s")]
    set: SetDigest,
    /// Index into `Index::apps`.
    #[serde(rename = "a")]
    app: usize,
    /// Index into `Index::frames`: a JSON list of manifests.
    #[serde(rename = "f")]
    frame: usize,
    /// How many manifests the whole set has.
    #[serde(rename = "n")]
    total: usize,
    /// Their places in the set; absent = all, in order.
    #[serde(rename = "at", default, skip_serializing_if = "Option::is_none")]
    positions: Option<Vec<usize>>,
    /// The frame is a piece of that list, which no pack can hold as a whole.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    piece: Option<Piece>,
}

/// One of several frames that make a list of manifests one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Piece {
    /// Its number, from 0.
    #[serde(rename = "i")]
    number: usize,
    /// Of how many.
    #[serde(rename = "n")]
    pieces: usize,
}

/// One of several packs that together hold an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Slice {
    /// The frame.
    frame: usize,
    /// Its number, from 0.
    part: usize,
    /// Of how many.
    parts: usize,
}

/// Content of an assignment's frame: each distinct cell once, clusters name it by place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_field_names)] // names of the stored format
struct Cells {
    cells: Vec<Assigned>,
    clusters: BTreeMap<ClusterId, BTreeMap<String, usize>>,
    /// What renderings showed; absent where they showed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Findings>,
    /// Cells with findings: both by place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    found: BTreeMap<usize, usize>,
    /// Fields that intents changed; absent where they changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provenance: Vec<Provenance>,
    /// Cells that intents changed: both by place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    edited: BTreeMap<usize, usize>,
}

/// A pack that was read and verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    index: Index,
    /// Compressed frames, by place.
    frames: Vec<Vec<u8>>,
}

impl Pack {
    /// Reads a pack. Refuses what is torn, changed, or of a later format.
    pub fn read(bytes: &[u8]) -> Result<Self, PackError> {
        let (index, frames) = codec::decode(bytes)?;
        Ok(Self { index, frames })
    }

    /// Digests of the sets it holds, or holds a part of.
    pub fn sets(&self) -> impl Iterator<Item = &SetDigest> {
        self.index.sets.iter().map(|part| &part.set)
    }

    /// Whether it holds a set or a part of it.
    pub fn holds(&self, set: &SetDigest) -> bool {
        self.index.sets.iter().any(|part| part.set == *set)
    }

    /// The identities it holds; `None` when it is no identity set.
    pub fn identities(&self) -> Result<Option<BTreeSet<Identity>>, PackError> {
        self.index.identities.map(|frame| parse(&self.content(frame)?)).transpose()
    }

    /// The waves it holds; `None` when it holds none.
    pub fn waves(&self) -> Result<Option<Waves>, PackError> {
        self.index.waves.map(|frame| parse(&self.content(frame)?)).transpose()
    }

    /// Bytes it occupies in memory, for caches.
    pub fn size(&self) -> usize {
        self.frames.iter().map(Vec::len).sum::<usize>()
            + 64 * (self.index.frames.len() + self.index.sets.len())
    }

    /// The decompressed content of a frame; a dictionary has no dictionary itself.
    fn content(&self, frame: usize) -> Result<Vec<u8>, PackError> {
        let described = self.frame(frame)?;
        let dictionary = match described.dictionary {
            None => Vec::new(),
            Some(base) if self.frame(base)?.dictionary.is_none() => self.content(base)?,
            Some(_) => return Err(PackError::Corrupt("a dictionary has a dictionary itself".to_owned())),
        };
        let bytes = self.frames.get(frame).map(Vec::as_slice).unwrap_or_default();
        codec::decompress(bytes, described.raw, &dictionary)
    }

    fn frame(&self, frame: usize) -> Result<&Frame, PackError> {
        self.index.frames.get(frame).ok_or_else(|| PackError::Corrupt(format!("it has no frame {frame}")))
    }
}

/// Puts an assignment together from all its packs; others do no harm.
pub fn assignment(packs: &[&Pack]) -> Result<Assignment, PackError> {
    let mut seen = BTreeSet::new();
    let mut parts = None;
    let mut all = Assignment::new();
    for pack in packs {
        let Some(slice) = &pack.index.assignment else { continue };
        seen.insert(slice.part);
        parts = Some(slice.parts);
        let Cells { mut cells, clusters, findings, found, provenance, edited } =
            parse(&pack.content(slice.frame)?)?;
        let findings: Vec<Arc<Findings>> = findings.into_iter().map(Arc::new).collect();
        for (cell, at) in found {
            if let Some(cell) = cells.get_mut(cell) {
                cell.findings = findings.get(at).cloned();
            }
        }
        let provenance: Vec<Arc<Provenance>> = provenance.into_iter().map(Arc::new).collect();
        for (cell, at) in edited {
            if let Some(cell) = cells.get_mut(cell) {
                cell.provenance = provenance.get(at).cloned();
            }
        }
        for (cluster, apps) in clusters {
            let row = all.entry(cluster).or_default();
            for (app, cell) in apps {
                let cell =
                    cells.get(cell).ok_or_else(|| PackError::Corrupt(format!("it has no cell {cell}")))?;
                row.insert(app, cell.clone());
            }
        }
    }
    if parts == Some(seen.len()) { Ok(all) } else { Err(PackError::Missing("the assignment".to_owned())) }
}

fn parse<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T, PackError> {
    serde_json::from_slice(json).map_err(|error| PackError::Corrupt(error.to_string()))
}

#[cfg(test)]
mod tests;
