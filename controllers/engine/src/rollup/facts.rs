//! Reduces rows of shards to one fact per cluster, and their sum.

use std::collections::BTreeMap;

use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::sync_shard::status::{Connectivity, RowCounts};
use emco_crds::{Failing, RowStatus};

use super::Shard;
use crate::identity::{ClusterId, Combination};
use crate::shard::{self, Row, decode_status};

/// What a cluster counts as. Each counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has what is wanted, and all of it is ready.
    Ready,
    /// On its way.
    Progressing,
    /// It failed; work goes on.
    Failed,
    /// It cannot be reached: what is known of it is old.
    Unreachable,
    /// Nothing is wanted there, and something may be left.
    Leaving,
    /// Leaving, and that failed.
    LeavingFailed,
    /// Leaving, and it cannot be reached.
    LeavingUnreachable,
}

/// One cluster.
pub struct ClusterFact<'a> {
    pub cluster: ClusterId,
    /// What it is to have; `None` = nothing.
    pub wanted: Option<&'a Combination>,
    pub status: Option<RowStatus>,
    pub kind: Kind,
    /// It has what is wanted completely, ready or not.
    pub applied: bool,
    /// The row's target is what is wanted: its numbers speak of it.
    pub current: bool,
    /// It has another revision completely.
    pub on_another: bool,
}

/// Whether a message names an object itself, not only another one whose name begins alike.
fn names(message: &str, resource: &str) -> bool {
    let ends =
        |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/'));
    message.match_indices(resource).any(|(at, found)| message.get(at + found.len()..).is_some_and(ends))
}

/// The message of an error with the object that it is about.
pub fn said(resource: Option<&str>, message: &str) -> String {
    match resource {
        Some(resource) if !names(message, resource) => format!("{resource}: {message}"),
        _ => message.to_owned(),
    }
}

/// Whether another cluster answers in the place of the one that a row speaks of: it has nothing, whatever was applied before.
fn is_replaced(status: Option<&RowStatus>) -> bool {
    let error = status.and_then(|status| status.error.as_ref());
    error.is_some_and(|error| error.reason == Reason::ClusterReplaced.as_str())
}

impl ClusterFact<'_> {
    /// Whether another cluster answers in its place.
    pub fn is_replaced(&self) -> bool {
        is_replaced(self.status.as_ref())
    }

    /// For the list of failing clusters; `None` where there is nothing to say.
    pub fn failing(&self) -> Option<Failing> {
        let status = self.status.as_ref();
        let error = status.and_then(|s| s.error.as_ref());
        let first = status.and_then(|s| s.unready.first());
        let reason = match (self.kind, error) {
            (Kind::Unreachable | Kind::LeavingUnreachable, _) => Reason::Unreachable.as_str(),
            (Kind::Progressing, None) if first.is_some() => Reason::NotReady.as_str(),
            (Kind::Ready, _) | (Kind::Progressing | Kind::Leaving, None) => return None,
            (_, Some(error)) => &error.reason,
            (Kind::Failed | Kind::LeavingFailed, None) => Reason::NotReady.as_str(),
        };
        let message = match error {
            Some(error) => said(error.resource.as_deref(), &error.message),
            None if reason == Reason::Unreachable.as_str() => "the cluster cannot be reached".to_owned(),
            None => first.map_or_else(String::new, |first| format!("{}: {}", first.resource, first.message)),
        };
        Some(Failing {
            cluster: self.cluster.to_string(),
            app: error.and_then(|e| e.app.clone()).or_else(|| first.map(|first| first.app.clone())),
            reason: reason.to_owned(),
            message,
            since: status.and_then(|s| s.since.clone()),
        })
    }
}

/// The row of each cluster, with its result and the leading bits of its shard.
type Rows = BTreeMap<ClusterId, (i32, Row, Option<RowStatus>)>;

/// All clusters that are wanted or have a row. While a shard is being split, the row with more leading bits speaks.
pub fn of<'a>(shards: &[Shard<'_>], wanted: &'a BTreeMap<ClusterId, Combination>) -> Vec<ClusterFact<'a>> {
    let rows = rows(shards);
    let mut facts = with_row(&rows, wanted);
    for (cluster, apps) in wanted.iter().filter(|(c, apps)| !rows.contains_key(*c) && !apps.is_empty()) {
        let (kind, wanted) = (Kind::Progressing, Some(apps));
        let cluster = cluster.clone();
        let (applied, current, on_another) = (false, false, false);
        facts.push(ClusterFact { cluster, wanted, status: None, kind, applied, current, on_another });
    }
    facts
}

