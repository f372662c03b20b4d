//! Says how a cluster stands that is written to through Git: whether its branch is published to, and what its agent says.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::cluster::{ClusterStatus, GitAgent, GitFacts};
use emco_crds::conditions::types;
use emco_crds::reasons::{ClusterReason, GitTargetReason, is_progress};
use emco_crds::{Cluster, Conditioned as _, GitTarget};
use emco_engine::identity::ClusterId;

use super::Judged;
use crate::object::meta;
use crate::object::status::ReadyState;
use crate::publish::{OnGit, TargetKey};
use crate::reconcile::context::Context;

pub(super) mod agent;

/// The agent is asked again after this: nothing tells when it fails, or no longer does.
const LOOK: Duration = Duration::from_mins(5);
const LOOK_SOON: Duration = Duration::from_secs(30);
/// While a target has one of these, nothing is done on its clusters.
const NOT_OURS: [GitTargetReason; 5] = [
    GitTargetReason::ClaimedByAnotherHub,
    GitTargetReason::FolderNotOurs,
    GitTargetReason::HubRestored,
    GitTargetReason::SameFolderTwice,
    GitTargetReason::NoClusterProvider,
];

/// The target of a cluster, if it has one.
fn key(cluster: &Cluster) -> Option<TargetKey> {
    let name = cluster.spec.access.git_target()?.to_owned();
    Some(TargetKey { namespace: meta::namespace(cluster).to_owned(), name })
}

fn target(ctx: &Context, cluster: &Cluster) -> Option<Arc<GitTarget>> {
    let key = key(cluster)?;
    ctx.stores.git_targets.named(&key.namespace, &key.name)
}

/// Says how the cluster is written to, before there is a connection: with one alone it would be taken for a cluster that is written to
/// directly.
pub(super) fn register(ctx: &Context, cluster: &Cluster, id: &ClusterId, status: &mut ClusterStatus) {
    let Some(target) = key(cluster) else {
        status.git = None;
        return;
    };
    ctx.publishers.set_cluster(id, OnGit { target });
    // A process that begins leaves it as it was until it knows.
    if let Some(path) = ctx.publishers.path(id) {
        status.git = Some(GitFacts { path, agent: GitAgent::Flux });
    }
}

/// Lets work be done on the cluster where its folder is this hub's.
pub(super) fn admission(ctx: &Context, cluster: &Cluster) -> Result<(), Judged> {
    let named = cluster.spec.access.git_target().unwrap_or_default();
    let Some(target) = target(ctx, cluster) else {
        let message = format!(
            "GitTarget {named} does not exist in namespace {}: create it; nothing is published for the cluster",
            meta::namespace(cluster)
        );
        return Err(waits(ClusterReason::TargetNotFound, message));
    };
    let ready = target.status.as_ref().and_then(|status| status.condition(types::READY));
    let is_not_ours = |reason: &str| NOT_OURS.iter().any(|one| one.as_str() == reason);
    match ready.filter(|ready| is_not_ours(&ready.reason)) {
        Some(ready) => Err(not_ready(&target, &ready.reason, &ready.message)),
        None => Ok(()),
    }
}

/// The reason for which a cluster that answers is not Ready all the same: its target, then its agent.
pub(super) async fn hindrance(ctx: &Context, cluster: &Cluster, id: &ClusterId) -> Option<Judged> {
    let target = target(ctx, cluster)?;
    let ready = target.status.as_ref().and_then(|status| status.condition(types::READY));
    let failing = ready.filter(|ready| ready.status != "True" && !is_progress(&ready.reason));
    if let Some(ready) = failing {
        return Some(not_ready(&target, &ready.reason, &ready.message));
    }
    agent::hindrance(ctx, &target, id).await
}

/// The time until the agent is asked again.
pub(super) fn look_again(judged: &Judged) -> Duration {
    if judged.verdict == ReadyState::Ready { LOOK } else { LOOK_SOON }
}

/// Added to the message of a cluster that is as it should be.
pub(super) fn published(cluster: &Cluster) -> String {
    format!("; through GitTarget {}", cluster.spec.access.git_target().unwrap_or_default())
}

fn not_ready(target: &GitTarget, reason: &str, message: &str) -> Judged {
    let name = meta::name(target);
    waits(ClusterReason::TargetNotReady, format!("GitTarget {name}: {reason}: {message}"))
}

fn waits(reason: ClusterReason, message: String) -> Judged {
    Judged { verdict: ReadyState::Waiting, reason: reason.as_str(), message }
}
