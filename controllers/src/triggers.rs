//! Maps a changed object to the objects that must be reconciled.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::names::label;
use emco_crds::{
    ClusterProvider, CompositeApp, CompositeProfile, DeploymentApproval, DeploymentIntentGroup,
    GenericActionIntent, GitTarget, LogicalCloud, OwnerKind, Project, SyncShard,
};
use emco_engine::cloud;
use emco_engine::identity::ClusterId;
use emco_engine::resolve;
use emco_engine::role::Derived;
use tokio::sync::Notify;

use crate::api::key_queue::KeyQueue;
use crate::kinds::each_kind;
use crate::object::meta::{name, namespace};
use crate::stores::{Reference, Stores, indexes};
use crate::tenancy::{facts, owned_namespace};

mod change;
mod cluster;
mod cluster_maps_changed;
mod cluster_pace;
mod cluster_view;
mod predicates;
mod releases;

pub use change::Change;
pub use cluster::is_unsettled;
pub use cluster_maps_changed::ClusterMapsChanged;
pub use cluster_pace::{APART, ClusterChange, ClusterPace};
pub use cluster_view::ClusterView;
pub use predicates::{
    ApprovalChanged, CloudChanged, ContentChanged, IntentChanged, PlanChanged, ProjectChanged,
    ProviderChanged, RefsChanged, RowsChanged, SyncPolicyChanged, TargetChanged,
};

