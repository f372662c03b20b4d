//! Takes a revision to its clusters wave by wave: says which of them have it now, and what the next ones wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::deployment_approval::Decision;
use emco_crds::deployment_intent_group::rollout::{Rollout, RolloutStatus};
use emco_crds::fields::Time;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};
use emco_crds::sync_shard::ShardOrder;
use emco_crds::{DeploymentApproval, DeploymentIntentGroup};
use emco_engine::approval::Vote;
use emco_engine::conditions::truncate;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::rollout::{
    Bounds, Gate, Halt, Phase, Progress, Standing, Standings, Step, Waves, standings, step,
};
use emco_engine::rollup::{Shard, Verdict, borne, needed};
use emco_engine::text::counted;
use k8s_openapi::jiff::Timestamp;

use super::order::order_of;
use super::{approved, waits};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::status;
use crate::reconcile::context::Context;
use crate::reconcile::in_use;
use crate::store::{self, Stored};

mod way_back;

pub use way_back::Back;

/// What a wave waits for that has not begun.
pub const BEFORE_IT_BEGINS: &str = "an approval before it begins";
/// What a wave waits for that is done.
pub const BEFORE_THE_NEXT: &str = "an approval before the next one begins";

/// How far a revision may go now.
pub struct Way {
    /// What clusters are to have: the revision, or what they have until it is their turn.
    pub wanted: BTreeMap<ClusterId, Combination>,
    /// The revision that what they get now is of.
    pub revision: i64,
    /// Which apps wait for which, on the clusters that have that revision or get it now.
    pub order: Option<ShardOrder>,
    /// Apps that these have.
    pub given: BTreeSet<Combination>,
    /// For `status.rollout`.
    pub status: RolloutStatus,
    /// When time alone takes it further.
    pub again: Option<Duration>,
    /// The revision that comes back, where this one is taken back.
    pub back: Option<Back>,
    /// Its rollout is over, with no more failures than are borne.
    pub is_good: bool,
    /// Clusters that may fail.
    pub bears: usize,
    phase: Phase,
}

/// A rollout, as it is looked at.
struct Look<'a> {
    stored: &'a Stored,
    waves: &'a Waves,
    /// Targets of the revision.
    wanted: &'a BTreeMap<ClusterId, Combination>,
    /// Those of them that take no work today, and keep what they have.
    stay: &'a BTreeSet<ClusterId>,
    /// Targets of the rows, now.
    targets: BTreeMap<ClusterId, Combination>,
    bounds: Bounds,
    deadline: Duration,
    now: Timestamp,
}

/// Works out how far a stored revision may go; `None` where it goes everywhere at once. Of the clusters that are wanted, those that `stay`
/// take no work today.
pub async fn way(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    stored: &Stored,
    (wanted, stay): (&BTreeMap<ClusterId, Combination>, &BTreeSet<ClusterId>),
) -> Result<Option<Way>, Failure> {
    let Some(waves) = stored.running.waves.as_deref() else { return Ok(None) };
    let shards = store::shards(ctx, owner);
    let parts: Vec<Shard<'_>> = shards.iter().map(|stored| (&stored.spec, stored.status.as_ref())).collect();
    let look = Look {
        stored,
        waves,
        wanted,
        stay,
        targets: store::targets(ctx, owner),
        bounds: bounds(dig.spec.rollout.as_ref(), wanted.len()),
        deadline: dig.spec.progress_deadline(),
        now: ctx.now(),
    };
    let mut before = progress(dig, &stored.running.inputs_digest);
    before.taken_back |= store::is_taken_back(ctx, owner, stored.spec.revision);
    let standing = standings(waves, &parts, wanted, before.everywhere, (look.deadline, look.now));
    before.everywhere = standing.everywhere;
    let digests = [stored.running.inputs_digest.as_str(), stored.spec.digest.as_str()];
    let as_voted = |votes: &Votes| {
        let gate = |wave: &str| votes.gate(wave, digests);
        step(waves, look.bounds, &standing.of, &before, gate, look.now.as_second())
    };
    let mut votes = Votes::seen(ctx, owner, waves);
    let mut now = as_voted(&votes);
    let is_fresh = |id: &ClusterId| standing.of.get(id) == Some(&Standing::Before);
    if now.given.iter().any(is_fresh) {
        // Watches may be behind: nobody gets what was rejected a moment ago; waves without a gate may be, too.
        votes = Votes::live(ctx, owner, waves).await?;
        now = as_voted(&votes);
    }
    if now.phase == Phase::TakenBack {
        let seen = (parts.as_slice(), &standing);
        return way_back::way(ctx, owner, &look, seen, &now.progress).await.map(Some);
    }
    let waits_for =
        waits_for(&now.phase, (&now.progress, digests), &standing.of, (waves, look.bounds, owner), &votes);
    Ok(Some(look.way_on(now, &standing, waits_for)))
}

