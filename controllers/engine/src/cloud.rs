//! Works out which clusters a logical cloud has by grants and selection, and what is put on them for it.
//!
//! A logical cloud is a producer like a deployment intent group: one app named `namespace`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::cluster_provider::Grant;
use emco_crds::conditions::types::READY;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::fields::Level;
use emco_crds::logical_cloud::Provision;
use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_crds::{ClusterProvider, LogicalCloudSpec};
use serde_json::json;

use crate::canonical;
use crate::changes::Change;
use crate::identity::{ClusterId, SetDigest};
use crate::refusal::Refusal;
use crate::role::Rights;
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::{ClusterFacts, Installation, Running, Scheduling};
use crate::terms::{self, Candidate};
use crate::text::counted;

mod facts;
mod given;
mod objects;
mod reserved;
mod rights;

pub use facts::{CloudFacts, account, account_name, account_parts, missing};
pub use objects::isolation;
pub use reserved::reserve;

/// Name of the one app of a logical cloud.
pub const APP: &str = "namespace";

/// Highest level the project has on each cluster that it may use at all.
pub fn granted(
    project: &str,
    labels: &BTreeMap<String, String>,
    providers: &[&ClusterProvider],
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> BTreeMap<ClusterId, Level> {
    let mut levels = BTreeMap::new();
    for provider in providers {
        let name = provider.metadata.name.as_deref().unwrap_or_default();
        let grants: Vec<&Grant> =
            provider.spec.grants.iter().filter(|grant| speaks_of(grant, project, labels)).collect();
        for (id, facts) in clusters.iter().filter(|(id, _)| id.provider() == name) {
            let cluster = Candidate::new(facts);
            let covers = |grant: &&&Grant| {
                grant.clusters.as_ref().is_none_or(|terms| terms::any_matches(terms, &cluster))
            };
            let level = grants.iter().filter(covers).map(|grant| grant.max_level.unwrap_or_default()).max();
            if let Some(level) = level {
                levels.insert(id.clone(), level);
            }
        }
    }
    levels
}

/// Whether a provider grants a project anything, whichever clusters it has.
pub fn grants_any(provider: &ClusterProvider, project: &str, labels: &BTreeMap<String, String>) -> bool {
    provider.spec.grants.iter().any(|grant| speaks_of(grant, project, labels))
}

fn speaks_of(grant: &Grant, project: &str, labels: &BTreeMap<String, String>) -> bool {
    let Grant { name: _, projects, project_selector, max_level: _, clusters: _ } = grant;
    projects.iter().flatten().any(|name| name == project)
        || project_selector
            .as_ref()
            .is_some_and(|selector| terms::selects(selector, |key| labels.get(key).map(String::as_str)))
}

/// Which clusters a logical cloud has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// It has them, and the project may use them at its level.
    pub candidates: BTreeSet<ClusterId>,
    /// Its terms pick them, but no grant covers them.
    pub not_granted: BTreeSet<ClusterId>,
    /// Granted at a lower level only.
    pub level_not_granted: BTreeSet<ClusterId>,
    /// Granted, and its namespace is nobody's there.
    pub reserved: BTreeSet<ClusterId>,
}

/// Picks the clusters of a logical cloud. Without terms it has every granted cluster, and nothing counts as not granted.
pub fn members(
    spec: &LogicalCloudSpec,
    granted: &BTreeMap<ClusterId, Level>,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
) -> Members {
    let mut members = Members::default();
    for (id, facts) in clusters {
        let picked =
            spec.clusters.as_ref().is_none_or(|terms| terms::any_matches(terms, &Candidate::new(facts)));
        match granted.get(id) {
            _ if !picked => {}
            Some(level) if *level >= spec.level => {
                members.candidates.insert(id.clone());
            }
            Some(_) => {
                members.level_not_granted.insert(id.clone());
            }
            None if spec.clusters.is_some() => {
                members.not_granted.insert(id.clone());
            }
            None => {}
        }
    }
    members
}

impl Members {
    /// With those that are reserved told apart.
    fn of(request: &Request<'_>) -> Self {
        let mut members = members(request.spec, request.granted, request.clusters);
        let picks = |facts: &ClusterFacts| {
            let terms = request.spec.clusters.as_ref();
            terms.is_none_or(|terms| terms::any_matches(terms, &Candidate::new(facts)))
        };
        let picked = |id: &&ClusterId| request.clusters.get(*id).is_some_and(picks);
        members.reserved = request.reserved.iter().filter(picked).cloned().collect();
        members.not_granted.retain(|id| !request.reserved.contains(id));
        members
    }
}

