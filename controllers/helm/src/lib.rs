//! Renders Helm charts into the Kubernetes manifests that Helm 3.17 renders.
#![doc = include_str!("../README.md")]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod chart;
pub mod funcs;
mod glob;
mod gofloat;
mod gofmt;
mod gojson;
mod goregex;
mod gotext;
mod gotime;
mod gotoml;
pub mod limits;
pub mod objects;
mod random;
pub mod render;
mod schema;
mod semver;
pub mod strvals;
pub mod template;
pub mod value;
pub mod values;
mod versions;
pub mod yaml;

pub use chart::{Chart, LoadError};
pub use limits::{LimitError, Limits};
pub use objects::{Capabilities, Reads};
pub use render::{
    Compat, CompileError, Compiled, Document, Found, Hook, HookDeletePolicy, HookEvent, Lookup, LookupRead,
    Manifest, Release, RenderError, RenderRequest, Rendered, Set, UnreadValue,
};
pub use values::merge_values;