impl Look<'_> {
    /// The way of a revision that goes on, or waits.
    fn way_on(&self, step: Step, standing: &Standings, waits_for: String) -> Way {
        let Step { progress, phase, given } = step;
        let Self { stored, waves, wanted, targets, bounds, .. } = self;
        let has_turn = |id: &ClusterId| given.contains(id) || targets.get(id) == wanted.get(id);
        let of_turn = wanted.iter().filter(|(id, _)| has_turn(id));
        let given: BTreeMap<_, _> = of_turn.map(|(id, apps)| (id.clone(), apps.clone())).collect();
        let (order, inputs) = (order_of(stored, &given), stored.running.inputs_digest.as_str());
        let others = targets.iter().filter(|(id, _)| !has_turn(id));
        let others = others.map(|(id, apps)| (id.clone(), apps.clone()));
        let having = given.values().cloned().collect();
        let again = match &phase {
            Phase::Soaking(left) => Some(*left),
            Phase::Done | Phase::TakenBack => None,
            _ => standing.overdue_in,
        };
        let is = |wanted: Standing| standing.of.values().filter(move |standing| **standing == wanted).count();
        let is_good =
            phase == Phase::Done && is(Standing::Underway) == 0 && is(Standing::Failed) <= bounds.failures;
        Way {
            wanted: given.into_iter().chain(others).collect(),
            revision: stored.spec.revision,
            order,
            given: having,
            status: status(waves, &standing.of, &progress, (inputs, waits_for)),
            again,
            back: None,
            is_good,
            bears: bounds.failures,
            phase,
        }
    }
}

/// Writes down what the rows will not show any more when they are written: that a revision is taken back, else it would be tried again,
/// that all its clusters take part, and that the rollout went back to an earlier wave, or a wave that was done is so no more: else its gate
/// and its soak would seem to be passed. Whether it was written.
pub async fn remember(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    stored: &Stored,
    way: &Way,
) -> Result<bool, Failure> {
    let took_back = way.is_taken_back() && store::take_back(ctx, owner, stored.spec.revision).await?;
    let known = dig.status.as_ref().and_then(|status| status.rollout.as_ref());
    let known = known.filter(|known| known.inputs_digest == way.status.inputs_digest);
    let is_known = |what: fn(&RolloutStatus) -> bool| !what(&way.status) || known.is_some_and(what);
    let now = &way.status;
    let is_back = known.is_some_and(|known| {
        now.place < known.place
            || now.place == known.place && known.done_at.is_some() && now.done_at.is_none()
    });
    if !is_back && is_known(|rollout| rollout.taken_back) && is_known(|rollout| rollout.everywhere) {
        return Ok(took_back);
    }
    let mut said = dig.status.clone().unwrap_or_default();
    said.rollout = Some(way.status.clone());
    let written = status::write(ctx, dig, dig.status.as_ref(), &said).await?;
    if written {
        waits::tell(ctx, dig, &said).await;
    }
    Ok(written || took_back)
}

/// Approvals by wave.
struct Votes(BTreeMap<String, Vec<Vote>>);

impl Votes {
    /// As the watch shows them.
    fn seen(ctx: &Context, owner: &Owner, waves: &Waves) -> Self {
        let of = |wave: &str| approved::votes_of(ctx, &owner.namespace, &owner.name, Some(wave));
        Self(waves.waves.iter().map(|wave| (wave.name.clone(), of(&wave.name))).collect())
    }

    /// As they are.
    async fn live(ctx: &Context, owner: &Owner, waves: &Waves) -> Result<Self, Failure> {
        let all: Vec<DeploymentApproval> = in_use::listed(ctx, &owner.namespace).await?;
        let of = |wave: &str| {
            all.iter().filter_map(|approval| approved::vote(approval, &owner.name, Some(wave))).collect()
        };
        Ok(Self(waves.waves.iter().map(|wave| (wave.name.clone(), of(&wave.name))).collect()))
    }

