//! Judges whether something that is waited for may still come, or is refused or failed.

use std::time::Duration;

use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::names::manager;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{DeploymentIntentGroup, State};
use emco_engine::rollup;
use jiff::Timestamp;

use super::judge::{Met, judge, leaves, looked_at, place_of, said};
use crate::cli::args::awaited::Awaited;
use crate::cli::status::refusal::{failure, is_paused, refusal};

/// So long a change may be refused for something that is not there: objects that are applied together come one after the other.
const TOGETHER: Duration = Duration::from_secs(5);
/// So long a cluster may say no: what an edit of the deployment, or a request, has it try again is reported after the try.
const TRIED: Duration = Duration::from_secs(10);

/// Something that did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// A sentence.
    pub why: String,
    /// Reason to go on waiting.
    pub hope: Hope,
}

/// The chance that what is missing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hope {
    /// It may come by itself, or with a person's approval.
    Good,
    /// It may come within this time, and hardly later.
    Brief(Duration),
    /// Only an edit helps, or clusters said no.
    None,
}

impl Hope {
    /// True where nothing comes any more, after it was waited for, with this time left.
    pub fn is_over(self, left: Duration) -> bool {
        match self {
            Self::Good => false,
            Self::Brief(_) => !left.is_zero(),
            Self::None => true,
        }
    }
}

/// Refusals that the operator or another object of the same installation cures by itself, which may take longer than a moment.
const IN_THE_MAKING: [Reason; 4] =
    [Reason::NoProject, Reason::LogicalCloudNotFound, Reason::LogicalCloudNotReady, Reason::ContentLost];

/// The sentence of a removal that failed; `None` where it goes on.
pub fn removal_failed(group: &DeploymentIntentGroup) -> Option<String> {
    let status = looked_at(group).filter(|_| group.metadata.deletion_timestamp.is_some())?;
    (status.state == Some(State::TerminateFailed)).then(|| leaves(group))
}

/// Judges a deployment by what is awaited of it.
pub fn look(awaited: &Awaited, group: &DeploymentIntentGroup, now: Timestamp) -> Result<Met, Missing> {
    judge(awaited, group).map_err(|why| missing(awaited, group, now, why))
}

/// Says whether what is missing may come.
fn missing(awaited: &Awaited, group: &DeploymentIntentGroup, now: Timestamp, why: String) -> Missing {
    let ends = group.metadata.deletion_timestamp.is_some();
    let fails = |status: &DeploymentIntentGroupStatus| status.failing(group.metadata.generation).is_some();
    let Some(status) = looked_at(group).filter(|status| !ends && !fails(status)) else {
        return Missing { why, hope: Hope::Good };
    };
    if let Awaited::Wave(wave) = awaited
        && place_of(group, wave).is_err()
    {
        return Missing { why, hope: Hope::None };
    }
    let runs = matches!(awaited, Awaited::Revision(wanted) if status.revision == Some(*wanted));
    let to_come = matches!(awaited, Awaited::Revision(_)) && !runs;
    // A revision that is pinned, or runs already, does not depend on the last change.
    let settled = runs || status.is_true(types::PINNED);
    if let Some(stage) = refusal(status).filter(|_| !settled) {
        let by_itself = IN_THE_MAKING.iter().any(|reason| reason.as_str() == stage.reason);
        let hope = match (status.is_true(types::STALLED), by_itself) {
            (true, _) => Hope::None,
            (false, true) => Hope::Good,
            (false, false) => Hope::Brief(TOGETHER),
        };
        let cause = if to_come { format!("; {}", said(stage)) } else { String::new() };
        return Missing { why: format!("{why}{cause}"), hope };
    }
    let is_false = |stage: &str| status.condition(stage).is_some_and(|stage| stage.status == "False");
    let waits = status.pending.is_some() || types::STAGES.into_iter().any(is_false);
    let type_ = if *awaited == Awaited::Ready { types::READY } else { types::DEPLOYED };
    let taken_back = status.is_true(types::STALLED) && refusal(status).is_none();
    let runs_out = !to_come && (settled || !waits);
    let failed = runs_out && failure(status, type_).is_some();
    let hope = if taken_back || runs_out && is_paused(status) || failed && is_tried(group, status, now) {
        Hope::None
    } else if failed {
        Hope::Brief(TRIED)
    } else {
        Hope::Good
    };
    Missing { why, hope }
}

