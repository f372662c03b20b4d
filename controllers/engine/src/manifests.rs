//! Turns what a chart printed into the manifest set of one app on one cluster: normalised, in its namespace, digested,
//! ordered.
//!
//! Two steps, because most clusters share the first: a [`Draft`] is what one rendering gave, and does not know the cluster;
//! finishing it asks only which of its kinds live in namespaces there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_helm::{HookDeletePolicy, HookEvent, LimitError, LookupRead, RenderError};
use serde_json::Value;

use crate::apis::ApiList;
use crate::canonical;
use crate::cloud::CloudFacts;
use crate::identity::{ClusterId, Id, Identity, kind_of};
use crate::normalise;
use crate::order;
use crate::refusal::Refusal;
use crate::set::provenance::Done;
use crate::set::{ChartTests, Findings, HookSpec, ManifestSet, Phase, SetManifest, TEST};

mod check;
mod edited;
mod kept_tests;
mod place;

use check::check;
use kept_tests::KeptTests;
pub use place::outsider;
use place::place_in_namespace;

/// Objects that one app may have on one cluster.
const MOST_OBJECTS: usize = 5_000;
/// Largest manifest that an API server stores, in bytes of JSON, with room for our marks.
const LARGEST_OBJECT: usize = 1_400_000;
/// Warnings kept of one rendering.
const MOST_WARNINGS: usize = 20;

/// Group and kind.
pub type Kind = (String, String);

/// What one rendering gave.
#[derive(Debug)]
pub struct Draft {
    objects: Vec<Object>,
    /// Sentences for people.
    pub warnings: Vec<String>,
    /// Kinds that the set itself defines, and whether they live in namespaces.
    pub defines: BTreeMap<Kind, bool>,
    /// Kinds of its objects, and of its tests.
    pub kinds: BTreeSet<Kind>,
    /// What the chart looked up.
    pub lookups: BTreeSet<LookupRead>,
    /// What it showed besides.
    pub findings: Option<Arc<Findings>>,
    /// What the chart tests itself with.
    tests: KeptTests,
    /// What actions of intents did to it.
    pub done: Vec<Done>,
}

#[derive(Clone, Debug)]
struct Object {
    json: Value,
    phase: Phase,
    hook: Option<HookSpec>,
    crd_folder: bool,
    source: String,
    /// Actions of intents that made or changed it.
    edited_by: Vec<String>,
}

/// One document of a chart, before anything was done to it.
#[derive(Debug)]
pub struct Document {
    /// The object.
    pub json: Value,
    /// The file that printed it.
    pub source: String,
    /// What its hook annotations say.
    pub hook: Option<HookSpec>,
    /// Whether it comes from the chart's `crds/` folder.
    pub crd_folder: bool,
}

impl From<emco_helm::Manifest> for Document {
    fn from(manifest: emco_helm::Manifest) -> Self {
        let emco_helm::Manifest { json, source, hook, crd } = manifest;
        Self { json, source, hook: hook.map(hook_spec), crd_folder: crd }
    }
}

/// The words of Helm's annotations; policies that mean nothing are left out.
fn hook_spec(hook: emco_helm::Hook) -> HookSpec {
    let emco_helm::Hook { events, weight, delete_policies } = hook;
    let event = |event| match event {
        HookEvent::PreInstall => "pre-install",
        HookEvent::PostInstall => "post-install",
        HookEvent::PreDelete => "pre-delete",
        HookEvent::PostDelete => "post-delete",
        HookEvent::PreUpgrade => "pre-upgrade",
        HookEvent::PostUpgrade => "post-upgrade",
        HookEvent::PreRollback => "pre-rollback",
        HookEvent::PostRollback => "post-rollback",
        HookEvent::Test => TEST,
    };
    let policy = |policy| match policy {
        HookDeletePolicy::BeforeHookCreation => Some("before-hook-creation".to_owned()),
        HookDeletePolicy::HookSucceeded => Some("hook-succeeded".to_owned()),
        HookDeletePolicy::HookFailed => Some("hook-failed".to_owned()),
        HookDeletePolicy::Other(_) => None,
    };
    HookSpec {
        events: events.into_iter().map(event).map(str::to_owned).collect(),
        weight,
        delete_policies: delete_policies.into_iter().filter_map(policy).collect(),
    }
}

/// Why a chart could not be rendered, for people: the cluster matters, for charts ask about it.
///
/// Templates and schemas quote values. Where Secrets gave some (`secrets` names them), only the place is said.
pub fn failed(app: &str, cluster: &ClusterId, error: &RenderError, secrets: &[&str]) -> Box<Refusal> {
    let text = error.to_string();
    let reason = match error.limit() {
        Some(LimitError::Output(_) | LimitError::Memory(_)) => Reason::OutputTooLarge,
        None if text.starts_with("values don't meet the specifications of the schema") => {
            Reason::SchemaViolation
        }
        _ => Reason::TemplateError,
    };
    let text =
        if secrets.is_empty() || error.limit().is_some() { text } else { withheld(error, reason, secrets) };
    Refusal::new(RENDERED, reason, format!("app {app} on {cluster}: {text}"))
}

