//! Writes results per row as a shard's status, and reads them back. Rows that are as wanted and unremarkable cost
//! nothing but a range.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::reasons::SyncShardReason as Reason;
use emco_crds::sync_shard::ShardRow;
use emco_crds::sync_shard::status::{Applied, AsWanted, Connectivity, LeftOut, RowCounts, ShardSummary};
use emco_crds::{RowStatus, State, SyncShardSpec, SyncShardStatus};

use super::{LONGEST_ERROR, is_complete, retargeted};
use crate::conditions::truncate;
use crate::text::counted;

/// Longest name of a resource in a row's error, in bytes.
const LONGEST_RESOURCE: usize = 600;
/// Longest name of a field that was left out, with its object, in bytes.
const LONGEST_FIELD: usize = 400;
/// Fields that a row names.
const MOST_FIELDS: usize = 4;
/// Objects that are not ready, and that a row names.
const MOST_UNREADY: usize = 3;
/// Objects that differ, and that a row names.
const MOST_DRIFTED: usize = 16;
/// Objects that were put right, and that a row names.
pub const MOST_RESTORED: usize = 3;

/// Objects that stay without the owner label, and that a row names.
pub const MOST_STRIPPED: usize = 3;

/// What rows of one range have in common: the combination, ready and all objects, fields left out and rewritten.
type Same = (String, i64, i64, [Option<LeftOut>; 2]);

/// The status of a shard. `written` is the number of the write that made exactly this `spec` ([`super::writes`]); results of rows
/// that the spec does not have are left out. `observedGeneration` is that of a shard that was never copied, and the caller's in
/// others, as conditions are ([`ready_condition`]).
///
/// A complete row is written as completed as of this write: it would come out complete again without a request.
pub fn encode_status(spec: &SyncShardSpec, written: i64, rows: &BTreeMap<i64, RowStatus>) -> SyncShardStatus {
    let present: BTreeSet<&str> = spec.combinations.iter().map(|c| c.name.as_str()).collect();
    let mut ranges: BTreeMap<Same, Vec<i64>> = BTreeMap::new();
    let mut clusters = Vec::new();
    for row in &spec.clusters {
        let Some(status) = rows.get(&row.id) else { continue };
        match unremarkable(row, status) {
            Some(applied) => {
                let fields = [&status.left_out, &status.rewritten].map(|fields| fields.clone().map(bounded));
                let same = (applied, status.ready, status.total, fields);
                ranges.entry(same).or_default().push(row.id);
            }
            None => clusters.push(spelled(row, status, written, &present)),
        }
    }
    let as_wanted = ranges
        .into_iter()
        .map(|((applied, ready, total, [left_out, rewritten]), ids)| AsWanted {
            ids: range_text(ids),
            applied,
            generation: written,
            ready,
            total,
            left_out,
            rewritten,
        })
        .collect();
    SyncShardStatus {
        observed_generation: Some(written),
        summary: Some(summary(spec, rows)),
        as_wanted,
        clusters,
        conditions: Vec::new(),
    }
}

/// The results of the rows of a spec, as far as the status knows any.
pub fn decode_status(spec: &SyncShardSpec, status: &SyncShardStatus) -> BTreeMap<i64, RowStatus> {
    let mut ranges: Vec<(i64, i64, &AsWanted)> = status
        .as_wanted
        .iter()
        .flat_map(|wanted| parse_ranges(&wanted.ids).map(move |(first, last)| (first, last, wanted)))
        .collect();
    ranges.sort_by_key(|(first, last, _)| (*first, *last));
    let spelled: BTreeMap<i64, &RowStatus> = status.clusters.iter().map(|row| (row.id, row)).collect();
    let mut known = BTreeMap::new();
    for row in &spec.clusters {
        let row_status = spelled.get(&row.id).map(|status| (*status).clone()).or_else(|| {
            let after = ranges.partition_point(|(first, ..)| *first <= row.id);
            let (_, last, wanted) = ranges.get(after.checked_sub(1)?)?;
            (row.id <= *last).then(|| from_range(row, wanted))
        });
        known.extend(row_status.map(|status| (row.id, status)));
    }
    known
}

