//! Says which logical clouds the deletion of a cluster waits for.

use std::collections::BTreeMap;

use emco_crds::SyncShard;
use emco_crds::sync_shard::ShardRow;
use emco_engine::identity::ClusterId;

use crate::reconcile::context::Context;
use crate::reconcile::suspension;

/// `deletion waits for the removal of objects of ...`; `None` when no row is left on the cluster, or when it does not answer. Logical
/// clouds leave by themselves, as the cluster takes nothing new. Abandoned work on it is removed first, too, now that it can be.
pub fn waits_for<'a>(
    ctx: &Context,
    id: &ClusterId,
    shards: impl IntoIterator<Item = &'a SyncShard>,
) -> Option<String> {
    let observed = ctx.connector.observation(id).filter(|observed| observed.connected())?;
    let mut left: BTreeMap<String, Option<String>> = BTreeMap::new();
    for shard in shards {
        let its_own = |row: &ShardRow| row.uid.is_none() || row.uid == observed.uid;
        for row in shard.spec.clusters.iter().filter(|row| row.cluster == id.as_str()) {
            if shard.spec.abandoned.is_none() || its_own(row) {
                let owner = &shard.spec.owner;
                let text = format!("{}/{}/{}", owner.kind, shard.owner_namespace(), owner.name);
                let held = suspension::of_owner(&ctx.stores, shard.owner_namespace());
                let held = held.map(|field| format!("suspended until {field} is unset"));
                let why = held.or_else(|| error(shard, row.id));
                let known = left.entry(text).or_default();
                *known = known.take().or(why);
            }
        }
    }
    sentence(&left)
}

fn error(shard: &SyncShard, row: i64) -> Option<String> {
    let rows = &shard.status.as_ref()?.clusters;
    let error = rows.iter().find(|status| status.id == row)?.error.as_ref()?;
    Some(format!("{}: {}", error.reason, error.message))
}

/// The first three by name, and why the first of those that cannot leave cannot.
fn sentence(left: &BTreeMap<String, Option<String>>) -> Option<String> {
    let shown = left.keys().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if left.len() > 3 { ", ..." } else { "" };
    let what = match left.len() {
        0 => return None,
        1 => shown,
        many => format!("{many} owners: {shown}{more}"),
    };
    let why = left.iter().find_map(|(owner, why)| Some((owner, why.as_ref()?)));
    let why = why.map(|(owner, why)| format!("; {owner}: {why}"));
    Some(format!("deletion waits for the removal of objects of {what}{}", why.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_deleted_cluster_waits_for_is_named_with_the_first_cause() {
        let of = |owners: &[(&str, bool)]| {
            let left = owners.iter().map(|(owner, fails)| {
                ((*owner).to_owned(), fails.then(|| "Forbidden: no rights".to_owned()))
            });
            sentence(&left.collect())
        };
        assert_eq!(of(&[]), None);
        insta::assert_snapshot!(of(&[("a", false)]).unwrap(), @"deletion waits for the removal of objects of a");
        insta::assert_snapshot!(
            of(&[("a", false), ("b", true), ("c", true)]).unwrap(),
            @"deletion waits for the removal of objects of 3 owners: a, b, c; b: Forbidden: no rights"
        );
        let many = ["a", "b", "c", "d"].map(|owner| (owner, false));
        insta::assert_snapshot!(
            of(&many).unwrap(),
            @"deletion waits for the removal of objects of 4 owners: a, b, c, ..."
        );
    }
}