/// Clusters that have a row in this shard, whatever is wanted elsewhere.
pub fn of_shard<'a>(shard: Shard<'_>, wanted: &'a BTreeMap<ClusterId, Combination>) -> Vec<ClusterFact<'a>> {
    with_row(&rows(&[shard]), wanted)
}

fn rows(shards: &[Shard<'_>]) -> Rows {
    let mut rows = Rows::new();
    for (spec, status) in shards {
        let mut known = status.map(|status| decode_status(spec, status)).unwrap_or_default();
        for row in shard::rows(spec, *status) {
            let status = known.remove(&row.id);
            match rows.get(&row.cluster) {
                Some((bits, ..)) if *bits > spec.bits => {}
                _ => {
                    rows.insert(row.cluster.clone(), (spec.bits, row, status));
                }
            }
        }
    }
    rows
}

fn with_row<'a>(rows: &Rows, wanted: &'a BTreeMap<ClusterId, Combination>) -> Vec<ClusterFact<'a>> {
    let known = |(cluster, (_, row, status)): (&ClusterId, &(i32, Row, Option<RowStatus>))| {
        let want = wanted.get(cluster).filter(|apps| !apps.is_empty());
        fact(cluster, want, row, status.clone())
    };
    rows.iter().filter_map(known).collect()
}

fn fact<'a>(
    cluster: &ClusterId,
    wanted: Option<&'a Combination>,
    row: &Row,
    status: Option<RowStatus>,
) -> Option<ClusterFact<'a>> {
    let current = row.target.as_ref().map(|t| &t.apps) == wanted && row.lost.is_empty();
    let replaced = wanted.is_some() && is_replaced(status.as_ref());
    let applied = current && row.complete && !replaced;
    let unreachable = status.as_ref().is_some_and(|s| s.connectivity == Connectivity::Unreachable);
    let target = row.target.as_ref().map(|target| target.name.as_str());
    let failed = status.as_ref().is_some_and(|status| shard::failed(target, row.retargeted, status));
    let reachable = status.as_ref().is_some_and(|s| s.connectivity == Connectivity::Reachable);
    let all_ready =
        status.as_ref().is_some_and(|s| s.ready >= s.total && s.unknown == 0 && s.error.is_none());
    let kind = match (wanted.is_some(), unreachable, failed) {
        (false, ..) if applied => return None,
        (false, true, _) => Kind::LeavingUnreachable,
        (false, false, true) => Kind::LeavingFailed,
        (false, false, false) => Kind::Leaving,
        (true, true, _) => Kind::Unreachable,
        (true, false, true) => Kind::Failed,
        (true, false, false) if applied && reachable && all_ready => Kind::Ready,
        (true, false, false) => Kind::Progressing,
    };
    let on_another = !applied && !replaced && row.applied_apps.as_ref().is_some_and(|apps| !apps.is_empty());
    Some(ClusterFact { cluster: cluster.clone(), wanted, status, kind, applied, current, on_another })
}

/// The sum of all clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Clusters that are wanted.
    pub total: usize,
    pub ready: usize,
    pub progressing: usize,
    pub failed: usize,
    pub unreachable: usize,
    /// Clusters that have all that is wanted, ready or not.
    pub applied: usize,
    /// Those of them that cannot be reached.
    pub applied_unseen: usize,
    /// Clusters on their way to that.
    pub applying: usize,
    /// Clusters that do not have it and cannot be reached.
    pub unreachable_without: usize,
    /// Clusters that have another revision completely.
    pub on_another: usize,
    /// Clusters where something is left that is not wanted.
    pub left: usize,
    pub failed_removals: usize,
    pub unreachable_removals: usize,
    /// All objects of the clusters that are wanted.
    pub resources: i64,
    pub objects: RowCounts,
}

