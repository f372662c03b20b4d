//! Answers the driver for Clusters.

use emco_crds::Cluster;
use futures::future::BoxFuture;

use super::reconcile;
use crate::object::context::Reconciled;
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::{ClusterChanged, cluster_maps_of};

impl Controlled for Cluster {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Its provider, all projects, and all that is placed on clusters look again.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = ClusterChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                reach.triggers.cluster(&reach.ctx.stores, change.object);
                cluster_maps_of(&reach.ctx.stores, change);
            }
        })
    }
}
