//! Statuses of many shards share one budget; a rollout of one project does not delay another one's rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_crds::sync_shard::status::{Connectivity, RowHooks};
use emco_crds::{RowStatus, State, SyncShard};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::world::FixedClock;
use crate::api::ApiServerExt;
use crate::api::world::testing::Counter;
use crate::memory::MemoryServer;
use crate::sync::SyncMetrics;
use crate::sync::budget::Budget;
use crate::sync::report::{Reporter, Rows};

/// Rows of a shard, each with 1,000 bytes of text: a status of about 80 KiB.
const ROWS: i64 = 78;

struct Stage {
    hub: MemoryServer,
    budget: Budget,
    metrics: Arc<SyncMetrics>,
}

fn row(id: i64, text: &str) -> RowStatus {
    let mut row = RowStatus {
        id,
        cluster: format!("acme/c{id}"),
        state: State::Updating,
        connectivity: Connectivity::Reachable,
        ..RowStatus::default()
    };
    row.hooks = vec![RowHooks { set: "s".to_owned(), done: vec![text.to_owned()] }];
    row
}

impl Stage {
    fn new() -> Self {
        Self { hub: MemoryServer::new(), budget: Budget::new(), metrics: Arc::new(SyncMetrics::default()) }
    }

    async fn reporter(&self, project: &str, owner: &str, shard: &str, rows: i64) -> Arc<Reporter> {
        self.hub
            .put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": project}}));
        let clusters: Vec<_> = (1..=rows)
            .map(|id| json!({"id": id, "cluster": format!("acme/c{id}"), "target": "t1"}))
            .collect();
        let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
            "metadata": {"name": format!("{owner}-{shard}"), "namespace": project},
            "spec": {"format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": owner, "uid": "u"},
                "slot": 0, "bits": 0, "epoch": 1, "nextId": rows + 1, "clusters": clusters,
                "combinations": [{"name": "t1", "revision": 1, "apps": [{"app": "web", "set": "s"}]}]}});
        let shards = format!("/apis/emco.io/v1alpha1/namespaces/{project}/syncshards");
        let shard: SyncShard =
            serde_json::from_value(self.hub.create(&shards, &object).await.unwrap()).unwrap();
        let reporter = Reporter::new(
            Arc::new(self.hub.clone()),
            Arc::new(FixedClock),
            Arc::new(Counter::default()),
            self.metrics.clone(),
            self.budget.clone(),
            Arc::default(),
            shard,
        );
        tokio::spawn(reporter.clone().run(CancellationToken::new()));
        reporter
    }

    /// A rollout on `shards` shards of one owner: some row of each changes all the time.
    async fn rollout(&self, project: &str, owner: &str, shards: usize) {
        for shard in 0..shards {
            let reporter = self.reporter(project, owner, &format!("s{shard}"), ROWS).await;
            tokio::spawn(async move {
                for id in 1..=ROWS {
                    reporter.set(id, row(id, &format!("{id:01000}")));
                }
                for turn in 0_u64.. {
                    sleep(Duration::from_millis(500)).await;
                    reporter.set(1, row(1, &format!("{turn:01000}")));
                }
            });
        }
    }
}

/// How long a row of one more owner takes to be written, again and again: the longest.
async fn longest(stage: &Stage, project: &str, owner: &str) -> Duration {
    let reporter = stage.reporter(project, owner, "s0", 1).await;
    let mut longest = Duration::ZERO;
    for turn in 0..5 {
        // Longer than the pause of a shard between two of its own writes.
        sleep(Duration::from_millis(730)).await;
        let begun = Instant::now();
        reporter.set(1, row(1, &turn.to_string()));
        reporter.written(1).await;
        longest = longest.max(begun.elapsed());
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn a_rollout_on_100_shards_does_not_delay_another_owners_hook() {
    let stage = Stage::new();
    stage.rollout("acme", "large", 100).await;
    sleep(Duration::from_secs(10)).await;
    let before = stage.metrics.status_bytes.load(Ordering::Relaxed);
    let begun = Instant::now();
    let other = longest(&stage, "shop", "till").await;
    assert!(other < Duration::from_millis(250), "another project waits {other:?}");
    let same = longest(&stage, "acme", "small").await;
    assert!(same < Duration::from_millis(250), "another owner of the project waits {same:?}");
    let written = stage.metrics.status_bytes.load(Ordering::Relaxed) - before;
    let second = u128::from(written) * 1000 / begun.elapsed().as_millis();
    assert!((900_000..1_150_000).contains(&second), "{second} bytes/s are written for all together");
}

#[tokio::test(start_paused = true)]
async fn many_deployments_of_a_project_have_one_projects_share() {
    let stage = Stage::new();
    for owner in 0..30 {
        stage.rollout("acme", &format!("large-{owner}"), 4).await;
    }
    sleep(Duration::from_secs(10)).await;
    let other = longest(&stage, "shop", "till").await;
    assert!(other < Duration::from_millis(250), "another project waits {other:?}");
}
