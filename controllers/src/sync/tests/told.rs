//! When the status of a shard is written: what answers a new spec at once, what else happens as often as it may.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::sync_shard::status::{Applied, Connectivity};
use emco_crds::{RowStatus, State, SyncShard};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::world::FixedClock;
use crate::api::ApiServerExt;
use crate::api::world::testing::Counter;
use crate::memory::MemoryServer;
use crate::sync::SyncMetrics;
use crate::sync::budget::Budget;
use crate::sync::report::{Reporter, Rows};

const PATH: &str = "/apis/emco.io/v1alpha1/namespaces/acme/syncshards/web-s0";

struct Stage {
    hub: MemoryServer,
    reporter: Arc<Reporter>,
}

fn spec(target: &str, writes: i64, rows: i64) -> Value {
    let clusters: Vec<_> =
        (1..=rows).map(|id| json!({"id": id, "cluster": format!("acme/c{id}"), "target": target})).collect();
    json!({
        "format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": "web", "uid": "u"}, "slot": 0, "bits": 0,
        "epoch": 1, "writes": writes, "nextId": rows + 1, "clusters": clusters,
        "combinations": [{"name": target, "revision": writes, "apps": [{"app": "web", "set": target}]}],
    })
}

impl Stage {
    async fn new(rows: i64) -> Self {
        let hub = MemoryServer::new();
        hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acme"}}));
        let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
            "metadata": {"name": "web-s0", "namespace": "acme"}, "spec": spec("t1", 1, rows)});
        let shards = "/apis/emco.io/v1alpha1/namespaces/acme/syncshards";
        let shard: SyncShard = serde_json::from_value(hub.create(shards, &object).await.unwrap()).unwrap();
        let reporter = Reporter::new(
            Arc::new(hub.clone()),
            Arc::new(FixedClock),
            Arc::new(Counter::default()),
            Arc::new(SyncMetrics::default()),
            Budget::new(),
            Arc::default(),
            shard,
        );
        tokio::spawn(reporter.clone().run(CancellationToken::new()));
        Self { hub, reporter }
    }

    fn row(&self, id: i64, target: &str, writes: i64, state: State) {
        self.row_with(id, (target, writes), state, 2);
    }

    /// The same, with so many of two objects ready.
    fn row_with(&self, id: i64, (target, writes): (&str, i64), state: State, ready: i64) {
        let applied = matches!(state, State::Instantiated | State::Updated);
        let applied =
            Applied { combination: Some(target.to_owned()), generation: writes - i64::from(!applied) };
        self.reporter.set(
            id,
            RowStatus {
                id,
                cluster: format!("acme/c{id}"),
                state,
                connectivity: Connectivity::Reachable,
                total: 2,
                ready,
                applied: Some(applied).filter(|applied| applied.generation > 0),
                ..RowStatus::default()
            },
        );
    }

    /// All rows are to have something else.
    async fn wants(&self, target: &str, writes: i64, rows: i64) {
        let mut shard = self.hub.object(PATH).unwrap();
        shard["spec"] = spec(target, writes, rows);
        let shard = self.hub.replace(PATH, &shard).await.unwrap();
        self.reporter.refresh(serde_json::from_value(shard).unwrap());
    }

    /// How long it takes until the hub was told of the spec as it is.
    async fn answered(&self) -> Duration {
        let begun = Instant::now();
        loop {
            let shard = self.hub.object(PATH).unwrap();
            if shard["status"]["observedGeneration"] == shard["metadata"]["generation"] {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "nothing is told");
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn statuses(&self) -> usize {
        self.hub.take_seen().iter().filter(|seen| seen.path.ends_with("/status")).count()
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_new_spec_wants_is_told_at_once_when_all_of_it_is_done() {
    let stage = Stage::new(2).await;
    for writes in 1..=5 {
        let target = format!("t{writes}");
        if writes > 1 {
            stage.wants(&target, writes, 2).await;
        }
        (1..=2).for_each(|id| stage.row(id, &target, writes, State::Updated));
        let took = stage.answered().await;
        assert!(took < Duration::from_millis(30), "{target}: {took:?}");
    }
    assert_eq!(stage.statuses(), 5, "each spec is answered once");
}

#[tokio::test(start_paused = true)]
async fn what_is_still_at_work_is_told_no_more_often_than_the_pause_allows() {
    let stage = Stage::new(2).await;
    (1..=2).for_each(|id| stage.row(id, "t1", 1, State::Updated));
    stage.answered().await;
    stage.wants("t2", 2, 2).await;
    stage.row(1, "t2", 2, State::Updated);
    let took = stage.answered().await;
    assert!(took >= Duration::from_millis(450), "the other one is on its way: {took:?}");
    // Whatever a row does after that, its spec was answered.
    stage.row(2, "t2", 2, State::Updated);
    stage.statuses();
    for turn in 0..100 {
        stage.row_with(1, ("t2", 2), State::Updated, turn % 2);
        sleep(Duration::from_millis(50)).await;
    }
    let told = stage.statuses();
    assert!((5..=11).contains(&told), "{told} in 5 s");
}
