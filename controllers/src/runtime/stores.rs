//! What the watches of the hub saw last, by kind. Read by reconcilers, written by watches alone.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use emco_crds::{
    AppContext, Cluster, ClusterProvider, CompositeApp, CompositeProfile, DeploymentApproval,
    DeploymentIntentGroup, LogicalCloud, Project, SyncShard,
};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Lookup, ObjectRef, Store, store};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

mod cloud_namespaces;
mod deployment_places;
mod suspended_namespaces;

pub use cloud_namespaces::CloudNamespaces;
pub use deployment_places::DeploymentPlaces;
pub use suspended_namespaces::SuspendedNamespaces;

/// A namespace of the hub, as metadata.
pub type NamespaceMeta = PartialObjectMeta<Namespace>;

/// Readers of every kind.
#[derive(Clone)]
pub struct Stores {
    /// Cluster providers.
    pub providers: Store<ClusterProvider>,
    /// Clusters.
    pub clusters: Store<Cluster>,
    /// Projects.
    pub projects: Store<Project>,
    /// Logical clouds.
    pub clouds: Store<LogicalCloud>,
    /// Composite applications.
    pub apps: Store<CompositeApp>,
    /// Composite profiles.
    pub profiles: Store<CompositeProfile>,
    /// Deployment intent groups.
    pub digs: Store<DeploymentIntentGroup>,
    /// Approvals.
    pub approvals: Store<DeploymentApproval>,
    /// Revisions.
    pub contexts: Store<AppContext>,
    /// Shards.
    pub shards: Store<SyncShard>,
    /// Namespaces of the hub.
    pub namespaces: Store<NamespaceMeta>,
    /// Role bindings of members, those of each role in the order of `MemberRole::ALL`. They are not waited for before work begins: one
    /// that is not shown yet is found when it is made again.
    pub members: [Store<RoleBinding>; 4],
    /// Logical clouds by their namespace on clusters.
    pub cloud_namespaces: Arc<CloudNamespaces>,
    /// Deployments by namespace and age.
    pub deployment_places: Arc<DeploymentPlaces>,
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
pub(crate) const KINDS: [&str; 11] = [
    "ClusterProvider",
    "Cluster",
    "Project",
    "LogicalCloud",
    "CompositeApp",
    "CompositeProfile",
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
    pub providers: Writer<ClusterProvider>,
    pub clusters: Writer<Cluster>,
    pub projects: Writer<Project>,
    pub clouds: Writer<LogicalCloud>,
    pub apps: Writer<CompositeApp>,
    pub profiles: Writer<CompositeProfile>,
    pub digs: Writer<DeploymentIntentGroup>,
    pub approvals: Writer<DeploymentApproval>,
    pub contexts: Writer<AppContext>,
    pub shards: Writer<SyncShard>,
    pub namespaces: Writer<NamespaceMeta>,
    pub members: [Writer<RoleBinding>; 4],
}

/// Empty stores and their writers.
pub fn stores() -> (Stores, Writers) {
    let (providers, providers_writer) = store();
    let (clusters, clusters_writer) = store();
    let (projects, projects_writer) = store();
    let (clouds, clouds_writer) = store();
    let (apps, apps_writer) = store();
    let (profiles, profiles_writer) = store();
    let (digs, digs_writer) = store();
    let (approvals, approvals_writer) = store();
    let (contexts, contexts_writer) = store();
    let (shards, shards_writer) = store();
    let (namespaces, namespaces_writer) = store();
    let members: [Writer<RoleBinding>; 4] = std::array::from_fn(|_| store().1);
    (
        Stores {
            providers,
            clusters,
            projects,
            clouds,
            apps,
            profiles,
            digs,
            approvals,
            contexts,
            shards,
            namespaces,
            members: members.each_ref().map(Writer::as_reader),
            cloud_namespaces: Arc::default(),
            deployment_places: Arc::default(),
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
            digs: digs_writer,
            approvals: approvals_writer,
            contexts: contexts_writer,
            shards: shards_writer,
            namespaces: namespaces_writer,
            members,
        },
    )
}

/// Reads of a store that do not depend on the order of its map.
pub trait StoreExt<K> {
    /// One object.
    fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>>;
    /// All, sorted by namespace and name.
    fn sorted(&self) -> Vec<Arc<K>>;
    /// Those of a namespace, sorted by name.
    fn within(&self, namespace: &str) -> Vec<Arc<K>>;
}

impl<K> StoreExt<K> for Store<K>
where
    K: Resource<DynamicType = ()> + Lookup<DynamicType = ()> + Clone + Debug + 'static,
    <K as Lookup>::DynamicType: Eq + Hash + Clone,
{
    fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let reference = ObjectRef::<K>::new(name);
        self.get(&if namespace.is_empty() { reference } else { reference.within(namespace) })
    }

    fn sorted(&self) -> Vec<Arc<K>> {
        let mut all = self.state();
        all.sort_by(|a, b| key(a.as_ref()).cmp(&key(b.as_ref())));
        all
    }

    fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let mut all = self.state_filter(|object| object.meta().namespace.as_deref() == Some(namespace));
        all.sort_by(|a, b| key(a.as_ref()).cmp(&key(b.as_ref())));
        all
    }
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> (Option<&str>, Option<&str>) {
    (object.meta().namespace.as_deref(), object.meta().name.as_deref())
}
