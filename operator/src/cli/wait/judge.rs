//! Judges whether a deployment is as it is waited for, by its status alone.

use emco_crds::conditions::{Conditioned, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::{Condition, DeploymentIntentGroup};

use crate::cli::args::awaited::Awaited;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// The revision that its clusters get.
    pub revision: Option<i64>,
    /// What the operator says of it.
    pub message: String,
}

/// Why a deployment is not gone.
pub fn leaves(group: &DeploymentIntentGroup) -> String {
    if group.metadata.deletion_timestamp.is_none() {
        return "nobody deletes it".to_owned();
    }
    let ready = group.status.as_ref().and_then(|status| status.condition(types::READY));
    ready.map_or_else(|| "it is being deleted".to_owned(), said)
}

/// The status, if it is of the present generation.
pub(super) fn looked_at(group: &DeploymentIntentGroup) -> Option<&DeploymentIntentGroupStatus> {
    let generation = group.metadata.generation;
    group.status.as_ref().filter(|status| {
        status.observed_generation.is_some_and(|seen| generation.is_none_or(|now| seen >= now))
    })
}

/// Whether a deployment is as asked for; `Err` says what is missing.
pub fn judge(awaited: &Awaited, group: &DeploymentIntentGroup) -> Result<Met, String> {
    let generation = group.metadata.generation;
    if let Some(failing) = group.status.as_ref().and_then(|status| status.failing(generation)) {
        return Err(said(failing));
    }
    let Some(status) = looked_at(group) else {
        let which = generation.map_or_else(String::new, |generation| format!(" generation {generation}"));
        return Err(format!("the operator has not looked at{which} yet"));
    };
    if group.metadata.deletion_timestamp.is_some() {
        return Err("it is being deleted".to_owned());
    }
    let is = |type_: &str| match status.condition(type_) {
        Some(condition) if condition.status == "True" => Ok(condition.message.clone()),
        Some(condition) => Err(said(condition)),
        None => Err(format!("condition {type_} is not there yet")),
    };
    let revision = status.revision;
    let message = match awaited {
        Awaited::Ready | Awaited::Applied if is_taken_back(status) => return Err(TAKEN_BACK.to_owned()),
        Awaited::Ready => is(types::READY)?,
        Awaited::Applied => {
            // What is pinned is what is asked for, whatever becomes of the plan beside it.
            if !status.is_true(types::PINNED) {
                types::STAGES.into_iter().try_for_each(|stage| is(stage).map(drop))?;
                if status.pending.is_some() {
                    return Err(is(types::READY).err().unwrap_or_else(|| "a newer plan waits".to_owned()));
                }
            }
            is(types::DEPLOYED)?
        }
        Awaited::Revision(wanted) if revision != Some(*wanted) => {
            let now = revision.map_or_else(|| "none".to_owned(), |revision| revision.to_string());
            return Err(format!("its revision is {now}, not {wanted}"));
        }
        Awaited::Revision(_) => is(types::DEPLOYED)?,
        Awaited::Wave(wave) => {
            let place = place_of(group, wave)?;
            types::STAGES.into_iter().try_for_each(|stage| is(stage).map(drop))?;
            past(group, place)?
        }
        Awaited::Delete => return Err(leaves(group)),
    };
    Ok(Met { revision, message })
}

/// Said of a change that was taken back, as ready as the revision is that came back.
const TAKEN_BACK: &str = "too many clusters failed, and its rollout was taken back";

/// True of a change that was; a pin beside it is another wish, and so is a newer change that is refused.
fn is_taken_back(status: &DeploymentIntentGroupStatus) -> bool {
    let paused = |deployed: &Condition| deployed.reason == "RolloutPaused";
    status.rollout.as_ref().is_some_and(|rollout| rollout.taken_back)
        && status.condition(types::DEPLOYED).is_some_and(paused)
        && !status.is_true(types::PINNED)
}

