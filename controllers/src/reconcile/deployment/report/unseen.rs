//! Counts clusters that have no row, because nothing could be rendered for them yet.

use std::collections::BTreeMap;

use emco_crds::app_context::OwnerRef;
use emco_crds::sync_shard::status::{Connectivity, RowError};
use emco_crds::sync_shard::{AppSet, ShardCombination, ShardRow};
use emco_crds::{RowStatus, SyncShardSpec, SyncShardStatus};
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::plan::Plan;
use emco_engine::rollup::Shard;
use emco_engine::set::combinations;
use emco_engine::shard;

use super::super::planned::{Planned, Refused};
use crate::reconcile::context::Context;
use crate::remote::State as Link;
use crate::tenancy::facts;

/// Clusters that are named as having nothing yet.
const MOST: usize = 64;
/// Why such a cluster waits though it answers.
const REFUSED: &str = "it is new: what it gets is worked out once the last change is no longer refused";

/// What is wanted on clusters that nothing is known of yet: there, apps with empty sets stand for what is worked out at the
/// first contact. No row has those, so such a cluster does not count as having what is wanted.
pub fn awaited(plan: &Plan) -> BTreeMap<ClusterId, Combination> {
    let known = combinations(&plan.assignment);
    plan.waiting
        .iter()
        .map(|(cluster, apps)| {
            let mut wanted = known.get(cluster).cloned().unwrap_or_default();
            wanted.extend(apps.iter().map(|app| (app.clone(), SetDigest(String::new()))));
            (cluster.clone(), wanted)
        })
        .collect()
}

/// Those of them that got nothing before: they have no row.
pub fn without_row(
    planned: &Planned,
    mut awaited: BTreeMap<ClusterId, Combination>,
) -> BTreeMap<ClusterId, Combination> {
    if let Planned::Done(plan, ..) = planned {
        awaited.retain(|cluster, _| !plan.assignment.contains_key(cluster));
    }
    awaited
}

/// Their names, as the status remembers them.
pub fn names(without_row: &BTreeMap<ClusterId, Combination>) -> Vec<String> {
    without_row.keys().take(MOST).map(ToString::to_string).collect()
}

/// Beside a change that cannot be planned: those that were remembered, as long as they are registered and have nothing. What they would
/// get, nobody knows now; an app without a name stands for it.
pub fn remembered(
    ctx: &Context,
    refused: &Refused,
    names: &[String],
    shards: &[Shard<'_>],
) -> BTreeMap<ClusterId, Combination> {
    let has_row = |id: &ClusterId| {
        shards.iter().flat_map(|(spec, _)| &spec.clusters).any(|row| row.cluster.as_str() == id.as_str())
    };
    let has_nothing = |id: &ClusterId| !refused.assignment.contains_key(id) && !has_row(id);
    let known = names.iter().filter_map(|name| ClusterId::parse(name));
    let waiting = known.filter(|id| has_nothing(id) && facts::registered(ctx, id).is_some());
    let unknown = Combination::from([(String::new(), SetDigest(String::new()))]);
    waiting.map(|id| (id, unknown.clone())).collect()
}

/// Rows for clusters that have none, so that they are counted like all others.
pub fn unseen(
    ctx: &Context,
    planned: &Planned,
    waiting: &BTreeMap<ClusterId, Combination>,
) -> Option<(SyncShardSpec, SyncShardStatus)> {
    if waiting.is_empty() {
        return None;
    }
    let mut spec = SyncShardSpec { owner: OwnerRef::default(), ..SyncShardSpec::default() };
    let mut rows = BTreeMap::new();
    for (id, (cluster, apps)) in (1..).zip(waiting) {
        let name = format!("t{id}");
        let apps = apps.iter().map(|(app, set)| AppSet { app: app.clone(), set: set.0.clone() }).collect();
        spec.combinations.push(ShardCombination { name: name.clone(), revision: 0, apps });
        spec.clusters.push(ShardRow {
            id,
            cluster: cluster.to_string(),
            target: Some(name),
            ..ShardRow::default()
        });
        let observed = ctx.connector.observation(cluster).unwrap_or_default();
        let (connectivity, error) = match (&observed.state, planned) {
            (Link::Failed { reason, message }, _) => {
                (Connectivity::Unreachable, Some(row_error(reason, message)))
            }
            (_, Planned::Refused(..)) => (Connectivity::Unknown, Some(row_error("Progressing", REFUSED))),
            _ => (Connectivity::Unknown, None),
        };
        rows.insert(
            id,
            RowStatus { id, cluster: cluster.to_string(), connectivity, error, ..RowStatus::default() },
        );
    }
    let status = shard::encode_status(&spec, 0, &rows);
    Some((spec, status))
}

fn row_error(reason: &str, message: &str) -> RowError {
    RowError { reason: reason.to_owned(), message: message.to_owned(), ..RowError::default() }
}
