//! Carries out "do it now": a new text in the annotation of a Cluster.

use emco_crds::Cluster;
use emco_crds::cluster::ClusterStatus;
use emco_crds::names::annotation;
use emco_engine::conditions;
use emco_engine::identity::ClusterId;

use crate::object::meta;
use crate::reconcile::context::Context;

/// What the annotation says, as it is echoed.
fn request(cluster: &Cluster) -> Option<String> {
    meta::annotation(cluster, annotation::REQUESTED_AT).map(|text| conditions::truncate(text, 256))
}

/// Whether somebody asks for a look that was not taken yet: what was read before does not count for it.
pub fn is_asked(cluster: &Cluster) -> bool {
    let request = request(cluster);
    let handled = cluster.status.as_ref().and_then(|status| status.last_handled_request.as_ref());
    request.is_some() && request.as_ref() != handled
}

/// Before a cluster is judged: what it refused to renew is asked for again.
pub fn begin(ctx: &Context, cluster: &Cluster, id: &ClusterId, status: &ClusterStatus) {
    let request = request(cluster);
    if request.is_some() && request != status.last_handled_request {
        ctx.renewals.forget(id);
    }
}

/// Afterwards: it is probed at once, and the text is echoed.
pub fn end(ctx: &Context, cluster: &Cluster, id: &ClusterId, status: &mut ClusterStatus) {
    let request = request(cluster);
    if request.is_some() && request != status.last_handled_request {
        ctx.connector.refresh_apis(id);
        ctx.connector.probe_now(id);
    }
    status.last_handled_request = request;
}
