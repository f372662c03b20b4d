//! Has every app of a chart wait for the generated apps of its target, until their objects are applied. That is seen, not recorded: where
//! one is refused again, what is not applied yet waits again.

use emco_crds::names::generated_app;
use emco_engine::depends::Reached;

use super::super::super::work::Work;
use super::super::Job;
use super::super::desired::App;
use super::super::row::Facts;

impl Job {
    /// Whether an app waits for others, and says so. What the target has of those was looked at before in this pass.
    pub(in super::super) fn held_back(&mut self, work: &Work, app: &App, facts: &mut Facts) -> bool {
        if generated_app::is(&app.name) {
            return false;
        }
        let reached = |on: &str| self.memory.reached.get(on).copied().unwrap_or_default();
        let missing = generated(work).find(|on| reached(on) < Reached::Deployed);
        self.saw_generated(missing.is_none());
        if !self.may_wait(work, app) {
            return false;
        }
        let Some(on) = missing else { return self.waits_for_others(work, app, facts) };
        let text = format!("waits until this revision of app {on} is applied on {}", self.ctx.edge.id);
        super::says_it_waits(app, &text, facts);
        true
    }

    /// Notes whether all generated apps of the target are applied.
    pub(in super::super) const fn saw_generated(&mut self, applied: bool) {
        self.memory.gates.generated = applied;
    }
}

/// The generated apps of the target, in the order in which they are applied.
pub(super) fn generated(work: &Work) -> impl Iterator<Item = &str> {
    let has = |app: &&String| work.target.as_ref().is_some_and(|target| target.apps.contains_key(*app));
    work.order.generated().iter().filter(has).map(String::as_str)
}
