//! Puts sets together from the packs that hold parts of them.

use std::collections::BTreeMap;

use super::{Pack, PackError, Part, Piece, parse};
use crate::identity::SetDigest;
use crate::set::{ManifestSet, SetManifest};

/// Puts a set together from the packs that hold parts of it. Packs without a part of it do no harm. (Two apps without any
/// manifest have one digest; the app named is then one of them.)
pub fn assemble(set: &SetDigest, packs: &[&Pack]) -> Result<ManifestSet, PackError> {
    let missing = || PackError::Missing(format!("set {set}"));
    let mut found = Found::default();
    let mut total = 0;
    for (pack, part) in parts(set, packs) {
        found.take(pack, part)?;
        total = part.total;
    }
    found.join()?;
    if found.places.len() != total {
        return Err(missing());
    }
    found.set(set).ok_or_else(missing)
}

/// What can still be read of a set where not all can: those of its manifests, in their order. `None` where nothing can.
pub fn salvage(set: &SetDigest, packs: &[&Pack]) -> Option<ManifestSet> {
    let mut found = Found::default();
    for (pack, part) in parts(set, packs) {
        // What a part says that cannot be read is not known.
        let _ = found.take(pack, part);
    }
    let _ = found.join();
    found.set(set)
}

fn parts<'a>(set: &'a SetDigest, packs: &'a [&'a Pack]) -> impl Iterator<Item = (&'a Pack, &'a Part)> {
    let all = packs.iter().flat_map(|pack| pack.index.sets.iter().map(move |part| (*pack, part)));
    all.filter(move |(_, part)| part.set == *set)
}

/// What was found of a set.
#[derive(Default)]
struct Found {
    app: Option<String>,
    places: BTreeMap<usize, SetManifest>,
    /// By the place of their manifest.
    pieces: BTreeMap<usize, Pieces>,
}

/// The pieces of a manifest that were found.
#[derive(Default)]
struct Pieces {
    app: Option<String>,
    /// The number of all.
    all: usize,
    found: BTreeMap<usize, Vec<u8>>,
}

impl Found {
    fn take(&mut self, pack: &Pack, part: &Part) -> Result<(), PackError> {
        let lies = || PackError::Corrupt(format!("set {} does not say where its manifests belong", part.set));
        let content = pack.content(part.frame)?;
        if let Some(Piece { number, pieces }) = part.piece {
            let place = match part.positions.as_deref() {
                Some([place]) if *place < part.total && number < pieces => *place,
                None if part.total == 1 && number < pieces => 0,
                _ => return Err(lies()),
            };
            let of = self.pieces.entry(place).or_default();
            of.app = pack.index.apps.get(part.app).cloned();
            of.all = pieces;
            of.found.insert(number, content);
        } else {
            let manifests: Vec<SetManifest> = parse(&content)?;
            let positions = part.positions.clone().unwrap_or_else(|| (0..part.total).collect());
            if positions.len() != manifests.len() || positions.iter().any(|at| *at >= part.total) {
                return Err(lies());
            }
            self.places.extend(positions.into_iter().zip(manifests));
            self.app = pack.index.apps.get(part.app).cloned();
        }
        Ok(())
    }

    /// Reads the manifests of which all pieces were found.
    fn join(&mut self) -> Result<(), PackError> {
        for (place, Pieces { app, all, found }) in std::mem::take(&mut self.pieces) {
            if found.len() != all {
                continue;
            }
            let content: Vec<u8> = found.into_values().flatten().collect();
            let [manifest]: [SetManifest; 1] = parse(&content)?;
            self.places.insert(place, manifest);
            self.app = app;
        }
        Ok(())
    }

    fn set(self, digest: &SetDigest) -> Option<ManifestSet> {
        let manifests = self.places.into_values().collect();
        Some(ManifestSet { digest: digest.clone(), app: self.app?, manifests })
    }
}
