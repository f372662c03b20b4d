//! What a cluster tells others, by the order of lists and by what is known of it.

use super::*;
use crate::triggers::{ClusterChange, ClusterView};

/// Deployments that are woken.
fn deployments(fleet: &Fleet) -> Vec<String> {
    fleet.woken().remove("DeploymentIntentGroup").unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn clusters_listed_before_their_namespaces_wake_nobody_at_first() {
    for first in [First::Namespaces, First::Clusters] {
        let mut fleet = fleet_listed(FEW, first);
        fleet.woken();
        for number in 1..FEW {
            fleet.watches.clusters.show(&fleet.reach, read(cluster_of(number)), false);
        }
        observe(&fleet);
        assert_eq!(deployments(&fleet), Vec::<String>::new(), "all is as it was listed");
        show_cluster(&mut fleet, |object| object["metadata"]["labels"] = json!({"group": "7"}));
        assert_eq!(deployments(&fleet), ["team-a/d0", "team-a/d7"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_beyond_what_is_remembered_concerns_granted_projects_alone() {
    let mut fleet = fleet_of(FEW);
    let mut other = deployment_of(0);
    other["metadata"]["namespace"] = json!("team-b");
    fleet.watches.digs.show(&fleet.reach, read::<DeploymentIntentGroup>(other), false);
    fleet.woken();
    let ctx = &fleet.reach.ctx;
    // No term of theirs picks it as it is.
    let mut object = cluster_of(0);
    object["metadata"]["labels"] = json!({"group": "none"});
    let views = vec![ClusterView::of(ctx, &read(object))];
    let key = ("acme".to_owned(), edge(0));
    let change = ClusterChange { key, views, came: false, gone: false, overflowed: true };
    fleet.reach.triggers.cluster(ctx, &change);
    let woken = deployments(&fleet);
    assert_eq!(woken.len(), DEPLOYMENTS);
    assert!(woken.iter().all(|key| key.starts_with("team-a/")), "{woken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_without_an_owner_wakes_those_with_its_rows() {
    let mut fleet = fleet_of(FEW);
    fleet.show_namespace(read(namespace("acme", &json!({}))));
    fleet.watches.clusters.show(&fleet.reach, read(cluster_of(50)), false);
    fleet.woken();
    fleet.watches.clusters.show(&fleet.reach, read(cluster_of(50)), true);
    assert_eq!(deployments(&fleet), ["team-a/d50"]);
}
