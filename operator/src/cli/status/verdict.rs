//! Judges deployments, and their apps on clusters, in a word.

use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, RECONCILE_FAILED};
use emco_crds::sync_shard::status::{Connectivity, RowApp};
use emco_crds::{DeploymentIntentGroup, RowStatus, State};
use emco_engine::shard::{Row, is_failure};

use super::refusal::refusal;
use crate::cli::args::status::Verdict;

/// Reason of a row of which not all is ready in time.
const LATE: &str = Reason::ProgressDeadlineExceeded.as_str();

/// All of a deployment, as the operator says that looked at it.
pub fn of_deployment(group: &DeploymentIntentGroup, status: &DeploymentIntentGroupStatus) -> Verdict {
    let ready = status.condition(types::READY);
    let is = |reason: &str| ready.is_some_and(|ready| ready.reason == reason);
    let ends = group.metadata.deletion_timestamp.is_some()
        || matches!(status.state, Some(State::Terminating | State::TerminateStopped));
    if status.state.is_some_and(is_failure) {
        Verdict::Failed
    } else if status.is_true(types::READY) {
        Verdict::Ready
    } else if ends {
        Verdict::Removing
    } else if refusal(status).is_some() || status.is_true(types::STALLED) || is(RECONCILE_FAILED) {
        Verdict::Failed
    } else if is(Reason::Unreachable.as_str()) {
        Verdict::Unreachable
    } else {
        Verdict::Progressing
    }
}

/// True where clusters have, or get, what was asked for last: that is neither refused nor waits.
pub fn is_current(status: &DeploymentIntentGroupStatus) -> bool {
    let mut stages = types::STAGES.into_iter().filter_map(|stage| status.condition(stage));
    status.is_true(types::READY) || !stages.any(|stage| stage.status == "False")
}

/// An app that a row is to have.
pub(super) fn of_app(row: &Row, status: &RowStatus, app: &str) -> Verdict {
    let own = status.apps.iter().find(|own| own.app == app);
    let concerned =
        status.error.as_ref().is_some_and(|error| error.app.as_deref().is_none_or(|name| name == app));
    if has_failed(status, own, concerned) {
        return Verdict::Failed;
    }
    if status.unknown > 0 && status.connectivity == Connectivity::Unknown {
        return Verdict::Unknown;
    }
    let there = row.applied_apps.as_ref().and_then(|apps| apps.get(app))
        == row.target.as_ref().and_then(|target| target.apps.get(app));
    let ready = own.map_or_else(
        || !status.apps.is_empty() || status.ready >= status.total,
        |own| own.ready >= own.total,
    );
    if there && ready && !concerned { Verdict::Ready } else { Verdict::Progressing }
}

/// True where something of an app was refused, or is not ready in time. A row that failed says of its apps that are only late that they are on
/// their way.
fn has_failed(status: &RowStatus, own: Option<&RowApp>, concerned: bool) -> bool {
    let late = status.error.as_ref().is_some_and(|error| error.reason == LATE);
    let is_late = |own: &RowApp| late && own.ready < own.total;
    own.is_some_and(|own| is_failure(own.state))
        || is_failure(status.state) && (concerned || own.is_some_and(is_late))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tree::tests::group;
    use super::*;

    #[test]
    fn a_deployment_is_judged_by_its_state_before_its_condition() {
        let judged = |state: &str, ready: [&str; 2], stage: [&str; 2]| {
            let mut group = group();
            let time = "2026-11-21T07:00:00Z";
            let condition = |type_: &str, [status, reason]: [&str; 2]| json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": time});
            let status = json!({"observedGeneration": 2, "state": state,
                "conditions": [condition("Placed", stage), condition("Ready", ready)]});
            group.status = Some(serde_json::from_value(status).unwrap());
            of_deployment(&group, group.status.as_ref().unwrap())
        };
        let placed = ["True", "ClustersChosen"];
        assert_eq!(judged("Updated", ["True", "Ready"], placed), Verdict::Ready);
        // Ready: as many clusters as `readyClusters` asks for, and another one failed.
        assert_eq!(judged("UpdateFailed", ["True", "Ready"], placed), Verdict::Failed);
        assert_eq!(judged("UpdateFailed", ["False", "ProgressDeadlineExceeded"], placed), Verdict::Failed);
        let refused = ["False", "NoClusterMatches"];
        assert_eq!(judged("Updated", refused, refused), Verdict::Failed);
        assert_eq!(judged("Updated", ["False", "ReconcileFailed"], placed), Verdict::Failed);
        assert_eq!(judged("Updated", ["False", "Unreachable"], placed), Verdict::Unreachable);
        assert_eq!(judged("Terminating", ["False", "Terminating"], placed), Verdict::Removing);
        assert_eq!(judged("Updating", ["False", "Progressing"], placed), Verdict::Progressing);
        assert_eq!(judged("Updated", ["False", "AwaitingApproval"], placed), Verdict::Progressing);
    }

    #[test]
    fn what_is_not_ready_in_time_has_failed_and_what_is_ready_has_not() {
        let row = |reason: &str, app: Option<&str>| -> RowStatus {
            serde_json::from_value(json!({
                "id": 1, "connectivity": "Reachable", "state": "UpdateFailed", "total": 3, "ready": 1,
                "apps": [{"app": "db", "state": "Updating", "ready": 0, "total": 1}, {"app": "web", "state": "Updating", "ready": 0, "total": 1}],
                "error": {"app": app, "reason": reason, "message": "x"},
            }))
            .unwrap()
        };
        let failed = |row: &RowStatus, app: &str| {
            let concerned = row.error.as_ref().unwrap().app.as_deref().is_none_or(|name| name == app);
            has_failed(row, row.apps.iter().find(|own| own.app == app), concerned)
        };
        let late = row(LATE, Some("db"));
        assert!(failed(&late, "db") && failed(&late, "web"), "neither is ready in time");
        assert!(!failed(&late, "note"), "all of it is ready");
        let refused = row("Forbidden", Some("db"));
        assert!(failed(&refused, "db") && !failed(&refused, "web"), "the other one may go on");
        assert!(failed(&row("ClusterReplaced", None), "note"), "nothing is applied there");
    }
}
