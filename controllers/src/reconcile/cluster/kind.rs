//! Answers the driver for Clusters.

use emco_crds::Cluster;
use futures::future::BoxFuture;

use super::reconcile;
use crate::object::context::Reconciled;
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};

impl Controlled for Cluster {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Those look again whom it concerns.
    fn listener(_: &Reach) -> Listener<Self> {
        Box::new(|reach, change| reach.triggers.cluster_shown(&reach.ctx, change))
    }
}