/// What the plan of a logical cloud reads.
pub struct Request<'a> {
    /// Keys of this installation.
    pub installation: &'a Installation,
    /// Name of the Project.
    pub project: &'a str,
    /// Name of the `LogicalCloud`.
    pub name: &'a str,
    /// Its spec.
    pub spec: &'a LogicalCloudSpec,
    /// Namespace on the clusters, with its default.
    pub namespace: &'a str,
    /// All clusters of all providers.
    pub clusters: &'a BTreeMap<ClusterId, ClusterFacts>,
    /// From [`granted`], without `reserved`.
    pub granted: &'a BTreeMap<ClusterId, Level>,
    /// From [`reserve`].
    pub reserved: &'a BTreeSet<ClusterId>,
    /// Clusters where a group of this cloud has something, or is to have it: the namespace stays there. With `provision: OnDemand` it is made
    /// there alone.
    pub held: &'a BTreeSet<ClusterId>,
    /// Rights that are derived, where deployments have something: `None` where that cannot be told now, so that what is there stays.
    pub derived: &'a BTreeMap<ClusterId, Option<Rights>>,
    /// What runs.
    pub running: Option<&'a Running>,
    /// Unix seconds.
    pub now: i64,
}

/// The plan of a logical cloud.
#[derive(Clone, Debug)]
pub struct CloudPlan {
    /// Its clusters.
    pub members: Members,
    /// Clusters it no longer has, that a group holds: the namespace stays until the group has left.
    pub shrink_waits: BTreeSet<ClusterId>,
    /// `sha256:...` over level, namespace and what is made there.
    pub inputs_digest: String,
    /// `sha256:...` over the inputs and the assignment.
    pub plan_digest: String,
    /// Who gets the namespace.
    pub assignment: Assignment,
    /// The one set, or, where rights are derived, that of each cluster.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// When clusters may be given less than they have, in Unix seconds: a moment after the last change.
    pub less_at: Option<i64>,
    /// `None` where nothing differs from what runs.
    pub change: Option<Change>,
}

/// Plans a logical cloud.
pub fn plan(request: &Request<'_>) -> Result<CloudPlan, Box<Refusal>> {
    let members = Members::of(request);
    if members.candidates.is_empty() && request.held.is_empty() {
        return Err(refusal(request, &members));
    }
    let runs = |id: &ClusterId| request.running.is_some_and(|running| running.assignment.contains_key(id));
    let takes = |id: &ClusterId| {
        let scheduling = request.clusters.get(id).map_or(Scheduling::Cordoned, |facts| facts.scheduling);
        members.candidates.contains(id)
            && match scheduling {
                Scheduling::Enabled => true,
                Scheduling::Cordoned => runs(id),
                Scheduling::Drained => false,
            }
    };
    let placed = |id: &ClusterId| request.spec.provision == Provision::Eager || request.held.contains(id);
    let wanted: BTreeSet<&ClusterId> =
        members.candidates.iter().filter(|id| takes(id) && placed(id)).collect();
    let held: BTreeSet<ClusterId> =
        request.held.iter().filter(|id| runs(id) && !wanted.contains(id)).cloned().collect();
    let plain = Arc::new(objects::set(request, &Rights::default()));
    let inputs =
        json!({"level": request.spec.level.as_str(), "namespace": request.namespace, "set": plain.digest});
    let inputs_digest = canonical::sha256("emco-cloud-inputs/1\0", &inputs);
    let given::Given { assignment, sets, less_at } =
        given::given(request, wanted.into_iter().chain(&held), (&plain, &inputs_digest))?;
    let clusters: Vec<&str> = assignment.keys().map(ClusterId::as_str).collect();
    let mut document = json!({"inputs": inputs_digest, "clusters": clusters});
    let others = given::others(&assignment, &plain.digest);
    if let Some(map) = document.as_object_mut().filter(|_| !others.is_empty()) {
        map.insert("sets".to_owned(), json!(others));
    }
    let plan_digest = canonical::sha256("emco-cloud-plan/1\0", &document);
    let change = change(request, &inputs_digest, &plan_digest, &assignment);
    Ok(CloudPlan {
        shrink_waits: held,
        members,
        inputs_digest,
        plan_digest,
        sets,
        assignment,
        less_at,
        change,
    })
}

