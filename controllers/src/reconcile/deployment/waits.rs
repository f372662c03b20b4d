//! Says what waits for a person: a plan or a wave for an approval, a deletion for its confirmation. Where that begins, there is one line in
//! the log and one Event.

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::rollout::RolloutStatus;
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use k8s_openapi::jiff::Timestamp;

use super::rollout::{BEFORE_IT_BEGINS, BEFORE_THE_NEXT};
use crate::object::{LogFields, events, meta, one_line};
use crate::reconcile::context::Context;
use crate::tenancy::owned_namespace;

/// Reason of the Event about a plan that takes an app off too many clusters.
const BUDGET: &str = "RemovalBudget";
/// Reason of the Event about a deletion that is to be confirmed.
const DELETION: &str = Reason::RemovalNeedsConfirmation.as_str();

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Reason of the Event.
    reason: &'static str,
    /// Tells it from others of this reason, without numbers that tick.
    pub which: String,
    /// Says what waits, and how it is let pass.
    message: String,
    /// Its begin, where that is stored.
    pub since: Option<Timestamp>,
}

/// All of a deployment that waits, as a status says.
fn of(dig: &DeploymentIntentGroup, status: &DeploymentIntentGroupStatus) -> Vec<Wait> {
    plan(status).or_else(|| deletion(dig, status)).into_iter().chain(wave(status)).collect()
}

/// The same, as far as a person can let it pass now: nothing of a deployment that is suspended or only planned, and no wave of one that
/// ends.
pub fn now(dig: &DeploymentIntentGroup) -> Vec<Wait> {
    let Some(status) = dig.status.as_ref().filter(|_| !dig.spec.is_held()) else { return Vec::new() };
    let ends = meta::deleting(dig) || dig.spec.desired_state == DesiredState::Terminated;
    let is_wave = |wait: &Wait| wait.since.is_none();
    of(dig, status).into_iter().filter(|wait| !ends || !is_wave(wait)).collect()
}

fn plan(status: &DeploymentIntentGroupStatus) -> Option<Wait> {
    let approved = status.condition(types::APPROVED).filter(|approved| approved.status == "False")?;
    let said = &approved.message;
    let (reason, which) = match Reason::parse(&approved.reason)? {
        Reason::RemovalNeedsConfirmation => (BUDGET, String::new()),
        reason @ (Reason::AwaitingApproval | Reason::StaleApproval) => (reason.as_str(), said.clone()),
        _ => return None,
    };
    let message = match status.pending.as_ref().map(|pending| pending.revision) {
        _ if reason == BUDGET => said.clone(),
        Some(0) => format!("its end waits: {said}"),
        Some(revision) => format!("revision {revision} waits: {said}"),
        None => said.clone(),
    };
    Some(Wait { reason, which, message, since: Some(approved.last_transition_time.0) })
}

fn deletion(dig: &DeploymentIntentGroup, status: &DeploymentIntentGroupStatus) -> Option<Wait> {
    let ready = status.condition(types::READY).filter(|ready| ready.reason == DELETION)?;
    let since = dig.metadata.deletion_timestamp.as_ref().map(|deleted| deleted.0);
    Some(Wait { reason: DELETION, which: String::new(), message: ready.message.clone(), since })
}

fn wave(status: &DeploymentIntentGroupStatus) -> Option<Wait> {
    let RolloutStatus { wave, place, waves, waits_for, taken_back, .. } = status.rollout.as_ref()?;
    let is_gate = [BEFORE_IT_BEGINS, BEFORE_THE_NEXT].iter().any(|gate| waits_for.starts_with(gate));
    if *taken_back || !is_gate {
        return None;
    }
    let revision = status.revision.unwrap_or_default();
    let message = format!("wave {place} of {waves} ({wave}) of revision {revision} waits for {waits_for}");
    Some(Wait { reason: Reason::AwaitingApproval.as_str(), which: message.clone(), message, since: None })
}

/// Waits that are there now, and were not before.
fn begun(dig: &DeploymentIntentGroup, now: &DeploymentIntentGroupStatus) -> Vec<Wait> {
    let known = dig.status.as_ref().map(|before| of(dig, before)).unwrap_or_default();
    let is_new = |wait: &Wait| !known.iter().any(|old| old.reason == wait.reason && old.which == wait.which);
    of(dig, now).into_iter().filter(is_new).collect()
}

