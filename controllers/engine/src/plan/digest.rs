//! Digests what people wrote, and what a plan makes of it.

use std::collections::BTreeMap;

use emco_crds::deployment_intent_group::rollout::Rollout;
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::role::Derived;
use crate::set::Assignment;
use crate::snapshot::Snapshot;
use crate::{canonical, inputs, resolve};

/// Domain of plan digests; the number is the format.
const DOMAIN: &str = "emco-plan/1\0";

/// `sha256:...` over everything people wrote; what an approval of scope `Inputs` names.
pub fn inputs_digest(snapshot: &Snapshot) -> Result<String, Box<Refusal>> {
    Ok(inputs::digest(&resolve::resolve(snapshot)?))
}

/// The sets say which rights come with them, where these are derived: so who approves the digest approves these rights.
pub(super) fn plan_digest(
    inputs: &str,
    rollout: Option<&Rollout>,
    assignment: &Assignment,
    derived: Option<&Derived>,
) -> String {
    let sets: BTreeMap<&str, BTreeMap<&str, &str>> = assignment
        .iter()
        .map(|(cluster, apps)| {
            let apps = apps.iter().map(|(app, assigned)| (app.as_str(), assigned.set.0.as_str()));
            (cluster.as_str(), apps.collect())
        })
        .collect();
    let mut document = json!({"inputs": inputs, "assignment": sets});
    if let Some(rollout) = rollout.filter(|rollout| **rollout != Rollout::default())
        && let Some(map) = document.as_object_mut()
    {
        map.insert("rollout".to_owned(), serde_json::to_value(rollout).unwrap_or(Value::Null));
    }
    if let (Some(derived), Some(map)) = (derived, document.as_object_mut()) {
        map.insert("rightsDerived".to_owned(), json!(derived.as_str()));
    }
    canonical::sha256(DOMAIN, &document)
}
