//! Says which objects of an owner stay on clusters, before the rows leave that name them.

use emco_crds::deployment_intent_group::status::NotRemoved;
use emco_engine::rollup;
use kube::Resource;

use crate::object::{Owner, events, meta};
use crate::reconcile::context::Context;
use crate::store;

/// What a status is to name by now, if that is more than it does.
pub fn news<K: Resource>(
    ctx: &Context,
    object: &K,
    owner: &Owner,
    known: Option<&NotRemoved>,
) -> Option<NotRemoved> {
    let shards = store::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let now = rollup::not_removed(&parts, known, meta::generation(object))?;
    (Some(&now) != known).then_some(now)
}

/// Tells it: an Event outlives an owner that ends.
pub async fn tell<K: Resource<DynamicType = ()>>(ctx: &Context, object: &K, owner: &Owner, now: &NotRemoved) {
    let said = rollup::said_of_not_removed(now);
    tracing::warn!(namespace = owner.namespace, name = owner.name, kind = %owner.kind, "objects stay on clusters: {said}");
    events::emit(ctx, object, true, "NotRemoved", &said).await;
}
