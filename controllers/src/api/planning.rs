//! Measures how long plans and renderings take.

use std::fmt;
use std::time::Instant;

use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    /// Something differs: a revision is made.
    Changed,
    /// Nothing differs.
    Unchanged,
    /// There is no plan, and the deployment says why.
    Refused,
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        let text = match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    result: Outcome,
}

/// Times of plans and of the renderings in them.
#[derive(Clone, Debug)]
pub struct Planning {
    plans: Family<Labels, Histogram, fn() -> Histogram>,
    renderings: Histogram,
}

/// From half a millisecond to half a minute.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.000_5, 4.0, 9))
}

impl Default for Planning {
    fn default() -> Self {
        Self { plans: Family::new_with_constructor(times), renderings: times() }
    }
}

impl Planning {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Time of one plan of a deployment, renderings included, by result";
        registry.register_with_unit("plan_duration", help, Unit::Seconds, self.plans.clone());
        let help = "Time of one rendering of one chart";
        registry.register_with_unit("render_duration", help, Unit::Seconds, self.renderings.clone());
    }

    /// Runs `plan` and measures it.
    pub fn plan(&self, plan: impl FnOnce() -> Result<Plan, Box<Refusal>>) -> Result<Plan, Box<Refusal>> {
        let begun = Instant::now();
        let planned = plan();
        let result = match &planned {
            Ok(plan) if plan.change.is_some() => Outcome::Changed,
            Ok(_) => Outcome::Unchanged,
            Err(_) => Outcome::Refused,
        };
        self.plans.get_or_create(&Labels { result }).observe(begun.elapsed().as_secs_f64());
        planned
    }

    /// Runs one rendering and measures it.
    pub fn rendering(&self, render: &mut dyn FnMut()) {
        let begun = Instant::now();
        render();
        self.renderings.observe(begun.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendering_is_run_once_and_counted() {
        let planning = Planning::default();
        let mut registry = Registry::default();
        planning.register(&mut registry);
        let mut runs = 0;
        planning.rendering(&mut || runs += 1);
        let refusal = || Refusal::of("Rendered", "TemplateError", true, "no".to_owned());
        assert_eq!(planning.plan(|| Err(refusal())).unwrap_err(), refusal());
        assert_eq!(runs, 1);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in ["render_duration_seconds_count 1", "plan_duration_seconds_count{result=\"refused\"} 1"] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
