//! What the watches of the hub saw last, by kind. Read by reconcilers, written by watches alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::{
    AppContext, Cluster, ClusterProvider, CompositeApp, CompositeProfile, DeploymentApproval,
    DeploymentIntentGroup, GenericActionIntent, LogicalCloud, Project, SyncShard,
};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

mod cloud_namespaces;
mod cluster_maps;
mod deployment_places;
mod named;
mod objects;
mod releases;
mod suspended_namespaces;

pub use cloud_namespaces::CloudNamespaces;
pub use cluster_maps::{ClusterMaps, Known};
pub use deployment_places::DeploymentPlaces;
pub use named::{Named, Reference};
pub use objects::{Feed, Objects, objects};
pub use releases::{Release, Releases};
pub use suspended_namespaces::SuspendedNamespaces;

/// A namespace of the hub, as metadata.
pub type NamespaceMeta = PartialObjectMeta<Namespace>;

/// Readers of every kind.
#[derive(Clone)]
pub struct Stores {
    /// Cluster providers.
    pub providers: Objects<ClusterProvider>,
    /// Clusters.
    pub clusters: Objects<Cluster>,
    /// Projects.
    pub projects: Objects<Project>,
    /// Logical clouds.
    pub clouds: Objects<LogicalCloud>,
    /// Composite applications.
    pub apps: Objects<CompositeApp>,
    /// Composite profiles.
    pub profiles: Objects<CompositeProfile>,
    /// Intents that change what charts make.
    pub intents: Objects<GenericActionIntent>,
    /// Deployment intent groups.
    pub digs: Objects<DeploymentIntentGroup>,
    /// Approvals.
    pub approvals: Objects<DeploymentApproval>,
    /// Revisions.
    pub contexts: Objects<AppContext>,
    /// Shards.
    pub shards: Objects<SyncShard>,
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
    /// What deployments name.
    pub named: Arc<Named>,
    /// Deployments by logical cloud and release.
    pub releases: Arc<Releases>,
    /// Namespaces whose project is suspended.
    pub suspended: Arc<SuspendedNamespaces>,
    /// What was listed.
    pub listed: Arc<Listed>,
}

/// Which kinds were not listed yet.
pub struct Listed {
    missing: Mutex<BTreeSet<&'static str>>,
    suspensions: CancellationToken,
    all: CancellationToken,
}

/// Kinds that say who is suspended.
const SUSPENDING: [&str; 2] = ["DeploymentIntentGroup", "Project"];

/// Kinds that have a store.
pub(crate) const KINDS: [&str; 12] = [
    "ClusterProvider",
    "Cluster",
    "Project",
    "LogicalCloud",
    "CompositeApp",
    "CompositeProfile",
    "GenericActionIntent",
    "DeploymentIntentGroup",
    "DeploymentApproval",
    "AppContext",
    "SyncShard",
    "Namespace",
];

impl Default for Listed {
    fn default() -> Self {
        Self {
            missing: Mutex::new(KINDS.into_iter().collect()),
            suspensions: CancellationToken::new(),
            all: CancellationToken::new(),
        }
    }
}

impl Listed {
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

/// Writers of the same, for whoever feeds them.
#[allow(missing_docs)] // the fields of `Stores`
pub struct Writers {
    pub providers: Feed<ClusterProvider>,
    pub clusters: Feed<Cluster>,
    pub projects: Feed<Project>,
    pub clouds: Feed<LogicalCloud>,
    pub apps: Feed<CompositeApp>,
    pub profiles: Feed<CompositeProfile>,
    pub intents: Feed<GenericActionIntent>,
    pub digs: Feed<DeploymentIntentGroup>,
    pub approvals: Feed<DeploymentApproval>,
    pub contexts: Feed<AppContext>,
    pub shards: Feed<SyncShard>,
    pub namespaces: Feed<NamespaceMeta>,
    pub members: [Feed<RoleBinding>; 4],
}

/// Empty stores and their writers.
pub fn stores() -> (Stores, Writers) {
    let (providers, providers_writer) = objects();
    let (clusters, clusters_writer) = objects();
    let (projects, projects_writer) = objects();
    let (clouds, clouds_writer) = objects();
    let (apps, apps_writer) = objects();
    let (profiles, profiles_writer) = objects();
    let (intents, intents_writer) = objects();
    let (digs, digs_writer) = objects();
    let (approvals, approvals_writer) = objects();
    let (contexts, contexts_writer) = objects();
    let (shards, shards_writer) = objects();
    let (namespaces, namespaces_writer) = objects();
    let members: [Feed<RoleBinding>; 4] = std::array::from_fn(|_| Feed::default());
    (
        Stores {
            providers,
            clusters,
            projects,
            clouds,
            apps,
            profiles,
            intents,
            digs,
            approvals,
            contexts,
            shards,
            namespaces,
            members: members.each_ref().map(Feed::as_reader),
            cloud_namespaces: Arc::default(),
            cluster_maps: Arc::default(),
            deployment_places: Arc::default(),
            named: Arc::default(),
            releases: Arc::default(),
            suspended: Arc::default(),
            listed: Arc::default(),
        },
        Writers {
            providers: providers_writer,
            clusters: clusters_writer,
            projects: projects_writer,
            clouds: clouds_writer,
            apps: apps_writer,
            profiles: profiles_writer,
            intents: intents_writer,
            digs: digs_writer,
            approvals: approvals_writer,
            contexts: contexts_writer,
            shards: shards_writer,
            namespaces: namespaces_writer,
            members,
        },
    )
}
