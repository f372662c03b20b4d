//! Writes down that a revision is taken back, in the revision itself: what else says so may be lost.

use emco_crds::AppContext;
use emco_crds::names::annotation;
use serde_json::json;

use super::context::StoreContext;
use super::load::contexts;
use super::outcome::failed;
use crate::api::ApiServerExt;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::{meta, status};

/// True where a revision was taken back, or one before it of the same inputs: clusters that come or go change none.
pub fn is_taken_back(ctx: &StoreContext, owner: &Owner, revision: i64) -> bool {
    let all = contexts(ctx, owner);
    let mut until = all.iter().skip_while(|context| context.spec.revision > revision).peekable();
    let Some(inputs) = until.peek().map(|context| context.spec.inputs_digest.clone()) else { return false };
    until.take_while(|context| context.spec.inputs_digest == inputs).any(|context| context.is_taken_back())
}

/// Takes a revision back: its outcome says that it failed, then it is marked, which decides. Whether anything was written.
pub async fn take_back(ctx: &StoreContext, owner: &Owner, revision: i64) -> Result<bool, Failure> {
    let all = contexts(ctx, owner);
    let Some(seen) = all.iter().find(|context| context.spec.revision == revision) else { return Ok(false) };
    if seen.is_taken_back() {
        return Ok(false);
    }
    // The watch may be behind what this process wrote of it.
    let path = meta::path(seen.as_ref());
    let live: Option<AppContext> = ctx.hub().get_as(&path).await?;
    let Some(live) = live.filter(|live| !live.is_taken_back()) else { return Ok(false) };
    let before = live.status.clone().unwrap_or_default();
    let mut fresh = before.clone();
    (fresh.outcome, fresh.good) = (Some(failed(live.spec.previous)), Some(false));
    if fresh != before {
        status::replace(ctx, &live, &fresh).await?;
    }
    let mark = json!({"metadata": {"annotations": {annotation::TAKEN_BACK: ctx.now().to_string()}}});
    ctx.hub().merge(&path, &mark).await?;
    Ok(true)
}
