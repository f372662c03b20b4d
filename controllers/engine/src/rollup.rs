//! Sums the rows of an owner's shards up for its status: numbers, failing clusters and states. Bounded whatever the
//! number of clusters; no times inside messages.

mod apps;
mod beside;
pub(crate) mod facts;
mod notes;
mod people;
mod share;
mod state;
mod stripped;
mod sums;

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::deployment_intent_group::status::{
    AppStatus, DeployedCounts, DeploymentClusters, DriftCounts, ReadyCounts,
};
use emco_crds::logical_cloud::CloudClusters;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, LogicalCloudReason, is_progress};
use emco_crds::{Failing, PercentOrCount, State, Summary, SyncShardSpec, SyncShardStatus};

use crate::conditions::shorten;
use crate::identity::{ClusterId, Combination};
use crate::placement::AppPlacement;
use crate::text::counted;
pub use apps::MOST_CHOSEN;
pub use beside::still_runs;
pub use facts::said as said_of_object;
use facts::{Kind, Tally};
pub use notes::Notes;
pub use people::{People, with_people};
pub use share::{borne, needed};
use state::Observation;
pub use stripped::{not_removed, said as said_of_not_removed};
pub use sums::Sums;
use sums::{FailingCluster, example};

/// Most clusters that are named as failing.
pub const MOST_FAILING: usize = 10;
/// Longest message of one of them, in bytes.
const LONGEST_MESSAGE: usize = 256;

/// A shard as it was read: spec, and status if there is one.
pub type Shard<'a> = (&'a SyncShardSpec, Option<&'a SyncShardStatus>);

/// A condition without its type, generation and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `True` or `False`.
    pub status: &'static str,
    /// From the closed set of the kind.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// What a deployment's status is made of.
pub struct DigInputs<'a> {
    /// All shards of the owner.
    pub shards: &'a [Shard<'a>],
    /// What each cluster is to have; empty before the first revision and while everything is to be removed.
    pub wanted: &'a BTreeMap<ClusterId, Combination>,
    /// The running revision; `None` before the first.
    pub revision: Option<i64>,
    /// Placement of each app, in the order of the composite app.
    pub placement: &'a [(String, AppPlacement)],
    /// `spec.readyClusters`; `None` = all.
    pub ready_clusters: Option<&'a PercentOrCount>,
    /// States as the status has them now.
    pub before: &'a Before,
    /// A plan may be carried out.
    pub approved: bool,
    /// Everything is to be removed.
    pub removing: bool,
    /// Nothing is written to any edge.
    pub suspended: bool,
    /// Clusters where something was given up, because they could not be reached.
    pub abandoned: &'a [ClusterId],
}

/// The last observation: states move from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// `status.state`.
    pub state: State,
    /// `status.revision`.
    pub revision: Option<i64>,
    /// `status.apps[].state`.
    pub apps: BTreeMap<String, State>,
}

/// What is true of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct DigRollup {
    /// For `status.state`.
    pub state: State,
    /// For `status.summary`.
    pub summary: Summary,
    /// For `status.clusters`.
    pub clusters: DeploymentClusters,
    /// Clusters that have all of the running revision, of those that are to have it: `2 of 3 clusters`.
    pub applied: String,
    /// For `status.deployed`.
    pub deployed_counts: DeployedCounts,
    /// For `status.ready`.
    pub ready_counts: ReadyCounts,
    /// For `status.apps`.
    pub apps: Vec<AppStatus>,
    /// For `status.failing`.
    pub failing: Vec<Failing>,
    /// Condition Deployed.
    pub deployed: Verdict,
    /// Condition Ready, as far as the running revision goes.
    pub ready: Verdict,
    /// For `status.drift`.
    pub drift: Option<DriftCounts>,
    /// What the condition Deployed says besides.
    pub notes: Notes,
    /// Clusters where something of this owner may still be that is not wanted there.
    pub left: usize,
}

/// The status of a deployment.
pub fn dig(inputs: &DigInputs<'_>) -> DigRollup {
    Sums::of(&facts::of(inputs.shards, inputs.wanted)).dig(inputs)
}

