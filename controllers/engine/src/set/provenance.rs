//! Names for each object that actions of intents made, changed or left out the fields that are theirs, without any value.
//!
//! For people alone: nothing is decided by it, and no digest covers it. A field is a JSON pointer as in `act/touched.rs`.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::deployment_intent_group::IntentRef;
use emco_crds::deployment_intent_group::status::IntentStatus;
use emco_crds::names::generated_app;
use serde::{Deserialize, Serialize};

use crate::conditions::truncate;
use crate::identity::Identity;
use crate::set::{ADDED, Assignment, ManifestSet};

/// Fields of one set that are named; others are counted.
pub const MOST_FIELDS: usize = 1_000;
/// Longest pointer, in bytes.
const LONGEST: usize = 512;

/// Edits of intents in what was rendered, of one set.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Provenance {
    /// Actions with fields, as messages name them: `GenericActionIntent banner, spec.actions[text]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Objects with fields: those of the set in the order in which they were rendered, with those that were added after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<EditedObject>,
    /// The number of other fields.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The number of objects that each intent had its part in, all fields counted: `GenericActionIntent banner` to 2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intents: BTreeMap<String, usize>,
}

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Became {
    /// The chart makes it, and its fields differ.
    Changed,
    /// An action added it.
    Added,
    /// The chart makes it, and an action left it out.
    LeftOut,
}

/// The fields of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EditedObject {
    /// Group, kind, namespace and name: `apps/Deployment/shop/web`.
    pub object: String,
    /// What became of it.
    pub became: Became,
    /// Each field with the place of its action in [`Provenance::actions`]. The empty pointer is the whole object: what was added begins
    /// with it, and what was changed of that afterwards follows.
    pub fields: Vec<(String, usize)>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// All edits of one object.
#[derive(Debug)]
pub struct Done {
    /// The object; what was added may have no namespace yet.
    pub object: Identity,
    /// What became of it.
    pub became: Became,
    /// Each field, and the action that it is of.
    pub fields: Vec<(String, String)>,
}

impl Provenance {
    /// Of a finished set. Where actions count and do nothing, it is empty.
    pub fn of(done: &[Done], set: &ManifestSet) -> Self {
        let mut all = Self::default();
        if done.is_empty() {
            return all;
        }
        let placed = placed(set);
        let (mut places, mut room) = (BTreeMap::new(), MOST_FIELDS);
        for Done { object, became, fields } in done {
            let intents: BTreeSet<&str> = fields.iter().map(|(_, action)| intent_of(action)).collect();
            for intent in intents {
                *all.intents.entry(intent.to_owned()).or_default() += 1;
            }
            let named = fields.len().min(room);
            room -= named;
            all.more += fields.len() - named;
            if named == 0 {
                continue;
            }
            let fields = fields.iter().take(named).map(|(field, action)| {
                let next = all.actions.len();
                let place = *places.entry(action.as_str()).or_insert(next);
                if place == next {
                    all.actions.push(action.clone());
                }
                (truncate(field, LONGEST), place)
            });
            let fields: Vec<(String, usize)> = fields.collect();
            let object = match fields.first() {
                Some((_, at)) if *became == Became::Added => {
                    let action = all.actions.get(*at).cloned().unwrap_or_default();
                    placed.get(&(action, object.clone())).unwrap_or(object)
                }
                _ => object,
            };
            let object = object.to_string();
            all.objects.push(EditedObject { object, became: *became, fields });
        }
        all
    }

    /// True where nothing was done.
    pub fn is_empty(&self) -> bool {
        self.intents.is_empty()
    }

    /// The same with numbers alone, for what there is no room for.
    #[must_use]
    pub fn counted(&self) -> Self {
        let named: usize = self.objects.iter().map(|object| object.fields.len()).sum();
        Self { more: self.more + named, intents: self.intents.clone(), ..Self::default() }
    }

    /// Bytes of its texts, about.
    pub fn size(&self) -> usize {
        let fields = self.objects.iter().flat_map(|object| &object.fields).map(|(field, _)| field.len() + 8);
        let objects = self.objects.iter().map(|object| object.object.len() + 48);
        fields.chain(objects).chain(self.actions.iter().map(String::len)).sum()
    }

    /// Intents that had a part in each object, by its name: `GenericActionIntent banner`. Without those that are only counted.
    pub fn by_object(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for EditedObject { object, fields, .. } in &self.objects {
            let actions = fields.iter().filter_map(|(_, at)| self.actions.get(*at));
            all.entry(object.as_str()).or_default().extend(actions.map(|action| intent_of(action)));
        }
        all
    }
}

/// The intent of an action: `GenericActionIntent banner`.
pub fn intent_of(action: &str) -> &str {
    action.split(',').next().unwrap_or(action)
}

/// Names an added object before it had a namespace: its action, and what it was then.
type Unplaced = (String, Identity);

/// Names of added objects in their namespaces.
fn placed(set: &ManifestSet) -> BTreeMap<Unplaced, Identity> {
    let added = set.manifests.iter().filter_map(|manifest| {
        let action = manifest.edited_by.first()?.strip_prefix(ADDED)?;
        let identity = manifest.identity();
        let unplaced = Identity { namespace: String::new(), ..identity.clone() };
        Some(((action.to_owned(), unplaced), identity))
    });
    added.collect()
}

/// What the intents that a deployment lists do on its clusters. Nothing where a cell was edited before fields were kept.
pub fn intents(listed: &[IntentRef], assignment: &Assignment) -> Vec<IntentStatus> {
    let mut all: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for apps in assignment.values() {
        let mut on_cluster: BTreeMap<&str, usize> = BTreeMap::new();
        for (app, cell) in apps {
            let Some(provenance) = &cell.provenance else {
                if cell.edits.is_some() || generated_app::is(app) {
                    return Vec::new();
                }
                continue;
            };
            for (intent, objects) in &provenance.intents {
                *on_cluster.entry(intent.as_str()).or_default() += objects;
            }
        }
        for (intent, objects) in on_cluster {
            let (clusters, total) = all.entry(intent.to_owned()).or_default();
            *clusters += 1;
            *total += i64::try_from(objects).unwrap_or(i64::MAX);
        }
    }
    let status = |IntentRef { group: _, kind, name }: &IntentRef| {
        let (clusters, objects) = all.get(&format!("{kind} {name}")).copied().unwrap_or_default();
        IntentStatus { kind: kind.clone(), name: name.clone(), clusters, objects }
    };
    listed.iter().map(status).collect()
}

#[cfg(test)]
mod tests;