fn change(
    request: &Request<'_>,
    inputs_digest: &str,
    plan_digest: &str,
    assignment: &Assignment,
) -> Option<Change> {
    let (cause, before) = match request.running {
        None if assignment.is_empty() => return None,
        None => (Cause::Create, None),
        Some(running) if running.plan_digest == plan_digest => return None,
        Some(running) if running.inputs_digest == inputs_digest => {
            let moves = !running.assignment.keys().eq(assignment.keys());
            (if moves { Cause::Placement } else { Cause::Update }, Some(running))
        }
        Some(running) => (Cause::Update, Some(running)),
    };
    let had = |id: &ClusterId| before.is_some_and(|running| running.assignment.contains_key(id));
    let added = assignment.keys().filter(|id| !had(id)).count();
    let left = before.into_iter().flat_map(|running| running.assignment.keys());
    let removed = left.filter(|id| !assignment.contains_key(id)).count();
    let mut removals = BTreeMap::new();
    if removed > 0 {
        removals.insert(APP.to_owned(), removed);
    }
    let total = counted(assignment.len(), "cluster");
    let same = before.filter(|running| running.inputs_digest == inputs_digest);
    let other = |(id, apps): &(&ClusterId, &BTreeMap<String, Assigned>)| {
        let had = same.and_then(|running| running.assignment.get(*id)?.get(APP));
        had.is_some_and(|had| apps.get(APP).is_some_and(|now| now.set != had.set))
    };
    let other = assignment.iter().filter(other).count();
    let counts: Vec<String> = [(added, "added"), (removed, "removed"), (other, "given other rights")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let counts = if counts.is_empty() { "no cluster added or removed".to_owned() } else { counts.join(", ") };
    let summary = format!("namespace {} on {total}: {counts}", request.namespace);
    Some(Change { cause, summary, removals, ..Change::default() })
}

fn refusal(request: &Request<'_>, members: &Members) -> Box<Refusal> {
    let Request { project, name, spec, .. } = request;
    let level = spec.level.as_str();
    let some = |ids: &BTreeSet<ClusterId>| {
        let shown = ids.iter().take(3).map(ClusterId::as_str).collect::<Vec<_>>().join(", ");
        if ids.len() > 3 { format!("{shown} and {} more", ids.len() - 3) } else { shown }
    };
    let (reason, message) = if !members.reserved.is_empty() {
        let (ids, namespace) = (some(&members.reserved), request.namespace);
        let text = format!(
            "LogicalCloud {name}: namespace {namespace} is reserved on {ids}, by the operator or by reservedNamespaces of the \
             ClusterProvider: make a new logical cloud with another spec.namespace"
        );
        (Reason::NamespaceReserved, text)
    } else if !members.level_not_granted.is_empty() {
        let ids = some(&members.level_not_granted);
        let text = format!(
            "LogicalCloud {name}: level {level} is not granted to project {project} on {ids}: a grant of the \
             ClusterProvider needs maxLevel: {level}"
        );
        (Reason::LevelNotGranted, text)
    } else if !members.not_granted.is_empty() {
        let ids = some(&members.not_granted);
        let text = format!(
            "LogicalCloud {name}: project {project} may not use {ids}: spec.grants of the ClusterProvider must name the \
             project"
        );
        (Reason::NotGranted, text)
    } else if let Some(terms) = &spec.clusters
        && !request.clusters.is_empty()
    {
        let terms = terms.iter().take(3).map(terms::describe).collect::<Vec<_>>().join("; ");
        let text = format!(
            "LogicalCloud {name}: no cluster matches spec.clusters ({terms}): change the terms, label clusters, or register \
             them"
        );
        (Reason::NoClusters, text)
    } else {
        let text = format!(
            "LogicalCloud {name}: no cluster is granted to project {project}: a ClusterProvider must name it in spec.grants, \
             and have Clusters"
        );
        (Reason::NoClusters, text)
    };
    Refusal::of(READY, reason.as_str(), false, message)
}

#[cfg(test)]
mod tests;
