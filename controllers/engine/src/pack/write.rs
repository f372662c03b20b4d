//! Divides sets, assignments and identities into packs. The same content gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::app_context::PackKind;
use sha2::{Digest, Sha256};

use super::{Cells, Frame, Index, LARGEST, LARGEST_FRAME, PackError, PackObject, Part, Piece, Slice, codec};
use crate::identity::{self, ClusterId, Identity, SetDigest};
use crate::rollout::Waves;
use crate::set::provenance::Provenance;
use crate::set::{Assigned, Assignment, Findings, ManifestSet, SetManifest};

/// Writes sets; each once. Manifests of kind Secret go to packs that are stored as Secrets, the others to `ConfigMaps`.
pub fn write_sets(owner_uid: &str, sets: &[Arc<ManifestSet>]) -> Result<Vec<PackObject>, PackError> {
    // Tests come last: variants of an app are compressed with its first one, which is to be like them.
    let sorted: BTreeMap<(bool, &str, &SetDigest), &ManifestSet> =
        sets.iter().map(|set| ((set.is_of_tests(), set.app.as_str(), &set.digest), set.as_ref())).collect();
    let mut written = BTreeSet::new();
    let mut writers = [Writer::new(owner_uid, PackKind::ConfigMap), Writer::new(owner_uid, PackKind::Secret)];
    for set in sorted.into_values() {
        if !written.insert(&set.digest) {
            continue;
        }
        for writer in &mut writers {
            let all = 0..set.manifests.len();
            let part: Vec<usize> = all
                .zip(&set.manifests)
                .filter(|(_, m)| kind_of(m) == writer.kind)
                .map(|(at, _)| at)
                .collect();
            // A set without manifests is a set too: it stands in a ConfigMap.
            if !part.is_empty() || (set.manifests.is_empty() && writer.kind == PackKind::ConfigMap) {
                writer.add(set, &part)?;
            }
        }
    }
    let [plain, secret] = writers;
    let mut packs = plain.finish()?;
    packs.extend(secret.finish()?);
    Ok(packs)
}

/// Writes an assignment; several packs where one is too small. All are needed to read it.
pub fn write_assignment(owner_uid: &str, assignment: &Assignment) -> Result<Vec<PackObject>, PackError> {
    let rows: Vec<Row<'_>> = assignment.iter().collect();
    let mut slices = Vec::new();
    slice(&rows, &mut slices)?;
    let parts = slices.len();
    let single = |(part, (frame, bytes)): (usize, (Frame, Vec<u8>))| {
        let assignment = Some(Slice { frame: 0, part, parts });
        let index = Index { frames: vec![frame], assignment, ..Index::default() };
        object(owner_uid, PackKind::ConfigMap, &index, &[bytes])
    };
    slices.into_iter().enumerate().map(single).collect()
}

/// Writes identities.
pub fn write_identities(owner_uid: &str, identities: &BTreeSet<Identity>) -> Result<PackObject, PackError> {
    let (frame, bytes) = frame(&json(identities)?, &[], None)?;
    if bytes.len() + codec::HEADER + 256 > LARGEST {
        return Err(PackError::TooLarge(format!("a set of {} identities", identities.len())));
    }
    let index = Index { frames: vec![frame], identities: Some(0), ..Index::default() };
    object(owner_uid, PackKind::ConfigMap, &index, &[bytes])
}

/// Writes the waves of a revision.
pub fn write_waves(owner_uid: &str, waves: &Waves) -> Result<PackObject, PackError> {
    let (frame, bytes) = frame(&json(waves)?, &[], None)?;
    if bytes.len() + codec::HEADER + 256 > LARGEST {
        return Err(PackError::TooLarge("the division of the clusters into waves".to_owned()));
    }
    let index = Index { frames: vec![frame], waves: Some(0), ..Index::default() };
    object(owner_uid, PackKind::ConfigMap, &index, &[bytes])
}

/// Where a manifest may be stored.
fn kind_of(manifest: &SetManifest) -> PackKind {
    if identity::kind_of(&manifest.json) == ("", "Secret") { PackKind::Secret } else { PackKind::ConfigMap }
}

