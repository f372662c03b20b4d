//! Remembers a deployment whose plan is carried out: while nothing but reports of its clusters asks for a look, it is not planned anew, and
//! without waves, or after them, only shards that reported since are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::{DeploymentIntentGroup, SyncShard};
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::plan::Plan;
use emco_engine::rollup::MOST_CHOSEN;
use emco_engine::set::combinations;
use emco_engine::snapshot::{Running, uids};
use tokio::time::Instant;

use super::gather::{self, Gathered};
use super::planned::Planned;
use super::rollout::{self, Way};
use super::{MOVED, approved, details, finish, held, report, told};
use crate::abandon;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::stamp::Stamp;
use crate::object::{Owner, meta};
use crate::reconcile::context::Context;
use crate::rows::shard_sums::{ShardSums, targets};
use crate::store::{self, Stored};

/// What no watch tells is seen after this time, once a cluster reports.
const AT_LATEST: Duration = Duration::from_mins(10);

/// About what a kept plan takes of memory for an app on a cluster, and for a cluster.
const CELL: usize = 384;
const CLUSTER: usize = 256;

/// A deployment after a look.
pub struct Rest {
    of: Stamp,
    /// Its project says so, too: that is no other generation.
    is_suspended: bool,
    until: Instant,
    kept: Kept,
}

/// What the next look begins with.
pub enum Kept {
    /// Sums of shards: nothing is to be done for what clusters report.
    Sums(Box<Reported>),
    /// The plan: what clusters report moves its waves.
    Plan(Box<Whole>),
}

impl Rest {
    /// What the look at this deployment begins with, where the deployment is as it was, and until when such looks do.
    pub fn of(self, dig: &DeploymentIntentGroup) -> Option<(Kept, Instant)> {
        let Self { of, is_suspended, until, kept } = self;
        let same = of == Stamp::of(dig) && is_suspended == dig.spec.is_suspended();
        (same && Instant::now() < until).then_some((kept, until))
    }
}

/// A plan that goes on in waves, without what only a change of it needs: no manifests, charts or contents of Secrets.
pub struct Whole {
    plan: Box<Plan>,
    uids: BTreeMap<ClusterId, String>,
    /// Name of the Project.
    project: String,
    /// Name of the revision that has it.
    revision: String,
    until: Instant,
}

impl Whole {
    fn of(gathered: &Gathered, mut plan: Box<Plan>, revision: String, until: Instant) -> Self {
        plan.sets.clear();
        for assigned in plan.assignment.values_mut().flat_map(BTreeMap::values_mut) {
            (assigned.findings, assigned.provenance) = (None, None);
            (assigned.tests, assigned.edits) = (None, None);
        }
        let project = gathered.snapshot.project.clone();
        Self { plan, uids: uids(&gathered.snapshot.clusters), project, revision, until }
    }

    /// About what it takes of memory.
    fn bytes(&self) -> usize {
        let cells: usize = self.plan.assignment.values().map(BTreeMap::len).sum();
        let explained: usize = self.plan.explanation.iter().map(Vec::len).sum();
        cells * CELL + (self.plan.assignment.len() + self.uids.len()) * CLUSTER + explained
    }

    /// Gives it to the clusters as far as its waves go now. `None` where a look at everything is needed first: manifests are lost, its
    /// project is suspended, or how far it went had to be written down.
    async fn carry_on(
        &self,
        ctx: &Context,
        dig: &DeploymentIntentGroup,
        owner: &Owner,
        stored: &Stored,
    ) -> Result<Option<Way>, Failure> {
        let running = &stored.running;
        let mut assigned = running.assignment.values().flat_map(BTreeMap::values);
        if !assigned.all(|assigned| running.sets.contains_key(&assigned.set)) {
            return Ok(None);
        }
        let (wanted, stay) = (combinations(&self.plan.assignment), BTreeSet::new());
        let way = rollout::way(ctx, dig, owner, stored, (&wanted, &stay)).await?;
        let Some(way) = way else { return Ok(None) };
        let moves = store::targets(ctx, owner) != held::having_apps(way.wanted.clone());
        if moves && !gather::goes_on(ctx, &self.project).await?
            || rollout::remember(ctx, dig, owner, stored, &way).await?
        {
            return Ok(None);
        }
        let in_order = (way.order.as_ref(), Some(&way.given));
        abandon::retarget(ctx, owner, way.revision, &way.wanted, &self.uids, in_order).await?;
        Ok(Some(way))
    }
}

