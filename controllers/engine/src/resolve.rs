//! Follows every reference of a snapshot. Later stages cannot fail because something is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::composite_app::App;
use emco_crds::composite_profile::{CompositeProfile, ProfileApp, ProfileFile, ValuesFrom};
use emco_crds::conditions::types::{READY, RENDERED, RESOLVED, STALLED};
use emco_crds::deployment_intent_group::OverrideValues;
use emco_crds::fields::{SourceKind, Templating};
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};
use emco_crds::{CompositeApp, Conditioned as _, DeploymentIntentGroup};
use emco_helm::{Compiled, Limits};
use serde_json::{Map, Value};

use crate::act::{Entry, Generated};
use crate::canonical;
use crate::cloud::{self, CloudFacts};
use crate::conditions;
use crate::depends;
use crate::hardware::Demands;
use crate::refusal::Refusal;
use crate::snapshot::{ChartFacts, Snapshot, Source, SourceKey};
use crate::traffic::Group;
use crate::unsupported;
use crate::values::Layer;
use crate::values::template::Templates;

mod intents;
mod supervisor;

pub use intents::{
    intent_sources, is_generic_action, is_hardware, is_known, is_traffic, needed_hardware, source,
};
pub use supervisor::{Supervisor, Unsupervised};

/// Everything found.
pub struct Resolved<'a> {
    /// What was resolved, for what needs no following: clusters, keys, what runs.
    pub snapshot: &'a Snapshot,
    /// The group.
    pub dig: &'a DeploymentIntentGroup,
    /// Its composite app.
    pub composite_app: &'a CompositeApp,
    /// Where it runs.
    pub cloud: &'a CloudFacts,
    /// Its apps, in the order of the composite app.
    pub apps: Vec<ResolvedApp<'a>>,
    /// Apps that intents alone make, in the order of the intents. In placements they follow the others.
    pub generated: Vec<Generated<'a>>,
    /// Needs of apps, of nodes.
    pub hardware: Demands,
    /// Its intents of traffic, in their order.
    pub traffic: Vec<Group<'a>>,
    /// Who watches over its renderings.
    pub supervisor: &'a dyn Supervisor,
}

impl Resolved<'_> {
    /// The name of an app by its position in placements.
    pub fn app_name(&self, position: usize) -> &str {
        let of_chart = self.apps.get(position).map(|app| app.app.name.as_str());
        let generated = || {
            let position = position.checked_sub(self.apps.len())?;
            self.generated.get(position).map(|generated| generated.app.as_str())
        };
        of_chart.or_else(generated).unwrap_or_default()
    }
}

/// One app with everything that belongs to it.
pub struct ResolvedApp<'a> {
    /// As the composite app has it.
    pub app: &'a App,
    /// Its chart, as it was fetched.
    pub chart: &'a ChartFacts,
    /// Its chart with the profile's files in it.
    pub compiled: Arc<Compiled>,
    /// Values from below: `valuesFrom` of the profile, values of the profile, overrides.
    pub layers: Vec<Layer<'a>>,
    /// Files the profile puts into the chart: path and text.
    pub files: Vec<(&'a str, &'a str)>,
    /// The profile's entry, and what its `valuesFrom` found, in order.
    pub profile: Option<(&'a ProfileApp, Vec<&'a str>)>,
    /// What intents do to what its chart makes, in order.
    pub entries: Vec<Entry<'a>>,
}

impl std::fmt::Debug for ResolvedApp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResolvedApp").field("app", &self.app.name).finish_non_exhaustive()
    }
}

