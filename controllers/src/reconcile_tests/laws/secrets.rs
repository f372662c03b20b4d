//! How often the Secret that clusters are reached with is read.

use super::*;
use crate::api::{ApiServerExt as _, Method};
use crate::stores::{SecretVersions, indexes};

#[tokio::test(start_paused = true)]
async fn a_secret_of_five_hundred_clusters_is_read_once_for_each_version() {
    let rig = Rig::new();
    rig.hub.put("test", &namespace("acme", &json!({"emco.io/provider": "acme"})));
    rig.hub.put("test", &secret("shared"));
    for number in 0..500 {
        let mut object = cluster_of(number);
        object["spec"]["access"]["kubeconfigSecretRef"]["name"] = json!("shared");
        store(&rig, number, &object);
    }
    let mut fleet = Fleet::new(rig);
    fleet.listed();
    let path = "/api/v1/namespaces/acme/secrets/shared";
    let versions = std::sync::Arc::clone(&fleet.reach.ctx.stores.secret_versions);
    let shown = |fleet: &Fleet| {
        let secret = fleet.rig.hub.object(path).unwrap();
        let version = SecretVersions::version(&read(secret["metadata"].clone()));
        versions.begins("acme");
        versions.lists("acme", "shared", version.as_deref());
        versions.listed("acme");
    };
    shown(&fleet);
    fleet.look().await;
    // Our own finalizer made another version of it, whose content is that which was read.
    shown(&fleet);
    for round in 0..3 {
        fleet.rig.hub.take_seen();
        let stores = &fleet.reach.ctx.stores;
        assert_eq!(stores.clusters.count(indexes::SECRET, "acme/shared"), 500);
        fleet.reach.triggers.source(stores, "Secret", "acme", "shared");
        fleet.look().await;
        let seen = fleet.rig.hub.take_seen();
        let reads = seen.iter().filter(|seen| seen.method == Method::Get && seen.path == path).count();
        assert_eq!(reads, usize::from(round == 2), "round {round}");
        if round == 1 {
            fleet.rig.hub.put("test", &secret_with("shared", "another"));
            shown(&fleet);
        }
    }
    // Who asks for a look gets one at everything.
    let asks = json!({"metadata": {"annotations": {"emco.io/requestedAt": "now"}}});
    fleet.rig.hub.merge(path_of(0).as_str(), &asks).await.unwrap();
    fleet.look().await;
    let seen = fleet.rig.hub.take_seen();
    assert_eq!(seen.iter().filter(|seen| seen.method == Method::Get && seen.path == path).count(), 1);
}