/// A deployment that goes in no waves, or has passed them, with the sums of its shards.
pub struct Reported {
    planned: Planned,
    shards: ShardSums,
}

impl Reported {
    /// Of a plan that is on all of its clusters, as far as their rows go; `None` where a row has more to be done.
    fn of(ctx: &Context, owner: &Owner, plan: Box<Plan>, stored: Box<Stored>) -> Option<Self> {
        let wanted = held::having_apps(combinations(&plan.assignment));
        let shards = ShardSums::of(&store::stored_shards(ctx, owner), wanted)?;
        Some(Self { planned: Planned::Done(small(plan), Some(without_content(stored)), None), shards })
    }

    /// Whether there are no waves, or they are passed as the shards are now. What is to be said of them is in the plan then.
    async fn passes_waves(
        &mut self,
        ctx: &Context,
        dig: &DeploymentIntentGroup,
        owner: &Owner,
        shards: &[Arc<SyncShard>],
    ) -> Result<bool, Failure> {
        let Planned::Done(_, Some(stored), way) = &mut self.planned else { return Ok(true) };
        if stored.running.waves.is_none() {
            return Ok(true);
        }
        let (wanted, stay) = (shards.iter().filter_map(|shard| targets(shard)).flatten(), BTreeSet::new());
        let wanted: BTreeMap<ClusterId, Combination> = wanted.collect();
        let now = rollout::way(ctx, dig, owner, stored, (&wanted, &stay)).await?;
        let is_good = now.as_ref().is_some_and(|now| now.is_good);
        *way = now.map(Box::new);
        Ok(is_good)
    }

    /// Drops what was to be said of waves: it is as large as the fleet.
    fn forget_waves(&mut self) {
        if let Planned::Done(_, _, way) = &mut self.planned {
            *way = None;
        }
    }
}

/// A plan as reports need it: nothing in it is as large as the fleet.
fn small(mut plan: Box<Plan>) -> Box<Plan> {
    plan.assignment.clear();
    plan.sets.clear();
    plan.explanation = Vec::new();
    for (_, placed) in &mut plan.placement {
        placed.chosen.truncate(MOST_CHOSEN);
        placed.chosen.shrink_to_fit();
    }
    plan
}

/// The same of a revision. Its waves are needed to see that they are passed.
fn without_content(mut stored: Box<Stored>) -> Box<Stored> {
    let runs = stored.running.as_ref();
    let Running { revision, plan_digest, inputs_digest, composite_app, waves, .. } = runs;
    let running = Running {
        revision: *revision,
        plan_digest: plan_digest.clone(),
        inputs_digest: inputs_digest.clone(),
        composite_app: composite_app.clone(),
        waves: waves.clone(),
        ..Running::default()
    };
    stored.running = Arc::new(running);
    stored
}

/// Remembers a deployment that was looked at as a whole, where reports alone change nothing of its plan. `settled`: nothing but a wake brings
/// the next look.
pub fn keep(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (gathered, planned): (Gathered, Planned),
    settled: bool,
) {
    let Planned::Done(plan, Some(stored), way) = planned else { return };
    let snapshot = &gathered.snapshot;
    // The plan is of what it read: of charts that come, of what leaves clusters, of nodes.
    let reads_reports =
        gathered.awaits_charts || !snapshot.leaving.is_empty() || !snapshot.hardware.is_empty();
    let is_carried_out = plan.change.is_none() && plan.waiting.is_empty();
    if !ctx.looks.is_told() || reads_reports || !is_carried_out || store::own_shards::unseen(ctx, owner) {
        return;
    }
    let until = Instant::now() + AT_LATEST;
    let whole = |plan, revision| Whole::of(&gathered, plan, revision, until);
    if let Some(kept) = kept(ctx, owner, (plan, stored, way), settled, whole) {
        put(ctx, dig, owner, until, kept);
    }
}