/// Follows every reference.
pub fn resolve(snapshot: &Snapshot) -> Result<Resolved<'_>, Box<Refusal>> {
    let dig = snapshot.dig.as_ref();
    let spec = &dig.spec;
    let namespace = dig.metadata.namespace.as_deref().unwrap_or_default();
    let missing = |reason, kind: &str, name: &str, field: &str| {
        let text =
            format!("{kind} {name} does not exist in namespace {namespace}: create it, or change {field}");
        Refusal::new(RESOLVED, reason, text)
    };
    refuse_unsupported(unsupported::check_dig(spec))?;
    let app_name = &spec.composite_app_ref.name;
    let composite_app = snapshot.composite_app.as_deref().ok_or_else(|| {
        missing(Reason::CompositeAppNotFound, "CompositeApp", app_name, "spec.compositeAppRef")
    })?;
    if let Some(sentence) = depends::fault(&composite_app.spec.apps) {
        let text = format!("CompositeApp {app_name}: {sentence}");
        return Err(Refusal::new(RESOLVED, Reason::DependencyCycle, text));
    }
    let profile = match &spec.composite_profile_ref {
        None => None,
        Some(reference) => Some(snapshot.profile.as_deref().ok_or_else(|| {
            let field = "spec.compositeProfileRef";
            missing(Reason::CompositeProfileNotFound, "CompositeProfile", &reference.name, field)
        })?),
    };
    let name = &spec.logical_cloud_ref.name;
    let cloud = snapshot.cloud.as_ref().ok_or_else(|| cloud::missing(name, namespace, &snapshot.project))?;
    let names: BTreeSet<&str> = composite_app.spec.apps.iter().map(|app| app.name.as_str()).collect();
    let mut refusals = unknown_apps(dig, profile, app_name, &names);
    let intents::AllEffects { mut entries, generated, hardware, traffic } =
        intents::effects(snapshot, app_name, &names, &mut refusals);
    let mut apps = Vec::with_capacity(composite_app.spec.apps.len());
    for app in &composite_app.spec.apps {
        match resolve_app(snapshot, app, app_name, profile) {
            Ok(resolved) => {
                let entries = entries.remove(app.name.as_str()).unwrap_or_default();
                apps.push(ResolvedApp { entries, ..resolved });
            }
            // The CompositeApp says once what its charts lack.
            Err(refusal) if refusals.iter().any(|known| lacks_chart(known) && lacks_chart(&refusal)) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    if let Some(refusal) = Refusal::all(refusals) {
        return Err(refusal);
    }
    let supervisor: &dyn Supervisor = &Unsupervised;
    Ok(Resolved { snapshot, dig, composite_app, cloud, apps, generated, hardware, traffic, supervisor })
}

fn refuse_unsupported(sentence: Option<String>) -> Result<(), Box<Refusal>> {
    sentence.map_or(Ok(()), |sentence| Err(Refusal::new(RESOLVED, Reason::NotSupportedYet, sentence)))
}

fn lacks_chart(refusal: &Refusal) -> bool {
    [Reason::ChartNotReady.as_str(), Reason::Fetching.as_str()].contains(&refusal.reason)
}

/// An entry for an app that does not exist is a typing error, and must not be without effect in silence.
fn unknown_apps(
    dig: &DeploymentIntentGroup,
    profile: Option<&CompositeProfile>,
    composite_app: &str,
    names: &BTreeSet<&str>,
) -> Vec<Box<Refusal>> {
    let overrides = dig.spec.override_values.iter().enumerate();
    let overrides = overrides.map(|(i, entry)| (format!("spec.overrideValues[{i}].app"), &entry.app));
    let rules = dig.spec.placement.apps.iter().map(|rule| ("spec.placement.apps".to_owned(), &rule.app));
    let profiled = profile.into_iter().flat_map(|profile| {
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        profile.spec.apps.iter().map(move |entry| (format!("CompositeProfile {name}: spec.apps"), &entry.app))
    });
    let unknown = overrides.chain(rules).chain(profiled).filter(|(_, app)| !names.contains(app.as_str()));
    let known = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    let refusal = |(field, app): (String, &String)| {
        let text = format!(
            "{field} names app {app}, which CompositeApp {composite_app} does not have: it has {known}"
        );
        Refusal::new(RESOLVED, Reason::AppNotFound, text)
    };
    unknown.map(refusal).collect()
}

/// Why a chart is not there, in the words of the CompositeApp where it has some: who reads this looks at the deployment. What only an
/// edit cures there, only an edit cures here.
fn without_chart(snapshot: &Snapshot, app: &str, composite_app: &str) -> Box<Refusal> {
    let object = snapshot.composite_app.as_ref();
    let status = object.and_then(|object| {
        // What was said of an earlier generation is not said of this one.
        object.status.as_ref().filter(|status| status.observed_generation == object.metadata.generation)
    });
    let ready = status.and_then(|status| status.condition(READY));
    if let Some(ready) = ready.filter(|ready| ready.status == "False" && !is_progress(&ready.reason)) {
        let message = ready.message.strip_prefix(&format!("app {app}: ")).unwrap_or(&ready.message);
        let reason = &ready.reason;
        let text = format!("CompositeApp {composite_app} has no chart for app {app}: {reason}: {message}");
        let stalled = status.is_some_and(|status| status.is_true(STALLED));
        return Refusal::of(RESOLVED, Reason::ChartNotReady.as_str(), stalled, text);
    }
    let text = format!("app {app}: its chart is being fetched for CompositeApp {composite_app}");
    Refusal::new(RESOLVED, Reason::Fetching, text)
}

fn resolve_app<'a>(
    snapshot: &'a Snapshot,
    app: &'a App,
    composite_app: &str,
    profile: Option<&'a CompositeProfile>,
) -> Result<ResolvedApp<'a>, Box<Refusal>> {
    let chart =
        snapshot.charts.get(&app.name).ok_or_else(|| without_chart(snapshot, &app.name, composite_app))?;
    let mut layers = Vec::new();
    let mut files = Vec::new();
    let mut profiled = None;
    let entry = profile
        .and_then(|profile| Some((profile, profile.spec.apps.iter().find(|entry| entry.app == app.name)?)));
    if let Some((profile, entry)) = entry {
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        let origin = format!("CompositeProfile {name}, spec.apps[{}]", app.name);
        let texts = profile_layers(&snapshot.sources, &app.name, entry, &origin, &mut layers)?;
        files = profile_files(&snapshot.sources, entry, &origin)?;
        profiled = Some((entry, texts));
    }
    for (i, over) in snapshot.dig.spec.override_values.iter().enumerate() {
        let OverrideValues { app: of, clusters, values, templating } = over;
        if *of == app.name {
            let origin = format!("spec.overrideValues[{i}].values");
            layers.push(layer(
                &app.name,
                (origin, false),
                values.0.clone(),
                *templating,
                clusters.as_deref(),
            )?);
        }
    }
    let compiled = if files.is_empty() {
        Arc::clone(&chart.compiled)
    } else {
        Arc::new(with_files(&app.name, chart, &files)?)
    };
    Ok(ResolvedApp { app, chart, compiled, layers, files, profile: profiled, entries: Vec::new() })
}

