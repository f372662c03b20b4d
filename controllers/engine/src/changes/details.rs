//! Writes down all that a plan changes by name, for people: clusters, objects and hooks of each variant. Nothing of what is in an
//! object. The only file that knows the format.

use std::collections::BTreeMap;

use emco_crds::deployment_intent_group::status::Pending;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Changes, Variant, What};
use crate::canonical;
use crate::conditions::shorten;
use crate::rollout::Outline;
use crate::text::counted;

mod foreseen;

/// Key of the document in its ConfigMap.
pub const DETAILS: &str = "plan.json";
/// Version of the format: 2 where intents are named beside objects, which versions before would take for another document.
const FORMAT: i32 = 2;
/// Domain of digests.
const DOMAIN: &str = "emco-plan-details/1\0";
/// Domain of names of variants.
const VARIANT: &str = "emco-plan-variant/1\0";
/// Bytes of the document, before any cluster was asked.
const MOST_BYTES: usize = 256 * 1024;
/// Variants of an app.
const MOST_VARIANTS: usize = 200;
/// Clusters of a variant that are named.
const MOST_CLUSTERS: usize = 200;

/// What a plan changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// Version of the format.
    pub format: i32,
    /// By app.
    pub apps: Vec<DetailsApp>,
    /// The policies of `spec.sync` by which answers of clusters are judged; absent where none is asked.
    #[serde(default, rename = "judgedBy", skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<String>,
    /// The waves that it would reach its clusters in; none: all at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Outline>,
    /// Rights that the account of the logical cloud gains by it, where they follow what is deployed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<String>,
}

/// What it changes of one app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetailsApp {
    /// Its name.
    pub app: String,
    /// On how many clusters it is to be.
    pub clusters: usize,
    /// Clusters on which the same changes.
    pub variants: Vec<DetailsVariant>,
    /// How many more of these there was no room for.
    #[serde(default, rename = "leftOut", skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// What it changes on some clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DetailsVariant {
    /// The set that they have; absent where they get the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The set that they get; absent where they lose the app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// How many clusters.
    pub total: usize,
    /// The first of them.
    pub clusters: Vec<String>,
    /// Objects that are added on each.
    pub added: usize,
    /// Objects that are changed on each.
    pub changed: usize,
    /// Objects that are removed on each.
    pub removed: usize,
    /// The first of them.
    pub objects: Vec<ObjectRow>,
    /// Hooks that run on each: event and object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The first objects that would be deleted and made again (`spec.sync.immutableFields: Recreate`), as far as their manifests tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recreated: Vec<RecreatedRow>,
    /// The number of others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_recreated: usize,
    /// What a cluster answered, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
}

/// Variants of a plan that clusters are asked about.
pub const MOST_ASKED: usize = 32;

/// What a cluster would say to the objects of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// The first cluster that could be asked; absent where none could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Digest of who that is, and of what it serves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Objects that it judged.
    pub asked: usize,
    /// Objects for which it gave no answer, or none in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: usize,
    /// Objects that are too many to be asked about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// No cluster was asked, for all of the variant are written to through Git: a dry run is a write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_git: bool,
    /// The first objects that it would refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedRow>,
    /// How many more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The first objects that it cannot change, and that would be deleted and made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recreated: Vec<RecreatedRow>,
    /// How many more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_recreated: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One object that a cluster would refuse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRow {
    /// The object.
    pub object: String,
    /// As in `status.failing`.
    pub reason: String,
    /// The words of its API server.
    pub message: String,
}

/// One object that would be deleted and made again (`spec.sync.immutableFields: Recreate`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecreatedRow {
    /// The object.
    pub object: String,
    /// What is lost with it.
    pub lost: String,
}

/// One object that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// What becomes of it.
    pub what: What,
    /// Its name.
    pub object: String,
    /// The intents for which it changes, where its chart makes it as before: `GenericActionIntent banner`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

impl ObjectRow {
    /// For a line that ends with the object: ` (only by GenericActionIntent banner)`; empty where its chart has a part in the change.
    pub fn only_by(&self) -> String {
        if self.by.is_empty() { String::new() } else { format!(" (only by {})", self.by.join(", ")) }
    }
}

/// Digest of a document: the same for the same changes.
pub fn digest(details: &Details) -> String {
    canonical::sha256(DOMAIN, &serde_json::to_value(details).unwrap_or(Value::Null))
}

impl Changes {
    /// All that changes by name, as far as there is room; counts are always whole.
    pub fn details(&self) -> Details {
        self.details_within(MOST_BYTES)
    }

    pub(super) fn details_within(&self, bytes: usize) -> Details {
        let mut variants = self.apps.iter().flat_map(|app| &app.variants);
        let format = if variants.any(|variant| !variant.by.is_empty()) { FORMAT } else { 1 };
        let mut details = Details { format, ..Details::default() };
        let mut room = Room(bytes);
        room.spend(&details);
        // All apps have their place before any has names.
        for app in &self.apps {
            let (name, clusters, left_out) = (app.app.clone(), app.clusters, app.variants.len());
            let of = DetailsApp { app: name, clusters, variants: Vec::new(), left_out };
            room.spend(&of);
            details.apps.push(of);
        }
        for (app, of) in self.apps.iter().zip(&mut details.apps) {
            let variants = app.variants.iter().take(MOST_VARIANTS);
            of.variants = variants.map_while(|variant| variant.details(&mut room)).collect();
            of.left_out = app.variants.len() - of.variants.len();
        }
        details
    }
}

