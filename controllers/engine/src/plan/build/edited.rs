//! Has the actions of intents edit what was rendered: once for all clusters with the same rendered set and the same edits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Builder, Finished};
use crate::manifests::{self, Draft};
use crate::plan::render::Job;
use crate::plan::work::Item;
use crate::refusal::Refusal;
use crate::set::provenance::Provenance;
use crate::set::{Assigned, ManifestSet, StoredEdits};

/// Bytes of the fields that intents changed, of all different sets of one plan: what is beyond is only counted.
const MOST_NAMED: usize = 8 << 20;

/// A rendered set as actions of intents leave it.
#[derive(Clone)]
pub(super) struct Edited {
    pub(super) set: Arc<ManifestSet>,
    pub(super) provenance: Option<Arc<Provenance>>,
}

/// What actions of intents changed, of all sets that a plan edits.
#[derive(Default)]
pub(super) struct Named {
    all: BTreeSet<Arc<Provenance>>,
    bytes: usize,
}

impl Named {
    /// Equal ones are one. Fields are named as long as there is room, and counted afterwards.
    fn share(&mut self, provenance: Provenance) -> Arc<Provenance> {
        if let Some(known) = self.all.get(&provenance) {
            return Arc::clone(known);
        }
        let bytes = self.bytes + provenance.size();
        let provenance = if bytes > MOST_NAMED {
            provenance.counted()
        } else {
            self.bytes = bytes;
            provenance
        };
        let shared = Arc::new(provenance);
        self.all.insert(Arc::clone(&shared));
        shared
    }
}

impl<'a> Builder<'a> {
    /// A rendering as it is on a cluster, finished and edited; `None` where a try fails.
    pub(super) fn made(
        &mut self,
        job: &Job<'a>,
        draft: &Arc<Draft>,
    ) -> Result<Option<Finished>, Box<Refusal>> {
        let rendered = self.finish(job, draft)?;
        if job.item.class.edits.is_none() {
            return Ok(Some(rendered));
        }
        let base = Arc::clone(&rendered.set);
        match self.edit(&job.item, &base, Some(draft)) {
            Ok(Edited { set, provenance }) => {
                Ok(Some(Finished { set, base: Some(base), provenance, ..rendered }))
            }
            // A try refuses nothing: the set is rendered anew, and what is wrong is found then.
            Err(_) if job.tentative => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Edits what was rendered for a stored cell. What a rendering showed besides, and the tests of the chart, are as they were.
    pub(super) fn edit_stored(
        &mut self,
        item: &Item<'a>,
        stored: &Assigned,
        base: Arc<ManifestSet>,
    ) -> Result<(), Box<Refusal>> {
        let Edited { set, provenance } = self.edit(item, &base, None)?;
        // Counted are different sets.
        let release_revision = match item.previous {
            Some(previous) if previous.set == set.digest => previous.release_revision,
            Some(previous) => previous.release_revision + 1,
            None => stored.release_revision,
        };
        let rendered = stored.rendered_revision();
        // What is made again as it was stays stored as it was.
        let is_same = stored.set == set.digest && stored.render_key == item.class.render_key;
        let assigned = Assigned {
            set: set.digest.clone(),
            render_key: item.class.render_key.clone(),
            release_revision,
            rendered_revision: Some(rendered).filter(|rendered| *rendered != release_revision),
            edits: self::stored(item, Some(&base)),
            provenance: if is_same { stored.provenance.clone() } else { provenance },
            ..stored.clone()
        };
        for set in [set, base] {
            if assigned.sets().any(|named| *named == set.digest) {
                self.built.sets.entry(set.digest.clone()).or_insert(set);
            }
        }
        self.assign(item, assigned);
        Ok(())
    }

    /// A rendered set as the actions leave it, held to all that charts are held to.
    pub(super) fn edit(
        &mut self,
        item: &Item<'a>,
        base: &Arc<ManifestSet>,
        rendered: Option<&Draft>,
    ) -> Result<Edited, Box<Refusal>> {
        let draft = self.edited(item, base, rendered)?;
        let empty = BTreeMap::new();
        let defined = self.defined.get(item.id()).unwrap_or(&empty);
        let scopes = manifests::scopes(&draft.kinds, item.cluster.apis.as_deref(), defined);
        let key = (Arc::as_ptr(&draft).addr(), scopes);
        if let Some(made) = self.edited_sets.get(&key) {
            return Ok(made.clone());
        }
        let app = self.app(item);
        let digest_key = &self.resolved.snapshot.installation.digest_key;
        let mut before = vec![base.as_ref()];
        before.extend(self.before(item.previous));
        let (set, warnings) =
            draft.finish(app, digest_key, self.resolved.cloud, &key.1, &before, Vec::new())?;
        for warning in draft.warnings.iter().chain(&warnings) {
            self.warn(warning);
        }
        let is_edited = item.class.edits.is_some();
        let provenance = is_edited.then(|| self.named.share(Provenance::of(&draft.done, &set)));
        let made = Edited { set: Arc::new(set), provenance };
        self.edited_sets.insert(key, made.clone());
        Ok(made)
    }

    fn edited(
        &mut self,
        item: &Item<'a>,
        base: &Arc<ManifestSet>,
        rendered: Option<&Draft>,
    ) -> Result<Arc<Draft>, Box<Refusal>> {
        let edits = item.class.edits.as_deref();
        let app = self.app(item);
        let key = (app.to_owned(), base.digest.clone(), edits.map(|edits| edits.digest.clone()));
        if let Some(edited) = self.edited.get(&key) {
            return Ok(Arc::clone(edited));
        }
        let draft = Draft::of_set(base, rendered);
        let edited = Arc::new(match edits {
            Some(edits) => draft.edited(app, &format!("app {app} on {}", item.id()), edits)?,
            None => draft,
        });
        self.edited.insert(key, Arc::clone(&edited));
        Ok(edited)
    }
}

/// Edits of a cell, as they are stored.
pub(super) fn stored(item: &Item<'_>, base: Option<&Arc<ManifestSet>>) -> Option<StoredEdits> {
    let edits = item.class.edits.as_ref()?;
    Some(StoredEdits { digest: edits.digest.clone(), base: base?.digest.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::provenance::{Became, EditedObject};

    fn provenance(object: &str, bytes: usize) -> Provenance {
        let fields = vec![("x".repeat(bytes), 0)];
        let object = EditedObject { object: object.to_owned(), became: Became::Changed, fields };
        Provenance { objects: vec![object], ..Provenance::default() }
    }

    #[test]
    fn equal_fields_take_room_once_and_others_are_counted_beyond_it() {
        let (mut named, third) = (Named::default(), MOST_NAMED / 3);
        for _ in 0..10 {
            assert_eq!(named.share(provenance("a", third)).more, 0);
        }
        assert_eq!(named.all.len(), 1);
        assert_eq!(named.share(provenance("b", third)).more, 0);
        assert_eq!(named.share(provenance("c", third)).more, 1);
    }
}
