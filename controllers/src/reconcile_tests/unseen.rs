//! What this process made and the watch of the hub did not show yet is not taken for gone.

use std::time::Duration;

use emco_crds::OwnerKind;
use serde_json::{Value, json};

use super::abandoned::{CLUSTER, ledgers, with_cloud_alone};
use super::life::*;
use super::shop::{TENANT, deployment, objects, values};
use super::waves::{canary, fleet, waved};
use crate::api::ApiServerExt as _;
use crate::reconcile::{cluster_provider, composite_app, composite_profile, logical_cloud, orphans, project};

fn dig() -> String {
    format!("{TENANT}/deploymentintentgroups/shop")
}

fn of_shop(life: &Life, kind: &str) -> Vec<Value> {
    let of = |o: &Value| o["kind"] == kind && o["spec"]["owner"]["name"] == "shop";
    life.rig.hub.objects().into_values().filter(of).collect()
}

/// One look at the deployment while the watch of shards is behind.
async fn look(life: &mut Life) {
    life.rig.see_all_but_shards();
    crate::reconcile::deployment::reconcile(&life.rig.ctx, "team-a", "shop").await.unwrap();
}

/// The deployment was made and targeted, and the watch shows its shards as little as that they are deleted.
async fn targeted() -> Life {
    let mut all = objects();
    all.pop();
    let mut life = Life::with(&all);
    life.settle().await;
    life.put(&deployment("edge"));
    // The finalizer, the revision and its targets, the status.
    for _ in 0..3 {
        look(&mut life).await;
    }
    assert!(!of_shop(&life, "SyncShard").is_empty());
    life
}

