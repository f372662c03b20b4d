//! Remembers a logical cloud whose plan is carried out: while nothing but reports of its clusters asks for a look, it is not planned anew,
//! and only shards that reported since are looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use emco_crds::LogicalCloud;
use emco_crds::logical_cloud::LogicalCloudStatus;
use emco_engine::cloud::CloudPlan;
use emco_engine::identity::{ClusterId, Combination};
use tokio::time::Instant;

use super::report::{self, Beside};
use crate::object::Owner;
use crate::object::context::{Failure, Outcome};
use crate::object::stamp::Stamp;
use crate::object::status;
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows::shard_sums::ShardSums;
use crate::store;

/// What no watch tells is seen after this time, once a cluster reports.
const AT_LATEST: Duration = Duration::from_mins(10);

/// A logical cloud after a look at everything.
pub(super) struct Rest {
    of: Stamp,
    until: Instant,
    beside: Beside,
    /// What was said of it. The stored status may say what somebody else wrote.
    said: LogicalCloudStatus,
    shards: ShardSums,
}

impl Rest {
    /// Of a plan that its rows want already. `None` where more than counting may be due: with credentials of a person, which clusters are
    /// asked for as they come, and while something is to be left.
    pub(super) fn of(
        ctx: &Context,
        cloud: &LogicalCloud,
        owner: &Owner,
        (planned, beside): (&CloudPlan, Beside),
        (said, wanted): (&LogicalCloudStatus, &BTreeMap<ClusterId, Combination>),
    ) -> Option<Self> {
        let asks_for_more = cloud.spec.user.is_some()
            || planned.change.is_some()
            || planned.less_at.is_some()
            || beside.shrink_waits.is_some();
        if asks_for_more || !ctx.cloud_looks.is_told() || store::own_shards::unseen(ctx, owner) {
            return None;
        }
        let shards = ShardSums::of(&store::stored_shards(ctx, owner), wanted.clone())?;
        let until = Instant::now() + AT_LATEST;
        Some(Self { of: Stamp::of(cloud), until, beside, said: said.clone(), shards })
    }

    /// Keeps it for the next look.
    pub(super) fn keep(self, ctx: &Context, owner: &Owner) {
        let key = (owner.namespace.clone(), owner.name.clone());
        ctx.cloud_looks.keep(key, 0, self.until, self);
    }

    /// Says what clusters reported. `None` where there is more to be done: nothing was then.
    pub(super) async fn say(
        mut self,
        ctx: &Context,
        cloud: &LogicalCloud,
        owner: &Owner,
    ) -> Result<Option<Outcome>, Failure> {
        let shards = store::stored_shards(ctx, owner);
        let Some(revision) = self.said.revision else { return Ok(None) };
        if self.of != Stamp::of(cloud)
            || Instant::now() >= self.until
            || suspension::of_all(&ctx.stores, &owner.namespace).is_some()
            || store::own_shards::unseen(ctx, owner)
            || !self.shards.follow(&shards)
        {
            return Ok(None);
        }
        report::report_sums(ctx, cloud, owner, (&self.beside, &self.shards.all()), &mut self.said);
        status::write(ctx, cloud, cloud.status.as_ref(), &self.said).await?;
        let now = store::Seen { running: revision, state: self.said.state.unwrap_or_default(), good: None };
        store::record_outcome(ctx, owner, now, None).await?;
        self.keep(ctx, owner);
        Ok(Some(Outcome::Settled))
    }
}
