//! What the watches of the hub saw last, by kind. Read by reconcilers, written by watches alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::kinds::{self, each_kind};

mod cloud_namespaces;
mod cluster_maps;
mod deployment_places;
pub mod indexes;
mod named;
mod objects;
mod releases;
mod secret_versions;
mod stored_bytes;
mod suspended_namespaces;

pub use cloud_namespaces::CloudNamespaces;
pub use cluster_maps::{ClusterMaps, Known};
pub use deployment_places::DeploymentPlaces;
pub use named::{Named, Reference};
#[cfg(test)]
pub use objects::visits;
pub use objects::{Feed, IndexKey, Objects, objects};
pub use releases::{Release, Releases};
pub use secret_versions::SecretVersions;
pub use stored_bytes::StoredBytes;
pub use suspended_namespaces::SuspendedNamespaces;

/// A namespace of the hub, as metadata.
pub type NamespaceMeta = PartialObjectMeta<Namespace>;

macro_rules! stores {
    ($($store:ident: $kind:ident, $called:literal, $($column:ident),*;)*) => {
        /// Readers of every kind.
        #[derive(Clone)]
        pub struct Stores {
            $(#[doc = concat!("All ", $called, ".")] pub $store: Objects<kinds::$kind>,)*
            /// Namespaces of the hub.
            pub namespaces: Objects<NamespaceMeta>,
            /// Role bindings of members, those of each role in the order of `MemberRole::ALL`. They are not waited for before work begins: one
            /// that is not shown yet is found when it is made again.
            pub members: [Objects<RoleBinding>; 4],
            /// Logical clouds by their namespace on clusters.
            pub cloud_namespaces: Arc<CloudNamespaces>,
            /// ConfigMaps that say to members of projects which clusters there are.
            pub cluster_maps: Arc<ClusterMaps>,
            /// Deployments by namespace and age.
            pub deployment_places: Arc<DeploymentPlaces>,
            /// What stored revisions take.
            pub stored_bytes: Arc<StoredBytes>,
            /// What deployments name.
            pub named: Arc<Named>,
            /// Deployments by logical cloud and release.
            pub releases: Arc<Releases>,
            /// Versions of Secrets that Clusters may name.
            pub secret_versions: Arc<SecretVersions>,
            /// Namespaces whose project is suspended.
            pub suspended: Arc<SuspendedNamespaces>,
            /// What was listed.
            pub listed: Arc<Listed>,
        }

        /// Writers of the same, for whoever feeds them.
        #[derive(Default)]
        pub struct Writers {
            $(#[doc = concat!("Of ", $called, ".")] pub $store: Feed<kinds::$kind>,)*
            /// Of namespaces.
            pub namespaces: Feed<NamespaceMeta>,
            /// Of role bindings of members.
            pub members: [Feed<RoleBinding>; 4],
        }

        /// Empty stores and their writers.
        pub fn stores() -> (Stores, Writers) {
            let mut writers = Writers::default();
            writers.clusters.index_by(indexes::of_cluster);
            writers.shards.index_by(indexes::of_shard);
            writers.contexts.index_by(indexes::of_context);
            let stores = Stores {
                $($store: writers.$store.as_reader(),)*
                namespaces: writers.namespaces.as_reader(),
                members: writers.members.each_ref().map(Feed::as_reader),
                cloud_namespaces: Arc::default(),
                cluster_maps: Arc::default(),
                deployment_places: Arc::default(),
                stored_bytes: Arc::default(),
                named: Arc::default(),
                releases: Arc::default(),
                secret_versions: Arc::default(),
                suspended: Arc::default(),
                listed: Arc::default(),
            };
            (stores, writers)
        }

        /// Kinds that have a store which is waited for.
        pub(crate) const KINDS: &[&str] = &[$(stringify!($kind),)* "Namespace"];
    };
}
each_kind!(all => stores);

/// Which kinds were not listed yet.
pub struct Listed {
    missing: Mutex<BTreeSet<&'static str>>,
    suspensions: CancellationToken,
    all: CancellationToken,
}

/// Kinds that say who is suspended.
const SUSPENDING: [&str; 2] = ["DeploymentIntentGroup", "Project"];

impl Default for Listed {
    fn default() -> Self {
        Self {
            missing: Mutex::new(KINDS.iter().copied().collect()),
            suspensions: CancellationToken::new(),
            all: CancellationToken::new(),
        }
    }
}

impl Listed {
    /// True while a kind was not listed.
    pub fn awaits(&self, kind: &str) -> bool {
        self.missing.lock().contains(kind)
    }

    /// A kind is in its store.
    pub fn done(&self, kind: &str) {
        let mut missing = self.missing.lock();
        missing.remove(kind);
        if !SUSPENDING.iter().any(|kind| missing.contains(kind)) {
            self.suspensions.cancel();
        }
        if missing.is_empty() {
            self.all.cancel();
        }
    }
}

impl Stores {
    /// Waits until every kind was listed once. Before that, what is not in a store proves nothing: an owner without shards
    /// may only be one whose shards were not read yet. (`Store::wait_until_ready` wakes only one of many that wait.)
    pub async fn loaded(&self) {
        self.listed.all.cancelled().await;
    }

    /// Waits until those were listed once that say who is suspended: before that, what is not in a store may be so all the same.
    pub async fn suspensions_listed(&self) {
        self.listed.suspensions.cancelled().await;
    }

    /// A kind that was not listed yet.
    pub fn missing(&self) -> Option<&'static str> {
        self.listed.missing.lock().first().copied()
    }
}
