//! Finds the manifests of a set by kind and name, as an API server would that has them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use emco_helm::LookupRead;

use crate::identity::{Identity, split_api_version};
use crate::set::{HookSpec, ManifestSet, SetManifest};

/// Events of hooks that run when a release is installed, and when it is upgraded.
const INSTALL: [&str; 2] = ["pre-install", "post-install"];
const UPGRADE: [&str; 2] = ["pre-upgrade", "post-upgrade"];

/// A set whose manifests are found without going through all of them.
#[derive(Debug)]
pub(super) struct Indexed {
    set: Option<Arc<ManifestSet>>,
    /// The set was rendered as an upgrade, so that hooks of upgrades have run.
    pub upgraded: bool,
    index: OnceLock<Index>,
}

/// Positions of manifests by kind, group, namespace and name, in the order in which an API server lists them.
type Index = BTreeMap<String, BTreeMap<String, Scopes>>;
type Scopes = BTreeMap<String, BTreeMap<String, usize>>;

impl Indexed {
    pub const fn new(set: Option<Arc<ManifestSet>>, upgraded: bool) -> Self {
        Self { set, upgraded, index: OnceLock::new() }
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

    pub fn at(&self, position: usize) -> Option<&SetManifest> {
        self.set.as_ref()?.manifests.get(position)
    }

    /// One object by what names it.
    pub fn named(&self, Identity { group, kind, namespace, name }: &Identity) -> Option<&SetManifest> {
        self.at(*self.index().get(kind)?.get(group)?.get(namespace)?.get(name)?)
    }

    /// One object by its name. Those of no namespace are found whatever namespace is asked for, others in theirs alone.
    pub fn one(&self, read: &LookupRead) -> Option<usize> {
        let scopes = self.scopes(read)?;
        let within = |namespace: &str| scopes.get(namespace)?.get(&read.name).copied();
        within("").or_else(|| within(&read.namespace))
    }

    /// All objects of a kind in one namespace, or in all.
    pub fn all(&self, read: &LookupRead) -> Vec<usize> {
        let Some(scopes) = self.scopes(read) else { return Vec::new() };
        let chosen: Vec<_> = if read.namespace.is_empty() {
            scopes.values().collect()
        } else {
            [scopes.get(""), scopes.get(&read.namespace)].into_iter().flatten().collect()
        };
        chosen.into_iter().flat_map(BTreeMap::values).copied().collect()
    }
}