fn withheld(error: &RenderError, reason: Reason, secrets: &[&str]) -> String {
    let what = match (error.place(), reason) {
        (Some(place), _) => format!("{}:{}:{} fails", place.file, place.line, place.column),
        (None, Reason::SchemaViolation) => "the values do not meet the chart's schema".to_owned(),
        (None, _) => "the chart cannot be rendered".to_owned(),
    };
    format!(
        "{what}; the words are withheld, for they may quote values of {}: render the chart with the same values yourself to \
         see them",
        secrets.join(", ")
    )
}

impl Draft {
    fn empty() -> Self {
        Self {
            objects: Vec::new(),
            warnings: Vec::new(),
            defines: BTreeMap::new(),
            kinds: BTreeSet::new(),
            lookups: BTreeSet::new(),
            findings: None,
            tests: KeptTests::default(),
            done: Vec::new(),
        }
    }

    /// Normalises what a chart printed; `remarks` are the renderer's own. Tests are no part of a deployment: they are kept apart, and
    /// refuse nothing.
    pub fn new(app: &str, documents: Vec<Document>, remarks: Vec<String>) -> Result<Self, Box<Refusal>> {
        let mut draft = Self::empty();
        for remark in remarks {
            draft.warn(format!("app {app}: {remark}"));
        }
        for Document { json, source, hook, crd_folder } in documents {
            if canonical::too_deep(&json) {
                let text =
                    format!("{source} makes an object that nests more than {} levels", canonical::DEEPEST);
                return Err(too_large(app, &text));
            }
            if let Some(hook) = hook.as_ref().filter(|hook| hook.events.iter().any(|event| event == TEST)) {
                draft.keep_test(app, &source, hook, &json);
            }
            let Some(hook) = without_tests(hook) else { continue };
            let normalised = normalise::normalise(json);
            if let Some(fault) = normalised.fault {
                let text = format!("app {app}: {source} makes {fault}");
                return Err(Refusal::new(RENDERED, Reason::TemplateError, text));
            }
            for warning in normalised.warnings {
                draft.warn(format!("app {app}: {source}: {warning}"));
            }
            for json in normalised.objects {
                check(app, &source, &json)?;
                draft.defines.extend(defined(&json));
                draft.add_kind(&json);
                draft.objects.push(Object {
                    phase: order::phase_of(&json, hook.as_ref()),
                    json,
                    hook: hook.clone(),
                    crd_folder,
                    source: source.clone(),
                    edited_by: Vec::new(),
                });
            }
        }
        check_count(app, draft.objects.len())?;
        Ok(draft)
    }

    fn keep_test(&mut self, app: &str, source: &str, hook: &HookSpec, json: &Value) {
        let before = self.tests.left_out.len();
        for kind in self.tests.add(app, source, hook, json) {
            self.kinds.insert(kind);
        }
        for warning in self.tests.left_out.get(before..).unwrap_or_default().to_vec() {
            self.warn(warning);
        }
    }

    /// The chart's tests on a cluster, and the set of those that are kept.
    pub fn finish_tests(
        &self,
        app: &str,
        key: &[u8; 32],
        cloud: &CloudFacts,
        scopes: &BTreeMap<Kind, bool>,
    ) -> (ChartTests, Option<ManifestSet>) {
        self.tests.finish(app, key, cloud, scopes)
    }

