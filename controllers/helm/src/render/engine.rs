//! Executes the templates of one render, and sorts the rendered files into manifests, hooks and notes.
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use super::compiled::Compiled;
use super::variant::{Member, Variant};
use super::{RenderError, RenderRequest, Rendered, manifests, reads, switch, unread};
use crate::chart::Chart;
use crate::funcs::Shared;
use crate::limits::Meter;
use crate::objects::{CapabilitiesObject, FilesObject, Reads, chart_object};
use crate::schema::Unchecked;
use crate::template::exec::{Render, StackGuard};
use crate::value::{Map, MapType, Object, Text, Value, Watch};
use crate::values::{Warnings, coalesce};
use crate::versions;

const NOTES: &str = "NOTES.txt";

pub(super) fn render(compiled: &Compiled, request: &RenderRequest<'_>) -> Result<Rendered, RenderError> {
    let guard = StackGuard::here();
    let mut warnings = Warnings::default();
    for warning in compiled.chart().warnings() {
        warnings.add(warning);
    }
    // Values count too.
    let meter = Meter::start(&request.limits);
    let overrides = overrides(request)?;
    let given = given(request, &overrides);
    let mut chosen_by = BTreeSet::new();
    let variant = compiled.variant(&overrides, &mut warnings, &mut chosen_by)?;
    coalesce(&variant.root, &overrides, false, &mut warnings).map_err(RenderError::new)?;
    if !request.skip_schema {
        validate(compiled, &variant.root, &overrides, &meter, &mut warnings)?;
    }
    let recorder = Rc::new(RefCell::new(Reads::default()));
    let capabilities = CapabilitiesObject::new(&request.capabilities, &recorder)
        .map_err(|error| RenderError::new(error.to_string()))?;
    let wanted = &variant.root.metadata.kube_version;
    let version = capabilities.kube_version();
    if !wanted.is_empty() && !versions::in_range(wanted, version) {
        return Err(RenderError::new(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}"
        )));
    }
    let shared = Shared::new(meter, request.seed, now(request.now));
    let charts = Charts {
        compiled,
        release: release(request),
        capabilities: Rc::new(capabilities),
        by_path: RefCell::default(),
    };
    charts.add(&variant.root, true, &Value::Map(overrides.with_type(MapType::Values)));
    let watch = Watch::top();
    reads::watch(&variant.root, &overrides, &watch);
    let render = Render::new(&shared, &variant.templates, request.lookup, guard);
    let files = files(&variant, &charts, &render)?;
    let mut rendered = finish(compiled, &variant, request, files, &mut warnings)
        .map_err(|error| shared.meter.check_memory().err().map_or(error, RenderError::limited))?;
    // What a function left out for lack of room is no result.
    shared.meter.check_memory().map_err(RenderError::limited)?;
    for warning in shared.warnings.take() {
        warnings.add(warning);
    }
    rendered.warnings = warnings.into_vec();
    recorder.borrow_mut().random = shared.drawn.get();
    recorder.borrow_mut().lookups = render.lookups.take();
    if let Some(Json::Object(given)) = given.as_deref().filter(|given| is_filled(given)) {
        let used = reads::paths(&variant.root, watch.used_paths(), chosen_by.clone());
        rendered.unread = unread::find(compiled, &variant.root, given, &used);
    }
    recorder.borrow_mut().values = reads::paths(&variant.root, watch.paths(), chosen_by);
    rendered.reads = recorder.take();
    if rendered.manifests.is_empty() {
        rendered.switches = switch::find(&variant, &overrides).into_iter().collect();
    }
    Ok(rendered)
}

/// The caller's overrides with assignments applied.
fn overrides(request: &RenderRequest<'_>) -> Result<Map, RenderError> {
    let overrides = match &request.values {
        Json::Null => Map::new(MapType::Any),
        values => match Value::from_json(values) {
            Value::Map(map) => map,
            _ => return Err(RenderError::new("the values are no mapping: give an object")),
        },
    };
    for set in &request.set {
        super::set::apply(set, &overrides).map_err(RenderError::new)?;
    }
    Ok(overrides)
}

/// What the caller gave, before defaults are filled in.
fn given<'r>(request: &'r RenderRequest<'_>, overrides: &Map) -> Option<Cow<'r, Json>> {
    if request.set.is_empty() {
        return Some(Cow::Borrowed(&request.values));
    }
    Value::Map(overrides.clone()).to_json().map(Cow::Owned)
}

fn is_filled(given: &Json) -> bool {
    given.as_object().is_some_and(|map| !map.is_empty())
}

fn now(given: Option<i64>) -> (i64, u32) {
    match given {
        Some(seconds) => (seconds, 0),
        None => match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos()),
            Err(_) => (0, 0),
        },
    }
}

fn release(request: &RenderRequest<'_>) -> Value {
    let release = &request.release;
    Value::map([
        (Text::from("Name"), Value::text(release.name.as_str())),
        (Text::from("Namespace"), Value::text(release.namespace.as_str())),
        (Text::from("IsUpgrade"), Value::Bool(!release.is_install)),
        (Text::from("IsInstall"), Value::Bool(release.is_install)),
        (Text::from("Revision"), Value::int(release.revision)),
        (Text::from("Service"), Value::text("Helm")),
    ])
}