/// True where a cluster has been failing for a while, and began to after the last edit: it tried what is asked for now.
fn is_tried(group: &DeploymentIntentGroup, status: &DeploymentIntentGroupStatus, now: Timestamp) -> bool {
    let entries = group.metadata.managed_fields.iter().flatten();
    let by_people = entries.filter(|entry| {
        entry.subresource.as_deref().is_none_or(str::is_empty)
            && entry.manager.as_deref() != Some(manager::OPERATOR)
    });
    let Some(edited) = by_people.filter_map(|entry| entry.time.as_ref().map(|time| time.0)).max() else {
        return false;
    };
    let failing = status.failing.iter().filter(|failing| rollup::is_failure(&failing.reason));
    failing.filter_map(|failing| failing.since.as_ref()).any(|since| {
        let held = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
        since.0 > edited && held >= TRIED
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn group(conditions: &[(&str, &str, &str)]) -> DeploymentIntentGroup {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, message)| {
                json!({"type": type_, "status": status, "reason": "Because", "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "till", "namespace": "shop", "generation": 2},
            "spec": {"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}},
            "status": {"observedGeneration": 2, "revision": 3, "conditions": conditions},
        }))
        .unwrap()
    }

    /// The chance of what is awaited of a deployment with this state, `Ready` and `Deployed` being False, and a stage.
    fn hope(
        awaited: &Awaited,
        state: &str,
        reason: &str,
        stage: Option<(&str, &str)>,
        stalled: bool,
    ) -> Hope {
        let mut group = group(&[("Ready", "False", "x"), ("Deployed", "False", "x")]);
        let status = group.status.as_mut().unwrap();
        status.state = Some(serde_json::from_value(json!(state)).unwrap());
        let mut condition = status.conditions[0].clone();
        for condition in &mut status.conditions {
            reason.clone_into(&mut condition.reason);
        }
        let mut say = |type_: &str, value: &str, reason: &str| {
            (condition.type_, condition.status) = (type_.to_owned(), value.to_owned());
            reason.clone_into(&mut condition.reason);
            status.conditions.push(condition.clone());
        };
        if let Some((type_, reason)) = stage {
            say(type_, "False", reason);
        }
        if stalled {
            say("Stalled", "True", reason);
        }
        look(awaited, &group, Timestamp::UNIX_EPOCH).unwrap_err().hope
    }

    #[test]
    fn what_is_refused_ends_a_wait_and_what_may_come_does_not() {
        let of = |type_: &str, reason: &str, stalled: bool| {
            hope(&Awaited::Applied, "Updated", reason, Some((type_, reason)), stalled)
        };
        assert_eq!(of("Rendered", "SchemaViolation", true), Hope::None);
        assert_eq!(of("Approved", "Rejected", true), Hope::None);
        assert_eq!(of("Placed", "NoClusterMatches", false), Hope::Brief(TOGETHER));
        assert_eq!(of("Resolved", "ChartNotReady", false), Hope::Brief(TOGETHER));
        for comes in ["Fetching", "LogicalCloudNotReady", "LogicalCloudNotFound", "NoProject"] {
            assert_eq!(of("Resolved", comes, false), Hope::Good, "{comes}");
        }
        for asks in ["AwaitingApproval", "StaleApproval", "RemovalNeedsConfirmation"] {
            assert_eq!(of("Approved", asks, false), Hope::Good, "{asks}");
        }
    }

    #[test]
    fn what_clusters_refuse_ends_a_wait_and_a_cluster_that_is_away_does_not() {
        let of = |awaited: &Awaited, state: &str, reason: &str| hope(awaited, state, reason, None, false);
        for awaited in [Awaited::Applied, Awaited::Ready, Awaited::Revision(3)] {
            assert_eq!(of(&awaited, "UpdateFailed", "Forbidden"), Hope::Brief(TRIED), "{awaited}");
            assert_eq!(of(&awaited, "Updating", "Progressing"), Hope::Good, "{awaited}");
            assert_eq!(of(&awaited, "Updated", "Unreachable"), Hope::Good, "{awaited}");
        }
        assert_eq!(of(&Awaited::Revision(4), "UpdateFailed", "Forbidden"), Hope::Good, "another may come");
        let waits = Some(("Approved", "AwaitingApproval"));
        let failed = hope(&Awaited::Applied, "UpdateFailed", "Forbidden", waits, false);
        assert_eq!(failed, Hope::Good, "the plan that waits may be what helps");
        assert_eq!(hope(&Awaited::Ready, "Updating", "RolloutPaused", None, true), Hope::None, "taken back");
        assert_eq!(of(&Awaited::Applied, "Updating", "RolloutPaused"), Hope::None, "a wave is rejected");
        assert_eq!(of(&Awaited::Applied, "Updating", "WaitingForWave"), Hope::Good, "it can be approved");
    }

    #[test]
    fn a_revision_that_runs_does_not_depend_on_the_last_change() {
        let refused = Some(("Rendered", "SchemaViolation"));
        assert_eq!(hope(&Awaited::Revision(3), "Updating", "Progressing", refused, true), Hope::Good);
        assert_eq!(hope(&Awaited::Revision(4), "Updating", "Progressing", refused, true), Hope::None);
        let group = group(&[("Ready", "False", "x"), ("Placed", "False", "so it is")]);
        let why = look(&Awaited::Revision(4), &group, Timestamp::UNIX_EPOCH).unwrap_err().why;
        assert_eq!(why, "its revision is 3, not 4; Placed is False (Because): so it is");
    }

    #[test]
    fn what_clusters_tried_since_the_last_edit_ends_a_wait_at_once() {
        let tried = |edited: &str, since: &str, reason: &str| {
            let mut group = group(&[("Deployed", "False", "x")]);
            let entry = |manager: &str, part: &str, time: &str| json!({"manager": manager, "subresource": part, "time": time});
            let ours = |part: &str| entry("emco-operator", part, "2026-01-02T00:00:00Z");
            let edits = json!([entry("kubectl", "", edited), ours(""), ours("status")]);
            group.metadata.managed_fields = Some(serde_json::from_value(edits).unwrap());
            let mut status = group.status.clone().unwrap();
            let failing = json!([{"cluster": "acme/a", "reason": reason, "since": since}]);
            status.failing = serde_json::from_value(failing).unwrap();
            is_tried(&group, &status, "2026-01-01T00:01:00Z".parse().unwrap())
        };
        let (before, after) = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z");
        assert!(tried(before, after, "Forbidden"));
        assert!(!tried(after, before, "Forbidden"), "the edit may help");
        assert!(!tried(before, before, "Forbidden"), "times are whole seconds");
        assert!(!tried(before, "2026-01-01T00:00:55Z", "Forbidden"), "it may be tried again");
        assert!(!tried(before, after, "Unreachable"));
    }

    #[test]
    fn the_end_of_the_time_says_nothing_of_what_had_no_time_to_come() {
        let (none, some) = (Duration::ZERO, Duration::from_secs(1));
        assert!(Hope::None.is_over(none) && Hope::None.is_over(some));
        assert!(!Hope::Brief(TRIED).is_over(none) && Hope::Brief(TRIED).is_over(some));
        assert!(!Hope::Good.is_over(none) && !Hope::Good.is_over(some));
    }

    #[test]
    fn a_removal_that_failed_ends_a_wait() {
        let mut ends = group(&[("Ready", "False", "2 clusters still to be cleaned")]);
        assert_eq!(removal_failed(&ends), None);
        ends.status.as_mut().unwrap().state = Some(State::TerminateFailed);
        assert_eq!(removal_failed(&ends), None, "nobody deletes it");
        let time = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
        ends.metadata.deletion_timestamp = Some(emco_crds::Time(time));
        let why = removal_failed(&ends).unwrap();
        assert_eq!(why, "Ready is False (Because): 2 clusters still to be cleaned");
    }
}
