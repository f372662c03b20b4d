//! Answers `lookup` of a chart from the manifests that its app has on the cluster, as they are stored.
//!
//! A chart is a tenant's input, and rendering reaches no cluster: there is nothing but the app's own set, and what it costs
//! to find something does not grow with the set.

mod quoted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use emco_helm::{Found, Lookup, LookupRead};
use parking_lot::Mutex;
use serde_json::Value;

use crate::apis::ApiList;
use crate::identity::{Identity, split_api_version};
use crate::set::{HookSpec, ManifestSet, SetManifest};

/// Events of hooks that run when a release is installed, and when it is upgraded.
const INSTALL: [&str; 2] = ["pre-install", "post-install"];
const UPGRADE: [&str; 2] = ["pre-upgrade", "post-upgrade"];

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
    set: Option<Arc<ManifestSet>>,
    known: Completeness,
    /// The set was rendered as an upgrade, so that hooks of upgrades have run.
    upgraded: bool,
    index: OnceLock<Index>,
}

/// Positions of manifests by kind, group, namespace and name, in the order in which an API server lists them.
type Index = BTreeMap<String, BTreeMap<String, Scopes>>;
type Scopes = BTreeMap<String, BTreeMap<String, usize>>;

impl Holdings {
    /// From a stored set, or from the part of it that can be read.
    pub const fn new(set: Option<Arc<ManifestSet>>, known: Completeness, upgraded: bool) -> Self {
        Self { set, known, upgraded, index: OnceLock::new() }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::new();
            let manifests = self.set.iter().flat_map(|set| &set.manifests).enumerate();
            for (position, manifest) in manifests.filter(|(_, manifest)| self.is_there(manifest)) {
                let Identity { group, kind, namespace, name } = manifest.identity();
                let scopes = index.entry(kind).or_default().entry(group).or_default();
                // Of hooks that repeat a name, the last one is there.
                scopes.entry(namespace).or_default().insert(name, position);
            }
            index
        })
    }

    /// Whether a manifest is on the cluster once its set is applied: objects of hooks are there from the hook's first run on,
    /// unless they go with its success.
    fn is_there(&self, manifest: &SetManifest) -> bool {
        let Some(HookSpec { events, delete_policies, .. }) = &manifest.hook else { return true };
        let ran = |of: [&str; 2]| events.iter().any(|event| of.contains(&event.as_str()));
        (ran(INSTALL) || self.upgraded && ran(UPGRADE))
            && !delete_policies.iter().any(|policy| policy == "hook-succeeded")
    }

    fn scopes(&self, read: &LookupRead) -> Option<&Scopes> {
        self.index().get(&read.kind)?.get(split_api_version(&read.api_version).0)
    }

    fn at(&self, position: usize) -> Option<&SetManifest> {
        self.set.as_ref()?.manifests.get(position)
    }

    /// One object by its name. Those of no namespace are found whatever namespace is asked for, others in theirs alone.
    fn one(&self, read: &LookupRead) -> Option<usize> {
        let scopes = self.scopes(read)?;
        let within = |namespace: &str| scopes.get(namespace)?.get(&read.name).copied();
        within("").or_else(|| within(&read.namespace))
    }

    /// All objects of a kind in one namespace, or in all.
    fn all(&self, read: &LookupRead) -> Vec<usize> {
        let Some(scopes) = self.scopes(read) else { return Vec::new() };
        let chosen: Vec<_> = if read.namespace.is_empty() {
            scopes.values().collect()
        } else {
            [scopes.get(""), scopes.get(&read.namespace)].into_iter().flatten().collect()
        };
        chosen.into_iter().flat_map(BTreeMap::values).copied().collect()
    }

    /// What these lookups found and Helm leaves on the cluster though the chart prints it no more: what is marked to be kept,
    /// and objects of hooks. Charts that print an object only where it is not there would otherwise lose it.
    pub fn staying(&self, lookups: &BTreeSet<LookupRead>) -> Vec<SetManifest> {
        let found = lookups.iter().flat_map(|read| {
            if read.name.is_empty() { self.all(read) } else { self.one(read).into_iter().collect() }
        });
        let positions: BTreeSet<usize> = found.collect();
        let manifests = positions.into_iter().filter_map(|position| self.at(position));
        manifests
            .filter(|manifest| (manifest.keep || manifest.hook.is_some()) && !manifest.crd_folder)
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
        let secrets = log.secrets.iter().filter_map(|position| self.holdings.at(*position));
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
        let json = &self.holdings.at(position)?.json;
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
        let holdings = self.holdings;
        if !read.name.is_empty() {
            let found = holdings.one(read).and_then(|at| Some((at, self.shown(read, at)?)));
            let Some((position, object)) = found else { return self.absent(read, Found::Nothing) };
            self.note(read, [position]);
            return Ok(Found::Object(object));
        }
        let positions = holdings.all(read);
        let items: Vec<&Value> = positions.iter().filter_map(|at| self.shown(read, *at)).collect();
        self.note(read, positions);
        // Helm fails where there is no such kind; a chart that asks all the same finds none.
        let is_kind = !items.is_empty() || self.serves(read);
        self.absent(read, if is_kind { Found::List(items) } else { Found::Nothing })
    }
}