/// Checks the values against the schemas of the chart and its dependencies.
fn validate(
    compiled: &Compiled,
    root: &Member,
    values: &Map,
    meter: &Meter,
    warnings: &mut Warnings,
) -> Result<(), RenderError> {
    fn check(
        compiled: &Compiled,
        member: &Member,
        values: &Json,
        meter: &Meter,
        warnings: &mut Warnings,
    ) -> Result<String, RenderError> {
        let mut out = String::new();
        if let Some(schema) = compiled.schema(member.id) {
            match schema.check(values, meter) {
                Ok(None) => {}
                Ok(Some(problems)) => out.extend([member.name.as_str(), ":\n", &problems]),
                Err(Unchecked::Skipped(why)) => warnings.add(format!("{}: {why}", member.name)),
                Err(Unchecked::Limit(limit)) => return Err(RenderError::limited(limit)),
            }
        }
        for child in &member.children {
            let below = values.get(&child.name).unwrap_or(&Json::Null);
            out.push_str(&check(compiled, child, below, meter, warnings)?);
        }
        Ok(out)
    }
    if !compiled.has_schemas() {
        return Ok(());
    }
    let json = Value::Map(values.clone()).to_json();
    let json = json.ok_or_else(|| RenderError::new("the values nest too deeply"))?;
    let problems = check(compiled, root, &json, meter, warnings)?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(RenderError::new(format!(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{problems}"
    )))
}

/// The data templates of each chart see.
struct Charts<'c> {
    compiled: &'c Compiled,
    release: Value,
    capabilities: Rc<dyn Object>,
    by_path: RefCell<BTreeMap<String, Map>>,
}

impl Charts<'_> {
    fn add(&self, member: &Member, is_root: bool, values: &Value) -> Map {
        let files: &[crate::chart::File] =
            find(self.compiled.chart(), member.id).map_or(&[], |chart| chart.files.as_slice());
        let subcharts = Map::new(MapType::Any);
        let data = Map::from_entries(
            MapType::Any,
            [
                (Text::from("Chart"), chart_object(&member.metadata, is_root)),
                (Text::from("Files"), Value::object(FilesObject::new(files))),
                (Text::from("Release"), self.release.clone()),
                (Text::from("Capabilities"), Value::Object(self.capabilities.clone())),
                (Text::from("Values"), values.clone()),
                (Text::from("Subcharts"), Value::Map(subcharts.clone())),
            ],
        );
        for child in &member.children {
            let values = child_values(values, &child.name);
            let below = self.add(child, false, &values);
            subcharts.insert(child.name.as_str(), Value::Map(below));
        }
        self.by_path.borrow_mut().insert(member.path.clone(), data.clone());
        data
    }
}

/// The part of a parent's values that is meant for a child. A dot in the name is read as a path, as in Helm.
fn child_values(values: &Value, name: &str) -> Value {
    let mut table = values.as_map().cloned();
    for part in name.split('.') {
        table = table.and_then(|table| table.get(part)).and_then(|value| value.as_map().cloned());
    }
    Value::Map(table.map_or_else(|| Map::new(MapType::Values), |table| table.with_type(MapType::Values)))
}

fn find(chart: &Chart, id: usize) -> Option<&Chart> {
    if chart.id == id {
        return Some(chart);
    }
    chart.dependencies.iter().find_map(|child| find(child, id))
}

/// Renders every file that is not a partial.
fn files(
    variant: &Variant,
    charts: &Charts<'_>,
    render: &Render<'_>,
) -> Result<BTreeMap<String, String>, RenderError> {
    let mut out = BTreeMap::new();
    for file in &variant.files {
        if file.path.rsplit('/').next().unwrap_or_default().starts_with('_') {
            continue;
        }
        let Some(data) = charts.by_path.borrow().get(&file.chart).cloned() else { continue };
        let template = Map::from_entries(
            MapType::Values,
            [
                (Text::from("Name"), Value::text(file.path.as_str())),
                (Text::from("BasePath"), Value::text(format!("{}/templates", file.chart))),
            ],
        );
        data.insert("Template", Value::Map(template));
        let text = render
            .file(&file.path, &Value::Map(data.with_type(MapType::Values)))
            .map_err(|error| RenderError::exec(&error))?;
        let text = match String::from_utf8(text) {
            Ok(text) => text,
            Err(error) if file.path.ends_with(NOTES) => {
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
            Err(error) => return Err(manifests::not_text(&file.path, error.as_bytes())),
        };
        out.insert(file.path.clone(), text);
    }
    Ok(out)
}

/// Takes the notes out, and puts the rest into install order.
fn finish(
    compiled: &Compiled,
    variant: &Variant,
    request: &RenderRequest<'_>,
    mut files: BTreeMap<String, String>,
    warnings: &mut Warnings,
) -> Result<Rendered, RenderError> {
    let own = format!("{}/templates/{NOTES}", variant.root.name);
    let mut notes: Option<String> = None;
    files.retain(|path, text| {
        if !path.ends_with(NOTES) {
            return true;
        }
        if request.sub_notes || *path == own {
            match &mut notes {
                Some(notes) => {
                    notes.push('\n');
                    notes.push_str(text);
                }
                None => notes = Some(std::mem::take(text)),
            }
        }
        false
    });
    let mut skipped = Vec::new();
    let parsed = manifests::sort(&files, request.reuse.then(|| compiled.documents()), &mut skipped)?;
    for warning in skipped {
        warnings.add(warning);
    }
    let mut rendered = Rendered { notes, ..Rendered::default() };
    if !request.skip_crds {
        crds(compiled, &variant.root, &mut rendered)?;
    }
    for mut parsed in parsed {
        rendered.manifests.extend(parsed.manifest());
        rendered.documents.push(parsed.document);
    }
    Ok(rendered)
}

/// The files of `crds` folders, the parent's first.
fn crds(compiled: &Compiled, member: &Member, rendered: &mut Rendered) -> Result<(), RenderError> {
    if let Some(own) = find(compiled.chart(), member.id) {
        for file in compiled.crds(own) {
            file.render(&member.path, rendered)?;
        }
    }
    member.children.iter().try_for_each(|child| crds(compiled, child, rendered))
}
