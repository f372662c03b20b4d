//! Finds the objects of an app that change only because intents do other things to them than before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::names::generated_app;

use super::{Comparison, What, manifests};
use crate::identity::{ClusterId, Id, SetDigest};
use crate::set::{Assigned, ManifestSet};

/// Digests of a chart's objects.
type Rendered<'a> = BTreeMap<Id, &'a str>;

impl Comparison<'_> {
    /// By object, the intents that had a part in it before or have one now. An object that its chart makes otherwise, too, is left out, and
    /// so is one of which it is not known.
    pub(super) fn by_intents(
        &self,
        app: &str,
        cluster: &ClusterId,
        objects: &[(What, Id)],
    ) -> BTreeMap<Id, Vec<String>> {
        let before = self.running.and_then(|running| running.assignment.get(cluster)?.get(app));
        let now = self.assignment.get(cluster).and_then(|apps| apps.get(app));
        let cells = [before, now];
        let mut parts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for provenance in cells.iter().flatten().filter_map(|cell| cell.provenance.as_deref()) {
            for (object, intents) in provenance.by_object() {
                parts.entry(object).or_default().extend(intents);
            }
        }
        if parts.is_empty() {
            return BTreeMap::new();
        }
        let stored = [self.running.map(|running| &running.sets), Some(self.sets)];
        let mut sides = cells.iter().zip(stored).map(|(cell, sets)| match (cell, sets) {
            // Neither the chart nor an intent made anything.
            (None, _) => Some(Rendered::new()),
            (Some(cell), Some(sets)) => rendered(app, cell, sets),
            (Some(_), None) => None,
        });
        let (Some(Some(had)), Some(Some(has))) = (sides.next(), sides.next()) else { return BTreeMap::new() };
        let edited = objects.iter().filter(|(_, id)| had.get(id) == has.get(id));
        let named = edited.filter_map(|(_, id)| {
            let intents = parts.get(id.to_string().as_str())?;
            let intents: Vec<String> = intents.iter().map(|intent| (*intent).to_owned()).collect();
            Some((id.clone(), intents))
        });
        named.collect()
    }
}

/// The objects rendered for a cell, before intents edited them; `None` where they cannot be read.
fn rendered<'a>(
    app: &str,
    cell: &Assigned,
    sets: &'a BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Option<Rendered<'a>> {
    if generated_app::is(app) {
        return Some(Rendered::new());
    }
    Some(manifests(Some(sets.get(cell.base())?)).collect())
}
