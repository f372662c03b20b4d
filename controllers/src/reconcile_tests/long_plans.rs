//! Tests of plans that take too long, or are of no use before they end.

use std::time::Duration;

use serde_json::json;

use super::life::Life;
use super::shop::{composite_app, objects, packed};
use crate::api::plan_turns::{PlanLimits, PlanTurns};
use crate::object::context::Outcome;
use crate::reconcile::deployment;

/// Sixteen million turns of a loop: many seconds, and less than the limit on turns.
const SPIN: &str = "{{ range until 4000 }}{{ range until 4000 }}{{ end }}{{ end }}";

/// An installed shop, whose app is then changed to a chart that spins. Plans end as soon as they begin.
async fn with_a_chart_that_spins() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.rig.ctx.turns = PlanTurns::new(PlanLimits { time: Duration::ZERO, ..PlanLimits::default() });
    let files = [("values.yaml", "page: none\nreplicas: 1\n"), ("templates/spin.yaml", SPIN)];
    let mut charts = objects().into_iter().find(|object| object["metadata"]["name"] == "charts").unwrap();
    charts["binaryData"]["web-2.0.0.tgz"] = json!(packed("web", "2.0.0", &files));
    life.put(&charts);
    life.put(&composite_app("2.0.0"));
    life.settle().await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_takes_too_long_is_refused_and_what_runs_stays() {
    let life = with_a_chart_that_spins().await;
    let (rendered, reason, message) = life.says("Rendered");
    assert_eq!((rendered.as_str(), reason.as_str()), ("False", "PlanTooLong"), "{message}");
    assert!(message.contains("rendered for each cluster"), "{message}");
    assert_eq!(life.dig()["status"]["revision"], 1);
    assert!(life.on("a").contains_key("configmaps./team-a/page"));
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_deployment_that_changes_meanwhile_ends_unreported() {
    let mut life = with_a_chart_that_spins().await;
    life.rig.ctx.turns = PlanTurns::default();
    let before = life.dig();
    life.rig.see();
    let ctx = &life.rig.ctx;
    let change = async {
        while !ctx.turns.changed("team-a", "shop", i64::MAX, false) {
            tokio::task::yield_now().await;
        }
    };
    let (outcome, ()) = futures::future::join(deployment::reconcile(ctx, "team-a", "shop"), change).await;
    assert_eq!(outcome.unwrap(), Outcome::Settled);
    assert_eq!(life.dig(), before, "no status was written");
    assert!(ctx.turns.take("team-a", "shop", 1).is_some(), "the turn was given back");
}