/// Which of the deployment's waves it is, from 0.
pub(super) fn place_of(group: &DeploymentIntentGroup, wave: &str) -> Result<usize, String> {
    let waves = group.spec.rollout.iter().flat_map(|rollout| &rollout.waves);
    let names: Vec<&str> = waves.map(|wave| wave.name.as_str()).collect();
    names.iter().position(|name| *name == wave).ok_or_else(|| match names.join(", ") {
        none if none.is_empty() => "it has no spec.rollout.waves".to_owned(),
        names => format!("it has no wave {wave}; there are {names}"),
    })
}

/// How far the rollout is, where the wave is done.
fn past(group: &DeploymentIntentGroup, place: usize) -> Result<String, String> {
    let status = group.status.as_ref().and_then(|status| status.rollout.as_ref());
    let rollout = status.ok_or("no revision of it is rolled out in waves yet")?;
    if rollout.taken_back {
        return Err(TAKEN_BACK.to_owned());
    }
    let now = format!("{}: {} of {} done", rollout.wave, rollout.done, rollout.clusters);
    let at = usize::try_from(rollout.place - 1).unwrap_or_default();
    // It may be watched still, or wait for an approval before the next one begins.
    if at > place || at == place && rollout.done_at.is_some() {
        Ok(format!("now at wave {now}"))
    } else {
        Err(format!("it is at wave {now}"))
    }
}

