//! Removes revisions beyond the history that no shard names.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::names::finalizer;
use emco_crds::{AppContext, AppContextSpec};

use super::context::StoreContext;
use super::load::contexts;
use super::own_shards::stored;
use super::{collect, explain};
use crate::api::ApiServerExt;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{finalizers, meta};

/// Deletes revisions beyond the limit that no shard names, and those that somebody deleted and nobody needs. The newest stays, and so do
/// the one that is `pinned` and the last that was good: a rollout that fails goes back to it.
/// Packs that no revision names any more are the collector's.
pub async fn prune_history(
    ctx: &StoreContext,
    owner: &Owner,
    limit: usize,
    pinned: Option<i64>,
) -> Result<(), Failure> {
    let all = contexts(ctx, owner);
    let named: BTreeSet<i64> = stored(ctx, owner)
        .await?
        .iter()
        .flat_map(|shard| shard.spec.combinations.iter().map(|combination| combination.revision))
        .collect();
    let good = last_good(&all);
    let mut gone = BTreeSet::new();
    for (at, context) in all.iter().enumerate() {
        let unwanted = at >= limit.max(1) || (at > 0 && meta::deleting(context.as_ref()));
        let revision = context.spec.revision;
        if unwanted && !named.contains(&revision) && ![pinned, good].contains(&Some(revision)) {
            remove_context(ctx, context).await?;
            gone.insert(context.spec.revision);
        }
    }
    if !gone.is_empty() && all.iter().any(|context| context.spec.explain.is_some()) {
        let kept: BTreeSet<String> = all
            .iter()
            .filter(|context| !gone.contains(&context.spec.revision))
            .filter_map(|context| context.spec.explain.clone())
            .flat_map(|explain| explain.config_maps)
            .collect();
        explain::sweep(ctx, owner, &kept).await?;
    }
    Ok(())
}

/// Whether both are in the same namespace of the same logical cloud, with the same rights: one can come back in the place of the other.
pub fn same_place(one: &AppContextSpec, other: &AppContextSpec) -> bool {
    let place = |spec: &AppContextSpec| (spec.logical_cloud.clone(), spec.namespace.clone(), spec.level);
    place(one) == place(other)
}

/// The last revision that was good, in the place where the newest one is: it stays beyond the history. `all` begins with the newest.
pub(super) fn last_good(all: &[Arc<AppContext>]) -> Option<i64> {
    let newest = all.first()?;
    let found = all.iter().find(|context| context.is_good() && same_place(&context.spec, &newest.spec));
    found.map(|context| context.spec.revision)
}

/// What explained it goes with the next sweep.
pub(crate) async fn remove_context(ctx: &StoreContext, context: &AppContext) -> Result<(), Failure> {
    let path = meta::path(context);
    let waits = if meta::deleting(context) {
        ctx.hub().get_opt(&path).await?
    } else {
        ctx.hub().delete(&path, Some(meta::uid(context)), None).await?
    };
    // The object as it waits for us; or a Status, where it waited for nobody.
    let waits = waits.and_then(|waits| serde_json::from_value::<AppContext>(waits).ok());
    if let Some(waits) = waits.filter(|waits| meta::uid(waits) == meta::uid(context)) {
        finalizers::remove(ctx, &waits, finalizer::INVENTORY).await?;
    }
    collect::request(ctx);
    Ok(())
}
