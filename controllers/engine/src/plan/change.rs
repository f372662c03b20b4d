//! Compares a plan with what runs, as numbers and one sentence.

use std::collections::BTreeSet;

use emco_crds::deployment_intent_group::status::Cause;

use super::Plan;
use crate::changes::{Change, Changes, Comparison};
use crate::identity::ClusterId;
use crate::resolve::Resolved;
use crate::snapshot::Running;

/// What differs from what runs; `None` where nothing does.
pub fn change(resolved: &Resolved<'_>, plan: &Plan) -> Option<Change> {
    let running = resolved.snapshot.running.as_ref();
    let app = resolved.dig.spec.composite_app_ref.name.as_str();
    let cause = match running {
        None if plan.assignment.is_empty() => return None,
        None => Cause::Create,
        Some(running) if running.plan_digest == plan.plan_digest => return None,
        Some(running) if running.composite_app != app => Cause::Migrate,
        Some(running) if running.inputs_digest != plan.inputs_digest => Cause::Update,
        Some(_) => Cause::Placement,
    };
    let changes = plan.changes(running, &resolved.snapshot.installed);
    let counts = changes.counts(running, &plan.assignment);
    Some(Change { cause, summary: changes.summary(), removals: changes.removals(), counts })
}

impl Plan {
    /// What differs from what runs. `installed` says where apps were completely applied.
    pub fn changes(&self, running: Option<&Running>, installed: &BTreeSet<(ClusterId, String)>) -> Changes {
        let apps: Vec<String> = self.placement.iter().map(|(app, _)| app.clone()).collect();
        let (assignment, sets) = (&self.assignment, &self.sets);
        Comparison { running, apps: &apps, assignment, sets, installed, back: false }.changes()
    }
}
