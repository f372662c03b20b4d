//! Wakes the deployments that have or want one release: who gets it, or who hears that it is wanted, may be another one.

use emco_crds::LogicalCloud;

use super::Triggers;
use crate::api::key_queue::Key;
use crate::object::meta::{name, namespace};
use crate::stores::{Release, Stores};

/// All deployments of a release, through the other logical clouds with this namespace on clusters, too.
fn sharers(stores: &Stores, release: &Release, on_clusters: Option<&str>) -> Vec<Key> {
    let own = (release.within.clone(), release.cloud.clone());
    let mut clouds = on_clusters.map(|shared| stores.cloud_namespaces.sharing(shared)).unwrap_or_default();
    if !clouds.contains(&own) {
        clouds.push(own);
    }
    let mut found = Vec::new();
    for (within, cloud) in clouds {
        let beside = Release { within: within.clone(), cloud, name: release.name.clone() };
        found.extend(stores.releases.deployments(&beside).into_iter().map(|name| (within.clone(), name)));
    }
    found
}

impl Triggers {
    /// A deployment that has or wants a release came, changed or went.
    pub(super) fn release(&self, stores: &Stores, release: &Release) {
        let cloud = stores.clouds.named(&release.within, &release.cloud);
        let on_clusters = cloud.map(|cloud| cloud.cluster_namespace().to_owned());
        for (within, name) in sharers(stores, release, on_clusters.as_deref()) {
            self.digs.enqueue(&within, &name);
        }
    }

    /// A logical cloud that shares its namespace on clusters came, changed or went: the releases that are wanted through another one, too.
    pub(super) fn releases(&self, stores: &Stores, cloud: &LogicalCloud) {
        let on_clusters = cloud.cluster_namespace();
        for release in stores.releases.through(namespace(cloud), name(cloud)) {
            let all = sharers(stores, &release, Some(on_clusters));
            for (within, name) in all.iter().filter(|_| all.len() > 1) {
                self.digs.enqueue(within, name);
            }
        }
    }
}