    fn of<'a>(&'a self, wave: &str, digests: [&'a str; 2]) -> impl Iterator<Item = &'a Vote> {
        let votes = self.0.get(wave).into_iter().flatten();
        votes.filter(move |vote| digests.contains(&vote.digest.as_str()))
    }

    /// Any rejection wins.
    fn gate(&self, wave: &str, digests: [&str; 2]) -> Gate {
        if self.of(wave, digests).any(|vote| vote.decision == Decision::Rejected) {
            Gate::Rejected
        } else if self.of(wave, digests).next().is_some() {
            Gate::Approved
        } else {
            Gate::Open
        }
    }

    /// What rejects a wave, with who did it.
    fn rejection(&self, wave: &str, digests: [&str; 2]) -> String {
        let vote = self.of(wave, digests).find(|vote| vote.decision == Decision::Rejected);
        vote.map_or_else(
            || "somebody".to_owned(),
            |vote| format!("DeploymentApproval {} by {}", vote.name, truncate(&vote.by, 128)),
        )
    }
}

fn progress(dig: &DeploymentIntentGroup, inputs: &str) -> Progress {
    let known = dig.status.as_ref().and_then(|status| status.rollout.as_ref());
    let Some(known) = known.filter(|known| known.inputs_digest == inputs) else { return Progress::default() };
    let wave = usize::try_from(known.place - 1).unwrap_or_default();
    let done_at = known.done_at.as_ref().map(|time| time.0.as_second());
    Progress { wave, done_at, taken_back: known.taken_back, everywhere: known.everywhere }
}

/// Limits are those of the spec as it is now: raising one lets a rollout that waits go on.
fn bounds(rollout: Option<&Rollout>, clusters: usize) -> Bounds {
    let count = |share| needed(share, clusters);
    Bounds {
        at_once: count(rollout.and_then(|rollout| rollout.max_concurrent.as_ref())),
        failures: borne(rollout.and_then(|rollout| rollout.max_failures.as_ref()), clusters),
        beyond: rollout.and_then(|rollout| rollout.on_failure).unwrap_or_default(),
    }
}

/// What a rollout waits for, in words that say what helps; empty where clusters are on their way, or nothing is left.
fn waits_for(
    phase: &Phase,
    (progress, digests): (&Progress, [&str; 2]),
    standing: &BTreeMap<ClusterId, Standing>,
    (waves, bounds, owner): (&Waves, Bounds, &Owner),
    votes: &Votes,
) -> String {
    let name = waves.waves.get(progress.wave).map(|wave| wave.name.as_str()).unwrap_or_default();
    let command = format!("kubectl emco approve dig/{} -n {} --wave {name}", owner.name, owner.namespace);
    match phase {
        Phase::Rolling | Phase::TakenBack | Phase::Done => String::new(),
        Phase::AwaitsBefore => format!("{BEFORE_IT_BEGINS}: {command}"),
        Phase::AwaitsAfter => format!("{BEFORE_THE_NEXT}: {command}"),
        Phase::Soaking(_) => "the end of its soak".to_owned(),
        Phase::Paused(Halt::Failures) => {
            let failed = standing.values().filter(|standing| **standing == Standing::Failed).count();
            format!(
                "a person: {} failed, and spec.rollout.maxFailures bears {}: cure what status.failing names, raise it, or change the deployment",
                counted(failed, "cluster"),
                bounds.failures
            )
        }
        Phase::Paused(Halt::Rejected(wave)) => format!(
            "a person: {} rejects wave {wave}: delete it, or change the deployment",
            votes.rejection(wave, digests)
        ),
    }
}

fn status(
    waves: &Waves,
    standing: &BTreeMap<ClusterId, Standing>,
    progress: &Progress,
    (inputs, waits_for): (&str, String),
) -> RolloutStatus {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let place = progress.wave.min(waves.waves.len().saturating_sub(1));
    let of_wave = || standing.iter().filter(|(id, _)| waves.of(id) == place).map(|(_, standing)| standing);
    let is_done = |standing: &&Standing| matches!(standing, Standing::Ready | Standing::Failed);
    RolloutStatus {
        inputs_digest: inputs.to_owned(),
        wave: waves.waves.get(place).map(|wave| wave.name.clone()).unwrap_or_default(),
        place: count(progress.wave + 1),
        waves: count(waves.waves.len()),
        clusters: count(of_wave().count()),
        done: count(of_wave().filter(is_done).count()),
        failed: count(standing.values().filter(|standing| **standing == Standing::Failed).count()),
        taken_back: progress.taken_back,
        done_at: progress.done_at.and_then(|at| Timestamp::from_second(at).ok()).map(Time),
        everywhere: progress.everywhere,
        waits_for: truncate(&waits_for, 1024),
    }
}

impl Way {
    /// True once too many clusters failed.
    pub fn is_taken_back(&self) -> bool {
        self.phase == Phase::TakenBack
    }

    /// True once nothing happens any more before the deployment changes: it is taken back, and what comes back is there.
    pub fn is_over(&self) -> bool {
        self.is_taken_back() && self.back.as_ref().is_none_or(|back| back.is_there)
    }

    /// The condition Ready: what came back is as ready as anything that runs.
    pub fn ready(&self, observed: Verdict) -> Verdict {
        let is_ready = observed.status == "True" && self.back.as_ref().is_some_and(|back| back.is_there);
        let reason = observed.reason;
        let said = self.said(observed);
        if is_ready { Verdict { status: "True", reason, ..said } } else { said }
    }

    /// A condition of a revision that is on its way: what is observed, then the wave.
    pub fn said(&self, observed: Verdict) -> Verdict {
        if self.phase == Phase::Done {
            return observed;
        }
        let RolloutStatus { wave, place, waves, clusters, done, waits_for, .. } = &self.status;
        let waits = if waits_for.is_empty() { String::new() } else { format!("; it waits for {waits_for}") };
        let Verdict { status, reason, message } = observed;
        let message =
            format!("{message}; wave {place} of {waves} ({wave}): {done} of {clusters} done{waits}");
        let reason = match self.phase {
            Phase::Paused(_) | Phase::TakenBack => Reason::RolloutPaused.as_str(),
            _ if status == "False" && is_progress(reason) => Reason::WaitingForWave.as_str(),
            _ => reason,
        };
        Verdict { status: "False", reason, message }
    }
}
