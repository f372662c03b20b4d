//! Waits for what an engine does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_crds::RowStatus;

use super::Rig;

impl Rig {
    pub async fn until(&self, what: &str, test: impl Fn(&Self) -> bool) {
        for _ in 0..60_000 {
            if test(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never: {what}; the shard is {}", serde_json::to_string_pretty(&self.shard()).unwrap());
    }

    /// Until it holds of what the hub has, which is looked at whenever that changed.
    async fn until_hub(&self, what: &str, test: impl Fn(&Self) -> bool) {
        let looked = AtomicU64::new(u64::MAX);
        let test = |rig: &Self| {
            let revision = rig.hub.revision();
            looked.swap(revision, Ordering::Relaxed) != revision && test(rig)
        };
        self.until(what, test).await;
    }

    pub async fn until_complete(&self, name: &str) {
        self.until_hub(&format!("{name} is complete"), |rig| rig.complete(name)).await;
    }

    pub async fn until_reason(&self, name: &str, reason: &str) -> RowStatus {
        let has =
            |rig: &Self| rig.row(name).and_then(|row| row.error).is_some_and(|error| error.reason == reason);
        self.until_hub(&format!("{name} reports {reason}"), has).await;
        self.row(name).unwrap()
    }
}
