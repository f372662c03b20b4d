//! Plans a snapshot: the pure half in one call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::deployment_intent_group::reachability::Reachability;
use emco_crds::deployment_intent_group::rollout::Rollout;
use emco_crds::deployment_intent_group::status::IntentStatus;
use emco_crds::traffic_group_intent::{MadePolicies, Unsupported};

use crate::changes::Change;
use crate::identity::{ClusterId, SetDigest};
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::resolve::{Resolved, Supervisor};
use crate::rollout::Waves;
use crate::set::{Assignment, ManifestSet, provenance};
use crate::snapshot::Snapshot;
use crate::{explain, inputs, place, resolve};

mod budget;
mod build;
mod by_git;
mod change;
mod digest;
mod findings;
mod gains;
mod generated;
mod limits;
pub mod lookup;
mod render;
mod work;
pub mod written;

pub use budget::over_budget;
pub use digest::inputs_digest;
pub use findings::{Remarks, sentence};
pub use gains::DerivedAccount;

/// One complete plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// `sha256:...` over everything people wrote.
    pub inputs_digest: String,
    /// `sha256:...` over the inputs, the assignment and the sets.
    pub plan_digest: String,
    /// Who gets what.
    pub assignment: Assignment,
    /// Placed, but not rendered yet: clusters never contacted, with the apps they are to get.
    pub waiting: BTreeMap<ClusterId, Vec<String>>,
    /// Sets by digest, new and used again, with those of tests. (One stored but unreadable is rendered again.)
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// Placement of each app, in the order of the composite app; then of generated apps, in the order of their intents.
    pub placement: Vec<(String, AppPlacement)>,
    /// Clusters that any app is placed on.
    pub clusters: usize,
    /// Sentences for an Event: dropped namespace objects, duplicate list entries ...
    pub warnings: Vec<String>,
    /// What renderings showed that is no error, by app, as stored with the assignment; apps without are left out.
    pub remarks: Vec<Remarks>,
    /// The proof of the servers that intents of traffic name; `None` without any.
    pub reachability: Option<Reachability>,
    /// What each listed intent does, for `status.intents`; empty where that is not known of a cell.
    pub intents: Vec<IntentStatus>,
    /// `None` where nothing differs from the running revision, or where there is none and nothing can be rendered yet: then
    /// no revision is made.
    pub change: Option<Change>,
    /// How it reaches its clusters; `None`: all at once.
    pub waves: Option<Arc<Waves>>,
    /// Why each cluster was chosen or not, as it is stored beside a revision ([`explain::read`]); empty without a change.
    pub explanation: Vec<Vec<u8>>,
}

/// Works out the whole plan. The same snapshot gives the same plan.
pub fn plan(snapshot: &Snapshot) -> Result<Plan, Box<Refusal>> {
    supervised(snapshot, &resolve::Unsupervised)
}

