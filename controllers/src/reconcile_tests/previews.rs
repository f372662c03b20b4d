//! Previews: they say what the status says once the operator has planned, and write nothing.

use std::collections::BTreeSet;

use emco_crds::Conditioned as _;
use emco_crds::conditions::types;
use emco_engine::changes::Details;
use serde_json::{Value, json};

use super::approvals::{decide, page, waiting};
use super::life::*;
use super::plans::{details, edit, pending, with};
use super::shop::{composite_app, deployment, values};
use crate::object::meta;
use crate::reconcile::composite_app::foreseen;
use crate::reconcile::deployment::preview::{Preview, Secrets, needs, preview};

/// What is seen of the hub as it is; nothing was asked for but reads.
async fn seen(life: &mut Life) -> Preview {
    life.rig.see();
    life.rig.hub.take_seen();
    let preview = preview(&life.rig.ctx, "team-a", "shop", &Secrets::default()).await.unwrap();
    let writes = life.rig.writes();
    assert!(writes.is_empty(), "{writes:?}");
    preview
}

/// What would wait.
fn planned(preview: Preview) -> (Value, Details) {
    assert!(preview.refusal.is_none() && preview.unheard.is_empty());
    let plan = preview.plan.unwrap();
    (serde_json::to_value(plan.pending).unwrap(), plan.details)
}

/// The first plan was approved.
async fn running() -> Life {
    let mut life = waiting("Plan").await;
    decide(&mut life, "first", "Approved").await;
    life
}

#[tokio::test(start_paused = true)]
async fn a_preview_is_the_plan_that_waits_afterwards() {
    let mut life = running().await;
    let preview = seen(&mut life).await;
    assert!(preview.refusal.is_none() && preview.plan.is_none(), "nothing differs");
    life.put(&values("blue"));
    let preview = seen(&mut life).await;
    let lines = preview.plan.as_ref().unwrap().differences.objects.iter().map(|one| one.text.as_str());
    assert!(lines.collect::<String>().contains("\n-  text: red\n+  text: blue\n"));
    let (said, names) = planned(preview);
    life.settle().await;
    assert_eq!((said, names), (pending(&life), details(&life)));
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_an_end_removes_and_what_a_pin_changes() {
    let mut life = running().await;
    edit(&life);
    life.settle().await;
    decide(&mut life, "second", "Approved").await;
    assert_eq!(page(&life, "a"), json!("blue"));
    life.put(&with("desiredState", &json!("Terminated")));
    let (ends, _) = planned(seen(&mut life).await);
    assert_eq!((&ends["revision"], &ends["clusters"]["removed"]), (&json!(0), &json!(3)));
    life.put(&with("revision", &json!(1)));
    let (back, _) = planned(seen(&mut life).await);
    assert_eq!((&back["revision"], &back["resources"]["added"]), (&json!(1), &json!(2)), "{back:#}");
    life.put(&with("revision", &json!(7)));
    let refused = seen(&mut life).await.refusal.unwrap();
    assert_eq!((refused.condition, refused.reason), ("Resolved", "RevisionUnavailable"));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(page(&life, "a"), json!("blue"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_foreseen_in_its_own_words() {
    let mut life = running().await;
    life.put(&with("logicalCloudRef", &json!({"name": "nowhere"})));
    let refused = seen(&mut life).await.refusal.unwrap();
    life.settle().await;
    let conditions = life.dig()["status"]["conditions"].clone();
    let resolved =
        conditions.as_array().unwrap().iter().find(|one| one["type"] == refused.condition).unwrap();
    assert_eq!(
        (&resolved["reason"], &resolved["message"]),
        (&json!(refused.reason), &json!(refused.message))
    );
}

#[tokio::test(start_paused = true)]
async fn charts_of_an_edit_are_pinned_as_its_reconcile_pins_them() {
    let mut life = running().await;
    for (version, reason) in [("1.1.0", "ChartsResolved"), ("9.9.9", "ChartNotFound")] {
        life.put(&composite_app(version));
        life.rig.see();
        life.rig.hub.take_seen();
        let app = life.rig.ctx.stores.apps.named("team-a", "shop").unwrap();
        let said = foreseen(&life.rig.ctx, &app).await.unwrap().status.unwrap();
        assert!(life.rig.writes().is_empty());
        life.settle().await;
        life.rig.see();
        let found = life.rig.ctx.stores.apps.named("team-a", "shop").unwrap();
        assert_eq!(said.observed_generation, Some(meta::generation(found.as_ref())));
        let found = found.status.clone().unwrap();
        assert_eq!(said.apps, found.apps);
        let ready = |of: &emco_crds::composite_app::CompositeAppStatus| {
            let ready = of.condition(types::READY).unwrap();
            (ready.reason.clone(), ready.message.clone())
        };
        assert_eq!(ready(&said), ready(&found));
        assert_eq!(ready(&said).0, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_needs_is_told_whatever_its_cloud_allows() {
    let mut life = running().await;
    life.rig.see();
    life.rig.hub.take_seen();
    let needs = needs(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert!(life.rig.writes().is_empty(), "it only reads");
    assert!(needs.refusal.is_none() && needs.unheard.is_empty() && needs.unread.is_empty());
    let clusters: Vec<String> = needs.clusters.iter().map(ToString::to_string).collect();
    assert_eq!(clusters, ["acme/a", "acme/b"]);
    let rules = needs.rights.within("team-a");
    let resources = rules.iter().flat_map(|rule| &rule.resources).map(String::as_str);
    let wanted = BTreeSet::from(["configmaps", "deployments", "jobs", "secrets", "statefulsets"]);
    assert_eq!(resources.collect::<BTreeSet<&str>>(), wanted);
    assert!(rules.iter().all(|rule| rule.verbs.contains(&"get".to_owned())), "{rules:?}");
    assert!(needs.rights.cluster.is_empty() && !needs.gives_away);
    assert_eq!(needs.cloud.unwrap().level, "Admin", "the logical cloud is told as it is");
    // A refusal for another reason is said as one.
    life.put(&deployment("nowhere"));
    life.settle().await;
    life.rig.see();
    let refused = self::needs(&life.rig.ctx, "team-a", "shop").await.unwrap().refusal.unwrap();
    assert_eq!(refused.reason, "NoClusterMatches");
}
