//! A snapshot in, the same with every reference followed out. Later stages cannot fail because something is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::composite_app::App;
use emco_crds::composite_profile::{CompositeProfile, ProfileApp, ProfileFile, ValuesFrom};
use emco_crds::conditions::types::{RENDERED, RESOLVED};
use emco_crds::deployment_intent_group::OverrideValues;
use emco_crds::fields::Templating;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_helm::{Compiled, Limits};
use serde_json::{Map, Value};

use crate::canonical;
use crate::plan::Refusal;
use crate::snapshot::{ChartFacts, CloudFacts, Snapshot, Source, SourceKey};
use crate::unsupported;
use crate::values::Layer;
use crate::values::template::Templates;

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
    /// Who measures its renderings.
    pub timing: &'a dyn Timing,
}

/// Measures renderings: here is no clock.
pub trait Timing: Sync {
    /// One rendering of one app for one cluster: runs it, once.
    fn rendering(&self, render: &mut dyn FnMut());
}

/// Nobody measures.
pub struct Untimed;

impl Timing for Untimed {
    fn rendering(&self, render: &mut dyn FnMut()) {
        render();
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
    not_supported(unsupported::check_dig(spec), "")?;
    let app_name = &spec.composite_app_ref.name;
    let composite_app = snapshot.composite_app.as_deref().ok_or_else(|| {
        missing(Reason::CompositeAppNotFound, "CompositeApp", app_name, "spec.compositeAppRef")
    })?;
    not_supported(
        unsupported::check_composite_app(&composite_app.spec),
        &format!("CompositeApp {app_name}: "),
    )?;
    let profile = match &spec.composite_profile_ref {
        None => None,
        Some(reference) => Some(snapshot.profile.as_deref().ok_or_else(|| {
            let field = "spec.compositeProfileRef";
            missing(Reason::CompositeProfileNotFound, "CompositeProfile", &reference.name, field)
        })?),
    };
    let cloud = snapshot.cloud.as_ref().ok_or_else(|| {
        let name = &spec.logical_cloud_ref.name;
        missing(Reason::LogicalCloudNotFound, "LogicalCloud", name, "spec.logicalCloudRef")
    })?;
    let names: BTreeSet<&str> = composite_app.spec.apps.iter().map(|app| app.name.as_str()).collect();
    check_app_names(dig, profile, app_name, &names)?;
    let apps = composite_app
        .spec
        .apps
        .iter()
        .map(|app| resolve_app(snapshot, app, app_name, profile))
        .collect::<Result<_, _>>()?;
    Ok(Resolved { snapshot, dig, composite_app, cloud, apps, timing: &Untimed })
}

fn not_supported(sentence: Option<String>, object: &str) -> Result<(), Box<Refusal>> {
    sentence.map_or(Ok(()), |sentence| {
        Err(Refusal::new(RESOLVED, Reason::NotSupportedYet, format!("{object}{sentence}")))
    })
}

/// An entry for an app that does not exist is a typing error, and must not be without effect in silence.
fn check_app_names(
    dig: &DeploymentIntentGroup,
    profile: Option<&CompositeProfile>,
    composite_app: &str,
    names: &BTreeSet<&str>,
) -> Result<(), Box<Refusal>> {
    let overrides = dig.spec.override_values.iter().enumerate();
    let overrides = overrides.map(|(i, entry)| (format!("spec.overrideValues[{i}].app"), &entry.app));
    let rules = dig.spec.placement.apps.iter().map(|rule| ("spec.placement.apps".to_owned(), &rule.app));
    let profiled = profile.into_iter().flat_map(|profile| {
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        profile.spec.apps.iter().map(move |entry| (format!("CompositeProfile {name}: spec.apps"), &entry.app))
    });
    for (field, app) in overrides.chain(rules).chain(profiled) {
        if !names.contains(app.as_str()) {
            let known = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
            return Err(Refusal::new(
                RESOLVED,
                Reason::AppNotFound,
                format!(
                    "{field} names app {app}, which CompositeApp {composite_app} does not have: it has {known}"
                ),
            ));
        }
    }
    Ok(())
}

fn resolve_app<'a>(
    snapshot: &'a Snapshot,
    app: &'a App,
    composite_app: &str,
    profile: Option<&'a CompositeProfile>,
) -> Result<ResolvedApp<'a>, Box<Refusal>> {
    let chart = snapshot.charts.get(&app.name).ok_or_else(|| {
        let text = format!(
            "app {}: its chart was not fetched yet; see the conditions of CompositeApp {composite_app}",
            app.name
        );
        Refusal::new(RESOLVED, Reason::ChartNotReady, text)
    })?;
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
            layers.push(layer(&app.name, origin, values.0.clone(), *templating, clusters.as_deref())?);
        }
    }
    let compiled = if files.is_empty() {
        Arc::clone(&chart.compiled)
    } else {
        Arc::new(with_files(&app.name, chart, &files)?)
    };
    Ok(ResolvedApp { app, chart, compiled, layers, files, profile: profiled })
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
        let values = parse(text).map_err(|fault| {
            let text = format!("app {app}: {origin}: {fault}");
            Refusal::new(RENDERED, Reason::ValuesInvalid, text)
        })?;
        layers.push(layer(app, origin, values, entry.templating, None)?);
        texts.push(text);
    }
    if let Some(values) = &entry.values {
        layers.push(layer(app, format!("{origin}.values"), values.0.clone(), entry.templating, None)?);
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
        Some(Source::KeyMissing) => {
            format!("{field}: {kind} {name} has no key {data_key}: add it, or name another key")
        }
        Some(Source::ObjectMissing) | None => {
            format!("{field}: {kind} {name} does not exist: create it, or change the field")
        }
    };
    let reason = if kind == "Secret" { Reason::SecretNotFound } else { Reason::ConfigMapNotFound };
    Err(Refusal::new(RESOLVED, reason, text))
}

fn layer<'a>(
    app: &str,
    origin: String,
    values: Map<String, Value>,
    templating: Option<Templating>,
    clusters: Option<&'a [emco_crds::ClusterTerm]>,
) -> Result<Layer<'a>, Box<Refusal>> {
    let templates = match templating.unwrap_or_default() {
        Templating::None => None,
        Templating::Handlebars => Some(Templates::parse(&values).map_err(|fault| {
            let text = format!("app {app}: {origin}: {} line {}: {}", fault.path, fault.line, fault.message);
            Refusal::new(RENDERED, Reason::ValuesInvalid, text)
        })?),
    };
    Ok(Layer { origin, values, templates, clusters })
}

/// Values as Helm reads them; nothing at all is an empty map.
fn parse(text: &str) -> Result<Map<String, Value>, String> {
    match emco_helm::yaml::to_json(text.as_bytes()) {
        Ok(values) if canonical::too_deep(&values) => {
            Err(format!("these values nest more than {} levels", canonical::DEEPEST))
        }
        Ok(Value::Object(values)) => Ok(values),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("these values are not a map of keys to values".to_owned()),
        Err(error) => Err(format!("these values are not YAML: {error}")),
    }
}
