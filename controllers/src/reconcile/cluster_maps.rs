//! Keeps the ConfigMaps that say to members of a project which clusters it may use, with their labels, and takes back what others write there.
//!
//! One key of the queue is one ConfigMap: a Cluster that changes costs one of them in each project that its provider grants anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::cluster::Scheduling as Stored;
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned, Project};
use emco_engine::cloud;
use emco_engine::cluster_maps::{Row, slot_of, text};
use emco_engine::snapshot::Scheduling;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::api::each_key::each_key;
use crate::api::key_queue::Key;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::stores::Known;
use crate::tenancy::{facts, namespace_access, owned_namespace};

mod write;

use write::{Done, object, put};

/// ConfigMaps that are looked at at once.
const AT_ONCE: u16 = 8;
/// After a write, before the next one of the same ConfigMap: many clusters that change together are one write.
const PAUSE: Duration = Duration::from_secs(1);
/// Before one that failed is tried again, doubled up to the longest.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST_AGAIN: Duration = Duration::from_secs(64);

/// Looks at every ConfigMap that something may have become of, for ever.
pub async fn follow(ctx: Arc<Context>) {
    // What was not listed yet is no reason to remove anything.
    ctx.stores.loaded().await;
    for project in ctx.stores.projects.sorted() {
        ctx.stores.cluster_maps.enqueue_all(project.owned_namespace());
    }
    let failures: Mutex<BTreeMap<Key, u32>> = Mutex::default();
    each_key(&ctx.stores.cluster_maps.queue, AT_ONCE, async |key: Key| {
        match reconcile(&ctx, &key.0, &key.1).await {
            Ok(written) => {
                failures.lock().remove(&key);
                if written {
                    sleep(PAUSE).await;
                }
            }
            Err(error) => {
                let before = {
                    let mut failures = failures.lock();
                    let number = failures.entry(key.clone()).or_default();
                    let before = *number;
                    *number = before.saturating_add(1);
                    before
                };
                // At first, our rights in a new namespace may only not be effective yet.
                if let Failure::Hub(error) = &error
                    && before >= 2
                {
                    namespace_access::refused(&ctx, &key.0, error).await;
                }
                let (namespace, map) = (key.0.as_str(), key.1.as_str());
                if before == 3 {
                    tracing::warn!(namespace, map, %error, "the clusters of a project cannot be written down for its members; trying again");
                } else {
                    tracing::debug!(namespace, map, %error, "the clusters of a project could not be written down; trying again");
                }
                let again = (AGAIN * 2_u32.saturating_pow(before.min(6))).min(LONGEST_AGAIN);
                let ctx = Arc::clone(&ctx);
                tokio::spawn(async move {
                    sleep(again).await;
                    ctx.stores.cluster_maps.queue.enqueue(&key.0, &key.1);
                });
            }
        }
    })
    .await;
}

/// Brings one ConfigMap to what it should say; whether that took a write.
pub async fn reconcile(ctx: &Context, namespace: &str, map: &str) -> Result<bool, Failure> {
    let maps = &ctx.stores.cluster_maps;
    let key = (namespace.to_owned(), map.to_owned());
    let Some((slot, project)) = slot_of(map).zip(tenant(ctx, namespace)) else {
        maps.forget(&key);
        return Ok(false);
    };
    let wanted = text(rows(ctx, &project, slot)).map(|text| object(&project, namespace, map, &text));
    let digest = wanted.as_ref().map(|wanted| hex::encode(Sha256::digest(wanted.to_string())));
    if maps.known(&key).is_some_and(|known| known.digest == digest) {
        return Ok(false);
    }
    match put(ctx, namespace, map, wanted.as_ref()).await {
        Ok(Done { version, written }) => {
            maps.remember(key, Known { digest, version });
            Ok(written)
        }
        Err(error) => {
            maps.forget(&key);
            Err(error.into())
        }
    }
}

/// The Project that owns a namespace, where things can be written for it. One that ends takes its ConfigMaps with it.
fn tenant(ctx: &Context, namespace: &str) -> Option<Arc<Project>> {
    let name = owned_namespace::project_of(ctx, namespace)?;
    let project = ctx.stores.projects.named("", &name)?;
    let usable = !meta::deleting(project.as_ref())
        && project.owned_namespace() == namespace
        && !owned_namespace::ends(ctx, namespace);
    usable.then_some(project)
}

/// Clusters of one number that the project may use, by the rule that logical clouds have them by.
fn rows(ctx: &Context, project: &Project, slot: usize) -> Vec<Row> {
    let keys = ctx.stores.cluster_maps.clusters(slot);
    let named = |(namespace, name): &Key| ctx.stores.clusters.named(namespace, name);
    let clusters: Vec<Arc<Cluster>> = keys.iter().filter_map(named).collect();
    let facts = facts::of(ctx, &clusters);
    let providers = ctx.stores.providers.sorted();
    let providers: Vec<_> = providers.iter().map(AsRef::as_ref).collect();
    let granted = cloud::granted(meta::name(project), &facts::labels(project), &providers, &facts);
    let row = |cluster: &Arc<Cluster>| {
        let id = facts::id(ctx, cluster)?;
        let (level, known) = (granted.get(&id)?, facts.get(&id)?);
        let status = cluster.status.as_ref();
        let reachable = status.and_then(|status| status.condition(types::REACHABLE));
        Some(Row {
            provider: id.provider().to_owned(),
            name: id.cluster().to_owned(),
            level: *level,
            scheduling: match known.scheduling {
                Scheduling::Enabled => Stored::Enabled,
                Scheduling::Cordoned => Stored::Cordoned,
                Scheduling::Drained => Stored::Drained,
            },
            reachable: reachable.map_or_else(|| "Unknown".to_owned(), |condition| condition.status.clone()),
            version: status.and_then(|status| status.kubernetes_version.clone()).unwrap_or_default(),
            labels: known.labels.clone(),
            labels_left_out: false,
        })
    };
    clusters.iter().filter_map(row).collect()
}
