//! Decides which of several logical clouds has a namespace on a cluster that they share.
//!
//! The one whose shards have the cluster keeps it, else the older object, else the smaller name: after a restore of the hub
//! the ages may say something else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::{LogicalCloud, OwnerKind};
use emco_engine::identity::ClusterId;
use emco_engine::refusal::Refusal;
use emco_engine::snapshot::ClusterFacts;
use emco_engine::{cloud, unsupported};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::object::Owner;
use crate::object::meta;
use crate::reconcile::composite_app::project;
use crate::reconcile::context::Context;
use crate::store;
use crate::tenancy::facts;

/// Clusters where a cloud has rows: it is recorded there.
fn recorded(ctx: &Context, cloud: &LogicalCloud) -> BTreeSet<ClusterId> {
    store::shards(ctx, &Owner::of(ctx, OwnerKind::LogicalCloud, cloud))
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
            let (granted, _) = super::granted(ctx, &project, cloud, clusters);
            cloud::members(&cloud.spec, &granted, clusters).candidates
        }
        None => BTreeSet::new(),
    }
}

/// What a cloud has and wants of its namespace on clusters.
struct Claim<'a> {
    cloud: &'a LogicalCloud,
    held: BTreeSet<ClusterId>,
    wanted: BTreeSet<ClusterId>,
}

impl<'a> Claim<'a> {
    fn of(ctx: &Context, cloud: &'a LogicalCloud, clusters: &BTreeMap<ClusterId, ClusterFacts>) -> Self {
        Self { cloud, held: recorded(ctx, cloud), wanted: wanted(ctx, cloud, clusters) }
    }

    fn age(&self) -> (Option<&Time>, Option<&str>, Option<&str>) {
        let meta = &self.cloud.metadata;
        (meta.creation_timestamp.as_ref(), meta.namespace.as_deref(), meta.name.as_deref())
    }

    /// Clusters where both want the namespace, and the other one keeps it.
    fn lost_to<'b>(&'b self, other: &'b Self) -> impl Iterator<Item = &'b ClusterId> {
        let older = other.age() < self.age();
        let wins = move |id: &ClusterId| match (other.held.contains(id), self.held.contains(id)) {
            (true, false) => true,
            (false, true) => false,
            (true, true) | (false, false) => older,
        };
        let theirs = move |id: &ClusterId| other.held.contains(id) || other.wanted.contains(id);
        self.wanted.union(&self.held).filter(move |id| theirs(id) && wins(id))
    }
}

/// As the owner of another cloud may know it: tenants need not know each other's names.
fn called_for(cloud: &LogicalCloud, reader: &LogicalCloud) -> String {
    if meta::namespace(cloud) == meta::namespace(reader) {
        format!("LogicalCloud {}", meta::name(cloud))
    } else {
        "a logical cloud of another project".to_owned()
    }
}

/// Other clouds with the same namespace on clusters.
fn others(ctx: &Context, cloud: &LogicalCloud) -> Vec<Arc<LogicalCloud>> {
    let own = (meta::namespace(cloud), meta::name(cloud));
    let sharing = ctx.stores.cloud_namespaces.sharing(cloud.cluster_namespace());
    let others = sharing.iter().filter(|(within, name)| (within.as_str(), name.as_str()) != own);
    others.filter_map(|(within, name)| ctx.stores.clouds.named(within, name)).collect()
}

/// The refusal of a cloud whose namespace another one has on one of its clusters.
pub(super) fn conflict(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Option<String> {
    let others = others(ctx, cloud);
    if others.is_empty() {
        return None;
    }
    let namespace = cloud.cluster_namespace();
    let mine = Claim::of(ctx, cloud, clusters);
    others.iter().find_map(|other| {
        let theirs = Claim::of(ctx, other, clusters);
        let at = mine.lost_to(&theirs).next()?;
        let holder = called_for(other, cloud);
        Some(format!(
            "namespace {namespace} on cluster {at} belongs to {holder}: make a new logical cloud with another \
             spec.namespace, or without that cluster in spec.clusters"
        ))
    })
}

/// Clusters that a cloud has, without those where another one has its namespace.
pub(super) fn kept(
    ctx: &Context,
    cloud: &LogicalCloud,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> BTreeSet<ClusterId> {
    let others = others(ctx, cloud);
    let mine = Claim::of(ctx, cloud, clusters);
    let claims: Vec<Claim<'_>> = others.iter().map(|other| Claim::of(ctx, other, clusters)).collect();
    let lost: BTreeSet<&ClusterId> = claims.iter().flat_map(|theirs| mine.lost_to(theirs)).collect();
    mine.held.iter().filter(|cluster| !lost.contains(*cluster)).cloned().collect()
}

/// Other clouds that want the namespace of this one and do not get it, and the clusters where it is so. Asked are those for which
/// `which` says true.
pub fn losing_to(
    ctx: &Context,
    cloud: &LogicalCloud,
    which: impl Fn(&LogicalCloud) -> bool,
) -> Vec<(Arc<LogicalCloud>, BTreeSet<ClusterId>)> {
    let mut others = others(ctx, cloud);
    others.retain(|other| which(other));
    if others.is_empty() {
        return Vec::new();
    }
    let clusters = facts::clusters(ctx);
    let mine = Claim::of(ctx, cloud, &clusters);
    let lost = |other: &LogicalCloud| -> BTreeSet<ClusterId> {
        Claim::of(ctx, other, &clusters).lost_to(&mine).cloned().collect()
    };
    let all = others.into_iter().map(|other| {
        let lost = lost(&other);
        (other, lost)
    });
    all.filter(|(_, lost)| !lost.is_empty()).collect()
}

/// What the cloud that keeps its namespace says of another one that wants it.
pub(super) fn contested(ctx: &Context, cloud: &LogicalCloud) -> Option<String> {
    losing_to(ctx, cloud, |_| true).first().and_then(|(other, lost)| {
        let (at, namespace, rival) = (lost.first()?, cloud.cluster_namespace(), called_for(other, cloud));
        Some(format!(
            "namespace {namespace} on cluster {at} is also wanted by {rival}, which does not get it"
        ))
    })
}

/// What a deployment in such a cloud hears.
pub(super) fn refusal(cloud: &LogicalCloud, sentence: &str) -> Box<Refusal> {
    let message = format!("LogicalCloud {} is not ready: {sentence}", meta::name(cloud));
    Refusal::of("Resolved", "LogicalCloudNotReady", false, message)
}