/// Halves what is too large until it fits.
fn slice(rows: &[Row<'_>], out: &mut Vec<(Frame, Vec<u8>)>) -> Result<(), PackError> {
    let mut written = fitting(&cells(rows, Fields::Named))?;
    if written.is_none() && rows.len() < 2 {
        // People can do without the names of fields; nothing works without the assignment.
        written = fitting(&cells(rows, Fields::Counted))?;
        if written.is_none() {
            return Err(PackError::TooLarge("the assignment of one cluster".to_owned()));
        }
    }
    if let Some(written) = written {
        out.push(written);
        return Ok(());
    }
    let (left, right) = rows.split_at(rows.len() / 2);
    slice(left, out)?;
    slice(right, out)
}

/// A frame that is small enough for a pack, and that can be read again.
fn fitting(cells: &Cells) -> Result<Option<(Frame, Vec<u8>)>, PackError> {
    let content = json(cells)?;
    if content.len() > LARGEST_FRAME {
        return Ok(None);
    }
    let written = frame(&content, &[], None)?;
    Ok(Some(written).filter(|(_, bytes)| bytes.len() + codec::HEADER + 256 <= LARGEST))
}

/// One cluster of an assignment.
type Row<'a> = (&'a ClusterId, &'a BTreeMap<String, Assigned>);

/// The detail in which fields of intents are written.
#[derive(Clone, Copy)]
enum Fields {
    Named,
    Counted,
}

impl Fields {
    fn of(self, provenance: &Provenance) -> Provenance {
        match self {
            Self::Named => provenance.clone(),
            Self::Counted => provenance.counted(),
        }
    }
}

/// Rows with each distinct cell once.
fn cells(rows: &[Row<'_>], fields: Fields) -> Cells {
    let mut cells = Cells::default();
    let mut places = BTreeMap::new();
    let mut findings_at: BTreeMap<&Findings, usize> = BTreeMap::new();
    let mut provenance_at: BTreeMap<&Provenance, usize> = BTreeMap::new();
    let mut known: BTreeMap<usize, usize> = BTreeMap::new();
    for (cluster, apps) in rows {
        let mut row = BTreeMap::new();
        for (app, cell) in *apps {
            let Assigned {
                set,
                render_key,
                now,
                release_revision,
                rendered_revision,
                findings,
                provenance,
                tests,
                edits,
            } = cell;
            // Cells share what is long to compare.
            let edited = provenance.as_ref().map(|provenance| {
                *known.entry(Arc::as_ptr(provenance).addr()).or_insert_with(|| {
                    let new = |found: &Provenance| cells.provenance.push(fields.of(found));
                    once(&mut provenance_at, provenance.as_ref(), new)
                })
            });
            let next = places.len();
            // What makes two cells one.
            let made = (set, render_key.as_str(), *now, *release_revision, *rendered_revision);
            let key = (made, findings.as_deref(), edited, tests.as_ref(), edits.as_ref());
            let place = *places.entry(key).or_insert(next);
            if place == next {
                cells.cells.push(cell.clone());
                if let Some(findings) = findings {
                    let at = once(&mut findings_at, findings, |found| cells.findings.push(found.clone()));
                    cells.found.insert(place, at);
                }
                cells.edited.extend(edited.map(|at| (place, at)));
            }
            row.insert(app.clone(), place);
        }
        cells.clusters.insert((*cluster).clone(), row);
    }
    cells
}

/// The place of a value among those that are different; `new` takes one that was not there.
fn once<'a, T: Ord>(places: &mut BTreeMap<&'a T, usize>, value: &'a T, new: impl FnOnce(&T)) -> usize {
    let next = places.len();
    let at = *places.entry(value).or_insert(next);
    if at == next {
        new(value);
    }
    at
}

/// Fills packs of one kind, one after the other.
struct Writer<'a> {
    owner_uid: &'a str,
    kind: PackKind,
    done: Vec<PackObject>,
    index: Index,
    frames: Vec<Vec<u8>>,
    /// Bytes of frames and an upper bound of the index so far.
    size: usize,
    /// Place and content of the first variant of the app that is being written.
    base: Option<(String, usize, Vec<u8>)>,
}

impl<'a> Writer<'a> {
    const fn new(owner_uid: &'a str, kind: PackKind) -> Self {
        let index = Index {
            frames: Vec::new(),
            apps: Vec::new(),
            sets: Vec::new(),
            assignment: None,
            identities: None,
            waves: None,
        };
        Self { owner_uid, kind, done: Vec::new(), index, frames: Vec::new(), size: EMPTY, base: None }
    }

