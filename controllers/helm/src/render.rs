//! Renders a compiled chart into manifests in install order, notes and a record of reads.
mod compiled;
mod documents;
mod engine;
mod error;
mod manifests;
mod names;
mod order;
mod reads;
mod set;
mod switch;
mod unread;
mod variant;

pub use compiled::{CompileError, Compiled};
pub use error::RenderError;
pub use manifests::{Document, Hook, HookDeletePolicy, HookEvent, Manifest, split};
pub use order::INSTALL_ORDER;
pub use unread::UnreadValue;

use std::collections::BTreeMap;

pub use crate::template::exec::{Found, Lookup, LookupRead};

use crate::limits::Limits;
use crate::objects::{Capabilities, Reads};

/// The release templates are rendered for: `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub name: String,
    pub namespace: String,
    /// Starts at 1.
    pub revision: i64,
    /// `.Release.IsInstall`; `.Release.IsUpgrade` is its opposite.
    pub is_install: bool,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            name: "release-name".to_owned(),
            namespace: "default".to_owned(),
            revision: 1,
            is_install: true,
        }
    }
}

/// Whose behaviour is followed where Helm's versions differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Compat {
    #[default]
    Helm3_17,
}

/// One assignment of the `--set` family, applied over the values in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// `--set`: values get the type they look like.
    Typed(String),
    /// `--set-string`
    Text(String),
    /// `--set-json`
    Json(String),
    /// `--set-literal`
    Literal(String),
    /// `--set-file`: the assignments, and the texts of the files they name, by path.
    File(String, BTreeMap<String, Vec<u8>>),
}

/// What to render.
#[derive(Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // switches that have nothing to do with each other
pub struct RenderRequest<'a> {
    pub release: Release,
    /// The overrides, merged already: an object, or null for none.
    pub values: serde_json::Value,
    /// Assignments over the overrides.
    pub set: Vec<Set>,
    pub capabilities: Capabilities,
    pub compat: Compat,
    /// Makes random functions give the same values in every render with the same seed.
    pub seed: Option<[u8; 32]>,
    /// The time of `now`, in seconds since 1970; the system's when it is absent.
    pub now: Option<i64>,
    /// What `lookup` finds; nothing by default.
    pub lookup: Option<&'a dyn Lookup>,
    /// Leaves `values.schema.json` files aside.
    pub skip_schema: bool,
    /// Leaves the files of `crds` folders out, which are the same in every render.
    pub skip_crds: bool,
    /// Also collects the notes of dependencies.
    pub sub_notes: bool,
    /// Keeps what this render prints for the next one of the chart, and uses what was kept: for charts that are rendered again
    /// and again with few changes. What comes out is the same.
    pub reuse: bool,
    pub limits: Limits,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// First the files of `crds` folders, then manifests in Helm's install order, then hooks in the same order.
    pub manifests: Vec<Manifest>,
    /// All documents as text, in the same order, those that hold only comments included.
    pub documents: Vec<Document>,
    /// The text of `NOTES.txt`.
    pub notes: Option<String>,
    /// What of the cluster and of the values the render depended on.
    pub reads: Reads,
    /// Values that were given, that nothing read and that nothing explains: most often misspelt names.
    pub unread: Vec<UnreadValue>,
    /// Where nothing came out: the values that turn the chart on, if it is certain that they are all.
    pub switches: Vec<Vec<String>>,
    pub warnings: Vec<String>,
}