/// Whether every cluster has all that it is to have, and all of that is ready.
pub fn is_ready(spec: &SyncShardSpec, rows: &BTreeMap<i64, RowStatus>) -> bool {
    let Counted { total, ready, .. } = Counted::of(spec, rows);
    ready == total
}

/// Status, reason and message of a shard's condition Ready.
pub fn ready_condition(
    spec: &SyncShardSpec,
    rows: &BTreeMap<i64, RowStatus>,
) -> (&'static str, &'static str, String) {
    let Counted { total, ready, failed, unreachable } = Counted::of(spec, rows);
    let message = format!("{ready} of {} ready", counted(total, "cluster"));
    let (status, reason) = if ready == total {
        ("True", Reason::Ready)
    } else if failed > 0 {
        ("False", Reason::Failed)
    } else if unreachable > 0 {
        ("False", Reason::Unreachable)
    } else {
        ("False", Reason::Progressing)
    };
    (status, reason.as_str(), message)
}

struct Counted {
    total: usize,
    ready: usize,
    failed: usize,
    unreachable: usize,
}

impl Counted {
    fn of(spec: &SyncShardSpec, rows: &BTreeMap<i64, RowStatus>) -> Self {
        let mut counted = Self { total: 0, ready: 0, failed: 0, unreachable: 0 };
        for row in &spec.clusters {
            let status = rows.get(&row.id);
            let complete = is_complete(row, status.and_then(|s| s.applied.as_ref()));
            if row.target.is_none() && complete {
                continue;
            }
            counted.total += 1;
            let Some(status) = status else { continue };
            if status.connectivity == Connectivity::Unreachable {
                counted.unreachable += 1;
            } else if failed(row.target.as_deref(), retargeted(row), status) {
                counted.failed += 1;
            } else if complete && status.ready >= status.total && status.error.is_none() {
                counted.ready += 1;
            }
        }
        counted
    }
}

/// Whether a state says that something failed.
pub const fn is_failure(state: State) -> bool {
    matches!(state, State::InstantiateFailed | State::UpdateFailed | State::TerminateFailed)
}

/// Judges whether a row failed whose target is this one since the write `retargeted`. A failure of another target, or of this one before it
/// had another, says nothing of this try: it is still on its way.
pub fn failed(target: Option<&str>, retargeted: i64, status: &RowStatus) -> bool {
    let of_another = match (target, status.target.as_deref()) {
        (_, Some(of)) => target != Some(of),
        (Some(_), None) => status.state == State::TerminateFailed,
        (None, None) => false,
    };
    let of_earlier = status.failed_at.is_some_and(|at| at < retargeted);
    is_failure(status.state) && !of_another && !of_earlier
}

fn summary(spec: &SyncShardSpec, rows: &BTreeMap<i64, RowStatus>) -> ShardSummary {
    let Counted { total, ready, failed, unreachable } = Counted::of(spec, rows);
    ShardSummary {
        clusters: format!("{ready}/{total}"),
        failed: failed.to_string(),
        unreachable: unreachable.to_string(),
    }
}

/// The combination of a row that a range can stand for: it has its target, all of it is ready, and there is nothing to say.
/// Naming every field makes a new one a decision here.
fn unremarkable(row: &ShardRow, status: &RowStatus) -> Option<String> {
    let RowStatus {
        id: _,
        cluster: _,
        connectivity,
        state,
        // Where nothing failed, there is neither.
        target: _,
        failed_at: _,
        applied,
        counts,
        apps,
        // Of a complete row all hooks ran; they are remembered only on the way.
        hooks: _,
        // Of a complete row all gates are open.
        gates: _,
        total,
        applied_count,
        ready,
        unknown,
        since: _,
        error,
        unready,
        unready_since,
        drift,
        // The same on all clusters of a version that have the same set: a range says it once.
        left_out: _,
        rewritten: _,
        stripped,
        // It holds for this row alone, and for good.
        took_over,
    } = status;
    let plain = *connectivity == Connectivity::Reachable
        && matches!(state, State::Instantiated | State::Updated)
        && counts.is_none_or(|counts| counts == all_ready(*total))
        && apps.is_empty()
        && (*applied_count, *ready, *unknown) == (*total, *total, 0)
        && error.is_none()
        && unready.is_empty()
        && unready_since.is_none()
        && drift.is_none()
        && stripped.is_none()
        && !took_over;
    if plain && is_complete(row, applied.as_ref()) { row.target.clone() } else { None }
}

