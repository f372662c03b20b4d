//! Compiled charts: a chart comes in once, any number of renders goes out, from any number of threads.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::documents::Documents;
use super::manifests::CrdFile;
use super::names::AllNames;
use super::variant::{ParsedFiles, Variant};
use super::{RenderError, RenderRequest, Rendered, engine};
use crate::chart::Chart;
use crate::schema::Schema;
use crate::template::exec::STACK_BYTES;
use crate::value::Map;
use crate::values::{Warnings, import_values, select};

/// Why a chart cannot be rendered, whatever the values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch \
         missing dependencies: found in Chart.yaml, but missing in charts/ directory: {0}"
    )]
    MissingDependencies(String),
    #[error("the chart cannot be compiled: {0}")]
    Thread(String),
}

/// Selections of dependencies that are kept; overrides of real fleets lead to a handful.
const MAX_VARIANTS: usize = 64;

/// A chart ready to be rendered.
#[derive(Debug)]
pub struct Compiled {
    chart: Chart,
    /// The schema of each chart, by its number.
    schemas: Vec<Option<Schema>>,
    /// The files of each chart's `crds` folder, by its number, read when they are first asked for.
    crds: Vec<OnceLock<Vec<CrdFile>>>,
    cache: Mutex<Cache>,
    documents: Documents,
    /// What its templates name, read when it is first asked for.
    names: OnceLock<AllNames>,
}

#[derive(Debug, Default)]
struct Cache {
    variants: BTreeMap<String, Arc<Variant>>,
    parsed: ParsedFiles,
}

impl Compiled {
    /// Checks that the chart can be installed, and parses its templates.
    pub fn new(mut chart: Chart) -> Result<Self, CompileError> {
        let kind = chart.metadata.chart_type.as_str();
        if !matches!(kind, "" | "application") {
            return Err(CompileError::NotInstallable(kind.to_owned()));
        }
        let present = |name: &String| chart.dependencies.iter().any(|child| child.name() == name);
        let names = chart.metadata.dependencies.iter().map(|dependency| &dependency.name);
        let missing: Vec<&str> = names.filter(|name| !present(name)).map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(CompileError::MissingDependencies(missing.join(", ")));
        }
        let mut schemas = Vec::new();
        // Schemas may nest deeply.
        on_big_stack(|| number(&mut chart, &mut schemas))
            .map_err(|error| CompileError::Thread(error.to_string()))?;
        let crds = schemas.iter().map(|_| OnceLock::new()).collect();
        let compiled = Self {
            chart,
            schemas,
            crds,
            cache: Mutex::default(),
            documents: Documents::default(),
            names: OnceLock::new(),
        };
        // What most renders need is made ready; errors are reported by the render that meets them.
        let warm =
            || compiled.variant(&Map::default(), &mut Warnings::default(), &mut BTreeSet::new()).is_ok();
        let warmed = on_big_stack(warm);
        warmed.map_err(|error| CompileError::Thread(error.to_string()))?;
        Ok(compiled)
    }

    /// The chart that was compiled.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Renders the chart. Renders of one compiled chart may run at the same time on several threads.
    pub fn render(&self, request: &RenderRequest<'_>) -> Result<Rendered, RenderError> {
        on_big_stack(|| engine::render(self, request))
            .map_err(|error| RenderError::new(format!("no thread could be started: {error}")))?
    }

    pub(super) fn schema(&self, id: usize) -> Option<&Schema> {
        self.schemas.get(id).and_then(Option::as_ref)
    }

    /// The files of the `crds` folder of one chart of the tree.
    pub(super) fn crds(&self, chart: &Chart) -> &[CrdFile] {
        let read = || {
            let is_manifest = |name: &str| {
                let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
                let known = ["yaml", "yml", "json"];
                name.starts_with("crds/") && known.iter().any(|known| extension.eq_ignore_ascii_case(known))
            };
            let files = chart.files.iter().filter(|file| is_manifest(&file.name));
            files.map(|file| CrdFile::new(&file.name, &file.data)).collect()
        };
        self.crds.get(chart.id).map_or(&[], |files| files.get_or_init(read))
    }

    /// What earlier renders printed.
    pub(super) const fn documents(&self) -> &Documents {
        &self.documents
    }

    /// What templates name.
    pub(super) fn names(&self) -> &AllNames {
        self.names.get_or_init(|| AllNames::of(&self.chart))
    }

    pub(super) fn has_schemas(&self) -> bool {
        self.schemas.iter().any(Option::is_some)
    }

    /// The selection the overrides lead to; the paths of values it depends on are added to `reads`.
    pub(super) fn variant(
        &self,
        overrides: &Map,
        warnings: &mut Warnings,
        reads: &mut BTreeSet<Vec<String>>,
    ) -> Result<Arc<Variant>, RenderError> {
        let mut node = select(&self.chart, overrides, warnings, reads).map_err(RenderError::new)?;
        let mut signature = String::new();
        node.signature(&mut signature);
        if let Some(variant) = self.lock().variants.get(&signature) {
            return Ok(Arc::clone(variant));
        }
        import_values(&mut node, warnings).map_err(RenderError::new)?;
        let mut cache = self.lock();
        let variant = Arc::new(Variant::build(&node, &mut cache.parsed)?);
        if cache.variants.len() >= MAX_VARIANTS {
            cache.variants.pop_first();
        }
        cache.variants.insert(signature, Arc::clone(&variant));
        Ok(variant)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        // A panic while the lock was held leaves a cache that is merely incomplete.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(chart: &mut Chart, schemas: &mut Vec<Option<Schema>>) {
    chart.id = schemas.len();
    schemas.push(chart.schema.as_ref().map(|schema| Schema::new(schema)));
    for child in &mut chart.dependencies {
        number(child, schemas);
    }
}

/// Runs work that recurses as deeply as templates do on a thread of its own.
fn on_big_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("helm-render".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)?;
        thread.join().map_err(|_| std::io::Error::other("the render panicked"))
    })
}
