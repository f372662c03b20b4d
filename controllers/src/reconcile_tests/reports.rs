//! A deployment, or a logical cloud, of which nothing but reports of its clusters is new: it is not planned anew, and says what a look at everything says.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::sync_shard::status::{Connectivity, RowApp, RowDrift, RowDrifted, RowError};
use emco_crds::{OwnerKind, RowStatus, State, SyncShard};
use emco_engine::shard::{decode_status, encode_status};
use serde_json::{Value, json};

use super::life::*;
use super::rig::Rig;
use super::shop::{TENANT, deployment, objects, values};
use super::waves;
use crate::api::Method;
use crate::object::{Owner, meta};
use crate::reconcile::deployment::reconcile;
use crate::reconcile::logical_cloud;
use crate::store;
use crate::stores::visits;

/// What one cluster reports.
type Report = fn(&mut RowStatus);

const REPORTS: [(&str, Report); 7] = [
    ("it is away", |row| row.connectivity = Connectivity::Unreachable),
    ("it failed", |row| {
        let state = State::UpdateFailed;
        (row.state, row.error) = (state, Some(error("AdmissionDenied")));
        row.apps = vec![RowApp { app: "web".to_owned(), state, total: 3, ..RowApp::default() }];
    }),
    ("others changed an object", |row| {
        let object = RowDrifted { resource: "ConfigMap/team-a/page".to_owned(), ..RowDrifted::default() };
        let objects = vec![object];
        row.drift = Some(RowDrift { corrected: 2, reported: 1, objects, ..RowDrift::default() });
    }),
    ("nothing is complete", |row| row.applied = None),
    ("another cluster answers", |row| row.error = Some(error("ClusterReplaced"))),
    ("its content is lost", |row| row.error = Some(error("ContentLost"))),
    ("all is well", |row| {
        (row.error, row.drift, row.apps) = (None, None, Vec::new());
        (row.connectivity, row.state) = (Connectivity::Reachable, State::Instantiated);
    }),
];
/// Those that ask the deployment for more than to count them.
const ACTS: [&str; 2] = ["another cluster answers", "its content is lost"];

fn error(reason: &str) -> RowError {
    RowError { reason: reason.to_owned(), message: "no".to_owned(), attempts: 1, ..RowError::default() }
}

async fn look(rig: &mut Rig) {
    rig.see();
    rig.hub.take_seen();
    reconcile(&rig.ctx, "team-a", "shop").await.unwrap();
}

/// The driver tells reports from what else asks; the test says what the workers report.
async fn driven(mut life: Life) -> Life {
    life.end().await;
    life.rig.ctx.looks.begin();
    look(&mut life.rig).await;
    life
}

async fn at_rest() -> Life {
    let mut life = Life::with(&objects());
    life.settle().await;
    driven(life).await
}

fn reports(life: &Life, cluster: &str, change: Report) {
    reports_to(life, &OwnerKind::DeploymentIntentGroup, cluster, change);
}

fn reports_to(life: &Life, owner: &OwnerKind, cluster: &str, change: Report) {
    let all = life.rig.hub.of_kind("SyncShard").into_iter();
    let mut all = all.map(|shard| serde_json::from_value::<SyncShard>(shard).unwrap());
    let shard = all.find(|shard| shard.spec.owner.kind == *owner).unwrap();
    let known = shard.status.clone().unwrap();
    let mut rows = decode_status(&shard.spec, &known);
    let row = shard.spec.clusters.iter().find(|row| row.cluster == cluster).unwrap();
    change(rows.entry(row.id).or_default());
    let mut status = encode_status(&shard.spec, meta::writes(&shard), &rows);
    (status.observed_generation, status.conditions) = (known.observed_generation, known.conditions);
    let path = format!("{TENANT}/syncshards/{}", meta::name(&shard));
    life.rig.hub.set_status(&path, &json!(status)).unwrap();
}

fn said(rig: &Rig) -> Value {
    rig.hub.object(&format!("{TENANT}/deploymentintentgroups/shop")).unwrap()["status"].clone()
}

/// Whether a look read what only a plan reads.
fn planned(rig: &Rig) -> bool {
    rig.hub.take_seen().iter().any(|seen| {
        seen.method == Method::Get && seen.path.ends_with("/values") && seen.path.contains("team-a")
    })
}

