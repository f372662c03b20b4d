//! Says why a patch cannot be applied.

use crate::canonical::DEEPEST;

/// Longest path in a message, in bytes.
const LONGEST: usize = 200;

/// Why a patch cannot be applied. The text names the path and what is wrong, and no value; the caller names the object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// An operation of a JSON patch, by its index from 0.
    #[error("operation {index} of the JSON patch, path \"{}\": {fault}", shown(.path))]
    Operation {
        /// Its place in the list, from 0.
        index: usize,
        /// Its `path` as written; empty where it has none.
        path: String,
        /// What is wrong with it, and what to do.
        fault: &'static str,
    },
    /// A field of a strategic merge patch.
    #[error("{} of the strategic merge patch: {fault}", shown(.path))]
    Field {
        /// Names of fields, and merge keys of the items of lists, with dots between them.
        path: String,
        /// What is wrong there, and what to do.
        fault: String,
    },
    /// A merge patch that is no map.
    #[error("the {patch} patch is no map: write the fields that it changes, as the object has them")]
    NoMap {
        /// `merge` or `strategic merge`.
        patch: &'static str,
    },
    /// A strategic merge patch of a kind whose merge keys are not known.
    #[error(
        "a strategic merge patch is for kinds that are built into Kubernetes, and {} of {} is not: use a JSON patch or a merge patch",
        shown(.kind),
        shown(.api_version)
    )]
    CustomKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A patch that makes another object of it.
    #[error("the patch changes {field}, and so which object this is: leave {field} out of the patch")]
    Identity {
        /// `apiVersion` (its group), `kind`, `metadata.name` or `metadata.namespace`.
        field: &'static str,
    },
    /// A patch, or an object after it, that nests too deep.
    #[error("the patch nests more than {} levels, or makes the object do so: make it flatter", DEEPEST)]
    TooDeep,
    /// A workload that cannot ask for hardware.
    #[error("{what}")]
    Workload {
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A JSON patch with too many operations, or that copies too much.
    #[error("the JSON patch {what}: split it, or copy less")]
    TooMuch {
        /// What is too much.
        what: &'static str,
    },
}

/// A text of the patch, cut where it is long.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST)).unwrap_or(text)
}
