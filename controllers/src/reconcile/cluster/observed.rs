//! Takes what the connection of a cluster shows into its status, and judges it.

use emco_crds::Cluster;
use emco_crds::cluster::{ClusterStatus, NodeCounts};
use emco_crds::fields::Summary;
use emco_engine::identity::ClusterId;

use super::identity::{self, Identity};
use super::{CONNECTING, Judged, REACHABLE, by_git, credentials};
use crate::object::status::ReadyState;
use crate::reconcile::context::Context;
use crate::remote::{Observation, State};

/// Reason of a cluster that answers, and that is written to through Git.
const PUBLISHED: &str = "Published";

/// Takes what the connection shows into the status; what cannot be seen now stays as it was last seen.
pub(super) async fn observe(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    observed: &Observation,
    status: &mut ClusterStatus,
) -> Judged {
    match &observed.state {
        State::Connecting => Judged {
            verdict: ReadyState::Waiting,
            reason: CONNECTING,
            message: "the first answer is awaited".to_owned(),
        },
        State::Failed { reason, message } => {
            if *reason == "Unauthorized" {
                credentials(ctx, cluster, status, Err((reason, message)));
            }
            Judged { verdict: ReadyState::Waiting, reason, message: message.clone() }
        }
        State::Connected => {
            credentials(ctx, cluster, status, Ok(("Accepted", "the cluster accepts them")));
            let note = match identity::judge(ctx, cluster, id, observed, status).await {
                Identity::Fine(note) => note.map(|note| format!("; {note}")).unwrap_or_default(),
                Identity::Not(judged) => return judged,
            };
            status.kubernetes_version.clone_from(&observed.version);
            status.api_groups_digest.clone_from(&observed.api_digest);
            status.nodes = observed
                .nodes_ready
                .zip(observed.nodes_total)
                .map(|(ready, total)| NodeCounts { ready: i64::from(ready), total: i64::from(total) });
            status.summary = status.nodes.as_ref().map(|nodes| Summary {
                nodes: Some(format!("{}/{}", nodes.ready, nodes.total)),
                ..Summary::default()
            });
            status.allocatable.clone_from(&observed.allocatable);
            status.other_resources.clone_from(&observed.other_resources);
            let version = observed.version.as_deref().unwrap_or("version not known");
            let message = match &status.nodes {
                Some(nodes) if nodes.total == 1 => format!("{version}, 1 node"),
                Some(nodes) => format!("{version}, {} nodes", nodes.total),
                None => format!("{version}, nodes not listed"),
            } + &note;
            if cluster.spec.access.git_ops.is_none() {
                return Judged { verdict: ReadyState::Ready, reason: REACHABLE, message };
            }
            let ready = || Judged {
                verdict: ReadyState::Ready,
                reason: PUBLISHED,
                message: message + &by_git::published(cluster),
            };
            by_git::hindrance(ctx, cluster, id).await.unwrap_or_else(ready)
        }
    }
}