fn nothing_is_left(life: &Life) {
    assert_eq!(life.dig(), Value::Null);
    assert!(of_shop(life, "SyncShard").is_empty() && of_shop(life, "AppContext").is_empty());
    for edge in EDGES {
        let left = life.names_on(edge).into_iter().filter(|name| !name.starts_with("namespaces."));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_deleted_before_its_shards_show_ends_on_clusters_first() {
    let mut life = targeted().await;
    life.tell().await;
    assert!(life.names_on("a").iter().any(|name| !name.starts_with("namespaces.")), "workers began");
    life.delete(&dig()).await;
    for _ in 0..3 {
        look(&mut life).await;
        assert_ne!(life.dig(), Value::Null, "it waits for what the watch does not show");
    }
    life.settle().await;
    nothing_is_left(&life);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_deleted_before_others_saw_its_shards_waits_for_them() {
    let mut life = targeted().await;
    life.tell().await;
    life.delete(&dig()).await;
    // The next process made nothing, and its watch is as far behind.
    life.restart().await;
    for _ in 0..3 {
        look(&mut life).await;
        assert_ne!(life.dig(), Value::Null, "the hub has its shards");
    }
    life.settle().await;
    nothing_is_left(&life);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_shards_do_not_show_yet_is_kept_with_its_claim() {
    let mut life = targeted().await;
    let path = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
    life.delete(path).await;
    for _ in 0..3 {
        life.rig.see_all_but_shards();
        life.rig.unsee_shards();
        crate::reconcile::cluster::reconcile(&life.rig.ctx, "acme", "a").await.unwrap();
        let (_, _, message) = life.rig.ready(path);
        assert!(message.contains("waits for 1 holder: DeploymentIntentGroup/team-a/shop"), "{message}");
    }
    assert!(
        life.rig.ctx.connector.observation(&emco_engine::identity::ClusterId::new("acme", "a")).is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_the_watch_does_not_show_yet_is_not_brought_to_an_end() {
    let mut life = targeted().await;
    life.settle().await;
    let before = life.names_on("a");
    // A process whose watch shows neither the owner nor the shards; its revisions were deleted by hand.
    for context in of_shop(&life, "AppContext") {
        life.delete(&format!("{TENANT}/appcontexts/{}", context["metadata"]["name"].as_str().unwrap())).await;
    }
    life.restart().await;
    life.rig.see_all_but_shards_and_groups();
    orphans::reconcile(&life.rig.ctx, "team-a", &OwnerKind::DeploymentIntentGroup, "shop").await.unwrap();
    life.tell().await;
    assert!(of_shop(&life, "SyncShard").iter().all(|shard| {
        shard["spec"]["clusters"].as_array().unwrap().iter().all(|row| row["target"] != Value::Null)
    }));
    assert_eq!(life.names_on("a"), before);
}

const PROJECT: &str = "/apis/emco.io/v1alpha1/projects/team-a";
const PROVIDER: &str = "/apis/emco.io/v1alpha1/clusterproviders/acme";

/// The shop runs, in namespaces that the operator made.
async fn running() -> Life {
    let mut all = objects();
    for namespace in all.iter_mut().filter(|object| object["kind"] == "Namespace") {
        namespace["metadata"]["annotations"] = json!({"emco.io/made-by": "inst"});
    }
    let mut life = Life::with(&all);
    life.settle().await;
    life
}

/// Nothing was deleted, and the deletion waits.
fn is_kept(life: &Life, path: &str, namespace: &str, holder: &str) {
    let (_, _, message) = life.rig.ready(path);
    assert!(message.contains(&format!("deletion waits for 1 holder: {holder}")), "{path}: {message}");
    let namespace = life.rig.hub.object(&format!("/api/v1/namespaces/{namespace}")).unwrap();
    assert_eq!(namespace["metadata"]["deletionTimestamp"], Value::Null, "{path}");
}

#[tokio::test(start_paused = true)]
async fn a_project_whose_deployments_do_not_show_yet_keeps_its_namespace() {
    let mut life = running().await;
    life.delete(PROJECT).await;
    for of_namespaces in [true, false] {
        life.rig.see();
        if of_namespaces {
            life.rig.unsee_namespaces();
        } else {
            life.rig.unsee_groups_and_clouds();
        }
        project::reconcile(&life.rig.ctx, "team-a").await.unwrap();
        is_kept(&life, PROJECT, "team-a", "DeploymentIntentGroup/team-a/shop");
        assert_eq!(life.dig()["metadata"]["deletionTimestamp"], Value::Null);
        let cloud = life.rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap();
        assert_eq!(cloud["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_whose_clusters_do_not_show_yet_keeps_its_namespace() {
    let mut life = running().await;
    life.delete(PROVIDER).await;
    for of_namespaces in [true, false] {
        life.rig.see();
        if of_namespaces {
            life.rig.unsee_namespaces();
        } else {
            life.rig.unsee_clusters();
        }
        cluster_provider::reconcile(&life.rig.ctx, "acme").await.unwrap();
        let (_, _, message) = life.rig.ready(PROVIDER);
        assert!(
            message.contains("deletion waits for 2 holders: Cluster/acme/a, Cluster/acme/b"),
            "{message}"
        );
        let namespace = life.rig.hub.object("/api/v1/namespaces/acme").unwrap();
        assert_eq!(namespace["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_that_does_not_show_yet_names_is_kept() {
    let mut life = running().await;
    let before = life.names_on("a");
    let of = |kind: &str, name: &str| format!("{TENANT}/{kind}/{name}");
    let paths =
        [of("compositeapps", "shop"), of("compositeprofiles", "shop"), of("logicalclouds", "default")];
    for path in &paths {
        life.delete(path).await;
    }
    life.rig.see();
    life.rig.unsee_groups();
    let ctx = &life.rig.ctx;
    composite_app::reconcile(ctx, "team-a", "shop").await.unwrap();
    composite_profile::reconcile(ctx, "team-a", "shop").await.unwrap();
    logical_cloud::reconcile(ctx, "team-a", "default").await.unwrap();
    for path in &paths {
        is_kept(&life, path, "team-a", "DeploymentIntentGroup/team-a/shop");
    }
    life.tell().await;
    assert_eq!(life.names_on("a"), before);
}

/// Targets of a logical cloud, by cluster.
fn targets_of_cloud(life: &Life) -> Vec<(String, bool)> {
    let of = |o: &Value| o["kind"] == "SyncShard" && o["spec"]["owner"]["kind"] == "LogicalCloud";
    let shards = life.rig.hub.objects().into_values().filter(of);
    let rows = shards.flat_map(|shard| shard["spec"]["clusters"].as_array().unwrap().clone());
    rows.map(|row| (row["cluster"].as_str().unwrap().to_owned(), !row["target"].is_null())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cloud_stays_where_a_deployment_that_does_not_show_yet_was_targeted() {
    for (of_groups, of_another_process) in [(false, false), (false, true), (true, true)] {
        let mut life = targeted().await;
        if of_another_process {
            life.rig.ctx.revisions.made.lock().clear();
        }
        let mut cloud = life.rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap();
        cloud["spec"]["clusters"] = json!([{"provider": "acme", "cluster": "a"}]);
        life.put(&json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud",
            "metadata": {"name": "default", "namespace": "team-a"}, "spec": cloud["spec"],
        }));
        life.rig.see_all_but_shards();
        if of_groups {
            life.rig.unsee_groups();
        }
        logical_cloud::reconcile(&life.rig.ctx, "team-a", "default").await.unwrap();
        let both = ["acme/a", "acme/b"].map(|id| (id.to_owned(), true));
        assert_eq!(targets_of_cloud(&life), both, "{of_groups} {of_another_process}");
        let (ready, reason, message) = life.rig.ready(&format!("{TENANT}/logicalclouds/default"));
        assert!(
            message.contains("; acme/b leaves when no deployment of this logical cloud is there any more"),
            "{message}"
        );
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "ShrinkWaits"));
    }
}

#[tokio::test(start_paused = true)]
async fn given_up_work_is_remembered_while_its_provider_does_not_show() {
    for is_gone in [false, true] {
        let mut life = with_cloud_alone().await;
        life.rig.hub.remove(CLUSTER);
        assert!(life.rig.round().await.is_empty());
        assert!(life.rig.hub.object(CLUSTER).is_none());
        assert!(ledgers(&life).is_empty(), "it is given up later");
        if is_gone {
            life.rig.hub.remove(PROVIDER);
            life.rig.hub.merge(PROVIDER, &json!({"metadata": {"finalizers": null}})).await.unwrap();
            assert!(life.rig.hub.object(PROVIDER).is_none());
        }
        life.rig.see();
        life.rig.unsee_providers();
        logical_cloud::reconcile(&life.rig.ctx, "team-a", "default").await.unwrap();
        let ledger = ledgers(&life);
        assert_eq!(ledger.len(), 1, "{is_gone}");
        assert_eq!(ledger[0]["spec"]["clusters"][0]["uid"], "uid-b");
    }
}

/// Clusters of the shop, and whether they are to have something.
fn targets_of_shop(life: &Life) -> Vec<(String, bool)> {
    let rows = of_shop(life, "SyncShard").into_iter();
    let rows = rows.flat_map(|shard| shard["spec"]["clusters"].as_array().cloned().unwrap_or_default());
    let mut all: Vec<_> =
        rows.map(|row| (row["cluster"].as_str().unwrap().to_owned(), !row["target"].is_null())).collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn rows_that_moved_to_a_shard_that_does_not_show_yet_stay_as_they_are() {
    let waves = canary(&json!({}));
    for pinned in [false, true] {
        let mut life = fleet().await;
        life.rig.settings.largest_shard = 900;
        life.restart().await;
        let mut dig = waved(&waves);
        if pinned {
            // What takes no new work keeps what it has, as far as it is known to have something.
            let mut away = life.rig.hub.object(&CLUSTER.replace("/b", "/d")).unwrap();
            away["spec"]["scheduling"] = json!("Cordoned");
            life.put(&json!({"apiVersion": away["apiVersion"], "kind": "Cluster", "spec": away["spec"],
                "metadata": {"name": "d", "namespace": "acme"}}));
            dig["spec"]["revision"] = json!(1);
        }
        life.put(&dig);
        life.put(&values("blue"));
        life.rig.see();
        let all: Vec<_> = ["a", "b", "c", "d"].map(|name| (format!("acme/{name}"), true)).into();
        let before = of_shop(&life, "SyncShard").len();
        for turn in 0..6 {
            look(&mut life).await;
            assert_eq!(targets_of_shop(&life), all, "pinned: {pinned}, look {turn}");
            // Longer than a report may wait.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert!(of_shop(&life, "SyncShard").len() > before, "nothing moved: {pinned}");
        life.settle().await;
        assert_eq!(targets_of_shop(&life), all);
    }
}
