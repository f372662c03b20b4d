//! The table of kinds. All that treats every kind in turn is made from it: stores and queues, controllers, files that commands
//! read, what an uninstall takes away, rights and policies of the chart.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Hands rows of the table to a macro: `each_kind!(all => stores)` calls `stores!` with every row, `each_kind!(reconciled => queues)`
/// with those that have a controller. More rows may follow in brackets, for kinds of tests.
#[macro_export]
macro_rules! each_kind {
    ($which:ident => $use:ident $([$($more:tt)*])?) => {
        $crate::each_kind! { @$which $use
            // Owners before what refers to them.
            // store, queue  kind                   several are called           written by  in files   deleted      before a revision is stored
            {
                providers: ClusterProvider,       "cluster providers",         Hub,        Plans,     IfUnused,   AsWatched;
                git_targets: GitTarget,           "Git targets",               Hub,        Plans,     IfUnused,   AsWatched;
                clusters:  Cluster,               "clusters",                  Hub,        Plans,     IfUnused,   AsWatched;
                projects:  Project,               "projects",                  Hub,        Digests,   IfUnused,   ReadAgain;
                clouds:    LogicalCloud,          "logical clouds",            Admin,      Digests,   IfUnused,   AsWatched;
                apps:      CompositeApp,          "composite apps",            Editor,     Digests,   IfUnused,   ReadAgain;
                profiles:  CompositeProfile,      "composite profiles",        Editor,     Digests,   IfUnused,   ReadAgain;
                intents:   GenericActionIntent,   "generic action intents",    Editor,     Digests,   IfUnused,   ReadAgain;
                hardware:  HardwareIntent,        "hardware intents",          Editor,     Digests,   IfUnused,   ReadAgain;
                traffic:   TrafficGroupIntent,    "traffic group intents",     Editor,     Digests,   IfUnused,   ReadAgain;
                digs:      DeploymentIntentGroup, "deployment intent groups",  Editor,     Digests,   Finalized,  ReadAgain;
                approvals: DeploymentApproval,    "deployment approvals",      Approver,   Nowhere,   AtOnce,     AsWatched;
                views:     DeploymentView,        "deployment views",          Member,     Nowhere,   AtOnce,     AsWatched;
                $($($more)*)?
            }
            // The operator writes these: they have a store, and no controller.
            {
                contexts:  AppContext,            "app contexts",              Operator,   Nowhere,   AtOnce,     AsWatched;
                shards:    SyncShard,             "shards",                    Operator,   Nowhere,   AtOnce,     AsWatched;
            }
        }
    };
    (@all $use:ident { $($reconciled:tt)* } { $($generated:tt)* }) => { $use! { $($reconciled)* $($generated)* } };
    (@reconciled $use:ident { $($reconciled:tt)* } { $($generated:tt)* }) => { $use! { $($reconciled)* } };
}

/// The writer of objects of a kind: the cluster role of the chart that may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    /// `emco-editor`, in the namespace of a project.
    Editor,
    /// `emco-approver`, in the namespace of a project.
    Approver,
    /// Each of these roles asks by them, and reads what it asked: nobody lists them.
    Member,
    /// `emco-admin`, in the namespace of a project.
    Admin,
    /// Administrators of the hub; members of projects do not read them.
    Hub,
    /// The operator; people read them.
    Operator,
}

/// Commands that read objects of a kind in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// None: a plan has them of the hub.
    Nowhere,
    /// `plan -f`.
    Plans,
    /// `plan -f`, which asks the hub whether it would store them, and `digest -f`.
    Digests,
}

/// The way an object of a kind is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing waits for it.
    AtOnce,
    /// A finalizer holds it until the operator has done what its end asks for.
    Finalized,
    /// So it is, and a policy of the chart refuses it while its status says `inUse`.
    IfUnused,
}

/// What counts of a kind when a revision is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// What its watch showed.
    AsWatched,
    /// It is read once more.
    ReadAgain,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The kind.
    pub kind: &'static str,
    /// Several of them, in messages.
    pub called: &'static str,
    /// Their writer.
    pub writer: Writer,
    /// Commands that read them in files.
    pub files: Files,
    /// The way they are deleted.
    pub deletion: Deletion,
    /// What counts when a revision is stored.
    pub freshness: Freshness,
    /// Makes the definition.
    pub definition: fn() -> CustomResourceDefinition,
}

macro_rules! rows {
    ($($store:ident: $kind:ident, $called:literal, $writer:ident, $files:ident, $deletion:ident, $freshness:ident;)*) => {
        /// All rows, owners before what refers to them.
        pub const ALL: &[Row] = &[$(Row {
            kind: stringify!($kind),
            called: $called,
            writer: Writer::$writer,
            files: Files::$files,
            deletion: Deletion::$deletion,
            freshness: Freshness::$freshness,
            definition: <$crate::$kind as kube::CustomResourceExt>::crd,
        },)*];
    };
}
each_kind!(all => rows);

impl Row {
    /// The name of the resource, as rights and paths have it.
    pub fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }
}

/// The row of a kind.
pub fn row(kind: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_kind_as_the_definition_does() {
        for row in ALL {
            let names = (row.definition)().spec.names;
            assert_eq!((row.kind, row.plural()), (names.kind.as_str(), names.plural));
        }
    }

    #[test]
    fn what_is_deleted_if_unused_says_who_uses_it() {
        for row in ALL {
            let definition = serde_json::to_value((row.definition)()).unwrap();
            let status =
                definition.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties");
            let says = status.is_some_and(|status| status.get("inUse").is_some());
            assert_eq!(says, row.deletion == Deletion::IfUnused, "{}", row.kind);
        }
    }
}
