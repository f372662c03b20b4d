//! Prepares a stored set for passes: names, kinds and order of its manifests, found out once for all clusters and
//! passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::identity::{Id, Identity};
use emco_engine::set::{ManifestSet, Phase, SetManifest};
use emco_engine::{drift, order};

/// How many stages [`Prepared::stages`] has.
pub const STAGES: usize = 5;

/// A set, and what is asked of it again and again.
pub struct Prepared {
    /// The set.
    pub set: Arc<ManifestSet>,
    /// What names each manifest, hooks too, in the order of the set.
    pub ids: Vec<Id>,
    /// The annotation that each carries on a cluster, unless it is a hook.
    pub tokens: Vec<Arc<str>>,
    /// Places of everything but hooks: what the rest needs, the operator's own rights, what workloads need, workloads, and what needs
    /// workloads.
    pub stages: [Vec<usize>; STAGES],
    /// One manifest of each kind and namespace.
    pub kinds: Vec<Id>,
    /// One manifest of each kind that names a namespace: the cluster says whether the kind lives in one.
    pub spaced: Vec<Id>,
    /// Manifests that name a namespace although the cluster says that their kind belongs to the whole of it.
    pub spanning: usize,
    /// Workloads whose replicas an autoscaler of the set sets.
    pub scaled: BTreeSet<Identity>,
    sorted: Vec<Id>,
}

impl Prepared {
    /// Finds all of it out.
    pub fn of(set: Arc<ManifestSet>) -> Self {
        Self::with(set, |_| false)
    }

    /// The same on a cluster where some kinds belong to the whole cluster, though the set names a namespace.
    pub fn with(set: Arc<ManifestSet>, spans: impl Fn(&Identity) -> bool) -> Self {
        let mut spanning = 0;
        let settled = |manifest: &SetManifest| {
            let mut id = manifest.identity();
            if spans(&id) {
                id.namespace.clear();
                spanning += 1;
            }
            Id::new(id)
        };
        let ids: Vec<Id> = set.manifests.iter().map(settled).collect();
        let mut stages: [Vec<usize>; STAGES] = Default::default();
        for (place, (manifest, id)) in set.manifests.iter().zip(&ids).enumerate() {
            let stage = if manifest.phase == Phase::Foundation { 0 } else { 1 + wave_of(id) };
            if manifest.hook.is_none()
                && let Some(stage) = stages.get_mut(stage)
            {
                stage.push(place);
            }
        }
        let mut kinds: BTreeMap<(&str, &str, &str), &Id> = BTreeMap::new();
        for id in &ids {
            kinds.entry((id.group.as_str(), id.kind.as_str(), id.namespace.as_str())).or_insert(id);
        }
        let kinds = kinds.into_values().cloned().collect();
        let mut spaced: BTreeMap<(&str, &str), &Id> = BTreeMap::new();
        for id in ids.iter().filter(|id| !id.namespace.is_empty()) {
            spaced.entry((id.group.as_str(), id.kind.as_str())).or_insert(id);
        }
        let spaced = spaced.into_values().cloned().collect();
        let mut sorted = ids.clone();
        sorted.sort();
        let tokens = set.manifests.iter().map(|m| Arc::from(m.digest.as_str())).collect();
        let scaled = drift::scaled(set.manifests.iter().map(|manifest| &manifest.json));
        Self { set, ids, tokens, stages, kinds, spaced, spanning, scaled, sorted }
    }

    /// The account that it is applied as: one for all of a set.
    pub fn account(&self) -> Option<&str> {
        self.set.manifests.first()?.account.as_deref()
    }

    /// Whether a manifest of the set, or a hook, makes this object.
    pub fn names(&self, id: &Identity) -> bool {
        Id::among(&self.sorted, id)
    }

    /// The same, for what is named by a set.
    pub fn has(&self, id: &Id) -> bool {
        self.sorted.binary_search(id).is_ok()
    }
}

/// The operator's own rights, what workloads need, workloads, and what needs workloads: webhooks and custom resources come when those
/// that answer for them are there.
fn wave_of(id: &Identity) -> usize {
    match id.kind.as_str() {
        _ if order::is_of_hub(id) => 0,
        _ if order::is_custom(id) => 3,
        "APIService" | "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" | "Ingress" => 3,
        "Pod"
        | "ReplicationController"
        | "ReplicaSet"
        | "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "Job"
        | "CronJob"
        | "HorizontalPodAutoscaler" => 2,
        _ => 1,
    }
}
