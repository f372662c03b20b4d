//! Names objects that a plan would delete and make again: as a cluster says that was asked, else as their manifests tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Changes, Details, DetailsVariant, LONGEST, MOST_REFUSED, RecreatedRow, Room, Variant, What};
use crate::conditions::truncate;
use crate::identity::{Id, SetDigest};
use crate::recreate;
use crate::set::{ManifestSet, SetManifest};
use crate::text::counted;

/// Rows of one variant.
const MOST_ROWS: usize = 10;
/// Bytes of all rows of a plan.
const MOST_BYTES: usize = 32 * 1024;

/// Sets by their digests.
type Sets = BTreeMap<SetDigest, Arc<ManifestSet>>;

impl Details {
    /// Names what is deleted and made again where clusters go from sets that run to sets of the plan.
    pub fn foresee(&mut self, changes: &Changes, runs: Option<&Sets>, plan: &Sets) {
        let mut room = Room(MOST_BYTES);
        for (of, app) in changes.apps.iter().zip(&mut self.apps) {
            for (variant, row) in of.variants.iter().zip(&mut app.variants) {
                let before = variant.before.as_ref().and_then(|set| runs?.get(set));
                let now = variant.now.as_ref().and_then(|set| plan.get(set));
                let (Some(before), Some(now)) = (before, now) else { continue };
                let found = rows(variant, before, now);
                let all = found.len();
                row.recreated = found.into_iter().take(MOST_ROWS).map_while(|row| room.take(row)).collect();
                row.more_recreated = all - row.recreated.len();
            }
        }
    }
}

fn rows(variant: &Variant, before: &ManifestSet, now: &ManifestSet) -> Vec<RecreatedRow> {
    let changed = |(what, id): &&(What, Id)| *what == What::Changed && recreate::kind_obstacle(id).is_none();
    let changed: Vec<&Id> = variant.objects.iter().filter(changed).map(|(_, id)| id).collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let (before, now) = (by_id(before), by_id(now));
    let lost = |id: &Id| recreate::foreseen(before.get(id)?, now.get(id)?);
    let row = |id: &Id| Some(RecreatedRow { object: id.to_string(), lost: lost(id)?.to_owned() });
    changed.into_iter().filter_map(row).collect()
}

fn by_id(set: &ManifestSet) -> BTreeMap<Id, &SetManifest> {
    set.manifests.iter().map(|manifest| (Id::new(manifest.identity()), manifest)).collect()
}

/// For a status: the first objects, and how many more.
pub(super) fn said(variants: &[&DetailsVariant], room: &mut Room) -> Vec<String> {
    let known = |variant: &&DetailsVariant| {
        let asked = variant.dry_run.as_ref().filter(|run| run.cluster.is_some());
        let (cluster, rows, more) = match asked {
            Some(run) => (run.cluster.as_ref(), &run.recreated, run.more_recreated),
            None => (variant.clusters.first(), &variant.recreated, variant.more_recreated),
        };
        (cluster.cloned().unwrap_or_default(), rows.clone(), more)
    };
    let known: Vec<(String, Vec<RecreatedRow>, usize)> = variants.iter().map(known).collect();
    let rows = known.iter().flat_map(|(cluster, rows, _)| {
        rows.iter().map(move |RecreatedRow { object, lost }| {
            truncate(&format!("{cluster}: {object}: {lost}"), LONGEST)
        })
    });
    let mut said: Vec<String> = rows.take(MOST_REFUSED).map_while(|said| room.take(said)).collect();
    let all: usize = known.iter().map(|(_, rows, more)| rows.len() + more).sum();
    if all > said.len() {
        let noun = if said.is_empty() { "object" } else { "more object" };
        said.push(counted(all - said.len(), noun));
    }
    said
}
