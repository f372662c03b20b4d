//! A revision that clusters have, or had their turn to get, in; what is written besides for people, and what is not needed any
//! more, out. All of it follows from what is stored, and is made good by the next process where one died before.

use emco_crds::{DeploymentIntentGroup, State};

use super::report::Planned;
use crate::context::{Context, Failure};
use crate::objects;
use crate::revisions::{self, News, Owner};

/// Warnings that become Events.
const TOLD: usize = 5;

/// Explains, notes and tells of what is new, and removes revisions beyond the history. `state` is what the status says.
pub async fn follow(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    planned: &Planned,
    state: State,
) -> Result<(), Failure> {
    let Some(stored) = planned.stored() else { return Ok(()) };
    if let Planned::Done(plan, _) = planned
        && revisions::is_new(ctx, owner, stored.spec.revision)
    {
        // Before the note: without it, it is done again.
        revisions::explain(ctx, owner, &stored.spec, &plan.explanation).await;
    }
    for revision in revisions::note(ctx, owner, stored.spec.revision, state).await? {
        tell(ctx, dig, revision, &revisions::news(ctx, owner, revision)).await;
    }
    if matches!(planned, Planned::Done(..)) {
        let limit = usize::try_from(dig.spec.revision_history_limit).unwrap_or(10);
        revisions::trim(ctx, owner, limit).await?;
    }
    Ok(())
}

async fn tell(ctx: &Context, dig: &DeploymentIntentGroup, revision: i64, news: &News) {
    let News { summary, warnings } = news;
    let note = if summary.is_empty() {
        format!("revision {revision}")
    } else {
        format!("revision {revision}: {summary}")
    };
    objects::event(ctx, dig, false, "Revision", &note).await;
    for warning in warnings.iter().take(TOLD) {
        objects::event(ctx, dig, true, "Warning", warning).await;
    }
}
