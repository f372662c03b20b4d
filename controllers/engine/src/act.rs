//! Carries out the actions of intents on what charts made. Pure: manifests and actions in, manifests or a refusal out.
//!
//! Three steps: an [`Entry`] is an action, or what a consumer of hardware asks for, that was read and can be carried out; [`Edits`] are the entries that count on one cluster,
//! with their texts filled in; and an app's rendered set is edited by them (`manifests/edited.rs`). All intents of a deployment, by the
//! priority of their kind and then as it lists them, and within each all actions in their order: one total order, whatever else differs.
//! What an intent does in all is its [`Effects`]; what it adds to no chart is a [`Generated`] app.

mod edit;
mod effects;
mod entry;
mod hardware;
mod touched;
pub mod traffic;

pub use edit::{Edit, Edits, Pick, Unfilled, Wanted, What};
pub use effects::{Effects, Generated, Objects};
pub use entry::{Entry, Fault, mask, read, templated};
pub use hardware::asking;
pub use touched::{Stated, differing, displaced, meets, stated, touched};

/// Group, version and kind are those of definitions of kinds.
pub(crate) fn is_definition(api_version: &str, kind: &str) -> bool {
    crate::order::is_crd((crate::identity::split_api_version(api_version).0, kind))
}
