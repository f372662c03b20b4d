//! Says in the status of a logical cloud what is true on its clusters.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::conditions::types::RECONCILING;
use emco_crds::logical_cloud::{CloudClusters, LogicalCloudStatus, Provision};
use emco_crds::reasons::LogicalCloudReason;
use emco_crds::{Conditioned as _, LogicalCloud};
use emco_engine::cloud::CloudPlan;
use emco_engine::hold::Hold;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::refusal::Refusal;
use emco_engine::rollup::{People, Sums};
use emco_engine::set::combinations;
use emco_engine::text::counted;
use emco_engine::{conditions, rollup};

use super::taken;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::store::{self, Stored};

/// Names the revision that runs.
pub(super) fn runs(status: &mut LogicalCloudStatus, stored: &Stored) {
    status.revision = Some(stored.spec.revision);
    status.digest = Some(stored.spec.digest.clone());
    status.app_context = Some(stored.name.clone());
}

/// Reports a refused change: clusters are counted as ever, and Ready says what runs, then why the change does not.
pub(super) async fn refused(
    ctx: &Context,
    owner: &Owner,
    generation: i64,
    refusal: &Refusal,
    status: &mut LogicalCloudStatus,
) -> Result<(), Failure> {
    let message = match store::newest(ctx, owner).await? {
        Some(stored) => {
            let revision = stored.spec.revision;
            runs(status, &stored);
            let rolled = roll_up(ctx, owner, &combinations(&stored.running.assignment), status);
            let said = (refusal.reason, refusal.message.as_str());
            let message = rollup::still_runs(revision, &rolled.applied, said, &rolled.ready);
            // Which clusters the refused change could have had is not worked out.
            let not_granted = status.clusters.as_ref().map_or(0, |clusters| clusters.not_granted);
            fill(status, rolled, not_granted);
            message
        }
        None => refusal.message.clone(),
    };
    let message = match suspension::of_all(&ctx.stores, &owner.namespace) {
        Some(hold) => format!("{message}; {}", hold.sentence()),
        None => message,
    };
    let verdict = if refusal.stalled { ReadyState::Stalled } else { ReadyState::Waiting };
    status::set_ready_because(ctx, status, generation, &verdict, refusal.reason, &message, &refusal.message);
    Ok(())
}

/// Clusters that it is to leave and cannot yet.
fn shrink_waits(clusters: &BTreeSet<ClusterId>) -> Option<String> {
    let first = clusters.first()?;
    let who = match clusters.len() {
        1 => format!("{first} leaves"),
        all => format!("{first} and {} more leave", all - 1),
    };
    Some(format!("{who} when no deployment of this logical cloud is there any more"))
}

fn before(status: &LogicalCloudStatus) -> rollup::Before {
    rollup::Before {
        state: status.state.unwrap_or_default(),
        revision: status.revision,
        apps: BTreeMap::new(),
    }
}

/// What the shards say of a revision with these combinations.
fn roll_up(
    ctx: &Context,
    owner: &Owner,
    wanted: &BTreeMap<ClusterId, Combination>,
    status: &LogicalCloudStatus,
) -> rollup::CloudRollup {
    let shards = store::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    rollup::cloud(&inputs(ctx, owner, (&parts, wanted), status.revision, &before(status)))
}

fn inputs<'a>(
    ctx: &Context,
    owner: &Owner,
    (shards, wanted): (&'a [rollup::Shard<'a>], &'a BTreeMap<ClusterId, Combination>),
    revision: Option<i64>,
    before: &'a rollup::Before,
) -> rollup::DigInputs<'a> {
    rollup::DigInputs {
        shards,
        wanted,
        revision,
        placement: &[],
        ready_clusters: None,
        before,
        approved: true,
        removing: false,
        suspended: suspension::of_project(&ctx.stores, &owner.namespace),
        abandoned: &[],
    }
}

/// Clusters that have all of a revision with these combinations.
pub(super) fn applied_on(
    ctx: &Context,
    owner: &Owner,
    wanted: &BTreeMap<ClusterId, Combination>,
    status: &LogicalCloudStatus,
) -> BTreeSet<ClusterId> {
    roll_up(ctx, owner, wanted, status).applied_on
}

/// Numbers and lists of the status.
fn fill(status: &mut LogicalCloudStatus, rolled: rollup::CloudRollup, not_granted: i64) {
    status.state = Some(rolled.state);
    status.summary = Some(rolled.summary);
    status.clusters = Some(CloudClusters { not_granted, ..rolled.clusters });
    status.failing = rolled.failing;
}