/// The status of a deployment whose clusters come to this.
fn status(sums: &Sums, inputs: &DigInputs<'_>) -> DigRollup {
    let Sums { tally, failing: first, notes, apps } = sums;
    let seen = observation(tally, inputs);
    let failing = failing(first);
    let example = example(first);
    let mut deployed = deployed(tally, &failing, example.as_deref(), inputs.revision);
    let ready = ready(tally, &failing, example.as_deref(), &deployed, inputs.ready_clusters);
    let (drift, notes) = notes.said();
    for note in notes.sentences().map(str::to_owned).chain(given_up(inputs.abandoned)) {
        deployed.message = format!("{}; {note}", deployed.message);
    }
    DigRollup {
        state: state::next(inputs.before.state, &seen),
        summary: Summary {
            clusters: Some(format!("{}/{}", tally.ready, tally.total)),
            resources: Some(format!("{}/{}", tally.objects.ready, tally.resources)),
            ..Summary::default()
        },
        clusters: DeploymentClusters {
            total: count(tally.total),
            ready: count(tally.ready),
            progressing: count(tally.progressing),
            failed: count(tally.failed),
            unreachable: count(tally.unreachable),
            abandoned: count(inputs.abandoned.len()),
        },
        applied: runs_on(tally),
        deployed_counts: DeployedCounts {
            applied: tally.objects.applied,
            failed: tally.objects.failed,
            pending: tally.objects.pending,
            deleted: tally.objects.deleted,
        },
        ready_counts: ReadyCounts {
            ready: tally.objects.ready,
            not_ready: tally.objects.not_ready,
            not_present: tally.objects.not_present,
            unknown: tally.objects.unknown,
        },
        apps: apps::statuses(apps, inputs, &seen),
        failing,
        deployed,
        ready,
        drift,
        notes,
        left: tally.left,
    }
}

/// What is said of clusters where something was given up.
pub fn given_up(abandoned: &[ClusterId]) -> Option<String> {
    let first = abandoned.first()?;
    let more = if abandoned.len() > 1 { " and others" } else { "" };
    Some(format!(
        "given up on {}: what is left on {first}{more} is removed when it can be reached again",
        clusters(abandoned.len())
    ))
}

fn observation(tally: &Tally, inputs: &DigInputs<'_>) -> Observation {
    Observation {
        approved: inputs.approved,
        revision: inputs.revision,
        revision_before: inputs.before.revision,
        removing: inputs.removing,
        suspended: inputs.suspended,
        applied: tally.applied,
        progressing: tally.applying,
        failed: tally.failed + tally.failed_removals,
        unreachable: tally.unreachable_without,
        on_another: tally.on_another,
        left: tally.left,
    }
}

fn deployed(tally: &Tally, failing: &[Failing], example: Option<&str>, revision: Option<i64>) -> Verdict {
    let Some(revision) = revision else {
        return no(Reason::Progressing, "there is no revision yet".to_owned());
    };
    let (all, have) = (clusters(tally.total), if tally.total == 1 { "has" } else { "have" });
    if tally.applied == tally.total && tally.left == 0 {
        return Verdict {
            status: "True",
            reason: Reason::Deployed.as_str(),
            message: format!("{all} {have} revision {revision}"),
        };
    }
    let mut said = vec![format!("{} of {all} {have} revision {revision}", tally.applied)];
    if tally.left > 0 {
        said.push(format!("{} still to be cleaned", clusters(tally.left)));
    }
    let first_failed = failing.iter().find(|f| f.reason != Reason::Unreachable.as_str());
    let broken = tally.failed + tally.failed_removals > 0;
    let waits = Reason::WaitingForDependency;
    let waiting = failing.iter().any(|failing| failing.reason == waits.as_str());
    let reason = match first_failed.and_then(|f| Reason::parse(&f.reason)) {
        Some(reason) if broken => reason,
        _ if waiting => waits,
        _ if tally.applying > 0 || tally.left > tally.unreachable_removals => Reason::Progressing,
        _ => Reason::Unreachable,
    };
    no(reason, sentence(said, example, tally))
}

fn ready(
    tally: &Tally,
    failing: &[Failing],
    example: Option<&str>,
    deployed: &Verdict,
    share: Option<&PercentOrCount>,
) -> Verdict {
    let needed = needed(share, tally.total);
    let share = if needed < tally.total { format!(" ({needed} needed)") } else { String::new() };
    let first = format!("{} of {} ready{share}", tally.ready, clusters(tally.total));
    let message = sentence(vec![first], example, tally);
    // Nothing anywhere is nothing that could be ready.
    if tally.total > 0 && tally.ready >= needed {
        return Verdict { status: "True", reason: Reason::Ready.as_str(), message };
    }
    if deployed.status == "False" {
        return Verdict { status: "False", reason: deployed.reason, message };
    }
    let stuck = || failing.iter().any(|f| f.reason == Reason::ProgressDeadlineExceeded.as_str());
    let reason = if tally.unreachable > 0 && tally.progressing + tally.failed == 0 {
        Reason::Unreachable
    } else if tally.failed > 0 && stuck() {
        Reason::ProgressDeadlineExceeded
    } else {
        Reason::NotReady
    };
    no(reason, message)
}

