//! Forwards what other parts of the process found to the queues of those it concerns.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;

use crate::object::meta::{name, namespace};
use crate::publish::TargetKey;
use crate::reconcile::context::Context;
use crate::tenancy::facts;
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

/// What connections show, to the clusters they belong to, and to what is placed where that depends on it.
pub async fn connections(ctx: Arc<Context>, triggers: Arc<Triggers>) {
    let mut known = BTreeMap::new();
    let mut changes = ctx.connector.changes();
    while let Some(id) = changes.next().await {
        for cluster in ctx
            .stores
            .clusters
            .sorted()
            .iter()
            .filter(|cluster| facts::id(&ctx, cluster).as_ref() == Some(&id))
        {
            triggers.clusters.enqueue(namespace(cluster.as_ref()), name(cluster.as_ref()));
        }
        let now = ctx
            .connector
            .observation(&id)
            .map(|o| (o.connected(), o.uid.clone(), o.api_digest.clone(), o.admission.clone()));
        let moved = match now {
            Some(now) => known.insert(id, now.clone()) != Some(now),
            None => known.remove(&id).is_some(),
        };
        if moved {
            triggers.placements(&ctx.stores);
        }
    }
}