    /// Adds the manifests of a set at these places.
    fn add(&mut self, set: &ManifestSet, at: &[usize]) -> Result<(), PackError> {
        let part: Vec<&SetManifest> = at.iter().filter_map(|i| set.manifests.get(*i)).collect();
        let content = json(&part)?;
        if content.len() > LARGEST_FRAME {
            return self.divide(set, at, &content);
        }
        if self.try_add(set, at, &content, None)? {
            return Ok(());
        }
        self.seal()?;
        if self.try_add(set, at, &content, None)? {
            return Ok(());
        }
        self.divide(set, at, &content)
    }

    /// Adds half by half what no pack can hold; one manifest, piece by piece.
    fn divide(&mut self, set: &ManifestSet, at: &[usize], content: &[u8]) -> Result<(), PackError> {
        if at.len() < 2 {
            let pieces = content.len().div_ceil(PIECE);
            for (number, piece) in content.chunks(PIECE).enumerate() {
                let of = Some(Piece { number, pieces });
                if self.try_add(set, at, piece, of)? {
                    continue;
                }
                self.seal()?;
                if !self.try_add(set, at, piece, of)? {
                    return Err(PackError::TooLarge(format!("a piece of {} bytes", piece.len())));
                }
            }
            return Ok(());
        }
        let (left, right) = at.split_at(at.len() / 2);
        self.add(set, left)?;
        self.add(set, right)
    }

    /// Adds to the current pack; false where it does not fit.
    fn try_add(
        &mut self,
        set: &ManifestSet,
        at: &[usize],
        content: &[u8],
        piece: Option<Piece>,
    ) -> Result<bool, PackError> {
        let base = self.base.as_ref().filter(|(app, ..)| *app == set.app);
        let (dictionary, place) =
            base.map_or((&[][..], None), |(_, at, bytes)| (bytes.as_slice(), Some(*at)));
        let (frame, bytes) = frame(content, dictionary, place)?;
        let whole = at.len() == set.manifests.len();
        // The longest an entry can be: the digest, five numbers and their names, the places, and two numbers of a piece.
        let entry = 192
            + set.app.len()
            + if piece.is_some() { 64 } else { 0 }
            + if whole { 0 } else { 12 * at.len() };
        if self.size + bytes.len() + entry > LARGEST {
            return Ok(false);
        }
        if place.is_none() {
            self.base = Some((set.app.clone(), self.frames.len(), content.to_vec()));
        }
        if self.index.apps.last() != Some(&set.app) {
            self.index.apps.push(set.app.clone());
        }
        self.index.sets.push(Part {
            set: set.digest.clone(),
            app: self.index.apps.len() - 1,
            frame: self.frames.len(),
            total: set.manifests.len(),
            positions: (!whole).then(|| at.to_vec()),
            piece,
        });
        self.index.frames.push(frame);
        self.size += bytes.len() + entry;
        self.frames.push(bytes);
        Ok(true)
    }

    /// Ends the current pack.
    fn seal(&mut self) -> Result<(), PackError> {
        if !self.frames.is_empty() {
            self.done.push(object(self.owner_uid, self.kind, &self.index, &self.frames)?);
        }
        (self.index, self.size, self.base) = (Index::default(), EMPTY, None);
        self.frames.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<PackObject>, PackError> {
        self.seal()?;
        Ok(self.done)
    }
}

/// Bytes of a piece, before it is compressed: what does not compress at all fits into a pack, too.
const PIECE: usize = 800 * 1024;
/// Bytes of a pack without anything in it.
const EMPTY: usize = codec::HEADER + 128;

fn frame(content: &[u8], dictionary: &[u8], place: Option<usize>) -> Result<(Frame, Vec<u8>), PackError> {
    let bytes = codec::compress(content, dictionary)?;
    Ok((Frame { compressed: bytes.len(), raw: content.len(), dictionary: place }, bytes))
}

fn object(
    owner_uid: &str,
    kind: PackKind,
    index: &Index,
    frames: &[Vec<u8>],
) -> Result<PackObject, PackError> {
    let bytes = codec::encode(index, frames)?;
    let digest = hex::encode(Sha256::digest(&bytes));
    let owner = hex::encode(Sha256::digest(owner_uid));
    let name = format!("emco-pack-{}-{}", short(&owner), short(&digest));
    Ok(PackObject { name, kind, digest, bytes })
}

fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, PackError> {
    serde_json::to_vec(value).map_err(|error| PackError::Corrupt(error.to_string()))
}
