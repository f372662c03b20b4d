//! Knows how Kubernetes merges the fields of its own kinds.
//!
//! `kinds.rs` and `shapes.rs` are the table. A test compares it with the tags of the types of `k8s.io/api`, and names each kind and
//! field that differs (`e2e/tests/patches.rs`).

mod kinds;
mod listed;
mod shapes;

pub use listed::{FieldMerge, MergedField, merged_fields};

use super::error::PatchError;

/// The fields of a map that are not merged as every other: maps field by field, lists as a whole.
#[derive(Debug)]
pub(super) struct Shape(&'static [(&'static str, Field)]);

/// How a field is merged.
#[derive(Debug)]
pub(super) enum Field {
    /// A map of this shape.
    Object(&'static Shape),
    /// A map that is replaced as a whole.
    Whole,
    /// A list of maps of this shape, each known by the value of its merge key.
    Keyed(&'static str, &'static Shape),
    /// A list of values, each of which is in it once.
    Set,
}

/// A map without such fields, or of a kind that is not known to have any.
pub(super) static NONE: Shape = Shape(&[]);

impl Shape {
    /// How a field is merged, where it is not as every other.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, field)| field)
    }
}

/// The shape of a built-in kind; an error for every other.
pub(super) fn shape(api_version: &str, kind: &str) -> Result<&'static Shape, PatchError> {
    kinds::shape(api_version, kind)
        .ok_or_else(|| PatchError::CustomKind { api_version: api_version.to_owned(), kind: kind.to_owned() })
}
