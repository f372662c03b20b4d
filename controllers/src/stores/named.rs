//! Remembers what each deployment names, so that what it names no more looks again, too.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::DeploymentIntentGroup;
use emco_engine::resolve;
use parking_lot::Mutex;

use crate::api::key_queue::Key;
use crate::object::meta;

/// Something in its own namespace that a deployment names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// A kind of the table.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Reference {
    fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }

    /// All that a deployment names.
    pub fn of(dig: &DeploymentIntentGroup) -> BTreeSet<Self> {
        let spec = &dig.spec;
        let profile = spec.composite_profile_ref.iter();
        let profile = profile.map(|profile| Self::new("CompositeProfile", &profile.name));
        let listed = spec.intents.iter().filter(|listed| resolve::is_known(listed));
        let app = Self::new("CompositeApp", &spec.composite_app_ref.name);
        let cloud = Self::new("LogicalCloud", &spec.logical_cloud_ref.name);
        let listed = listed.map(|listed| Self::new(&listed.kind, &listed.name));
        [app, cloud].into_iter().chain(profile).chain(listed).collect()
    }
}

/// What each deployment named when the watch last showed it. The watch of deployments keeps it.
#[derive(Default)]
pub struct Named(Mutex<BTreeMap<Key, BTreeSet<Reference>>>);

impl Named {
    /// Takes in what the watch shows: what the deployment names, and what it named before.
    pub fn note(&self, dig: &DeploymentIntentGroup, gone: bool) -> BTreeSet<Reference> {
        let key = (meta::namespace(dig).to_owned(), meta::name(dig).to_owned());
        let now = Reference::of(dig);
        let mut seen = self.0.lock();
        let before = if gone { seen.remove(&key) } else { seen.insert(key, now.clone()) };
        before.into_iter().flatten().chain(now).collect()
    }
}