impl Tally {
    pub fn of(facts: &[ClusterFact<'_>]) -> Self {
        let mut sum = Self::default();
        for fact in facts {
            sum.add(fact);
        }
        sum
    }

    /// With the sum of other clusters.
    pub fn and(&mut self, other: &Self) {
        let Self {
            total,
            ready,
            progressing,
            failed,
            unreachable,
            applied,
            applied_unseen,
            applying,
            unreachable_without,
            on_another,
            left,
            failed_removals,
            unreachable_removals,
            resources,
            objects,
        } = other;
        self.total += total;
        self.ready += ready;
        self.progressing += progressing;
        self.failed += failed;
        self.unreachable += unreachable;
        self.applied += applied;
        self.applied_unseen += applied_unseen;
        self.applying += applying;
        self.unreachable_without += unreachable_without;
        self.on_another += on_another;
        self.left += left;
        self.failed_removals += failed_removals;
        self.unreachable_removals += unreachable_removals;
        self.resources += resources;
        let RowCounts { applied, failed, pending, deleted, ready, not_ready, not_present, unknown } = objects;
        self.objects.applied += applied;
        self.objects.failed += failed;
        self.objects.pending += pending;
        self.objects.deleted += deleted;
        self.objects.ready += ready;
        self.objects.not_ready += not_ready;
        self.objects.not_present += not_present;
        self.objects.unknown += unknown;
    }

    fn add(&mut self, fact: &ClusterFact<'_>) {
        match fact.kind {
            Kind::Ready => self.ready += 1,
            Kind::Progressing => self.progressing += 1,
            Kind::Failed => self.failed += 1,
            Kind::Unreachable => self.unreachable += 1,
            Kind::Leaving => {}
            Kind::LeavingFailed => self.failed_removals += 1,
            Kind::LeavingUnreachable => self.unreachable_removals += 1,
        }
        if fact.wanted.is_some() {
            self.total += 1;
            self.applied += usize::from(fact.applied);
            self.applied_unseen += usize::from(fact.kind == Kind::Unreachable && fact.applied);
            self.applying += usize::from(fact.kind == Kind::Progressing && !fact.applied);
            self.on_another += usize::from(fact.on_another);
            self.unreachable_without += usize::from(fact.kind == Kind::Unreachable && !fact.applied);
        } else {
            self.left += 1;
        }
        if let Some(status) = &fact.status {
            self.count(fact, status);
        }
    }

    fn count(&mut self, fact: &ClusterFact<'_>, status: &RowStatus) {
        if fact.wanted.is_some() && fact.is_replaced() {
            // What is counted there was on the other cluster.
            self.resources += status.total;
            self.objects.pending += status.total;
            self.objects.unknown += status.total;
            return;
        }
        let RowCounts { applied, failed, pending, deleted, ready, not_ready, not_present, unknown } =
            status.counts.unwrap_or_default();
        self.objects.applied += applied;
        self.objects.failed += failed;
        self.objects.pending += pending;
        self.objects.deleted += deleted;
        if fact.wanted.is_none() {
            return;
        }
        self.resources += status.total;
        // What cannot be seen is not ready, whatever it was when it was seen last.
        if status.connectivity == Connectivity::Reachable {
            self.objects.ready += ready;
            self.objects.not_ready += not_ready;
            self.objects.not_present += not_present;
            self.objects.unknown += unknown;
        } else {
            self.objects.unknown += status.total;
        }
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::{State, SyncShardSpec};

    use super::*;
    use crate::identity::SetDigest;
    use crate::shard::{encode_status, record_uids, retarget, retargeted};

    fn wanted(set: &str) -> BTreeMap<ClusterId, Combination> {
        let apps = Combination::from([("web".to_owned(), SetDigest(set.to_owned()))]);
        [(ClusterId::new("acme", "a"), apps)].into()
    }

    #[test]
    fn what_failed_of_an_earlier_target_is_on_its_way_with_the_next() {
        let empty = SyncShardSpec { format: 1, next_id: 1, ..SyncShardSpec::default() };
        let (one, two) = (wanted("s1"), wanted("s2"));
        let spec = retarget(&empty, None, 1, 1, &one).unwrap();
        let spec = record_uids(&spec, &[(ClusterId::new("acme", "a"), "u".to_owned())].into()).unwrap();
        let row = &spec.clusters[0];
        let failed = RowStatus {
            id: row.id,
            connectivity: Connectivity::Reachable,
            state: State::InstantiateFailed,
            target: row.target.clone(),
            failed_at: Some(retargeted(row)),
            ..RowStatus::default()
        };
        let rows = BTreeMap::from([(row.id, failed)]);
        let status = encode_status(&spec, 1, &rows);
        let kind = |spec: &SyncShardSpec, wanted| of(&[(spec, Some(&status))], wanted)[0].kind;
        assert_eq!(kind(&spec, &one), Kind::Failed);
        let next = retarget(&spec, Some(&status), 2, 2, &two).unwrap();
        assert_eq!(kind(&next, &two), Kind::Progressing, "nobody has tried it yet");
        let again = retarget(&next, Some(&status), 3, 3, &one).unwrap();
        assert_eq!(again.clusters[0].target, row.target, "the same combination");
        assert_eq!(kind(&again, &one), Kind::Progressing, "nobody has tried it again");
        let failed = RowStatus { failed_at: Some(retargeted(&again.clusters[0])), ..rows[&row.id].clone() };
        let tried = encode_status(&again, 3, &[(row.id, failed)].into());
        assert_eq!(of(&[(&again, Some(&tried))], &one)[0].kind, Kind::Failed);
        let leaving = retarget(&spec, Some(&status), 2, 2, &BTreeMap::new()).unwrap();
        assert_eq!(kind(&leaving, &BTreeMap::new()), Kind::Leaving);
    }
}
