//! Asks Flux on a cluster whether it applies the branch: by the one Kustomization that stands for all others.

use std::time::Duration;

use emco_crds::reasons::ClusterReason;
use emco_crds::{DurationText, GitTarget};
use emco_engine::conditions::truncate;
use emco_engine::health::agent::{self, GROUP, KIND, ROOT, VERSION};
use emco_engine::identity::ClusterId;
use jiff::Timestamp;
use serde_json::Value;

use super::super::Judged;
use super::waits;
use crate::api::ApiServerExt as _;
use crate::reconcile::context::Context;

/// Longest words of a server, in bytes.
const WORDS: usize = 256;
/// An agent may be behind for so long, beside the intervals of both sides.
const BEHIND: Duration = Duration::from_mins(3);

/// The reason for which the agent does not apply the branch; `None` where it does, or where it cannot be asked now.
pub(in super::super) async fn hindrance(ctx: &Context, target: &GitTarget, id: &ClusterId) -> Option<Judged> {
    let observed = ctx.connector.observation(id)?;
    let namespace = &target.spec.edge.namespace;
    let Some(kind) = observed.apis.as_ref()?.find(GROUP, VERSION, KIND) else {
        let message = format!(
            "the cluster serves no {KIND} of {GROUP}: install Flux there, and apply what `kubectl emco cluster add PROVIDER/NAME --context CONTEXT --git TARGET` printed"
        );
        return Some(waits(ClusterReason::AgentNotInstalled, message));
    };
    let server = ctx.world.edges.get(id)?;
    match server.get_opt(kind.path(namespace, Some(ROOT))).await {
        Ok(Some(root)) => {
            let published = target.status.as_ref().and_then(|status| status.branch.as_ref());
            let published =
                published.and_then(|branch| Some((branch.commit.as_str(), branch.at.as_ref()?.0)));
            let both = interval(&target.spec.interval) + interval(&target.spec.edge.interval);
            judge(&root, published, ctx.now(), BEHIND + 2 * both)
        }
        Ok(None) => {
            let message = format!(
                "{KIND} {namespace}/{ROOT} is not there: apply what `kubectl emco cluster add PROVIDER/NAME --context CONTEXT --git TARGET` printed"
            );
            Some(waits(ClusterReason::AgentNotInstalled, message))
        }
        Err(error) if error.code() == 403 => {
            let message = format!(
                "whether the agent applies the branch is not known, for the credentials may not read {KIND} {namespace}/{ROOT}: {}",
                truncate(&error.to_string(), WORDS)
            );
            Some(waits(ClusterReason::Forbidden, message))
        }
        // A connection that fails is told by the next probe.
        Err(_) => None,
    }
}

fn interval(text: &DurationText) -> Duration {
    text.parse().unwrap_or(Duration::from_mins(1))
}

/// Judges the Kustomization.
fn judge(
    root: &Value,
    published: Option<(&str, Timestamp)>,
    now: Timestamp,
    patience: Duration,
) -> Option<Judged> {
    if let Some(words) = agent::refusal(root) {
        return Some(waits(ClusterReason::AgentFailed, words));
    }
    let (commit, at) = published?;
    let late = Duration::try_from(now.duration_since(at)).unwrap_or_default() > patience;
    (late && !agent::has_applied(root, commit)).then(|| {
        let message = format!(
            "the agent has not applied commit {} of {at}: look at source-controller and kustomize-controller on the cluster",
            commit.get(..8).unwrap_or(commit)
        );
        waits(ClusterReason::AgentNotSyncing, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(status: &Value) -> Option<(&'static str, String)> {
        let at = "2026-11-21T07:00:00Z".parse().unwrap();
        let now = "2026-11-21T08:00:00Z".parse().unwrap();
        let judged = judge(&json!({"status": status}), Some(("5d1f0c27aa", at)), now, BEHIND)?;
        Some((judged.reason, judged.message))
    }

    #[test]
    fn an_agent_is_judged_by_its_condition_and_by_what_it_applied() {
        let ready = |status: &str| json!([{"type": "Ready", "status": status, "reason": "ReconciliationFailed", "message": "no\nright"}]);
        let applied = json!({"conditions": ready("True"), "lastAppliedRevision": "main@sha1:5d1f0c27aa"});
        assert_eq!(said(&applied), None);
        let (reason, message) = said(&json!({"conditions": ready("False")})).unwrap();
        assert_eq!((reason, message.as_str()), ("AgentFailed", "Flux: ReconciliationFailed: no right"));
        let (reason, message) =
            said(&json!({"conditions": ready("True"), "lastAppliedRevision": "main@sha1:0"})).unwrap();
        assert_eq!(reason, "AgentNotSyncing");
        assert!(message.contains("5d1f0c27 of 2026-11-21T07:00:00Z"), "{message}");
    }
}
