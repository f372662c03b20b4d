//! Counts clusters that have no row, because nothing could be rendered for them yet.

use std::collections::BTreeMap;

use emco_crds::app_context::OwnerRef;
use emco_crds::sync_shard::status::Connectivity;
use emco_crds::sync_shard::{AppSet, ShardCombination, ShardRow};
use emco_crds::{RowStatus, SyncShardSpec, SyncShardStatus};
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::plan::Plan;
use emco_engine::set::combinations;
use emco_engine::shard;

use super::super::planned::Planned;
use crate::reconcile::context::Context;
use crate::remote::State as Link;

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

/// Rows for clusters that have none, so that they are counted like all others.
pub fn unseen(
    ctx: &Context,
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
        let (connectivity, error) = match &observed.state {
            Link::Failed { reason, message } => (
                Connectivity::Unreachable,
                Some(emco_crds::sync_shard::status::RowError {
                    reason: (*reason).to_owned(),
                    message: message.clone(),
                    ..Default::default()
                }),
            ),
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
