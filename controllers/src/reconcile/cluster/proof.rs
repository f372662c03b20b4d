//! Proves on the hub that nothing keeps a Cluster that is being deleted.

use std::collections::BTreeMap;

use emco_engine::holders;
use emco_engine::identity::ClusterId;
use tokio::time::Instant;

use super::waits_for as waits_by;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::store::{self, ListedHolders};
use crate::tenancy::facts;

/// What the deletion of a cluster waits for, as the hub has its shards now; `None` when nothing keeps it. Of many that are deleted
/// at once, those that wait for a list share the next one.
pub async fn waits_for(ctx: &Context, id: &ClusterId) -> Result<Option<String>, Failure> {
    let asked = Instant::now();
    let mut last = ctx.revisions.releases.lock().await;
    if let Some(ListedHolders { begun, kept }) = last.as_ref()
        && *begun > asked
        && let Some(waits) = kept.get(id)
    {
        return Ok(waits.clone());
    }
    let begun = Instant::now();
    let clusters = ctx.stores.clusters.sorted();
    let deleted = clusters.iter().filter(|cluster| meta::deleting(cluster.as_ref()));
    let deleted = deleted.filter_map(|cluster| facts::id(ctx, cluster)).chain([id.clone()]);
    let shards = store::live_shards(ctx, None).await?;
    let held = holders::clusters(shards.iter().map(AsRef::as_ref));
    let kept: BTreeMap<_, _> = deleted
        .map(|id| {
            let holders = held.get(&id).map_or(&[][..], Vec::as_slice);
            let waits = waits_by(ctx, &id, holders, &shards);
            (id, waits)
        })
        .collect();
    let waits = kept.get(id).cloned().flatten();
    *last = Some(ListedHolders { begun, kept });
    Ok(waits)
}