/// A condition as a sentence.
pub(super) fn said(condition: &Condition) -> String {
    let Condition { type_, status, reason, message, .. } = condition;
    let detail = if message.is_empty() { String::new() } else { format!(": {message}") };
    format!("{type_} is {status} ({reason}){detail}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn group(generation: i64, revision: i64, conditions: &[(&str, &str, &str)]) -> DeploymentIntentGroup {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, message)| {
                json!({"type": type_, "status": status, "reason": "Because", "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "till", "namespace": "shop", "generation": generation},
            "spec": {"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}},
            "status": {"observedGeneration": 2, "revision": revision, "conditions": conditions},
        }))
        .unwrap()
    }

    const PASSED: [(&str, &str, &str); 5] = [
        ("Resolved", "True", ""),
        ("Approved", "True", ""),
        ("Placed", "True", ""),
        ("Rendered", "True", ""),
        ("Deployed", "True", "2 of 2 clusters have revision 3"),
    ];

    fn with(type_: &'static str, status: &'static str) -> Vec<(&'static str, &'static str, &'static str)> {
        let mut all: Vec<_> = PASSED.into_iter().filter(|(other, ..)| *other != type_).collect();
        all.push((type_, status, "so it is"));
        all
    }

    #[test]
    fn a_status_of_an_earlier_generation_meets_nothing() {
        for awaited in [Awaited::Applied, Awaited::Ready, Awaited::Revision(3)] {
            let old = group(3, 3, &with("Ready", "True"));
            assert_eq!(judge(&awaited, &old).unwrap_err(), "the operator has not looked at generation 3 yet");
            assert!(judge(&awaited, &group(2, 3, &with("Ready", "True"))).is_ok(), "{awaited}");
        }
    }

    #[test]
    fn a_change_whose_reconcile_fails_is_not_applied_and_says_why() {
        let mut fails = group(3, 3, &with("Ready", "False"));
        let ready = fails.status.as_mut().unwrap().conditions.last_mut().unwrap();
        ready.reason = emco_crds::reasons::RECONCILE_FAILED.to_owned();
        ready.observed_generation = Some(3);
        for awaited in [Awaited::Applied, Awaited::Ready, Awaited::Revision(3)] {
            assert_eq!(judge(&awaited, &fails).unwrap_err(), "Ready is False (ReconcileFailed): so it is");
        }
    }

    #[test]
    fn what_is_refused_or_waits_is_not_applied() {
        let met = judge(&Awaited::Applied, &group(2, 3, &PASSED)).unwrap();
        assert_eq!((met.revision, met.message.as_str()), (Some(3), "2 of 2 clusters have revision 3"));
        for type_ in ["Resolved", "Approved", "Placed", "Rendered", "Deployed"] {
            let why = judge(&Awaited::Applied, &group(2, 3, &with(type_, "False"))).unwrap_err();
            assert_eq!(why, format!("{type_} is False (Because): so it is"));
        }
        let mut waits = group(2, 3, &with("Ready", "True"));
        let pending = json!({"digest": "sha256:0", "shortDigest": "0", "revision": 4, "requires": "Nothing", "summary": ""});
        waits.status.as_mut().unwrap().pending = Some(serde_json::from_value(pending).unwrap());
        assert_eq!(judge(&Awaited::Applied, &waits).unwrap_err(), "a newer plan waits");
        assert!(judge(&Awaited::Revision(3), &waits).is_ok());
    }

    #[test]
    fn a_pinned_revision_is_applied_beside_a_plan_that_is_refused() {
        let mut conditions = with("Rendered", "False");
        assert!(judge(&Awaited::Applied, &group(2, 3, &conditions)).is_err());
        conditions.push(("Pinned", "True", ""));
        assert!(judge(&Awaited::Applied, &group(2, 3, &conditions)).is_ok());
    }

    #[test]
    fn what_was_taken_back_is_not_ready_whatever_came_back() {
        let mut back = group(2, 2, &with("Ready", "True"));
        let rollout = json!({"inputsDigest": "sha256:0", "wave": "canary", "place": 1, "waves": 2, "clusters": 1, "done": 1, "failed": 0,
            "takenBack": true});
        back.status.as_mut().unwrap().rollout = Some(serde_json::from_value(rollout).unwrap());
        assert!(judge(&Awaited::Revision(2), &back).is_ok(), "it runs");
        assert!(judge(&Awaited::Ready, &back).is_ok(), "a newer change goes another way");
        let conditions = &mut back.status.as_mut().unwrap().conditions;
        let deployed = conditions.iter_mut().find(|condition| condition.type_ == types::DEPLOYED).unwrap();
        (deployed.status, deployed.reason) = ("False".to_owned(), "RolloutPaused".to_owned());
        for awaited in [Awaited::Ready, Awaited::Applied] {
            assert_eq!(judge(&awaited, &back).unwrap_err(), TAKEN_BACK);
        }
    }

    #[test]
    fn another_revision_is_named() {
        let why = judge(&Awaited::Revision(4), &group(2, 3, &PASSED)).unwrap_err();
        assert_eq!(why, "its revision is 3, not 4");
        let why = judge(&Awaited::Revision(3), &group(2, 3, &with("Deployed", "False"))).unwrap_err();
        assert!(why.starts_with("Deployed is False"), "{why}");
    }

    #[test]
    fn a_wave_is_awaited_until_its_clusters_are_done() {
        let mut group = group(2, 3, &PASSED);
        let awaited = Awaited::Wave("canary".to_owned());
        assert_eq!(judge(&awaited, &group).unwrap_err(), "it has no spec.rollout.waves");
        let waves = json!({"waves": [{"name": "canary", "size": 1}, {"name": "half", "size": "50%"}]});
        group.spec.rollout = Some(serde_json::from_value(waves).unwrap());
        assert!(judge(&awaited, &group).unwrap_err().starts_with("no revision"));
        let mut at = |place: i64, wave: &str, done: bool| {
            let mut rollout = json!({"inputsDigest": "sha256:0", "wave": wave, "place": place, "waves": 3, "clusters": 2, "done": 1, "failed": 0});
            if done {
                rollout["doneAt"] = json!("2026-11-21T07:00:00Z");
            }
            group.status.as_mut().unwrap().rollout = Some(serde_json::from_value(rollout).unwrap());
            judge(&awaited, &group).map(|met| met.message)
        };
        assert_eq!(at(1, "canary", false).unwrap_err(), "it is at wave canary: 1 of 2 done");
        assert!(at(1, "canary", true).is_ok());
        assert_eq!(at(2, "half", false).unwrap(), "now at wave half: 1 of 2 done");
        assert!(at(4, "the rest", false).is_ok());
    }
}