/// The same, with somebody who watches over the renderings. A plan that is stopped ends in a refusal that nobody needs to read.
pub fn supervised(snapshot: &Snapshot, supervisor: &dyn Supervisor) -> Result<Plan, Box<Refusal>> {
    let resolved = Resolved { supervisor, ..resolve::resolve(snapshot)? };
    let inputs_digest = inputs::digest(&resolved);
    let running = snapshot.running.as_ref();
    let apps: Vec<&str> = resolved.apps.iter().map(|app| app.app.name.as_str()).collect();
    let unchanged = running.is_some_and(|running| running.inputs_digest == inputs_digest);
    let fenced = fenced(&resolved);
    let request = request(&resolved, (&apps, &fenced), unchanged);
    let mut placement = place::place(&request)?;
    generated::place(&resolved, &mut placement);
    let build::Built { assignment, waiting, sets, mut warnings, reachability } =
        build::build(&resolved, &placement)?;
    by_git::check(&resolved, &assignment, &sets)?;
    warnings.extend(generated::warnings(&resolved, &placement));
    let rollout = resolved.dig.spec.rollout.as_ref();
    let plan_digest =
        digest::plan_digest(&inputs_digest, rollout, &assignment, resolved.cloud.derived.as_ref());
    let remarks = findings::remarks(&resolved, &assignment, &sets);
    let intents = provenance::intents(&resolved.dig.spec.intents, &assignment);
    let chosen: BTreeSet<&ClusterId> = placement.iter().flat_map(|(_, placed)| &placed.chosen).collect();
    let clusters = chosen.len();
    let mut plan = Plan {
        inputs_digest,
        plan_digest,
        assignment,
        waiting,
        sets,
        placement,
        clusters,
        warnings,
        remarks,
        reachability,
        intents,
        change: None,
        waves: None,
        explanation: Vec::new(),
    };
    plan.change = change::change(&resolved, &plan);
    if plan.change.is_some() {
        limits::check(snapshot, &plan)?;
        plan.waves = waves(&resolved, &plan, unchanged);
        plan.explanation = explained(&resolved, &request, &plan.placement);
    }
    Ok(plan)
}

/// Divides the clusters into waves, where people want that. While the inputs stay, clusters keep their waves.
fn waves(resolved: &Resolved<'_>, plan: &Plan, unchanged: bool) -> Option<Arc<Waves>> {
    let rollout = resolved.dig.spec.rollout.as_ref().filter(|rollout| **rollout != Rollout::default())?;
    let assigned = plan.assignment.iter().filter(|(_, apps)| !apps.is_empty()).map(|(id, _)| id);
    // Who is not heard of yet has its wave, too.
    let placed = assigned.chain(plan.waiting.keys()).cloned().collect();
    let running = resolved.snapshot.running.as_ref().filter(|_| unchanged);
    let earlier = running.and_then(|running| running.waves.as_deref());
    Some(Arc::new(Waves::freeze(rollout, &placed, &resolved.snapshot.clusters, earlier)))
}

/// Apps that go only where NetworkPolicies have effect, as far as that is known.
fn fenced<'a>(resolved: &Resolved<'a>) -> BTreeSet<&'a str> {
    let needing = resolved.traffic.iter().filter(|group| {
        group.spec.made() == MadePolicies::Servers && group.spec.unsupported() == Unsupported::Exclude
    });
    needing.flat_map(|group| &group.spec.servers).map(|server| server.app.as_str()).collect()
}

fn request<'a>(
    resolved: &'a Resolved<'a>,
    (apps, fenced): (&'a [&'a str], &'a BTreeSet<&'a str>),
    unchanged: bool,
) -> place::Request<'a> {
    let snapshot = resolved.snapshot;
    place::Request {
        clusters: &snapshot.clusters,
        cloud: resolved.cloud,
        placement: &resolved.dig.spec.placement,
        hardware: &resolved.hardware,
        apps,
        fenced,
        running: snapshot.running.as_ref().map(|running| &running.assignment),
        unchanged,
    }
}

/// Why each cluster was chosen or not by a plan that is carried out already, as far as that can be told afterwards.
pub fn explanation(snapshot: &Snapshot, plan: &Plan) -> Result<Vec<Vec<u8>>, Box<Refusal>> {
    let resolved = resolve::resolve(snapshot)?;
    let apps: Vec<&str> = resolved.apps.iter().map(|app| app.app.name.as_str()).collect();
    // As it was when the choice was made: nothing was frozen.
    let fenced = fenced(&resolved);
    Ok(explained(&resolved, &request(&resolved, (&apps, &fenced), false), &plan.placement))
}

/// Of all apps, those of charts first: what does not fit is left out.
fn explained(
    resolved: &Resolved<'_>,
    request: &place::Request<'_>,
    placement: &[(String, AppPlacement)],
) -> Vec<Vec<u8>> {
    let mut all = place::explain(request, placement);
    all.extend(generated::explain(resolved, placement));
    explain::write(&all)
}