/// The chart with the profile's files put over its own.
fn with_files(app: &str, chart: &ChartFacts, files: &[(&str, &str)]) -> Result<Compiled, Box<Refusal>> {
    let refuse = |error: &dyn std::fmt::Display| {
        let paths = files.iter().take(5).map(|(path, _)| *path).collect::<Vec<_>>().join(", ");
        let text = format!("app {app}: the profile's files ({paths}) cannot be put into the chart: {error}");
        Refusal::new(RENDERED, Reason::TemplateError, text)
    };
    let texts = files.iter().map(|(path, text)| (*path, text.as_bytes()));
    let chart =
        chart.compiled.chart().with_files(texts, &Limits::default()).map_err(|error| refuse(&error))?;
    Compiled::new(chart).map_err(|error| refuse(&error))
}

/// `valuesFrom` in order, then `values`; returns the texts that were found.
fn profile_layers<'a>(
    sources: &'a BTreeMap<SourceKey, Source>,
    app: &str,
    entry: &'a ProfileApp,
    origin: &str,
    layers: &mut Vec<Layer<'a>>,
) -> Result<Vec<&'a str>, Box<Refusal>> {
    let mut texts = Vec::new();
    for from in &entry.values_from {
        let ValuesFrom { kind, name, key: _ } = from;
        let key =
            SourceKey { kind: kind.as_str().to_owned(), name: name.clone(), key: from.key().to_owned() };
        let text = find(sources, &key, &format!("{origin}.valuesFrom"))?;
        let origin = format!("{} {name} key {}", key.kind, key.key);
        let secret = *kind == SourceKind::Secret;
        let values = parse(text).map_err(|fault| {
            let fault = if secret {
                "it is not a YAML map of values; what is wrong is withheld".to_owned()
            } else {
                fault
            };
            let text = format!("app {app}: {origin}: {fault}");
            Refusal::new(RENDERED, Reason::ValuesInvalid, text)
        })?;
        layers.push(layer(app, (origin, secret), values, entry.templating, None)?);
        texts.push(text);
    }
    if let Some(values) = &entry.values {
        layers.push(layer(
            app,
            (format!("{origin}.values"), false),
            values.0.clone(),
            entry.templating,
            None,
        )?);
    }
    Ok(texts)
}