    fn add_kind(&mut self, json: &Value) {
        let (group, kind) = kind_of(json);
        self.kinds.insert((group.to_owned(), kind.to_owned()));
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// Completes the set for a cluster. `scopes` says of kinds whether they live in namespaces; what is not known is taken
    /// for namespaced, and found missing by the cluster itself. What is as in one of `before` has the digest that it has there; what
    /// is `staying` is part of the set though the chart prints it no more.
    pub fn finish(
        &self,
        app: &str,
        key: &[u8; 32],
        cloud: &CloudFacts,
        scopes: &BTreeMap<Kind, bool>,
        before: &[&ManifestSet],
        staying: Vec<SetManifest>,
    ) -> Result<(ManifestSet, Vec<String>), Box<Refusal>> {
        let before = before.iter().flat_map(|set| &set.manifests);
        let before: BTreeMap<Id, &SetManifest> =
            before.map(|known| (Id::new(known.identity()), known)).collect();
        let mut warnings = Vec::new();
        let mut sources: BTreeMap<Id, &str> = BTreeMap::new();
        let scopes: BTreeMap<(&str, &str), bool> = scopes
            .iter()
            .map(|((group, kind), namespaced)| ((group.as_str(), kind.as_str()), *namespaced))
            .collect();
        let mut manifests = Vec::with_capacity(self.objects.len());
        for object in &self.objects {
            let namespaced = scopes.get(&kind_of(&object.json)).copied().unwrap_or(true);
            let mut json = object.json.clone();
            place_in_namespace(app, object, &mut json, namespaced, cloud)?;
            let identity = Id::new(Identity::of(&json));
            if is_cloud_namespace(&identity, cloud) {
                warnings.push(format!(
                    "app {app}: Namespace {} of {} is left out: logical cloud {} makes it",
                    identity.name, object.source, cloud.name
                ));
                continue;
            }
            // Hooks may repeat names: each is deleted before the next of that name is made.
            if object.hook.is_none()
                && !object.crd_folder
                && let Some(first) = sources.insert(identity.clone(), &object.source)
            {
                let text = format!(
                    "app {app}: {first} and {} both make {identity}: change the values or the chart so that one of them \
                     does not",
                    object.source
                );
                return Err(Refusal::new(RENDERED, Reason::DuplicateResource, text));
            }
            let same = before.get(&identity).filter(|known| known.json == json);
            manifests.push(SetManifest {
                digest: same
                    .map_or_else(|| canonical::manifest_digest(key, &json), |known| known.digest.clone()),
                phase: object.phase,
                hook: object.hook.clone(),
                crd_folder: object.crd_folder,
                keep: is_kept(&json),
                take_existing: false,
                edited_by: object.edited_by.clone(),
                account: cloud.account(),
                json,
            });
        }
        if !staying.is_empty() {
            let printed: BTreeSet<Id> = manifests.iter().map(|made| Id::new(made.identity())).collect();
            let staying = staying.into_iter().filter(|manifest| may_stay(&manifest.identity(), cloud));
            manifests.extend(staying.filter(|manifest| !printed.contains(&Id::new(manifest.identity()))));
            check_count(app, manifests.len())?;
        }
        order::sort(&mut manifests);
        let digest = canonical::set_digest(key, &manifests);
        Ok((ManifestSet { digest, app: app.to_owned(), manifests }, warnings))
    }
}

/// Whether the logical cloud allows an object that an earlier set had.
pub fn may_stay(identity: &Identity, cloud: &CloudFacts) -> bool {
    cloud.reaches(Some(identity.namespace.as_str()).filter(|namespace| !namespace.is_empty()))
}

/// A hook without its test events; `None` when nothing else is left.
#[allow(clippy::option_option)] // outer: whether the object counts; inner: whether it is a hook
fn without_tests(hook: Option<HookSpec>) -> Option<Option<HookSpec>> {
    let Some(mut hook) = hook else { return Some(None) };
    hook.events.retain(|event| event != TEST);
    (!hook.events.is_empty()).then_some(Some(hook))
}

fn check_count(app: &str, objects: usize) -> Result<(), Box<Refusal>> {
    if objects <= MOST_OBJECTS {
        return Ok(());
    }
    let text = format!("the chart makes {objects} objects for one cluster, more than {MOST_OBJECTS}");
    Err(too_large(app, &text))
}

fn too_large(app: &str, what: &str) -> Box<Refusal> {
    Refusal::new(
        RENDERED,
        Reason::OutputTooLarge,
        format!("app {app}: {what}: split the app, or change its values"),
    )
}

/// The kind that a `CustomResourceDefinition` defines, and whether it lives in namespaces.
pub fn defined(json: &Value) -> Option<(Kind, bool)> {
    if !order::is_crd(kind_of(json)) {
        return None;
    }
    let text = |pointer: &str| json.pointer(pointer)?.as_str();
    let kind = (text("/spec/group")?.to_owned(), text("/spec/names/kind")?.to_owned());
    Some((kind, text("/spec/scope")? == "Namespaced"))
}

/// Stays on removal: what it defines may hold data of others.
fn is_kept(json: &Value) -> bool {
    order::is_crd(kind_of(json)) || json.as_object().is_some_and(normalise::is_marked_to_stay)
}

fn is_cloud_namespace(identity: &Identity, cloud: &CloudFacts) -> bool {
    order::is_namespace(identity.kind()) && identity.name == cloud.namespace
}

/// Whether kinds live in namespaces, from what a cluster serves and what is put there.
pub fn scopes(
    kinds: &BTreeSet<Kind>,
    served: Option<&ApiList>,
    defined: &BTreeMap<Kind, bool>,
) -> BTreeMap<Kind, bool> {
    let known = |kind: &Kind| {
        defined.get(kind).copied().or_else(|| served?.preferred(&kind.0, &kind.1).map(|api| api.namespaced))
    };
    kinds.iter().filter_map(|kind| Some((kind.clone(), known(kind)?))).collect()
}
