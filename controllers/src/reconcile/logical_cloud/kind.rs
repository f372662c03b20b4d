//! Answers the driver for logical clouds.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::{DeploymentIntentGroup, LogicalCloud, OwnerKind};
use futures::future::BoxFuture;

use super::reconcile;
use crate::object::context::Reconciled;
use crate::object::meta::{name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::{CloudChanged, is_unsettled};

impl Controlled for LogicalCloud {
    /// Clusters that come within this time come with one revision.
    const APART: Duration = Duration::from_secs(2);

    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments in it look again, clouds that share its namespace on clusters, and who watches over what it owns. From here on its
    /// queue says what asks for more than a report.
    fn listener(reach: &Reach) -> Listener<Self> {
        let changed = CloudChanged::default();
        reach.triggers.clouds.tell(Arc::clone(&reach.ctx.cloud_looks));
        Box::new(move |reach, change| {
            let (cloud, stores) = (change.object, &reach.ctx.stores);
            let within = namespace(cloud);
            let names = |dig: &DeploymentIntentGroup| dig.spec.logical_cloud_ref.name == name(cloud);
            reach.triggers.cloud(stores, cloud, change.gone);
            if change.gone {
                reach.ctx.cloud_looks.gone(&(within.to_owned(), name(cloud).to_owned()));
            }
            if changed.changed(change) {
                reach.triggers.owner(within, &OwnerKind::LogicalCloud, name(cloud));
                reach.triggers.referenced(stores, within, names);
            } else {
                // A plan that waits is asked about with the account of the cloud, as soon as that is there.
                reach.triggers.deployments(stores, within, |dig| names(dig) && is_unsettled(dig));
            }
        })
    }
}