fn profile_files<'a>(
    sources: &'a BTreeMap<SourceKey, Source>,
    entry: &'a ProfileApp,
    origin: &str,
) -> Result<Vec<(&'a str, &'a str)>, Box<Refusal>> {
    entry
        .files
        .iter()
        .map(|file| {
            let key = file_source(file);
            Ok((file.path.as_str(), find(sources, &key, &format!("{origin}.files[{}]", file.path))?))
        })
        .collect()
}

/// Where the text of a profile's file is; the key is the last part of the path where none is given.
pub fn file_source(file: &ProfileFile) -> SourceKey {
    let ProfileFile { path, config_map_key_ref } = file;
    let last = path.rsplit('/').next().unwrap_or(path);
    SourceKey {
        kind: "ConfigMap".to_owned(),
        name: config_map_key_ref.name.clone(),
        key: config_map_key_ref.key.clone().unwrap_or_else(|| last.to_owned()),
    }
}

/// Every `ConfigMap` and Secret key that a profile reads: what has to be fetched for a snapshot.
pub fn sources(profile: &CompositeProfile) -> BTreeSet<SourceKey> {
    let of = |entry: &ProfileApp| {
        let values = entry.values_from.iter().map(|from| SourceKey {
            kind: from.kind.as_str().to_owned(),
            name: from.name.clone(),
            key: from.key().to_owned(),
        });
        values.chain(entry.files.iter().map(file_source)).collect::<Vec<_>>()
    };
    profile.spec.apps.iter().flat_map(of).collect()
}

fn find<'a>(
    sources: &'a BTreeMap<SourceKey, Source>,
    key: &SourceKey,
    field: &str,
) -> Result<&'a str, Box<Refusal>> {
    let SourceKey { kind, name, key: data_key } = key;
    let text = match sources.get(key) {
        Some(Source::Found(text)) => return Ok(text),
        Some(Source::NotAName) => {
            let (name, key) =
                (conditions::truncate(&name.escape_debug().to_string(), 64), data_key.escape_debug());
            let key = conditions::truncate(&key.to_string(), 64);
            let text = format!(
                "{field}: no {kind} can have the name \"{name}\" and the key \"{key}\": names are lower-case letters, digits, \
                 '-' and '.'; keys are letters, digits, '-', '_' and '.'; change the field"
            );
            return Err(Refusal::of(RESOLVED, not_found(kind).as_str(), true, text));
        }
        Some(Source::KeyMissing) => {
            format!("{field}: {kind} {name} has no key {data_key}: add it, or name another key")
        }
        Some(Source::ObjectMissing) | None => {
            format!("{field}: {kind} {name} does not exist: create it, or change the field")
        }
    };
    Err(Refusal::new(RESOLVED, not_found(kind), text))
}

fn not_found(kind: &str) -> Reason {
    if kind == "Secret" { Reason::SecretNotFound } else { Reason::ConfigMapNotFound }
}

fn layer<'a>(
    app: &str,
    (origin, secret): (String, bool),
    values: Map<String, Value>,
    templating: Option<Templating>,
    clusters: Option<&'a [emco_crds::ClusterTerm]>,
) -> Result<Layer<'a>, Box<Refusal>> {
    let templates = match templating.unwrap_or_default() {
        Templating::None => None,
        Templating::Handlebars => Some(Templates::parse(&values).map_err(|fault| {
            let message =
                if secret { "the template is not valid; its text is withheld" } else { &fault.message };
            let text = format!("app {app}: {origin}: {} line {}: {message}", fault.path, fault.line);
            Refusal::new(RENDERED, Reason::ValuesInvalid, text)
        })?),
    };
    Ok(Layer { secret, origin, values, templates, clusters })
}

/// Values as Helm reads them; nothing at all is an empty map.
fn parse(text: &str) -> Result<Map<String, Value>, String> {
    match emco_helm::yaml::to_values(text.as_bytes()) {
        Ok(values) if canonical::too_deep(&values) => {
            Err(format!("these values nest more than {} levels", canonical::DEEPEST))
        }
        Ok(Value::Object(values)) => Ok(values),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("these values are not a map of keys to values".to_owned()),
        Err(error) => Err(format!("these values are not YAML: {error}")),
    }
}
