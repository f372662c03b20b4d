//! Says where the account of a logical cloud may have objects, and where its rights are derived from what is deployed.

use std::collections::BTreeSet;

use emco_crds::LogicalCloudSpec;
use emco_crds::fields::Level;
use emco_crds::logical_cloud::{Permission, PermissionScope};

/// Where deployments of a logical cloud may have objects, beside its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// In these namespaces.
    pub namespaces: BTreeSet<String>,
    /// In all of them, and objects of the whole cluster.
    pub cluster: bool,
}

impl Reach {
    /// What level and permissions give. What the account may really do there, the cluster decides.
    pub fn of(spec: &LogicalCloudSpec) -> Self {
        match spec.level {
            Level::Admin => Self { namespaces: BTreeSet::new(), cluster: true },
            Level::Standard => Self::default(),
            Level::Privileged => Self {
                namespaces: spec
                    .permissions
                    .iter()
                    .flat_map(|one| one.namespaces.iter().flatten())
                    .cloned()
                    .collect(),
                cluster: spec.permissions.iter().any(is_of_the_cluster),
            },
        }
    }
}

/// Where the rights of an account are derived from what its deployments have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    /// In these namespaces; the logical cloud's own is one of them.
    pub namespaces: BTreeSet<String>,
    /// In all of them, and on the whole cluster.
    pub cluster: bool,
}

impl Derived {
    /// What permissions say, with the namespace of the logical cloud; `None` where all of them are listed.
    pub fn of(spec: &LogicalCloudSpec, namespace: &str) -> Option<Self> {
        let derived = || spec.permissions.iter().filter(|one| one.derived);
        let further = derived().flat_map(|one| one.namespaces.iter().flatten()).cloned();
        Self::is_in(spec).then(|| Self {
            namespaces: further.chain([namespace.to_owned()]).collect(),
            cluster: derived().any(is_of_the_cluster),
        })
    }

    /// Whether there is any.
    pub fn is_in(spec: &LogicalCloudSpec) -> bool {
        spec.permissions.iter().any(|one| one.derived)
    }

    /// Whether it is so in a namespace ("": on the whole cluster).
    pub fn holds(&self, place: &str) -> bool {
        self.cluster || self.namespaces.contains(place)
    }

    /// As digests have it.
    pub const fn as_str(&self) -> &'static str {
        if self.cluster { "Cluster" } else { "Namespaces" }
    }
}

/// Whether a permission holds on the whole cluster.
pub(crate) fn is_of_the_cluster(permission: &Permission) -> bool {
    permission.scope == Some(PermissionScope::Cluster)
}