/// Bytes that are left.
struct Room(usize);

impl Room {
    /// What it takes has its place, even if there is no room.
    fn spend(&mut self, part: &impl Serialize) {
        self.0 = self.0.saturating_sub(size(part));
    }

    fn take<T: Serialize>(&mut self, part: T) -> Option<T> {
        self.0 = self.0.checked_sub(size(&part))?;
        Some(part)
    }
}

/// Bytes of a part of a document, with the comma after it.
pub(super) fn size(part: &impl Serialize) -> usize {
    serde_json::to_string(part).map_or(usize::MAX, |text| text.len() + 1)
}

impl Variant {
    /// `None` where there is no room even for its counts.
    fn details(&self, room: &mut Room) -> Option<DetailsVariant> {
        let set = |set: &Option<crate::identity::SetDigest>| set.as_ref().map(|set| set.0.clone());
        let bare = DetailsVariant {
            before: set(&self.before),
            now: set(&self.now),
            total: self.clusters.len(),
            added: self.count(What::Added),
            changed: self.count(What::Changed),
            removed: self.count(What::Removed),
            ..DetailsVariant::default()
        };
        let mut of = room.take(bare)?;
        let clusters = self.clusters.iter().take(MOST_CLUSTERS);
        of.clusters = clusters.map_while(|id| room.take(id.to_string())).collect();
        let objects = self.objects.iter().map(|(what, id)| {
            let by = self.by.get(id).cloned().unwrap_or_default();
            ObjectRow { what: *what, object: id.to_string(), by }
        });
        of.objects = objects.map_while(|row| room.take(row)).collect();
        if !self.hooks.is_empty() {
            room.spend(&HOOKS);
        }
        let hooks = self.hooks.iter().map(|(event, id)| format!("{event} {id}"));
        of.hooks = hooks.map_while(|hook| room.take(hook)).collect();
        Some(of)
    }
}

/// What the list of hooks takes beside them.
const HOOKS: (&str, [(); 0]) = ("hooks", []);

/// Gained rights that a status names.
const MOST_GAINS: usize = 10;
/// Refusals of one app that a status has room for, and objects that would be made again.
const MOST_REFUSED: usize = 3;
/// Longest of them, in bytes.
const LONGEST: usize = 512;
/// Bytes of those of all apps.
const MOST_REFUSED_BYTES: usize = 8 * 1024;

impl Details {
    /// The same before any cluster was asked.
    #[must_use]
    pub fn bare(&self) -> Self {
        let mut bare = self.clone();
        for variant in bare.apps.iter_mut().flat_map(|app| &mut app.variants) {
            variant.dry_run = None;
        }
        bare
    }

    /// What was answered, by app and variant, as [`DetailsVariant::key`] names them.
    pub fn dry_runs(&self) -> BTreeMap<String, DryRun> {
        let all = self.apps.iter().flat_map(|app| app.variants.iter().map(|of| (of.key(&app.app), of)));
        all.filter_map(|(key, of)| Some((key, of.dry_run.clone()?))).collect()
    }

    /// Fills what a status says of rights that are gained, and of answers: the first refusals of each app, as far as there is room.
    pub fn fill(&self, pending: &mut Pending) {
        let more = self.gains.len().saturating_sub(MOST_GAINS);
        pending.gains = self.gains.iter().take(MOST_GAINS).cloned().collect();
        if more > 0 {
            pending.gains.push(counted(more, "more right"));
        }
        let mut room = Room(MOST_REFUSED_BYTES);
        for app in &mut pending.apps {
            let of = self.apps.iter().filter(|of| of.app == app.name);
            let variants = of.flat_map(|of| &of.variants);
            let variants: Vec<&DetailsVariant> = variants.collect();
            let runs = variants.iter().filter_map(|variant| variant.dry_run.as_ref());
            let refused = runs.flat_map(|dry_run| {
                let cluster = dry_run.cluster.as_deref().unwrap_or_default();
                dry_run.refused.iter().map(move |row| {
                    let RefusedRow { object, reason, message } = row;
                    shorten(&format!("{cluster}: {object}: {reason}: {message}"), LONGEST)
                })
            });
            app.refused = refused.take(MOST_REFUSED).map_while(|said| room.take(said)).collect();
            app.recreated = foreseen::said(&variants, &mut room);
        }
    }
}

impl DetailsVariant {
    /// Names it among all variants of a plan.
    pub fn key(&self, app: &str) -> String {
        canonical::sha256(VARIANT, &json!([app, self.before, self.now, self.clusters]))
    }
}

impl Details {
    /// Reads a document; the error is a sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let details: Self =
            serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
        if details.format > FORMAT {
            return Err(format!(
                "it has format {}, and this version reads formats up to {FORMAT}: upgrade kubectl-emco",
                details.format
            ));
        }
        Ok(details)
    }
}