fn all_ready(total: i64) -> RowCounts {
    RowCounts { applied: total, ready: total, ..RowCounts::default() }
}

/// A row in words, its texts within their limits.
///
/// A result may come so late that its combination left the spec: then all of it is in the row's identity set, of a later
/// write, and naming it would only look like content that was lost.
fn spelled(row: &ShardRow, status: &RowStatus, written: i64, present: &BTreeSet<&str>) -> RowStatus {
    let mut status = RowStatus { id: row.id, cluster: row.cluster.clone(), ..status.clone() };
    status.applied =
        status.applied.filter(|a| a.combination.as_deref().is_none_or(|name| present.contains(name)));
    if is_complete(row, status.applied.as_ref()) {
        status.applied = Some(Applied { combination: row.target.clone(), generation: written });
        status.hooks.clear();
        status.gates = None;
    }
    status.left_out = status.left_out.map(bounded);
    status.rewritten = status.rewritten.map(bounded);
    if let Some(drift) = &mut status.drift {
        drift.restored.truncate(MOST_RESTORED);
        for resource in &mut drift.restored {
            *resource = truncate(resource, LONGEST_RESOURCE);
        }
        drift.objects.truncate(MOST_DRIFTED);
        for object in &mut drift.objects {
            object.resource = truncate(&object.resource, LONGEST_RESOURCE);
            object.by = truncate(&object.by, LONGEST_ERROR);
        }
    }
    if let Some(stripped) = &mut status.stripped {
        stripped.first.truncate(MOST_STRIPPED);
        for resource in &mut stripped.first {
            *resource = truncate(resource, LONGEST_RESOURCE);
        }
    }
    status.unready.truncate(MOST_UNREADY);
    for unready in &mut status.unready {
        unready.message = truncate(&unready.message, LONGEST_ERROR);
        unready.resource = truncate(&unready.resource, LONGEST_RESOURCE);
    }
    if let Some(error) = &mut status.error {
        error.message = truncate(&error.message, LONGEST_ERROR);
        error.resource = error.resource.take().map(|text| truncate(&text, LONGEST_RESOURCE));
    }
    status
}

/// At most four names, within their length.
fn bounded(mut left_out: LeftOut) -> LeftOut {
    left_out.first.truncate(MOST_FIELDS);
    for field in &mut left_out.first {
        *field = truncate(field, LONGEST_FIELD);
    }
    left_out
}

fn from_range(row: &ShardRow, wanted: &AsWanted) -> RowStatus {
    RowStatus {
        id: row.id,
        cluster: row.cluster.clone(),
        connectivity: Connectivity::Reachable,
        state: State::Instantiated,
        applied: Some(Applied { combination: Some(wanted.applied.clone()), generation: wanted.generation }),
        counts: Some(RowCounts { applied: wanted.total, ready: wanted.ready, ..RowCounts::default() }),
        total: wanted.total,
        applied_count: wanted.total,
        ready: wanted.ready,
        left_out: wanted.left_out.clone(),
        rewritten: wanted.rewritten.clone(),
        ..RowStatus::default()
    }
}

/// `1-8,11` of ids.
fn range_text(mut ids: Vec<i64>) -> String {
    ids.sort_unstable();
    ids.dedup();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    let texts: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    texts.join(",")
}

/// The ranges of `1-8,11`; parts that are none are passed over: a row that nothing is known of is worked on again.
fn parse_ranges(text: &str) -> impl Iterator<Item = (i64, i64)> + '_ {
    text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_ranges_and_come_back() {
        assert_eq!(range_text(vec![11, 1, 2, 3, 5, 2, 6]), "1-3,5-6,11");
        assert_eq!(parse_ranges("1-3,5-6,11,x,-4,7-").collect::<Vec<_>>(), [(1, 3), (5, 6), (11, 11)]);
        assert_eq!(range_text(Vec::new()), "");
    }
}
