//! What this process made and the watch of the hub did not show yet is not taken for gone.

use serde_json::Value;

use super::life::*;
use super::shop::{TENANT, deployment, objects};
use crate::reconcile::orphans;

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
    orphans::reconcile(&life.rig.ctx, "team-a", "DeploymentIntentGroup", "shop").await.unwrap();
    life.tell().await;
    assert!(of_shop(&life, "SyncShard").iter().all(|shard| {
        shard["spec"]["clusters"].as_array().unwrap().iter().all(|row| row["target"] != Value::Null)
    }));
    assert_eq!(life.names_on("a"), before);
}
