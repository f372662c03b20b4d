//! Brings the last good revision back in the place of one that is taken back: in the order of its waves, and within the removal budget.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::Duration;

use emco_engine::identity::{ClusterId, Combination};
use emco_engine::plan::over_budget;
use emco_engine::rollout::{Bounds, Gate, Phase, Progress, Standing, Standings, Step, standings, step};
use emco_engine::rollup::Shard;
use emco_engine::set::combinations;

use super::super::order::order_of;
use super::{Look, Way, status};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::reconcile::composite_app;
use crate::reconcile::context::Context;
use crate::store::{self, Stored};

/// A revision that comes back.
pub struct Back {
    /// It.
    pub to: Stored,
    /// The number of the one that is taken back.
    pub from: i64,
    /// Clusters of the deployment as they are counted: with what they have of it, keep, or go without.
    pub counted: BTreeMap<ClusterId, Combination>,
    /// Every cluster has had its turn.
    pub is_there: bool,
}

/// The way back, or that there is none: then what is there stays.
pub(super) async fn way(
    ctx: &Context,
    owner: &Owner,
    look: &Look<'_>,
    (parts, standing): (&[Shard<'_>], &Standings),
    progress: &Progress,
) -> Result<Way, Failure> {
    let Some(to) = last_good(ctx, owner, look.stored).await? else {
        let why = "no good revision before it is stored, so that what is there stays; change the deployment";
        return Ok(look.stays(standing, progress, why));
    };
    let back = look.back(&to);
    if let Some(over) = over(ctx, owner, look, &back) {
        let revision = to.spec.revision;
        let pinned = format!("{}/{} {revision}", owner.namespace, owner.name);
        let why = format!(
            "revision {revision} does not come back by itself: {over}; pin it (kubectl emco rollback {pinned}), have the budget raised, or change the deployment"
        );
        return Ok(look.stays(standing, progress, &why));
    }
    Ok(look.way_back(to, back, parts, progress))
}

/// The last good revision before this one in the same place of the same logical cloud; without any, the one that clusters have, as after
/// a restore that lost what was good. `None` where none is stored.
async fn last_good(ctx: &Context, owner: &Owner, stored: &Stored) -> Result<Option<Stored>, Failure> {
    for context in store::contexts(ctx, owner) {
        let is_before = context.spec.revision < stored.spec.revision;
        if !is_before || !context.is_good() || !store::same_place(&context.spec, &stored.spec) {
            continue;
        }
        // One whose manifests are lost would be a target that nobody can apply.
        if let Ok(whole) = store::revision(ctx, owner, context.spec.revision).await? {
            return Ok(Some(whole));
        }
    }
    let targeted = store::targeted(ctx, owner, Some(stored), None).await?;
    Ok(targeted.filter(|there| {
        there.spec.revision < stored.spec.revision
            && store::same_place(&there.spec, &stored.spec)
            && !store::is_taken_back(ctx, owner, there.spec.revision)
    }))
}

/// Says where the way back goes beyond the removal budget. Clusters that the revision was to leave do not count: its plan passed the gate.
fn over(
    ctx: &Context,
    owner: &Owner,
    look: &Look<'_>,
    back: &BTreeMap<ClusterId, Combination>,
) -> Option<String> {
    let project = composite_app::project(ctx, &owner.namespace)?;
    let stay = look.targets.iter().filter(|(id, _)| back.contains_key(*id));
    let run = stay.flat_map(|(id, apps)| apps.keys().map(move |app| (app.as_str(), id)));
    over_budget(back, run, iter::empty(), &project.spec.removal_budget)
}

impl Look<'_> {
    /// Clusters that the revision is for, with what they have once `to` is back. One that it does not know keeps what it has, for nothing is
    /// taken off that nobody asked to be taken off; so does one that takes no work today.
    fn back(&self, to: &Stored) -> BTreeMap<ClusterId, Combination> {
        let had = combinations(&to.running.assignment);
        let of = |id: &ClusterId| {
            let known = had.get(id).filter(|apps| !apps.is_empty() && !self.stay.contains(id));
            Some((id.clone(), known.or_else(|| self.targets.get(id))?.clone()))
        };
        self.wanted.iter().filter(|(_, apps)| !apps.is_empty()).filter_map(|(id, _)| of(id)).collect()
    }

    /// Waves in their order, and no more clusters on their way than `maxConcurrent` says. Nobody is asked, nothing is watched and no
    /// failure holds it up: the revision was good there, and what is taken back is not.
    fn way_back(
        &self,
        to: Stored,
        back: BTreeMap<ClusterId, Combination>,
        parts: &[Shard<'_>],
        progress: &Progress,
    ) -> Way {
        let mut waves = self.waves.clone();
        for wave in &mut waves.waves {
            wave.soak = Duration::ZERO;
        }
        let standing = standings(&waves, parts, &back, true, (self.deadline, self.now));
        let bounds = Bounds { failures: usize::MAX, ..self.bounds };
        let gate = |_: &str| Gate::Approved;
        let Step { given, .. } =
            step(&waves, bounds, &standing.of, &Progress::default(), gate, self.now.as_second());
        let is_there = !standing.of.values().any(|standing| *standing == Standing::Before);
        let has_turn = |id: &ClusterId| given.contains(id) || self.targets.get(id) == back.get(id);
        let of_turn = back.iter().filter(|(id, _)| has_turn(id));
        let given: BTreeMap<_, _> = of_turn.map(|(id, apps)| (id.clone(), apps.clone())).collect();
        let others = self.targets.iter().filter(|(id, _)| !has_turn(id));
        let others = others.map(|(id, apps)| (id.clone(), apps.clone()));
        let comes = if is_there { "came" } else { "comes" };
        let waits_for = format!(
            "nothing more: too many clusters failed, and revision {} {comes} back; change the deployment",
            to.spec.revision
        );
        let (order, inputs) = (order_of(&to, &given), self.stored.running.inputs_digest.as_str());
        let having = given.values().cloned().collect();
        let wanted = given.into_iter().chain(others).collect();
        let counted = self.wanted.clone().into_iter().chain(back).filter(|(_, apps)| !apps.is_empty());
        Way {
            wanted,
            revision: to.spec.revision,
            order,
            given: having,
            status: status(&waves, &standing.of, progress, (inputs, waits_for)),
            again: standing.overdue_in.filter(|_| !is_there),
            back: Some(Back { to, from: self.stored.spec.revision, counted: counted.collect(), is_there }),
            is_good: false,
            bears: self.bounds.failures,
            phase: Phase::TakenBack,
        }
    }

    /// Nothing comes back, and nothing goes on.
    fn stays(&self, standing: &Standings, progress: &Progress, why: &str) -> Way {
        let waits_for = format!("a person: too many clusters failed, and {why}");
        let inputs = self.stored.running.inputs_digest.as_str();
        Way {
            wanted: self.targets.clone(),
            revision: self.stored.spec.revision,
            order: order_of(self.stored, &BTreeMap::new()),
            given: BTreeSet::new(),
            status: status(self.waves, &standing.of, progress, (inputs, waits_for)),
            again: None,
            back: None,
            is_good: false,
            bears: self.bounds.failures,
            phase: Phase::TakenBack,
        }
    }
}
