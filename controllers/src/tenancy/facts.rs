//! Combines stored Clusters and what their connections observed into the planner's facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::cluster::Scheduling as Stored;
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned};
use emco_engine::apis::ApiList;
use emco_engine::identity::ClusterId;
use emco_engine::snapshot::{ClusterFacts, Scheduling};
use kube::Resource;

use crate::object::context::HubContext;
use crate::object::meta;
use crate::remote::{Admission, State};
use crate::tenancy::owned_namespace;

/// Labels of an object, or none.
pub fn labels<K: Resource>(object: &K) -> BTreeMap<String, String> {
    object.meta().labels.clone().unwrap_or_default()
}

/// `provider/cluster` of a Cluster; `None` where nobody owns its namespace.
pub fn id(ctx: &HubContext, cluster: &Cluster) -> Option<ClusterId> {
    let provider = owned_namespace::provider_of(ctx, meta::namespace(cluster))?;
    Some(ClusterId::new(&provider, meta::name(cluster)))
}

/// The Cluster of an id.
pub fn registered(ctx: &HubContext, wanted: &ClusterId) -> Option<Arc<Cluster>> {
    let is_it = |cluster: &Cluster| id(ctx, cluster).as_ref() == Some(wanted);
    let provider = ctx.stores.providers.named("", wanted.provider());
    let usual = provider.and_then(|provider| {
        ctx.stores.clusters.named(owned_namespace::of_provider(&provider), wanted.cluster())
    });
    // The namespace says whose it is: also while its provider is missing.
    let called = || ctx.stores.clusters.called(wanted.cluster()).into_iter().find(|cluster| is_it(cluster));
    usual.filter(|cluster| is_it(cluster)).or_else(called)
}

/// True for a cluster that is written to through Git: nothing is sent there that changes or tries something.
pub fn is_by_git(ctx: &HubContext, id: &ClusterId) -> bool {
    registered(ctx, id).is_some_and(|cluster| cluster.spec.access.git_ops.is_some())
}

/// Whether a cluster that answered last has not been heard of by this process yet, and what it serves is not known by another one.
pub fn is_about_to_answer(ctx: &HubContext, id: &ClusterId) -> bool {
    let waits = ctx.connector.observation(id).is_none_or(|seen| seen.state == State::Connecting);
    let answered = |cluster: Arc<Cluster>| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.is_true(types::REACHABLE)) && served(ctx, &cluster).is_none()
    };
    waits && registered(ctx, id).is_some_and(answered)
}

/// What a cluster served that this process has not asked yet, where another one serves the same: a list is what its digest says.
fn served(ctx: &HubContext, cluster: &Cluster) -> Option<Arc<ApiList>> {
    let digest = cluster.status.as_ref()?.api_groups_digest.as_ref()?;
    ctx.connector.api_list(digest)
}

/// Everything known of every registered cluster.
pub fn clusters(ctx: &HubContext) -> BTreeMap<ClusterId, ClusterFacts> {
    of(ctx, &ctx.stores.clusters.sorted())
}

/// The same of these alone.
pub fn of(ctx: &HubContext, clusters: &[Arc<Cluster>]) -> BTreeMap<ClusterId, ClusterFacts> {
    let facts = clusters.iter().inspect(|_| ctx.pulse.step()).filter_map(|cluster| facts(ctx, cluster));
    facts.map(|facts| (facts.id.clone(), facts)).collect()
}

/// Everything known of one cluster; `None` where nobody owns its namespace.
pub fn facts(ctx: &HubContext, cluster: &Cluster) -> Option<ClusterFacts> {
    let id = id(ctx, cluster)?;
    let observed = ctx.connector.observation(&id).unwrap_or_default();
    let status = cluster.status.as_ref();
    let scheduling = match cluster.spec.scheduling {
        Stored::Drained => Scheduling::Drained,
        // What is held while it is being deleted takes nothing new, and loses nothing.
        _ if meta::deleting(cluster) => Scheduling::Cordoned,
        Stored::Enabled => Scheduling::Enabled,
        Stored::Cordoned => Scheduling::Cordoned,
    };
    Some(ClusterFacts {
        labels: labels(cluster),
        properties: cluster.spec.properties.clone(),
        scheduling,
        reachable: observed.connected() && !matches!(observed.admission, Admission::Refused { .. }),
        by_git: cluster.spec.access.git_ops.is_some(),
        // Who it is to be: what else may answer behind its name is not it.
        uid: status
            .and_then(|s| s.uid.clone())
            .or_else(|| observed.uid.clone().filter(|_| observed.admission == Admission::Admitted)),
        kubernetes_version: observed
            .version
            .clone()
            .or_else(|| status.and_then(|s| s.kubernetes_version.clone())),
        apis: observed.apis.clone().or_else(|| served(ctx, cluster)),
        nodes: None,
        network_policy: cluster.spec.network.as_ref().and_then(|network| network.network_policy),
        id,
    })
}
