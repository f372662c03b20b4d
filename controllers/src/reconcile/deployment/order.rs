//! Says which apps of a stored revision wait for which.

use std::collections::BTreeMap;

use emco_crds::sync_shard::ShardOrder;
use emco_engine::depends;
use emco_engine::identity::{ClusterId, Combination};

use crate::store::Stored;

/// Which apps of a stored revision wait for which, where its clusters are these.
pub fn order_of(stored: &Stored, wanted: &BTreeMap<ClusterId, Combination>) -> Option<ShardOrder> {
    let apps = stored.spec.apps.iter().map(|app| (app.name.as_str(), app.depends_on.as_slice()));
    depends::order(apps, wanted, stored.spec.revision)
}
