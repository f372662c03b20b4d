//! Loads a chart from an archive, a folder or memory, checked and with its dependencies.
mod archive;
mod assemble;
mod decode;
mod directory;
mod ignore;
mod metadata;
mod overlay;

use std::path::Path;
use std::sync::Arc;

pub(crate) use decode::scalar;
pub use ignore::{Rules as Ignore, shell_pattern};
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};

use crate::limits::Limits;

/// Why something is no chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("{0}")]
    Invalid(String),
    #[error("the chart is larger than its limit: {0}")]
    Limit(String),
    #[error("{path}: {error}")]
    Io { path: String, error: String },
}

impl LoadError {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}

/// A file of a chart: its path inside the chart, with slashes, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub data: Arc<[u8]>,
}

/// A loaded chart with its dependencies.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Numbers the charts of a tree; given when the tree is compiled.
    pub(crate) id: usize,
    pub(crate) metadata: Metadata,
    /// The default values, as JSON; `None` without a `values.yaml`.
    pub(crate) values: Option<serde_json::Map<String, serde_json::Value>>,
    pub(crate) schema: Option<Arc<[u8]>>,
    pub(crate) templates: Vec<File>,
    pub(crate) files: Vec<File>,
    pub(crate) dependencies: Vec<Self>,
    pub(crate) warnings: Vec<String>,
}

/// The files of a chart's folder that its `.helmignore` leaves, in the order of their names.
pub fn files_of(folder: &Path, limits: &Limits) -> Result<Vec<File>, LoadError> {
    directory::read(folder, &mut archive::Budget::new(limits))
}

/// Bytes that a template takes for each of its own: the text, and what it is parsed into.
const PARSED: usize = 8;
/// Bytes that default values take for each that they have as text.
const DECODED: usize = 4;

impl Chart {
    /// About how many bytes of memory the chart takes once it is compiled, its dependencies included.
    pub fn held_bytes(&self) -> usize {
        let of = |files: &[File]| files.iter().map(|file| file.name.len() + file.data.len()).sum::<usize>();
        let values = self.values.as_ref().and_then(|values| serde_json::to_string(values).ok());
        let own = of(&self.files)
            + PARSED * of(&self.templates)
            + DECODED * values.map_or(0, |text| text.len())
            + DECODED * self.schema.as_ref().map_or(0, |schema| schema.len());
        own + self.dependencies.iter().map(Self::held_bytes).sum::<usize>()
    }

    /// Loads a packaged chart: a gzipped tar, with charts of any form inside.
    pub fn load(archive: &[u8], limits: &Limits) -> Result<Self, LoadError> {
        let mut budget = archive::Budget::new(limits);
        assemble::chart(archive::unpack(archive, &mut budget)?, &mut budget)
    }

    /// Loads a chart from a folder, obeying its `.helmignore`, or from a packaged file.
    pub fn load_path(path: &Path, limits: &Limits) -> Result<Self, LoadError> {
        if path.is_dir() { Self::load_dir(path, limits) } else { Self::load_file(path, limits) }
    }

    /// Loads a chart from a folder, obeying its `.helmignore`.
    pub fn load_dir(path: &Path, limits: &Limits) -> Result<Self, LoadError> {
        let mut budget = archive::Budget::new(limits);
        assemble::chart(directory::read(path, &mut budget)?, &mut budget)
    }

    fn load_file(path: &Path, limits: &Limits) -> Result<Self, LoadError> {
        let archive = directory::read_file(path, limits.archive_bytes)?;
        if !archive.starts_with(&archive::GZIP) {
            let shown = path.display();
            let is_yaml = path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
            return Err(LoadError::Invalid(if is_yaml {
                format!("file '{shown}' seems to be a YAML file, but expected a gzipped archive")
            } else {
                format!("file '{shown}' does not appear to be a gzipped archive")
            }));
        }
        Self::load(&archive, limits)
    }

    /// Makes a chart of files in memory: paths relative to the chart, and bytes.
    pub fn from_files(files: Vec<(String, Vec<u8>)>, limits: &Limits) -> Result<Self, LoadError> {
        let mut budget = archive::Budget::new(limits);
        let mut out = Vec::with_capacity(files.len());
        for (name, data) in files {
            budget.take(&name, data.len())?;
            out.push(archive::file(name, &data));
        }
        assemble::chart(out, &mut budget)
    }

    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    pub fn version(&self) -> &str {
        &self.metadata.version
    }

    pub fn app_version(&self) -> &str {
        &self.metadata.app_version
    }

    /// Whether the chart only defines templates for others, and cannot be installed itself.
    pub fn is_library(&self) -> bool {
        self.metadata.chart_type.eq_ignore_ascii_case("library")
    }

    /// What `Chart.yaml` says.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The default values, without those of dependencies.
    pub fn values(&self) -> serde_json::Value {
        serde_json::Value::Object(self.values.clone().unwrap_or_default())
    }

    /// Remarks on the chart's files that do not keep it from being used.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }
}