/// Goes on with how many are not well, and with the first of them as example.
fn sentence(mut said: Vec<String>, example: Option<&str>, tally: &Tally) -> String {
    if tally.unreachable > 0 {
        said.push(format!("{} unreachable", tally.unreachable));
    }
    if tally.failed > 0 {
        said.push(format!("{} failed", tally.failed));
    }
    said.extend(example.map(str::to_owned));
    said.join("; ")
}

/// For `status.failing`.
fn failing(first: &[FailingCluster]) -> Vec<Failing> {
    first.iter().map(|one| one.said.clone()).collect()
}

/// The message of an entry of `status.failing`: that of a row's error.
pub fn failing_message(resource: Option<&str>, message: &str) -> String {
    shorten(&said_of_object(resource, message), LONGEST_MESSAGE)
}

/// Whether the reason of an entry of `status.failing` is neither progress nor a cluster that cannot be reached, which its Cluster tells.
pub fn is_failure(reason: &str) -> bool {
    reason != Reason::Unreachable.as_str() && !is_progress(reason)
}

/// What is true of a logical cloud.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudRollup {
    /// For `status.state`.
    pub state: State,
    /// For `status.summary`.
    pub summary: Summary,
    /// For `status.clusters`; what is not granted is the caller's to add.
    pub clusters: CloudClusters,
    /// Clusters that have all of the running revision, of those that are to have it: `2 of 3 clusters`.
    pub applied: String,
    /// For `status.failing`.
    pub failing: Vec<Failing>,
    /// Condition Ready.
    pub ready: Verdict,
    /// Clusters where it is ready: there deployments may go.
    pub ready_on: BTreeSet<ClusterId>,
    /// Clusters that have all of the running revision.
    pub applied_on: BTreeSet<ClusterId>,
    /// Clusters where something of it may still be that is not wanted there.
    pub left: usize,
}

/// The status of a logical cloud. `inputs` as for a deployment; `placement` and `ready_clusters` play no part: it is ready
/// where it is ready, and one dead cluster holds up nothing.
pub fn cloud(inputs: &DigInputs<'_>) -> CloudRollup {
    let facts = facts::of(inputs.shards, inputs.wanted);
    CloudRollup {
        ready_on: facts.iter().filter(|f| f.kind == Kind::Ready).map(|f| f.cluster.clone()).collect(),
        applied_on: facts.iter().filter(|f| f.applied).map(|f| f.cluster.clone()).collect(),
        ..Sums::of(&facts).cloud(inputs)
    }
}

/// The same of clusters that come to this, without their names.
fn cloud_status(sums: &Sums, inputs: &DigInputs<'_>) -> CloudRollup {
    let Sums { tally, failing: failed, .. } = sums;
    let failing = failing(failed);
    let first = format!("{} of {} ready", tally.ready, clusters(tally.total));
    let message = sentence(vec![first], example(failed).as_deref(), tally);
    let said = failing
        .iter()
        .find_map(|f| LogicalCloudReason::parse(&f.reason).filter(|r| *r != LogicalCloudReason::Unreachable));
    let ready = if tally.failed > 0 {
        Verdict {
            status: "False",
            reason: said.unwrap_or(LogicalCloudReason::Instantiating).as_str(),
            message,
        }
    } else if tally.progressing > 0 || tally.total == 0 {
        Verdict { status: "False", reason: LogicalCloudReason::Instantiating.as_str(), message }
    } else if tally.ready == 0 {
        Verdict { status: "False", reason: LogicalCloudReason::Unreachable.as_str(), message }
    } else {
        Verdict { status: "True", reason: LogicalCloudReason::Ready.as_str(), message }
    };
    CloudRollup {
        state: state::next(inputs.before.state, &observation(tally, inputs)),
        summary: Summary { clusters: Some(format!("{}/{}", tally.ready, tally.total)), ..Summary::default() },
        clusters: CloudClusters {
            total: count(tally.total),
            ready: count(tally.ready),
            failed: count(tally.failed),
            unreachable: count(tally.unreachable),
            not_granted: 0,
        },
        applied: runs_on(tally),
        failing,
        ready,
        ready_on: BTreeSet::new(),
        applied_on: BTreeSet::new(),
        left: tally.left,
    }
}

const fn no(reason: Reason, message: String) -> Verdict {
    Verdict { status: "False", reason: reason.as_str(), message }
}

fn clusters(number: usize) -> String {
    counted(number, "cluster")
}

/// Clusters that have all of the running revision, of those that are to have it.
fn runs_on(tally: &Tally) -> String {
    let away = match tally.applied_unseen {
        0 => String::new(),
        away => format!(", of which {away} cannot be reached"),
    };
    format!("{} of {}{away}", tally.applied, clusters(tally.total))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
