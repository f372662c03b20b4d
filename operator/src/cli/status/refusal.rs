//! Tells whether the last change of a deployment is refused, and whether what runs of it has failed.

use emco_crds::conditions::{Condition, Conditioned as _, types};
use emco_crds::deployment_intent_group::rollout::RolloutStatus;
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};
use emco_engine::shard::is_failure;

/// Stages that the last change did not pass. A plan that waits for a person is made, and has passed them.
pub fn stopped(status: &DeploymentIntentGroupStatus) -> impl Iterator<Item = &Condition> {
    let waits = [Reason::AwaitingApproval, Reason::StaleApproval, Reason::RemovalNeedsConfirmation];
    types::STAGES.into_iter().filter_map(move |type_| {
        let condition = status.condition(type_)?;
        let waits = waits.iter().any(|reason| reason.as_str() == condition.reason);
        (condition.status == "False" && !waits).then_some(condition)
    })
}

/// The stage that refuses the last change. What is being fetched is not refused, yet.
pub fn refusal(status: &DeploymentIntentGroupStatus) -> Option<&Condition> {
    stopped(status).find(|stage| !is_progress(&stage.reason))
}

/// A condition, where it says that clusters refuse what runs, or that it did not become ready in time. A rollout that is under way decides
/// itself how many failures it bears.
pub fn failure<'a>(status: &'a DeploymentIntentGroupStatus, type_: &str) -> Option<&'a Condition> {
    let under_way = |rollout: &RolloutStatus| !rollout.taken_back && rollout.place <= rollout.waves;
    if !status.state.is_some_and(is_failure) || status.rollout.as_ref().is_some_and(under_way) {
        return None;
    }
    let condition = status.condition(type_)?;
    let silent = condition.reason == Reason::Unreachable.as_str();
    (condition.status == "False" && !silent && !is_progress(&condition.reason)).then_some(condition)
}

/// True of a rollout that goes on with a person's help alone: too many clusters failed, or a wave is rejected. One that is taken back ends by
/// itself.
pub fn is_paused(status: &DeploymentIntentGroupStatus) -> bool {
    let is_back = status.rollout.as_ref().is_some_and(|rollout| rollout.taken_back);
    let deployed = status.condition(types::DEPLOYED);
    !is_back && deployed.is_some_and(|deployed| deployed.reason == Reason::RolloutPaused.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    type Says<'a> = (&'a str, &'a str, &'a str);

    fn status(state: &str, conditions: &[Says<'_>], rollout: &Value) -> DeploymentIntentGroupStatus {
        let condition = |(type_, status, reason): &Says<'_>| {
            json!({"type": type_, "status": status, "reason": reason, "message": "so it is",
                "lastTransitionTime": "2026-11-21T07:00:00Z"})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({"state": state, "conditions": conditions, "rollout": rollout})).unwrap()
    }

    #[test]
    fn a_change_is_refused_by_a_stage_and_not_by_a_person_who_is_asked() {
        let of = |stage: Says<'_>| {
            let status = status("Updated", &[("Resolved", "True", "ReferencesFound"), stage], &Value::Null);
            refusal(&status).map(|stage| stage.type_.clone())
        };
        assert_eq!(of(("Placed", "False", "NoClusterMatches")).as_deref(), Some("Placed"));
        assert_eq!(of(("Approved", "False", "Rejected")).as_deref(), Some("Approved"));
        assert_eq!(of(("Approved", "False", "AwaitingApproval")), None);
        assert_eq!(of(("Approved", "False", "RemovalNeedsConfirmation")), None);
        assert_eq!(of(("Resolved", "False", "Fetching")), None, "it comes by itself");
        assert_eq!(of(("Placed", "Unknown", "Progressing")), None);
    }

    #[test]
    fn what_clusters_refuse_has_failed_and_what_is_away_has_not() {
        let of = |state: &str, reason: &str, rollout: &Value| {
            failure(&status(state, &[("Deployed", "False", reason)], rollout), types::DEPLOYED).is_some()
        };
        assert!(of("UpdateFailed", "Forbidden", &Value::Null));
        assert!(of("InstantiateFailed", "ProgressDeadlineExceeded", &Value::Null));
        assert!(!of("Updating", "ServerError", &Value::Null), "it is tried again soon");
        assert!(!of("UpdateFailed", "Unreachable", &Value::Null));
        assert!(!of("UpdateFailed", "WaitingForWave", &Value::Null));
        let rollout = |place: i64, taken_back: bool| {
            json!({"inputsDigest": "sha256:0", "wave": "canary", "place": place, "waves": 2, "clusters": 1, "done": 1, "failed": 1,
                "takenBack": taken_back})
        };
        assert!(!of("UpdateFailed", "Forbidden", &rollout(1, false)), "it may bear that");
        assert!(of("UpdateFailed", "Forbidden", &rollout(3, false)), "all waves are done");
        assert!(of("UpdateFailed", "Forbidden", &rollout(1, true)));
    }
}