/// What to keep of a plan that is carried out: the plan while its waves go on, and sums after them; nothing of one that is taken back.
fn kept(
    ctx: &Context,
    owner: &Owner,
    (plan, stored, way): (Box<Plan>, Box<Stored>, Option<Box<Way>>),
    settled: bool,
    whole: impl FnOnce(Box<Plan>, String) -> Whole,
) -> Option<Kept> {
    if let Some(way) = way.filter(|way| !way.is_good) {
        return (!way.is_taken_back()).then(|| Kept::Plan(Box::new(whole(plan, stored.name))));
    }
    if !settled || store::is_unreported(ctx, owner, stored.spec.revision) {
        return None;
    }
    Reported::of(ctx, owner, plan, stored).map(|reported| Kept::Sums(Box::new(reported)))
}

fn put(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner, until: Instant, kept: Kept) {
    let bytes = match &kept {
        Kept::Plan(whole) => whole.bytes(),
        Kept::Sums(_) => 0,
    };
    let key = (owner.namespace.clone(), owner.name.clone());
    ctx.looks.keep(
        key,
        bytes,
        until,
        Rest { of: Stamp::of(dig), is_suspended: dig.spec.is_suspended(), until, kept },
    );
}

/// Goes on with a kept plan, and says how far it is. Where it has to be made anew, the next look does that.
pub async fn go_on(
    ctx: &Context,
    dig: &Arc<DeploymentIntentGroup>,
    owner: &Owner,
    whole: Box<Whole>,
) -> Reconciled {
    let newest = store::newest(ctx, owner).await?;
    let Some(stored) = newest.filter(|newest| newest.name == whole.revision) else {
        return Ok(Outcome::After(MOVED));
    };
    let gate = Box::pin(approved::gate(ctx, dig, owner, Some(&stored), &whole.plan)).await?;
    if dig.spec.is_held() || gate.wait(ctx).is_some() || !gate.is_open(ctx).await? {
        return Ok(Outcome::After(MOVED));
    }
    let Some(way) = Box::pin(whole.carry_on(ctx, dig, owner, &stored)).await? else {
        return Ok(Outcome::After(MOVED));
    };
    held::forget(ctx, owner);
    let Whole { plan, uids, project, revision: _, until } = *whole;
    let mut planned = Planned::Done(plan, Some(Box::new(stored)), Some(Box::new(way)));
    let (outcome, is_told) = Box::pin(told(ctx, dig, owner, &mut planned, [None, None])).await?;
    let Planned::Done(plan, Some(stored), way) = planned else { return Ok(outcome) };
    if is_told && !store::own_shards::unseen(ctx, owner) {
        let settled = outcome == Outcome::Settled;
        let whole = |plan, revision| Whole { plan, uids, project, revision, until };
        if let Some(kept) = kept(ctx, owner, (plan, stored, way), settled, whole) {
            put(ctx, dig, owner, until, kept);
        }
    }
    Ok(outcome)
}

/// Says what clusters reported. `None` where there is more to be done: nothing was then.
pub async fn say(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    (mut reported, until): (Box<Reported>, Instant),
) -> Result<Option<Outcome>, Failure> {
    let shards = store::stored_shards(ctx, owner);
    if store::own_shards::unseen(ctx, owner)
        || !reported.shards.follow(&shards)
        || !reported.passes_waves(ctx, dig, owner, &shards).await?
    {
        return Ok(None);
    }
    let left = store::report_delay(ctx, owner, meta::generation(dig));
    if left.is_none() {
        let planned = &reported.planned;
        details::tidy(ctx, dig, owner, planned).await?;
        let rolled = report::write_sums(ctx, dig, owner, planned, &reported.shards.all()).await?;
        finish::finish(ctx, dig, owner, planned, &rolled).await?;
    }
    reported.forget_waves();
    put(ctx, dig, owner, until, Kept::Sums(reported));
    Ok(Some(left.map_or(Outcome::Settled, Outcome::After)))
}
