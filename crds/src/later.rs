//! Fields that a later version will honour: the operator refuses them by this table, and `kubectl explain` says so.

/// A field, or some of its values, that this version does not honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// Kind of the object.
    pub kind: &'static str,
    /// Path of the field; `[]` stands for any item of a list.
    pub path: &'static str,
    /// The values that are refused; empty: the field as a whole.
    pub values: &'static [&'static str],
    /// What to write instead; empty: nothing.
    pub instead: &'static str,
}

const fn field(kind: &'static str, path: &'static str) -> Later {
    Later { kind, path, values: &[], instead: "" }
}

const fn values(
    kind: &'static str,
    path: &'static str,
    values: &'static [&'static str],
    instead: &'static str,
) -> Later {
    Later { kind, path, values, instead }
}

macro_rules! table {
    ($($name:ident = $later:expr;)+) => {
        $(#[allow(missing_docs)] pub const $name: Later = $later;)+
        /// All of them.
        pub const ALL: &[Later] = &[$($name),+];
    };
}

const PROJECT: &str = "Project";
const CLOUD: &str = "LogicalCloud";
const DIG: &str = "DeploymentIntentGroup";
const LEVELS: &[&str] = &["Privileged"];

table! {
    PROJECT_LEVEL = values(PROJECT, "spec.logicalCloud.level", LEVELS, "Standard or Admin");
    CLOUD_LEVEL = values(CLOUD, "spec.level", LEVELS, "Standard or Admin");
    CLOUD_PROVISION = values(CLOUD, "spec.provision", &["OnDemand"], "Eager");
    CLOUD_USER = field(CLOUD, "spec.user");
    CLOUD_CREDENTIALS = field(CLOUD, "spec.credentials");
    DIG_INTENTS = field(DIG, "spec.intents");
    DIG_WEIGHTS = field(DIG, "spec.placement.weights");
    DIG_APP_WEIGHTS = field(DIG, "spec.placement.apps[].weights");
}

impl Later {
    /// What the refusal says of it: the field as `at`, and the only thing that helps now.
    pub fn refusal(&self, at: &str, value: &str) -> String {
        if self.values.is_empty() {
            format!("{at} is not supported yet: remove the field")
        } else {
            format!("{at} {value} is not supported yet: use {}", self.instead)
        }
    }

    /// What `kubectl explain` adds.
    pub fn explanation(&self) -> String {
        if self.values.is_empty() {
            "Not supported yet: leave it out.".to_owned()
        } else {
            format!("Not supported yet: {}; use {}.", self.values.join(", "), self.instead)
        }
    }
}
