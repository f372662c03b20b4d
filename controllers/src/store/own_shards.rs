//! Reads all shards of an owner, also those that this process made and the watch does not show yet.

use emco_crds::SyncShard;
use emco_crds::names::label;
use emco_engine::selector::LabelSelector;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::StoreContext;
use super::shards::stored_shards;
use crate::api::{Method, Request, parse};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;

/// The owner's shards, all of them: those that the watch showed, and those that this process made and the watch did not show
/// yet. A row that seems to be nowhere would be made a second time.
pub async fn stored(ctx: &StoreContext, owner: &Owner) -> Result<Vec<SyncShard>, Failure> {
    let shown: Vec<SyncShard> =
        stored_shards(ctx, owner).iter().map(|stored| stored.as_ref().clone()).collect();
    if !unseen(ctx, owner) {
        ctx.revisions.made.lock().remove(&owner.hash);
        return Ok(shown);
    }
    let all: Vec<SyncShard> = live(ctx, owner).await?;
    // One that is gone already will never be shown.
    if let Some(made) = ctx.revisions.made.lock().get_mut(&owner.hash) {
        made.retain(|name| all.iter().any(|stored| meta::name(stored) == name));
    }
    Ok(all)
}

/// Whether the hub has shards of an owner that the watch did not show yet, as far as this process knows.
pub fn unseen(ctx: &StoreContext, owner: &Owner) -> bool {
    let made = ctx.revisions.made.lock().get(&owner.hash).cloned().unwrap_or_default();
    made.iter().any(|name| ctx.stores.shards.named(&owner.namespace, name).is_none())
}

/// Whether the watch shows all shards that this process made of an owner. Until then nothing is decided from what it shows: a cluster
/// whose row just moved seems to have nothing.
pub async fn all_shown(ctx: &StoreContext, owner: &Owner) -> Result<bool, Failure> {
    if unseen(ctx, owner) {
        // One that is gone already will never be shown.
        stored(ctx, owner).await?;
    }
    Ok(!unseen(ctx, owner))
}

/// What the hub has of an owner now, by name, whatever the watch shows.
pub async fn live<K>(ctx: &StoreContext, owner: &Owner) -> Result<Vec<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let collection = meta::collection::<K>(Some(&owner.namespace));
    let selector = LabelSelector::is(label::OWNER, &owner.hash);
    let answer = ctx.hub().send(Request::new(Method::Get, &collection).labels(&selector)).await?;
    let items = answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut all: Vec<K> = items.into_iter().map(|item| parse(&collection, item)).collect::<Result<_, _>>()?;
    all.sort_by(|a, b| a.meta().name.cmp(&b.meta().name));
    Ok(all)
}
