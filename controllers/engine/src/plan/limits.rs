//! Refuses a plan in which an app has more objects on a cluster than its Project allows.

use emco_crds::conditions::types::RENDERED;
use emco_crds::names::generated_app;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::Plan;
use crate::identity::ClusterId;
use crate::refusal::Refusal;
use crate::set::Assigned;
use crate::snapshot::{Running, Snapshot};
use crate::text::counted;

/// The limit may have been lowered below what runs: that stays, and may change and shrink; it may not grow, nor go anywhere else.
pub(super) fn check(snapshot: &Snapshot, plan: &Plan) -> Result<(), Box<Refusal>> {
    let Some(most) = snapshot.objects_per_app else { return Ok(()) };
    if plan.sets.values().all(|set| set.manifests.len() <= most) {
        return Ok(());
    }
    let running = snapshot.running.as_ref();
    let pairs = plan.assignment.iter().flat_map(|(cluster, apps)| {
        apps.iter().map(move |(app, assigned)| (cluster, app.as_str(), assigned))
    });
    let mut over = pairs.filter_map(|(cluster, app, assigned)| {
        let objects = plan.sets.get(&assigned.set)?.manifests.len();
        (objects > most && grows(running, cluster, app, assigned, objects)).then_some((cluster, app, objects))
    });
    let Some((cluster, app, objects)) = over.next() else { return Ok(()) };
    let more = over.filter(|(_, other, _)| *other == app).count();
    let clusters =
        if more == 0 { String::new() } else { format!(" and for {}", counted(more, "more cluster")) };
    let cure = if generated_app::is(app) {
        "divide its actions between several intents"
    } else {
        "split the app, change its values"
    };
    let message = format!(
        "app {app} makes {} for {cluster}{clusters}, and Project {} allows {most} (spec.limits.objectsPerApp): {cure}, or have the limit raised",
        counted(objects, "object"),
        snapshot.project,
    );
    Err(Refusal::new(RENDERED, Reason::OutputTooLarge, message))
}

/// Whether an app would have more objects on a cluster than it has there now, as far as that can be read.
fn grows(running: Option<&Running>, cluster: &ClusterId, app: &str, next: &Assigned, objects: usize) -> bool {
    let now = running.and_then(|running| Some((running, running.assignment.get(cluster)?.get(app)?)));
    now.is_none_or(|(running, now)| {
        now.set != next.set && running.sets.get(&now.set).is_none_or(|set| objects > set.manifests.len())
    })
}
