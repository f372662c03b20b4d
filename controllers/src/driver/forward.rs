//! Forwards what other parts of the process found to the queues of those it concerns.

use std::sync::Arc;

use futures::StreamExt;

use crate::publish::TargetKey;
use crate::reconcile::context::Context;
use crate::triggers::Triggers;

/// What clusters issued to people, to the logical clouds that keep it.
pub async fn people(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    loop {
        let (within, cloud) = ctx.people.wake.next().await;
        triggers.clouds.enqueue(&within, &cloud);
    }
}

/// Charts that are wanted, to the apps that download them; those that came, to the deployments that lack them.
pub async fn charts(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    loop {
        tokio::select! {
            (within, wanted) = ctx.charts.wanted.next() => triggers.apps.enqueue(&within, &wanted),
            (within, arrived) = ctx.charts.arrived.next() => {
                triggers.deployments(&ctx.stores, &within, |dig| dig.spec.composite_app_ref.name == arrived);
            }
        }
    }
}

/// What was found on branches, to the targets that publish to them.
pub async fn branches(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    let mut changes = ctx.publishers.changes();
    while let Some(TargetKey { namespace, name }) = changes.next().await {
        triggers.git_targets.enqueue(&namespace, &name);
    }
}

/// Changes of connections, to the clusters they belong to, and to those whom it concerns.
pub async fn connections(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    let mut changes = ctx.connector.changes();
    for number in 0_usize.. {
        let Some(id) = changes.next().await else { return };
        triggers.cluster_observed(&ctx, &id);
        ctx.pulse.breathe(number).await;
    }
}

/// Changes that clusters told too soon after another one, when their time has come.
pub async fn paced(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    for number in 0_usize.. {
        triggers.pace.until_due().await;
        if let Some(change) = triggers.pace.take_due() {
            triggers.cluster(&ctx, &change);
        }
        ctx.pulse.breathe(number).await;
    }
}