#[tokio::test(start_paused = true)]
async fn reports_are_counted_without_a_plan_as_a_look_at_everything_does() {
    let mut life = at_rest().await;
    look(&mut life.rig).await;
    assert!(!planned(&life.rig), "nothing is new");
    // What a cluster asks for besides keeps the deployment from resting.
    let mut rests = true;
    for cluster in ["acme/a", "acme/b"] {
        for (what, report) in REPORTS {
            reports(&life, cluster, report);
            // A process that remembers nothing looks at everything.
            let mut whole = Rig::on(life.rig.outside().copied());
            look(&mut whole).await;
            assert!(planned(&whole), "{what}");
            look(&mut life.rig).await;
            let acts = ACTS.contains(&what);
            assert_eq!(planned(&life.rig), acts || !rests, "{what}");
            rests = !acts;
            assert_eq!(said(&life.rig), said(&whole), "{cluster}: {what}");
            // What was written comes back, and is looked at as a whole where it has to be.
            look(&mut life.rig).await;
            assert!(life.rig.writes().is_empty(), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn anything_else_than_a_report_asks_for_a_plan() {
    let mut life = at_rest().await;
    life.rig.ctx.looks.note([key()]);
    look(&mut life.rig).await;
    assert!(planned(&life.rig), "it was asked for");
    look(&mut life.rig).await;
    assert!(!planned(&life.rig), "once");
    let mut dig = deployment("edge");
    dig["metadata"]["annotations"] = json!({"emco.io/requestedAt": "now"});
    life.put(&dig);
    look(&mut life.rig).await;
    assert!(planned(&life.rig), "it has another annotation");
    dig["spec"]["progressDeadline"] = json!("7m");
    life.put(&dig);
    look(&mut life.rig).await;
    assert!(planned(&life.rig), "it has another spec");
    // A shard that wants something else than it wanted.
    look(&mut life.rig).await;
    let mut shards = life.rig.hub.of_kind("SyncShard").into_iter();
    let shard = shards.find(|shard| shard["spec"]["owner"]["kind"] == "DeploymentIntentGroup").unwrap();
    let (name, writes) = (&shard["metadata"]["name"], shard["spec"]["writes"].as_i64().unwrap());
    life.put(&json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
        "metadata": {"name": name, "namespace": "team-a"}, "spec": {"writes": writes + 1}}));
    look(&mut life.rig).await;
    assert!(planned(&life.rig), "its shard was written");
    life.rig.restart();
    life.rig.ctx.looks.begin();
    look(&mut life.rig).await;
    assert!(planned(&life.rig), "a process begins");
}

#[tokio::test(start_paused = true)]
async fn waves_go_on_by_reports_with_the_plan_that_was_made() {
    let mut life = soaking().await;
    reports(&life, "acme/c", |row| row.drift = Some(RowDrift { corrected: 2, ..RowDrift::default() }));
    let mut whole = Rig::on(life.rig.outside().copied());
    look(&mut whole).await;
    look(&mut life.rig).await;
    assert!(!planned(&life.rig));
    assert_eq!(said(&life.rig), said(&whole));
    // Time alone moves them, too.
    let wanted = |rig: &Rig| -> Vec<Value> {
        rig.hub.of_kind("SyncShard").iter().map(|shard| shard["spec"]["clusters"].clone()).collect()
    };
    let before = wanted(&life.rig);
    life.rig.clock.forward(Duration::from_mins(10));
    let mut whole = Rig::on(life.rig.outside().copied());
    look(&mut whole).await;
    look(&mut life.rig).await;
    assert!(!planned(&life.rig));
    assert_ne!(wanted(&life.rig), before, "the next wave has begun");
    assert_eq!(wanted(&life.rig), wanted(&whole));
}

fn key() -> (String, String) {
    ("team-a".to_owned(), "shop".to_owned())
}

/// How many hold manifests of the shop.
async fn holders(rig: &Rig) -> usize {
    let dig = rig.ctx.stores.digs.named("team-a", "shop").unwrap();
    let owner = Owner::of(&rig.ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
    let newest = store::newest(&rig.ctx, &owner).await.unwrap().unwrap();
    newest.running.sets.values().map(Arc::strong_count).sum()
}

/// The shop on its way to the canary, as it is at rest.
async fn soaking() -> Life {
    let mut life = waves::fleet().await;
    life.put(&waves::waved(&waves::canary(&json!({"soak": "10m"}))));
    life.put(&values("blue"));
    life.settle().await;
    let mut life = driven(life).await;
    look(&mut life.rig).await;
    assert!(!planned(&life.rig), "its plan is kept");
    life
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_kept_for_its_waves_holds_no_manifests() {
    let life = soaking().await;
    let before = holders(&life.rig).await;
    assert!((1..1_000_000).contains(&life.rig.ctx.looks.bytes()));
    life.rig.ctx.looks.gone(&key());
    assert_eq!((holders(&life.rig).await, life.rig.ctx.looks.bytes()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_made_anew_in_time_however_often_clusters_report() {
    let mut life = soaking().await;
    let mut plans = 0;
    for _ in 0..11 {
        tokio::time::advance(Duration::from_mins(1)).await;
        look(&mut life.rig).await;
        plans += usize::from(planned(&life.rig));
    }
    assert_eq!(plans, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_passed_its_waves_keeps_no_plan_for_its_reports() {
    let mut life = waves::fleet().await;
    life.put(&waves::waved(&waves::canary(&json!({}))));
    life.put(&values("blue"));
    life.settle().await;
    let mut life = driven(life).await;
    let drifted: Report = |row| row.drift = Some(RowDrift { corrected: 2, ..RowDrift::default() });
    for cluster in ["acme/a", "acme/c"] {
        reports(&life, cluster, drifted);
        let mut whole = Rig::on(life.rig.outside().copied());
        look(&mut whole).await;
        look(&mut life.rig).await;
        assert!(!planned(&life.rig), "{cluster}");
        assert_eq!(said(&life.rig), said(&whole), "{cluster}");
        assert_eq!(life.rig.ctx.looks.bytes(), 0);
    }
    // A cluster that fails is more than the rollout bears.
    let failed: Report = |row| (row.state, row.error) = (State::UpdateFailed, Some(error("AdmissionDenied")));
    reports(&life, "acme/a", failed);
    let mut whole = Rig::on(life.rig.outside().copied());
    look(&mut whole).await;
    look(&mut life.rig).await;
    assert_eq!(said(&life.rig), said(&whole));
}

/// Looks at the logical cloud; whether clusters were read for that.
async fn look_at_cloud(rig: &mut Rig) -> bool {
    rig.see();
    rig.hub.take_seen();
    visits::take();
    logical_cloud::reconcile(&rig.ctx, "team-a", "default").await.unwrap();
    visits::take().contains_key("Cluster")
}

fn said_of_cloud(rig: &Rig) -> Value {
    rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_logical_cloud_counts_reports_as_a_look_at_everything_does() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.end().await;
    life.rig.ctx.cloud_looks.begin();
    assert!(look_at_cloud(&mut life.rig).await, "nothing is kept yet");
    assert!(!look_at_cloud(&mut life.rig).await, "nothing is new");
    let mut rests = true;
    for cluster in ["acme/a", "acme/b"] {
        for (what, report) in REPORTS {
            reports_to(&life, &OwnerKind::LogicalCloud, cluster, report);
            let mut whole = Rig::on(life.rig.outside().copied());
            assert!(look_at_cloud(&mut whole).await, "{what}");
            let acts = ACTS.contains(&what);
            assert_eq!(look_at_cloud(&mut life.rig).await, acts || !rests, "{cluster}: {what}");
            rests = !acts;
            assert_eq!(said_of_cloud(&life.rig), said_of_cloud(&whole), "{cluster}: {what}");
            look_at_cloud(&mut life.rig).await;
            assert!(life.rig.writes().is_empty(), "{what}");
        }
    }
    look_at_cloud(&mut life.rig).await;
    life.rig.ctx.cloud_looks.note([("team-a".to_owned(), "default".to_owned())]);
    assert!(look_at_cloud(&mut life.rig).await, "it was asked for");
    let labels = json!({"apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud",
        "metadata": {"name": "default", "namespace": "team-a", "labels": {"a": "b"}}});
    life.put(&labels);
    assert!(look_at_cloud(&mut life.rig).await, "it has another label");
    assert!(!look_at_cloud(&mut life.rig).await);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_else_wrote_does_not_stay() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.end().await;
    life.rig.ctx.looks.begin();
    life.rig.ctx.cloud_looks.begin();
    for _ in 0..2 {
        look_at_cloud(&mut life.rig).await;
        life.rig.see();
        reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    }
    let before = (said_of_cloud(&life.rig), said(&life.rig));
    let forge = |path: &str, said: &Value| {
        let mut forged = said.clone();
        forged["digest"] = json!("sha256:0");
        forged["summary"] = json!({"clusters": "7/7"});
        forged["namespace"] = json!("kube-system");
        forged["identity"] = json!("system:masters");
        life.rig.hub.set_status(&format!("{TENANT}/{path}"), &forged).unwrap();
    };
    forge("logicalclouds/default", &before.0);
    forge("deploymentintentgroups/shop", &before.1);
    assert!(!look_at_cloud(&mut life.rig).await, "nothing but a status changed");
    life.rig.see();
    reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
    assert_eq!((said_of_cloud(&life.rig), said(&life.rig)), before);
}
