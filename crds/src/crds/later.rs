//! Fields that a later version will honour: the operator refuses them by this table, and `kubectl explain` says so.

/// A field that this version does not honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// Kind of the object.
    pub kind: &'static str,
    /// Path of the field; `[]` stands for any item of a list.
    pub path: &'static str,
}

/// What `kubectl explain` adds to each.
pub const EXPLANATION: &str = "Not supported yet: leave it out.";

macro_rules! table {
    ($($name:ident = $kind:ident $path:literal;)+) => {
        $(#[allow(missing_docs)] pub const $name: Later = Later { kind: $kind, path: $path };)+
        /// All of them.
        pub const ALL: &[Later] = &[$($name),+];
    };
}

const DIG: &str = "DeploymentIntentGroup";

table! {
    DIG_WEIGHTS = DIG "spec.placement.weights";
    DIG_APP_WEIGHTS = DIG "spec.placement.apps[].weights";
}

impl Later {
    /// What the refusal says of it: the field as `at`, and the only thing that helps now.
    pub fn refusal(&self, at: &str) -> String {
        format!("{at} is not supported yet: remove the field")
    }
}
