//! Says which set of objects each cluster of a logical cloud has: one for all, or by the rights that are derived for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::conditions::types::READY;

use super::{APP, Request, objects};
use crate::identity::{ClusterId, SetDigest};
use crate::refusal::Refusal;
use crate::role::{Derived, Rights, Rule};
use crate::set::{Assigned, Assignment, ManifestSet, SetManifest};

/// Most rules that are derived for one cluster.
const MOST_RULES: usize = 500;

/// Seconds after a change in which no cluster is given less: those that finish one after the other are one revision.
const PAUSE: i64 = 10;

/// What clusters are given.
pub(super) struct Given {
    /// The set of each.
    pub assignment: Assignment,
    /// The sets.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// When some of them may be given less, in Unix seconds.
    pub less_at: Option<i64>,
}

/// The set of each cluster, and the sets.
pub(super) fn given<'a>(
    request: &Request<'_>,
    clusters: impl Iterator<Item = &'a ClusterId>,
    (plain, inputs_digest): (&Arc<ManifestSet>, &str),
) -> Result<Given, Box<Refusal>> {
    let derives = Derived::is_in(request.spec);
    let mut given = Given { assignment: Assignment::new(), sets: BTreeMap::new(), less_at: None };
    if !derives {
        given.sets.insert(plain.digest.clone(), Arc::clone(plain));
    }
    // What people wrote is carried out at once.
    let same = request.running.is_some_and(|running| running.inputs_digest == inputs_digest);
    let pause_ends = pause_ends(request).filter(|_| derives && same);
    let mut made: BTreeMap<&Rights, Arc<ManifestSet>> = BTreeMap::new();
    for id in clusters {
        let had = running(request, id);
        let mut set = match request.derived.get(id).filter(|_| derives) {
            None => Arc::clone(plain),
            Some(Some(rights)) if rights.len() > MOST_RULES => return Err(too_many(request, id, rights)),
            Some(Some(rights)) => {
                let set = made.entry(rights).or_insert_with(|| Arc::new(objects::set(request, rights)));
                Arc::clone(set)
            }
            Some(None) => had.unwrap_or(plain).clone(),
        };
        if let (Some(ends), Some(had)) = (pause_ends, had)
            && is_less(&set, had)
        {
            given.less_at = Some(ends);
            set = Arc::clone(had);
        }
        let assigned = assigned(request, id, &set.digest);
        given.assignment.insert(id.clone(), BTreeMap::from([(APP.to_owned(), assigned)]));
        given.sets.insert(set.digest.clone(), set);
    }
    Ok(given)
}

/// The end of the pause after the last change of a set, if it lasts.
fn pause_ends(request: &Request<'_>) -> Option<i64> {
    let assigned = request.running?.assignment.values().filter_map(|apps| apps.get(APP));
    let last = assigned.map(|assigned| assigned.now).max()?;
    // A clock that was put back makes no pause longer.
    (last..last + PAUSE).contains(&request.now).then_some(last + PAUSE)
}

/// Whether a set differs from another in nothing but that its roles have fewer rights.
fn is_less(set: &ManifestSet, than: &ManifestSet) -> bool {
    let fewer = |(now, had): (&SetManifest, &SetManifest)| {
        let rules = |manifest: &SetManifest| Rule::list(manifest.json.get("rules"));
        let had_rules = rules(had);
        now.digest == had.digest
            || now.identity() == had.identity()
                && now.json.get("rules").is_some()
                && rules(now).iter().all(|rule| rule.lacks(&had_rules).is_none())
    };
    set.digest != than.digest
        && set.manifests.len() == than.manifests.len()
        && set.manifests.iter().zip(&than.manifests).all(fewer)
}

/// Clusters with another set than the plain one.
pub(super) fn others<'a>(assignment: &'a Assignment, plain: &SetDigest) -> BTreeMap<&'a str, &'a str> {
    let sets = assignment.iter().filter_map(|(id, apps)| Some((id.as_str(), &apps.get(APP)?.set)));
    sets.filter(|(_, set)| *set != plain).map(|(id, set)| (id, set.0.as_str())).collect()
}

/// What a cluster has now.
fn running<'a>(request: &Request<'a>, id: &ClusterId) -> Option<&'a Arc<ManifestSet>> {
    let running = request.running?;
    running.sets.get(&running.assignment.get(id)?.get(APP)?.set)
}

/// The same set keeps its time, so that nothing but the assignment moves when a cluster comes.
fn assigned(request: &Request<'_>, id: &ClusterId, set: &SetDigest) -> Assigned {
    let had = request.running.and_then(|running| running.assignment.get(id)?.get(APP));
    had.filter(|had| had.set == *set).cloned().unwrap_or_else(|| Assigned {
        set: set.clone(),
        render_key: set.0.clone(),
        now: request.now,
        release_revision: 1,
        findings: None,
        provenance: None,
        rendered_revision: None,
        tests: None,
        edits: None,
    })
}

fn too_many(request: &Request<'_>, id: &ClusterId, rights: &Rights) -> Box<Refusal> {
    let message = format!(
        "LogicalCloud {}: what its deployments have on {id} needs {} rules, and at most {MOST_RULES} are derived: list rights in \
         spec.permissions, or use further logical clouds",
        request.name,
        rights.len()
    );
    Refusal::of(READY, "QuotaRejected", true, message)
}
