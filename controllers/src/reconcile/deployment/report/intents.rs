//! Counts for `status.intents` the clusters and objects of each listed intent, as clusters are to have them now.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::IntentStatus;
use emco_engine::set::provenance::intents;

use super::super::planned::Planned;

/// Of a plan that is carried out, or of what runs beside one that is not. Empty where nothing runs.
pub fn of(dig: &DeploymentIntentGroup, planned: &Planned) -> Vec<IntentStatus> {
    let assignment = match (planned, planned.way().and_then(|way| way.back.as_ref())) {
        (_, Some(back)) => &back.to.running.assignment,
        (Planned::Done(plan, ..), None) => return plan.intents.clone(),
        (Planned::Held(held), None) => &held.assignment,
        (Planned::Refused(refused), None) => &refused.assignment,
    };
    if planned.stored().is_none() {
        return Vec::new();
    }
    intents(&dig.spec.intents, assignment)
}
