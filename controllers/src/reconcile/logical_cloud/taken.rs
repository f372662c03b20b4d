//! Decides which of several logical clouds has a namespace on a cluster that they share.
//!
//! The one whose shards have the cluster keeps it, else the older object, else the smaller name: after a restore of the hub
//! the ages may say something else.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::LogicalCloud;
use emco_engine::identity::ClusterId;
use emco_engine::refusal::Refusal;
use emco_engine::snapshot::ClusterFacts;
use emco_engine::{cloud, unsupported};

use crate::object::meta;
use crate::reconcile::composite_app::project;
use crate::runtime::context::Context;
use crate::store::{self, Owner};

/// Clusters where a cloud has rows: it is recorded there.
fn recorded(ctx: &Context, cloud: &LogicalCloud) -> BTreeSet<ClusterId> {
    store::shards(ctx, &Owner::of(ctx, "LogicalCloud", cloud))
        .iter()
        .flat_map(|shard| &shard.spec.clusters)
        .filter_map(|row| ClusterId::parse(&row.cluster))
        .collect()
}

/// Clusters that a cloud may take.
fn wanted(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> BTreeSet<ClusterId> {
    let works = !meta::deleting(cloud) && unsupported::check_logical_cloud(&cloud.spec).is_none();
    match project(ctx, meta::namespace(cloud)).filter(|_| works) {
        Some(project) => {
            cloud::members(&cloud.spec, &super::granted(ctx, &project, clusters), clusters).candidates
        }
        None => BTreeSet::new(),
    }
}

/// The refusal of a cloud whose namespace another one has on one of its clusters.
pub(super) fn conflict(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Option<String> {
    let namespace = super::namespace(cloud);
    let others = ctx.stores.cloud_namespaces.sharing(&namespace);
    let own = (meta::namespace(cloud), meta::name(cloud));
    let others: Vec<_> = others
        .iter()
        .filter(|(within, name)| (within.as_str(), name.as_str()) != own)
        .filter_map(|(within, name)| ctx.stores.clouds.named(within, name))
        .collect();
    if others.is_empty() {
        return None;
    }
    let (held, mine) = (recorded(ctx, cloud), wanted(ctx, cloud, clusters));
    let age = |cloud: &LogicalCloud| {
        let meta = &cloud.metadata;
        (meta.creation_timestamp.clone(), meta.namespace.clone(), meta.name.clone())
    };
    others.iter().find_map(|other| {
        let theirs = recorded(ctx, other);
        let older = age(other) < age(cloud);
        let wins = |id: &ClusterId| match (theirs.contains(id), held.contains(id)) {
            (true, false) => true,
            (false, true) => false,
            (true, true) | (false, false) => older,
        };
        let both: BTreeSet<ClusterId> = theirs.union(&wanted(ctx, other, clusters)).cloned().collect();
        let at = mine.union(&held).find(|id| both.contains(id) && wins(id))?;
        // Tenants need not know each other's names.
        let holder = if meta::namespace(other.as_ref()) == meta::namespace(cloud) {
            format!("LogicalCloud {}", meta::name(other.as_ref()))
        } else {
            "a logical cloud of another project".to_owned()
        };
        Some(format!(
            "namespace {namespace} on cluster {at} belongs to {holder}: make a new logical cloud with another \
             spec.namespace, or without that cluster in spec.clusters"
        ))
    })
}

/// What a deployment in such a cloud hears.
pub(super) fn refusal(cloud: &LogicalCloud, sentence: &str) -> Box<Refusal> {
    let message = format!("LogicalCloud {} is not ready: {sentence}", meta::name(cloud));
    Refusal::of("Resolved", "LogicalCloudNotReady", false, message)
}
