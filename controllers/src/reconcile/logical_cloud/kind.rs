//! Answers the driver for logical clouds.

use emco_crds::{LogicalCloud, OwnerKind};
use futures::future::BoxFuture;

use super::reconcile;
use crate::object::context::Reconciled;
use crate::object::meta::{name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};

impl Controlled for LogicalCloud {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments in it look again, clouds that share its namespace on clusters, and who watches over what it owns.
    fn listener(_: &Reach) -> Listener<Self> {
        Box::new(|reach, change| {
            let (cloud, stores) = (change.object, &reach.ctx.stores);
            reach.triggers.cloud(stores, cloud, change.gone);
            reach.triggers.owner(namespace(cloud), &OwnerKind::LogicalCloud, name(cloud));
            reach
                .triggers
                .referenced(stores, namespace(cloud), |dig| dig.spec.logical_cloud_ref.name == name(cloud));
        })
    }
}
