//! Says how far a rollout may go, from how its clusters stand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::deployment_intent_group::rollout::{OnFailure, WaveApproval};

use super::Waves;
use crate::identity::ClusterId;

/// How a cluster stands with the revision that is rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was not given the revision.
    Before,
    /// It was, and is on its way.
    Underway,
    /// It has it, and all is ready.
    Ready,
    /// It was given it and failed, or was away for longer than the deadline. Work goes on there.
    Failed,
}

/// Limits of a rollout, in clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Clusters on their way at once; at least one.
    pub at_once: usize,
    /// Failed clusters that are borne.
    pub failures: usize,
    /// What happens beyond that.
    pub beyond: OnFailure,
}

/// What was decided about a wave's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nobody has said anything.
    Open,
    /// It may go on.
    Approved,
    /// It may not.
    Rejected,
}

/// How far a rollout was, as its status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Place of the wave that is under way.
    pub wave: usize,
    /// When all its clusters were done, in seconds of the Unix epoch; absent while they are not.
    pub done_at: Option<i64>,
    /// Too many clusters failed, and the revision was taken back: it is not tried again.
    pub taken_back: bool,
    /// Clusters that the revision did not change take part as well: they had something else meanwhile.
    pub everywhere: bool,
}

/// Why a rollout waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// More clusters failed than are borne.
    Failures,
    /// This wave was rejected.
    Rejected(String),
}

/// What a rollout waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clusters of the wave are on their way.
    Rolling,
    /// An approval before the wave begins.
    AwaitsBefore,
    /// All its clusters are done; it is watched for this time.
    Soaking(Duration),
    /// An approval before the next one begins.
    AwaitsAfter,
    /// It waits for a person.
    Paused(Halt),
    /// The revision before comes back.
    TakenBack,
    /// Nobody is left that waits for the revision.
    Done,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How far it is now.
    pub progress: Progress,
    /// What it waits for.
    pub phase: Phase,
    /// Clusters that may have the revision now: those that were given it, and those that are given it with this step.
    pub given: BTreeSet<ClusterId>,
}

/// Takes a rollout as far as it may go. `standing` has every cluster that takes part, and those that lose everything, which go with the
/// last wave; one that is gone is skipped.
pub fn step(
    waves: &Waves,
    bounds: Bounds,
    standing: &BTreeMap<ClusterId, Standing>,
    before: &Progress,
    gate: impl Fn(&str) -> Gate,
    now: i64,
) -> Step {
    let is = |wanted: Standing| standing.iter().filter(move |(_, standing)| **standing == wanted);
    let mut given: BTreeSet<ClusterId> = standing
        .iter()
        .filter(|(_, standing)| **standing != Standing::Before)
        .map(|(id, _)| id.clone())
        .collect();
    let end = |progress: Progress, phase, given| Step { progress, phase, given };
    let over = || Progress { wave: waves.waves.len(), ..Progress::default() };
    if before.taken_back {
        return end(before.clone(), Phase::TakenBack, BTreeSet::new());
    }
    // A cluster whose turn was before takes the rollout back to its wave.
    let first = is(Standing::Before).map(|(id, _)| waves.of(id)).min();
    let place = first.map_or(before.wave, |first| first.min(before.wave)).min(waves.waves.len());
    let mut progress = match before {
        before if before.wave == place => before.clone(),
        before => Progress { wave: place, done_at: None, ..before.clone() },
    };
    // What breaks after the end is no rollout's.
    let is_over =
        || place == waves.waves.len() || progress.done_at.is_some() && !goes_on(waves, standing, place);
    if first.is_none() && is_over() {
        return end(over(), Phase::Done, given);
    }
    if is(Standing::Failed).count() > bounds.failures {
        match bounds.beyond {
            OnFailure::Rollback => {
                progress.taken_back = true;
                return end(progress, Phase::TakenBack, BTreeSet::new());
            }
            OnFailure::Pause => {
                // What is cured is watched anew.
                progress.done_at = None;
                return end(progress, Phase::Paused(Halt::Failures), given);
            }
            OnFailure::Continue => {}
        }
    }
    let mut free = bounds.at_once.max(1).saturating_sub(is(Standing::Underway).count());
    while let Some(wave) = waves.waves.get(progress.wave) {
        let place = progress.wave;
        let begun = waves.waves.iter().take(place + 1);
        if let Some(rejected) = begun.into_iter().find(|wave| gate(&wave.name) == Gate::Rejected) {
            return end(progress, Phase::Paused(Halt::Rejected(rejected.name.clone())), given);
        }
        let of_wave = |wanted| is(wanted).filter(|(id, _)| waves.of(id) == place).map(|(id, _)| id);
        let waiting = of_wave(Standing::Before).count();
        let is_approved = || gate(&wave.name) == Gate::Approved;
        if waiting > 0 && wave.approval == WaveApproval::Before && !is_approved() {
            return end(progress, Phase::AwaitsBefore, given);
        }
        given.extend(of_wave(Standing::Before).take(free).cloned());
        free = free.saturating_sub(waiting);
        if waiting > 0 || of_wave(Standing::Underway).next().is_some() {
            progress.done_at = None;
            return end(progress, Phase::Rolling, given);
        }
        let done_at = *progress.done_at.get_or_insert(now);
        if !goes_on(waves, standing, place) {
            return end(over(), Phase::Done, given);
        }
        // A wave that never had a cluster shows nothing that could be watched or judged.
        let counts = wave.counts || standing.keys().any(|id| waves.of(id) == place);
        if counts {
            let watched = Duration::from_secs(u64::try_from(now.saturating_sub(done_at)).unwrap_or_default());
            if watched < wave.soak {
                return end(progress, Phase::Soaking(wave.soak.saturating_sub(watched)), given);
            }
            if wave.approval == WaveApproval::After && !is_approved() {
                return end(progress, Phase::AwaitsAfter, given);
            }
        }
        progress = Progress { wave: place + 1, done_at: None, ..progress };
    }
    end(over(), Phase::Done, given)
}

/// Whether a wave after this one has clusters that are not done.
fn goes_on(waves: &Waves, standing: &BTreeMap<ClusterId, Standing>, place: usize) -> bool {
    let open = |standing: &Standing| matches!(standing, Standing::Before | Standing::Underway);
    standing.iter().any(|(id, standing)| open(standing) && waves.of(id) > place)
}
