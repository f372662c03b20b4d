//! Gives memory back: forgets contents of revisions that are gone, and compiled charts that no CompositeApp pins.
//!
//! All of it is kept within bounds anyway. Those are for what is in use; what nobody can ask for any more goes at once.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::names::label;
use tokio::time::sleep;

use super::context::StoreContext;
use crate::object::meta;

/// Between an end and the look: the watches have shown it then, and what ends in the same moment is looked at together.
const SETTLE: Duration = Duration::from_secs(5);

/// Looks whenever a revision or a CompositeApp ended. Never ends.
pub async fn run(ctx: Arc<impl Deref<Target = StoreContext>>) {
    ctx.stores.loaded().await;
    loop {
        ctx.revisions.gone.notified().await;
        sleep(SETTLE).await;
        forget_gone(&ctx);
    }
}

/// Forgets what is of no revision and no CompositeApp that the watches show.
pub fn forget_gone(ctx: &StoreContext) {
    let contexts = ctx.stores.contexts.state();
    // The watch may not have shown yet what was just written.
    let written: Vec<_> = ctx.revisions.written.lock().values().cloned().collect();
    let there: Vec<_> = contexts.iter().chain(&written).collect();
    let uids: BTreeSet<&str> = there.iter().map(|context| meta::uid(context.as_ref())).collect();
    ctx.revisions.contents.lock().keep_only(|uid| uids.contains(uid));
    if let Some(workers) = &ctx.revisions.workers {
        let sources: BTreeSet<(&str, &str, i64)> = there
            .iter()
            .map(|context| {
                let owner = context.metadata.labels.as_ref().and_then(|labels| labels.get(label::OWNER));
                let owner = owner.map(String::as_str).unwrap_or_default();
                (meta::namespace(context.as_ref()), owner, context.spec.revision)
            })
            .collect();
        workers.forget_gone(|source| {
            sources.contains(&(source.namespace.as_str(), source.owner.as_str(), source.revision))
        });
    }
    let apps = ctx.stores.apps.state();
    let pins = apps.iter().flat_map(|app| app.status.iter().flat_map(|status| &status.apps));
    let pins: BTreeSet<&str> = pins.map(|pin| pin.digest.as_str()).collect();
    ctx.charts.keep_only(|digest| pins.contains(digest));
}
