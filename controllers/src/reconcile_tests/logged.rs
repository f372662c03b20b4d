//! The log of one day: what a person reads of it the morning after.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::life::*;
use super::log::Log;
use super::shop::{TENANT, composite_app, deployment, objects, values};
use crate::api::world::system::SystemRandom;
use crate::api::{ApiError, Method, Request};
use crate::driver::lease::{Elector, Identity, LeaseSettings};
use crate::memory::Fault;

/// Longer than the longest pause between two tries, and than a progress deadline.
const LONG: Duration = Duration::from_mins(11);

/// On the clusters.
const JOB: &str = "/apis/batch/v1/namespaces/team-a/jobs/prepare";
const WEB: &str = "/apis/apps/v1/namespaces/team-a/deployments/web";

/// A day that is written down as it goes.
struct Day {
    life: Life,
    log: Log,
    told: Vec<String>,
    /// Who takes part in the election, as the day calls them.
    names: Vec<(String, &'static str)>,
}

impl Day {
    fn begin() -> Self {
        let log = Log::begin();
        Self { life: Life::with(&objects()), log, told: Vec::new(), names: Vec::new() }
    }

    /// What follows of what was done has time, and is written down.
    async fn then(&mut self, what: &str) {
        self.life.settle().await;
        let mut lines = self.log.take();
        for (identity, name) in &self.names {
            lines = lines.replace(identity, name);
        }
        self.told.push(format!("# {what}\n{lines}\n"));
    }

    async fn time_passes(&mut self) {
        self.life.rig.clock.forward(LONG);
        tokio::time::sleep(LONG).await;
    }

    /// A candidate for leadership.
    fn candidate(&mut self, name: &'static str) -> Elector {
        let (boot, wall) = (Arc::new(self.life.rig.clock.clone()), Arc::new(self.life.rig.clock.clone()));
        let (hub, settings) = (Arc::new(self.life.rig.hub.clone()), LeaseSettings::of("emco-system"));
        let elector = Elector::new(hub, boot, wall, Identity::ephemeral(&SystemRandom::new()), settings);
        self.names.push((elector.identity().to_owned(), name));
        elector
    }
}

/// Every write of the page is refused.
fn refuse_page(request: &Request) -> Option<Fault> {
    let hit = request.path.to_string().contains("configmaps/page") && request.method != Method::Get;
    hit.then(|| {
        Fault::Refuse(ApiError::Status {
            code: 422,
            reason: "Invalid".to_owned(),
            message: "ConfigMap \"page\" is invalid: data: Too\nlong".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_day_says_what_happened_and_nothing_twice() {
    let mut day = Day::begin();
    let (first, second) = (day.candidate("first"), day.candidate("second"));
    let leading = first.acquire().await;
    day.then("a tenant begins").await;
    day.then("nothing happens").await;
    // The holder dies: it renews no more, and gives nothing back.
    drop(leading);
    let clock = day.life.rig.clock.clone();
    let over = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        clock.forward(Duration::from_secs(14));
    };
    let (leading, ()) = tokio::join!(second.acquire(), over);
    day.life.restart().await;
    day.then("another process takes over").await;

    day.life.put(&values("blue"));
    day.then("a value is changed").await;
    day.life.put(&deployment("nowhere"));
    day.then("a change is refused").await;
    day.life.put(&deployment("edge"));
    day.then("it is taken back").await;

    day.life.edges["a"].faults(Some(Arc::new(|request, _| refuse_page(request))));
    day.life.put(&composite_app("1.1.0"));
    day.life.put(&values("green"));
    day.life.settle().await;
    day.then("a cluster refuses an object").await;
    day.life.edges["a"].faults(None);
    // Looked at again by itself, with growing pauses.
    day.time_passes().await;
    day.then("it is cured there").await;

    day.life.edges["b"].set_down(true);
    day.life.rig.fails("b", "Timeout");
    day.then("a cluster is lost").await;
    day.life.edges["b"].set_down(false);
    day.life.rig.returns("b", "uid-b");
    day.time_passes().await;
    day.then("it is back").await;

    day.life.edges["a"].set_workloads_ready(false);
    day.life.put(&values("yellow"));
    day.life.settle().await;
    let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit"});
    day.life.edges["a"].set_status(JOB, &json!({"conditions": [failed]})).unwrap();
    day.then("a hook fails").await;
    day.life.edges["a"].set_workloads_ready(true);
    day.time_passes().await;
    day.then("it succeeds at another try").await;

    day.life.edges["a"].set_workloads_ready(false);
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet \"web\" has timed out progressing."});
    let unready = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1,
        "availableReplicas": 1, "conditions": [late]});
    day.life.edges["a"].set_status(WEB, &unready).unwrap();
    day.then("a workload is no longer ready").await;
    day.time_passes().await;
    day.then("it stays so beyond its deadline").await;
    day.life.edges["a"].set_workloads_ready(true);
    day.life.edges["a"].set_status(WEB, &json!({})).unwrap();
    day.then("it is ready again").await;

    day.life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    day.then("the deployment is deleted").await;
    leading.release().await;
    day.then("the operator ends").await;
    insta::assert_snapshot!(day.told.join("\n"));
}
