//! Reports a logical cloud whose project is suspended: what runs is counted as ever, and what changed waits for the end of that.
//! Nothing of it is stored, as of a deployment's plan.

use std::collections::BTreeMap;

use emco_crds::LogicalCloud;
use emco_crds::logical_cloud::LogicalCloudStatus;
use emco_engine::cloud::CloudPlan;
use emco_engine::hold::{Hold, Next};
use emco_engine::rollup::People;
use emco_engine::set::combinations;

use super::report::Beside;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::reconcile::context::Context;
use crate::store::{self, Stored};

/// What runs, and the revision that comes: a change, or the newest one, where that was stored and its clusters were not told.
pub(super) async fn report(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    planned: &CloudPlan,
    newest: Option<&Stored>,
    mut hold: Hold,
    status: &mut LogicalCloudStatus,
) -> Result<(), Failure> {
    let running = if store::targets(ctx, owner).is_empty() {
        None
    } else {
        store::targeted(ctx, owner, newest, status.revision).await?
    };
    let wanted =
        running.as_ref().map_or_else(BTreeMap::new, |stored| combinations(&stored.running.assignment));
    if let Some(stored) = &running {
        super::report::runs(status, stored);
    }
    hold.next = match (&planned.change, newest) {
        (Some(change), newest) => {
            let newest = newest.map(|newest| newest.spec.revision).max(status.revision);
            Next::Revision(newest.unwrap_or_default() + 1, change.summary.clone())
        }
        (None, Some(newest)) if running.is_none_or(|running| running.name != newest.name) => {
            Next::Revision(newest.spec.revision, "it is stored already".to_owned())
        }
        (None, _) => Next::Same,
    };
    // Nothing is asked of clusters, so nothing is said of credentials.
    let beside = Beside::of(cloud, planned, &wanted);
    super::report::report(ctx, cloud, owner, &beside, (&wanted, &People::default()), Some(&hold), status);
    Ok(())
}