macro_rules! triggers {
    ($($store:ident: $kind:ident, $called:literal, $($column:ident),*;)*) => {
        /// The queues of all kinds that are reconciled, and of what else looks again.
        #[derive(Default)]
        pub struct Triggers {
            $(#[doc = concat!("Those of ", $called, ".")] pub $store: Arc<KeyQueue>,)*
            /// Owners of what is stored, as kind/name: whether they are still there.
            pub owners: Arc<KeyQueue>,
            /// Ledgers of what was given up.
            pub ledgers: Arc<KeyQueue>,
            /// Rings when a namespace came, went or changed its owner.
            pub namespaces: Arc<Notify>,
            /// Changes that clusters told others.
            pub pace: ClusterPace,
        }

        impl Triggers {
            /// The queue of a kind.
            fn queue(&self, kind: &str) -> Option<&KeyQueue> {
                match kind {
                    $(stringify!($kind) => Some(&self.$store),)*
                    _ => None,
                }
            }
        }
    };
}
each_kind!(reconciled => triggers);

impl Triggers {
    /// A provider came, changed or went: the projects that it grants anything, or did, and all that is placed through them.
    pub fn provider(&self, stores: &Stores, providers: &[&ClusterProvider]) {
        for project in stores.projects.sorted() {
            let labels = facts::labels(project.as_ref());
            if providers.iter().any(|provider| cloud::grants_any(provider, name(project.as_ref()), &labels)) {
                self.projects.enqueue("", name(project.as_ref()));
                self.clouds.all(&stores.clouds.within(project.owned_namespace()));
                self.digs.all(&stores.digs.within(project.owned_namespace()));
            }
        }
    }

    /// A Git target came, changed or went: clusters that are written to through it, and other targets, which may wait for its folder.
    pub fn git_target(&self, stores: &Stores, target: &GitTarget) {
        let key = indexes::within(namespace(target), name(target));
        self.clusters.all(&stores.clusters.indexed(indexes::GIT_TARGET, &key));
        self.git_targets.all(&stores.git_targets.sorted());
    }

    /// A namespace of the hub came, went, or says another owner.
    pub fn namespace(&self, stores: &Stores, changed: &str) {
        self.namespaces.notify_one();
        let owns = |provider: &&Arc<ClusterProvider>| owned_namespace::of_provider(provider) == changed;
        self.providers.all(stores.providers.sorted().iter().filter(owns));
        let owns = |project: &&Arc<Project>| project.owned_namespace() == changed;
        self.projects.all(stores.projects.sorted().iter().filter(owns));
        self.clusters.all(&stores.clusters.within(changed));
        self.git_targets.all(&stores.git_targets.within(changed));
        self.tenant(stores, changed);
        for shard in stores.shards.within(changed) {
            self.stored(&shard);
        }
        for context in stores.contexts.within(changed) {
            self.owner(changed, &context.spec.owner.kind, &context.spec.owner.name);
        }
    }

    fn tenant(&self, stores: &Stores, within: &str) {
        self.clouds.all(&stores.clouds.within(within));
        self.apps.all(&stores.apps.within(within));
        self.digs.all(&stores.digs.within(within));
    }

    /// A project came or changed: everything in its namespace, and who shares the namespaces of its logical clouds.
    pub fn project(&self, stores: &Stores, project: &Project) {
        let within = project.owned_namespace();
        self.tenant(stores, within);
        for cloud in stores.clouds.within(within) {
            self.sharing(stores, &cloud);
        }
    }

    /// A logical cloud, app or profile: the deployments that name it, and the project that counts it.
    pub fn referenced(&self, stores: &Stores, within: &str, names: impl Fn(&DeploymentIntentGroup) -> bool) {
        self.deployments(stores, within, names);
        self.counted(stores, within);
    }

    /// The project that owns a namespace, for something in it came or went. Where the namespace does not say so yet, it tells when it does.
    fn counted(&self, stores: &Stores, within: &str) {
        let found = stores.namespaces.named("", within);
        let labels = found.as_ref().and_then(|found| found.metadata.labels.as_ref());
        if let Some(project) = labels.and_then(|labels| labels.get(label::PROJECT)) {
            self.projects.enqueue("", project);
        }
    }

    /// An intent came, changed or went: the deployments that list it, and no others.
    pub fn intent(&self, stores: &Stores, within: &str, name: &str) {
        self.deployments(stores, within, |dig| {
            let mut listed = dig.spec.intents.iter().filter(|listed| resolve::is_generic_action(listed));
            listed.any(|listed| listed.name == name)
        });
    }

    /// The same of an intent that says what is needed of nodes.
    pub fn hardware_intent(&self, stores: &Stores, within: &str, name: &str) {
        self.deployments(stores, within, |dig| {
            let mut listed = dig.spec.intents.iter().filter(|listed| resolve::is_hardware(listed));
            listed.any(|listed| listed.name == name)
        });
    }

    /// The same of an intent of traffic.
    pub fn traffic(&self, stores: &Stores, within: &str, name: &str) {
        self.deployments(stores, within, |dig| {
            let mut listed = dig.spec.intents.iter().filter(|listed| resolve::is_traffic(listed));
            listed.any(|listed| listed.name == name)
        });
    }

    /// Deployments of a namespace, of which a caller says which.
    pub fn deployments(&self, stores: &Stores, within: &str, which: impl Fn(&DeploymentIntentGroup) -> bool) {
        self.digs.all(stores.digs.within(within).iter().filter(|dig| which(dig)));
    }

    /// A logical cloud came, changed or went: those with the same namespace on clusters, for one may be free to take it.
    pub fn cloud(&self, stores: &Stores, cloud: &LogicalCloud, gone: bool) {
        if stores.cloud_namespaces.note(cloud, gone) {
            self.sharing(stores, cloud);
        }
    }

    fn sharing(&self, stores: &Stores, cloud: &LogicalCloud) {
        let own = (namespace(cloud), name(cloud));
        let mut sharing = stores.cloud_namespaces.sharing(cloud.cluster_namespace());
        sharing.retain(|(within, other)| (within.as_str(), other.as_str()) != own);
        for (within, other) in &sharing {
            self.clouds.enqueue(within, other);
        }
        if !sharing.is_empty() {
            self.releases(stores, cloud);
        }
    }

    /// A deployment: what it names and what it named before, so that holders are counted, and its project.
    pub fn dig(&self, stores: &Stores, dig: &DeploymentIntentGroup, gone: bool) {
        let within = namespace(dig);
        stores.deployment_places.note(dig, gone);
        for Reference { kind, name } in stores.named.note(dig, gone) {
            if let Some(queue) = self.queue(&kind) {
                queue.enqueue(within, &name);
            }
        }
        self.counted(stores, within);
        for release in stores.releases.note(dig, gone) {
            self.release(stores, &release);
        }
        // Who had a place first may have gone. One that has a revision needs none.
        let has_none = |other: &DeploymentIntentGroup| {
            other.status.as_ref().is_none_or(|status| status.revision.is_none())
        };
        self.deployments(stores, within, has_none);
    }

    /// A deployment has another plan: the approvals that name it, or the plan.
    pub fn plan(&self, stores: &Stores, dig: &DeploymentIntentGroup) {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        let names = |approval: &DeploymentApproval| {
            approval.spec.deployment_intent_group_ref.name == name(dig)
                || pending.is_some_and(|pending| pending.digest == approval.spec.digest)
        };
        let all = stores.approvals.within(namespace(dig));
        self.approvals.all(all.iter().filter(|approval| names(approval)));
    }

    /// An approval came or went: the deployment that it names, and the other approvals of the digest, which it may supersede.
    pub fn approval(&self, stores: &Stores, approval: &DeploymentApproval) {
        let within = namespace(approval);
        self.digs.enqueue(within, &approval.spec.deployment_intent_group_ref.name);
        let all = stores.approvals.within(within);
        self.approvals.all(all.iter().filter(|other| other.spec.digest == approval.spec.digest));
    }

    /// An owner of shards came or went, or something of its own did.
    pub fn owner(&self, within: &str, kind: &OwnerKind, name: &str) {
        self.owners.enqueue(within, &format!("{kind}/{name}"));
    }

    /// The owner itself: something stored of it changed.
    pub fn producer(&self, kind: &OwnerKind, within: &str, name: &str) {
        match kind {
            OwnerKind::DeploymentIntentGroup => self.digs.enqueue(within, name),
            OwnerKind::LogicalCloud => self.clouds.enqueue(within, name),
            OwnerKind::Other(_) => {}
        }
    }

    /// A shard: whether its owner is still there; or the ledger that it is.
    pub fn stored(&self, shard: &SyncShard) {
        if shard.spec.abandoned.is_some() {
            self.ledgers.enqueue(namespace(shard), name(shard));
        } else {
            self.owner(namespace(shard), &shard.spec.owner.kind, &shard.spec.owner.name);
        }
    }

    /// Nothing but the status of a shard is another one: its owner counts.
    pub fn reported(&self, shard: &SyncShard) {
        self.stored(shard);
        let (within, name) = (shard.owner_namespace(), shard.spec.owner.name.as_str());
        match &shard.spec.owner.kind {
            OwnerKind::DeploymentIntentGroup => self.digs.report(within, name),
            OwnerKind::LogicalCloud => self.clouds.report(within, name),
            OwnerKind::Other(_) => {}
        }
    }

    /// A shard: its owner.
    pub fn shard(&self, shard: &SyncShard) {
        self.stored(shard);
        self.producer(&shard.spec.owner.kind, shard.owner_namespace(), &shard.spec.owner.name);
    }

    /// What clusters may have of a shard changed: logical clouds that derive rights from it.
    pub fn content(&self, stores: &Stores, shard: &SyncShard) {
        for cloud in deriving(stores, shard) {
            self.clouds.enqueue(namespace(cloud.as_ref()), name(cloud.as_ref()));
        }
    }

    /// The clusters that a shard names, or named: who holds them changed. Clouds follow their deployments.
    pub fn rows(&self, stores: &Stores, clusters: &BTreeSet<String>, shard: &SyncShard) {
        for id in clusters.iter().filter_map(|id| ClusterId::parse(id)) {
            let called = stores.clusters.called(id.cluster());
            self.clusters.all(&called);
            if called.iter().any(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
                // The clouds of all projects leave a cluster that ends when its last deployment has. Those without a row have nothing there.
                for shard in stores.shards.indexed(indexes::ROW, id.as_str()) {
                    let owner = &shard.spec.owner;
                    if owner.kind == OwnerKind::LogicalCloud && shard.spec.abandoned.is_none() {
                        self.clouds.enqueue(shard.owner_namespace(), &owner.name);
                    }
                }
            }
        }
        self.clouds.all(&stores.clouds.within(namespace(shard)));
        let owner = &shard.spec.owner;
        if owner.kind == OwnerKind::LogicalCloud
            && let Some(cloud) = stores.clouds.named(shard.owner_namespace(), &owner.name)
        {
            self.sharing(stores, &cloud);
        }
    }

    /// A ConfigMap or Secret of an owned namespace.
    pub fn source(&self, stores: &Stores, kind: &str, within: &str, changed: &str) {
        let secret = kind == "Secret";
        if secret {
            let key = indexes::within(within, changed);
            self.clusters.all(&stores.clusters.indexed(indexes::SECRET, &key));
        }
        let of_target = |target: &GitTarget| {
            secret && target.spec.secret_ref.as_ref().is_some_and(|reference| reference.name == changed)
        };
        for target in stores.git_targets.within(within).iter().filter(|target| of_target(target)) {
            self.git_targets.enqueue(within, name(target.as_ref()));
        }
        let of_app = |app: &CompositeApp| {
            app.spec.apps.iter().any(|app| {
                let login = app.chart.secret_ref.as_ref().is_some_and(|reference| reference.name == changed);
                let archive =
                    app.chart.config_map_ref.as_ref().is_some_and(|reference| reference.name == changed);
                if secret { login } else { archive }
            })
        };
        for app in stores.apps.within(within).iter().filter(|app| of_app(app)) {
            self.apps.enqueue(within, name(app.as_ref()));
        }
        let of_profile = |profile: &CompositeProfile| {
            resolve::sources(profile).iter().any(|key| key.kind == kind && key.name == changed)
        };
        for profile in stores.profiles.within(within).iter().filter(|profile| of_profile(profile)) {
            self.profiles.enqueue(within, name(profile.as_ref()));
            let of_dig = |dig: &DeploymentIntentGroup| {
                dig.spec
                    .composite_profile_ref
                    .as_ref()
                    .is_some_and(|named| named.name == name(profile.as_ref()))
            };
            self.referenced(stores, within, of_dig);
        }
        let of_intent = |intent: &GenericActionIntent| {
            resolve::intent_sources(intent).iter().any(|key| key.kind == kind && key.name == changed)
        };
        for intent in stores.intents.within(within).iter().filter(|intent| of_intent(intent)) {
            self.intents.enqueue(within, name(intent.as_ref()));
            self.intent(stores, within, name(intent.as_ref()));
        }
    }
}

/// Logical clouds whose rights are derived from a shard: that of its deployment, or all of its namespace while nobody knows which.
pub fn deriving(stores: &Stores, shard: &SyncShard) -> Vec<Arc<LogicalCloud>> {
    let owner = &shard.spec.owner;
    if owner.kind != OwnerKind::DeploymentIntentGroup || shard.spec.abandoned.is_some() {
        return Vec::new();
    }
    let within = namespace(shard);
    let dig = stores.digs.named(within, &owner.name);
    let clouds = match dig {
        Some(dig) => stores.clouds.named(within, &dig.spec.logical_cloud_ref.name).into_iter().collect(),
        None => stores.clouds.within(within),
    };
    clouds.into_iter().filter(|cloud| Derived::is_in(&cloud.spec)).collect()
}

#[cfg(test)]
mod tests;