/// What is said of a plan beside what its clusters report.
pub(super) struct Beside {
    /// Clusters that are named and not granted.
    not_granted: usize,
    /// The first cluster where the namespace is reserved, and how many there are.
    reserved: Option<(ClusterId, usize)>,
    /// Which clusters are not left yet.
    pub(super) shrink_waits: Option<String>,
    /// Of one that waits for deployments: clusters that are prepared then.
    prepared: Option<usize>,
}

impl Beside {
    /// Of a plan with these combinations.
    pub(super) fn of(
        cloud: &LogicalCloud,
        planned: &CloudPlan,
        wanted: &BTreeMap<ClusterId, Combination>,
    ) -> Self {
        let members = &planned.members;
        let waits = cloud.spec.provision == Provision::OnDemand && wanted.is_empty();
        Self {
            not_granted: members.not_granted.len() + members.level_not_granted.len(),
            reserved: members.reserved.first().map(|first| (first.clone(), members.reserved.len())),
            shrink_waits: shrink_waits(&planned.shrink_waits),
            prepared: waits.then_some(members.candidates.len()),
        }
    }
}

/// What the shards say of what clusters are to have, and how the credentials of a person stand, into the status.
pub(super) fn report(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    beside: &Beside,
    (wanted, people): (&BTreeMap<ClusterId, Combination>, &People),
    hold: Option<&Hold>,
    status: &mut LogicalCloudStatus,
) {
    let rolled = rollup::with_people(roll_up(ctx, owner, wanted, status), people);
    say(ctx, cloud, rolled, beside, hold, status);
}

/// The same of clusters that come to these sums, without a person.
pub(super) fn report_sums(
    ctx: &Context,
    cloud: &LogicalCloud,
    owner: &Owner,
    (beside, sums): (&Beside, &Sums),
    status: &mut LogicalCloudStatus,
) {
    let before = before(status);
    let rolled = sums.cloud(&inputs(ctx, owner, (&[], &BTreeMap::new()), status.revision, &before));
    say(ctx, cloud, rolled, beside, None, status);
}

fn say(
    ctx: &Context,
    cloud: &LogicalCloud,
    rolled: rollup::CloudRollup,
    beside: &Beside,
    hold: Option<&Hold>,
    status: &mut LogicalCloudStatus,
) {
    let not_granted = beside.not_granted;
    let (mut ready, left) = (rolled.ready.clone(), rolled.left);
    fill(status, rolled, i64::try_from(not_granted).unwrap_or(i64::MAX));
    let generation = meta::generation(cloud);
    if not_granted > 0 {
        ready.message.push_str(&format!("; {not_granted} named and not granted"));
    }
    if let Some((first, all)) = &beside.reserved {
        let (namespace, on) = (cloud.cluster_namespace(), counted(*all, "cluster"));
        ready.message.push_str(&format!("; namespace {namespace} is reserved on {on}, as on {first}"));
    }
    if let Some(waits) = &beside.shrink_waits {
        // What else keeps it from being ready has the reason.
        if ready.status == "True" {
            (ready.status, ready.reason) = ("False", LogicalCloudReason::ShrinkWaits.as_str());
        }
        ready.message.push_str(&format!("; {waits}"));
    }
    if let Some(prepared) = beside.prepared.filter(|_| left == 0) {
        let waiting = counted(prepared, "cluster");
        ready = rollup::Verdict {
            status: "True",
            reason: LogicalCloudReason::Ready.as_str(),
            message: format!("no deployment is placed: each of {waiting} is prepared when one is"),
        };
    }
    if let Some(contested) = taken::contested(ctx, cloud) {
        ready.message.push_str(&format!("; {contested}"));
    }
    if let Some(hold) = hold {
        ready = hold.ready(ready, status.revision.is_some());
    }
    let verdict = if ready.status == "True" { ReadyState::Ready } else { ReadyState::Waiting };
    status::set_ready(ctx, status, generation, &verdict, ready.reason, &ready.message);
    // Who applies and waits must not read that all is done.
    if hold.is_some_and(Hold::waits) {
        let list = status.conditions_mut();
        conditions::set(list, RECONCILING, "True", ready.reason, &ready.message, generation, ctx.now());
    }
}
