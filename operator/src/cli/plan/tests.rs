use serde_json::{Value, json};

use super::*;

/// A deployment whose last change was looked at, with one condition.
fn group(revision: &Value, condition: [&str; 4]) -> DeploymentIntentGroup {
    let [type_, status, reason, message] = condition;
    serde_json::from_value(json!({
        "apiVersion": "emco.io/v1alpha1",
        "kind": "DeploymentIntentGroup",
        "metadata": {"name": "shop", "namespace": "team-a", "generation": 2},
        "spec": {"compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]}},
        "status": {"observedGeneration": 2, "revision": revision, "conditions": [{
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-25T00:00:00Z",
        }]},
    }))
    .unwrap()
}

#[test]
fn what_is_being_fetched_is_waited_for_and_no_refusal() {
    let fetches = group(&json!(1), ["Resolved", "False", "Fetching", "chart web is being fetched"]);
    assert_eq!(judged(&fetches), Err("Resolved=False Fetching: chart web is being fetched".to_owned()));
    assert!(refusal(&fetches.status.unwrap()).is_none());
    let refused = group(&json!(1), ["Resolved", "False", "ChartNotFound", "there is no chart web"]);
    assert_eq!(judged(&refused), Ok(()));
    assert_eq!(refusal(&refused.status.unwrap()).unwrap().reason, "ChartNotFound");
}

#[test]
fn nothing_is_said_before_a_revision_runs_or_a_plan_waits() {
    let first = group(&Value::Null, ["Ready", "False", "Progressing", "no cluster was heard of yet"]);
    let why = "Ready=False Progressing: no cluster was heard of yet";
    assert_eq!(judged(&first), Err(why.to_owned()));
    assert_eq!(judged(&group(&json!(1), ["Ready", "True", "Ready", ""])), Ok(()));
}

#[test]
fn a_revision_that_was_terminated_runs_no_more() {
    let planned = group(&json!(1), ["Ready", "False", "Planned", "then comes revision 1"]);
    assert_eq!(runs(&planned.status.unwrap()), None);
}