/// Tells what begins to wait, after `status` took the place of what the object has.
pub async fn tell(ctx: &Context, dig: &DeploymentIntentGroup, status: &DeploymentIntentGroupStatus) {
    for Wait { reason, message, .. } in begun(dig, status) {
        let (namespace, name) = (meta::namespace(dig), meta::name(dig));
        let project = owned_namespace::project_of(ctx, namespace);
        let LogFields { project, deployment, .. } =
            LogFields::of(project, "DeploymentIntentGroup", namespace, name);
        let (revision, text) = (status.revision, one_line(&message));
        let warns = [BUDGET, DELETION].contains(&reason);
        if warns {
            tracing::warn!(project, deployment, revision, reason, "a person is waited for: {text}");
        } else {
            tracing::info!(project, deployment, revision, reason, "a person is waited for: {text}");
        }
        events::emit(ctx, dig, warns, reason, &message).await;
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::DeploymentIntentGroupSpec;
    use emco_crds::deployment_intent_group::status::Pending;
    use emco_engine::conditions;

    use super::*;

    fn says(type_: &str, reason: &str, message: &str) -> DeploymentIntentGroupStatus {
        let mut status = DeploymentIntentGroupStatus::default();
        let list = status.conditions_mut();
        conditions::set(list, type_, "False", reason, message, 1, Timestamp::UNIX_EPOCH);
        status
    }

    fn after(before: Option<DeploymentIntentGroupStatus>) -> DeploymentIntentGroup {
        let mut dig = DeploymentIntentGroup::new("web", DeploymentIntentGroupSpec::default());
        dig.status = before;
        dig
    }

    fn begins(
        before: Option<&DeploymentIntentGroupStatus>,
        now: &DeploymentIntentGroupStatus,
    ) -> Vec<String> {
        let begun = begun(&after(before.cloned()), now).into_iter();
        begun.map(|wait| format!("{}: {}", wait.reason, wait.message)).collect()
    }

    #[test]
    fn each_plan_that_begins_to_wait_is_told_once() {
        let plan = |digest: &str| {
            let mut status = says(types::APPROVED, "AwaitingApproval", &format!("approve digest {digest}"));
            status.pending = Some(Pending { revision: 2, ..Pending::default() });
            status
        };
        let said = ["AwaitingApproval: revision 2 waits: approve digest a"];
        assert_eq!(begins(None, &plan("a")), said);
        assert_eq!(begins(Some(&plan("a")), &plan("a")), [""; 0]);
        assert_eq!(begins(Some(&plan("b")), &plan("a")), said, "another one");
        assert_eq!(begins(Some(&plan("a")), &says(types::APPROVED, "Rejected", "no")), [""; 0]);
        let of_another = says(types::APPROVED, "StaleApproval", "yes is of digest b");
        assert_eq!(begins(Some(&plan("a")), &of_another), ["StaleApproval: yes is of digest b"]);
    }

    #[test]
    fn numbers_that_tick_tell_no_removal_again() {
        for (type_, event) in [(types::APPROVED, "RemovalBudget"), (types::READY, "RemovalNeedsConfirmation")]
        {
            let held = |clusters: &str| says(type_, "RemovalNeedsConfirmation", clusters);
            assert_eq!(begins(None, &held("3 of 4")), [format!("{event}: 3 of 4")]);
            assert_eq!(begins(Some(&held("3 of 4")), &held("2 of 4")), [""; 0]);
        }
    }

    #[test]
    fn a_wave_that_waits_for_an_approval_is_told_and_a_soak_is_not() {
        let wave = |place: i64, waits_for: &str| DeploymentIntentGroupStatus {
            revision: Some(3),
            rollout: Some(RolloutStatus {
                wave: format!("w{place}"),
                place,
                waves: 4,
                waits_for: waits_for.to_owned(),
                ..RolloutStatus::default()
            }),
            ..DeploymentIntentGroupStatus::default()
        };
        let (before, next) = (format!("{BEFORE_IT_BEGINS}: approve"), format!("{BEFORE_THE_NEXT}: approve"));
        let said = "AwaitingApproval: wave 2 of 4 (w2) of revision 3 waits for an approval before it begins: approve";
        assert_eq!(begins(Some(&wave(1, &next)), &wave(2, &before)), [said]);
        assert_eq!(begins(Some(&wave(2, &before)), &wave(2, &before)), [""; 0]);
        assert_eq!(begins(Some(&wave(2, &before)), &wave(2, &next)).len(), 1);
        assert_eq!(begins(None, &wave(2, "the end of its soak")), [""; 0]);
    }
}
