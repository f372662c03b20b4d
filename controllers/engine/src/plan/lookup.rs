//! Answers `lookup` of a chart from the manifests that its app has on the cluster, as they are stored.
//!
//! A chart is a tenant's input, and rendering reaches no cluster: there is nothing but the app's own set, and what it costs
//! to find something does not grow with the set.

mod indexed;
mod quoted;

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_helm::{Found, Lookup, LookupRead};
use parking_lot::Mutex;
use serde_json::Value;

use self::indexed::Indexed;
use crate::apis::ApiList;
use crate::identity::split_api_version;
use crate::set::{ManifestSet, SetManifest};

/// How much of what an app has on a cluster is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completeness {
    /// All of it: what is not found is not there.
    All,
    /// A part of it, or nothing: what is not found may be there.
    Part,
    /// A part of it, or nothing, and that is taken for all of it: for a try whose result is compared.
    Assumed,
}

/// What an app has on a cluster.
#[derive(Debug)]
pub struct Holdings {
    there: Indexed,
    known: Completeness,
    /// The rendered one, where what is there was edited since.
    base: Option<Indexed>,
}

impl Holdings {
    /// From a stored set, or from the part of it that can be read. `upgraded` says that it was an upgrade, so that hooks of upgrades have run.
    pub const fn new(set: Option<Arc<ManifestSet>>, known: Completeness, upgraded: bool) -> Self {
        Self { there: Indexed::new(set, upgraded), known, base: None }
    }

    /// The same, of a set that was edited from this one.
    #[must_use]
    pub fn edited_from(mut self, base: Arc<ManifestSet>) -> Self {
        self.base = Some(Indexed::new(Some(base), self.there.upgraded));
        self
    }

    /// What these lookups found and Helm leaves on the cluster though the chart prints it no more: what is marked to be kept,
    /// and objects of hooks. Charts that print an object only where it is not there would otherwise lose it. It is as it was rendered,
    /// for the edits that count now are still to come.
    pub fn staying(&self, lookups: &BTreeSet<LookupRead>) -> Vec<SetManifest> {
        let rendered = self.base.as_ref().unwrap_or(&self.there);
        let found = lookups.iter().flat_map(|read| {
            if read.name.is_empty() { rendered.all(read) } else { rendered.one(read).into_iter().collect() }
        });
        let positions: BTreeSet<usize> = found.collect();
        let manifests = positions.into_iter().filter_map(|position| rendered.at(position));
        // An edit may have marked it.
        let is_kept = |manifest: &SetManifest| {
            manifest.keep || self.there.named(&manifest.identity()).is_some_and(|there| there.keep)
        };
        manifests
            .filter(|manifest| (manifest.hook.is_some() || is_kept(manifest)) && !manifest.crd_folder)
            // Where what was rendered is not known: the chart never made it.
            .filter(|manifest| !manifest.was_added())
            .map(|manifest| {
                let mut staying = manifest.clone();
                if let Some(hook) = &mut staying.hook {
                    // Its hook is printed no more, so that no upgrade runs it.
                    hook.events.retain(|event| !event.ends_with("-upgrade") && !event.ends_with("-rollback"));
                }
                staying
            })
            .collect()
    }
}

/// Answers the lookups of one rendering.
pub struct Answers<'a> {
    holdings: &'a Holdings,
    /// What the cluster serves.
    apis: Option<&'a ApiList>,
    log: Mutex<Log>,
}

/// What happened while a chart was rendered.
#[derive(Default)]
struct Log {
    /// The first lookup that could not be answered.
    unanswered: Option<LookupRead>,
    /// Secrets that templates got.
    secrets: BTreeSet<usize>,
}

impl<'a> Answers<'a> {
    /// For one cluster.
    pub fn new(holdings: &'a Holdings, apis: Option<&'a ApiList>) -> Self {
        Self { holdings, apis, log: Mutex::default() }
    }

    /// What could not be answered.
    pub fn unanswered(&self) -> Option<LookupRead> {
        self.log.lock().unanswered.clone()
    }

    /// Whether a text quotes a Secret that a template got.
    pub fn quotes(&self, text: &str) -> bool {
        let log = self.log.lock();
        let secrets = log.secrets.iter().filter_map(|position| self.holdings.there.at(*position));
        quoted::quotes(text, secrets.map(|manifest| &manifest.json))
    }

    /// Whether another cluster's answers to these are the same.
    pub fn same_as(&self, other: &Answers<'_>, lookups: &BTreeSet<LookupRead>) -> bool {
        lookups.iter().all(|read| match (self.lookup(read), other.lookup(read)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        })
    }

    fn serves(&self, read: &LookupRead) -> bool {
        let (group, version) = split_api_version(&read.api_version);
        self.apis.is_some_and(|apis| apis.find(group, version, &read.kind).is_some())
    }

    /// The stored manifest, if the cluster would show it under the version that is asked for.
    fn shown(&self, read: &LookupRead, position: usize) -> Option<&'a Value> {
        let json = &self.holdings.there.at(position)?.json;
        let as_stored = json.get("apiVersion").and_then(Value::as_str) == Some(read.api_version.as_str());
        (as_stored || self.serves(read)).then_some(json)
    }

    /// Nothing is not there unless that is known.
    fn absent<'f>(&self, read: &LookupRead, found: Found<'f>) -> Result<Found<'f>, String> {
        if self.holdings.known != Completeness::Part {
            return Ok(found);
        }
        self.log.lock().unanswered.get_or_insert_with(|| read.clone());
        Err("what is stored of the cluster cannot be read".to_owned())
    }

    fn note(&self, read: &LookupRead, positions: impl IntoIterator<Item = usize>) {
        if read.kind == "Secret" {
            self.log.lock().secrets.extend(positions);
        }
    }
}

impl Lookup for Answers<'_> {
    fn lookup(&self, read: &LookupRead) -> Result<Found<'_>, String> {
        let there = &self.holdings.there;
        if !read.name.is_empty() {
            let found = there.one(read).and_then(|at| Some((at, self.shown(read, at)?)));
            let Some((position, object)) = found else { return self.absent(read, Found::Nothing) };
            self.note(read, [position]);
            return Ok(Found::Object(object));
        }
        let positions = there.all(read);
        let items: Vec<&Value> = positions.iter().filter_map(|at| self.shown(read, *at)).collect();
        self.note(read, positions);
        // Helm fails where there is no such kind; a chart that asks all the same finds none.
        let is_kind = !items.is_empty() || self.serves(read);
        self.absent(read, if is_kind { Found::List(items) } else { Found::Nothing })
    }
}
