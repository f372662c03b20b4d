//! Shards of the hub come in; those whose owner is gone go out. What they list is still on its clusters, and nobody cares for it.

use std::collections::BTreeSet;

use emco_crds::{DeploymentIntentGroup, LogicalCloud, OwnerKind, SyncShard};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;

use super::args::{Format, OrphansArgs};
use super::hub::{self, Hub};
use super::output::{Table, age, machine, made};
use super::{Outcome, print};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Orphan {
    namespace: String,
    /// `DeploymentIntentGroup/shop`
    owner: String,
    shard: String,
    clusters: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<Timestamp>,
}

pub async fn run(args: OrphansArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let namespace = args.namespace.as_deref();
    // Shards first: an owner that is made in between is found then.
    let shards = list::<SyncShard>(&hub, namespace, "shards").await?;
    let groups = list::<DeploymentIntentGroup>(&hub, namespace, "deployment intent groups").await?;
    let clouds = list::<LogicalCloud>(&hub, namespace, "logical clouds").await?;
    let owners: BTreeSet<(OwnerKind, String, String)> =
        groups
            .iter()
            .map(|group| {
                (OwnerKind::DeploymentIntentGroup, group.namespace().unwrap_or_default(), group.name_any())
            })
            .chain(clouds.iter().map(|cloud| {
                (OwnerKind::LogicalCloud, cloud.namespace().unwrap_or_default(), cloud.name_any())
            }))
            .collect();
    let mut orphans: Vec<Orphan> = shards
        .iter()
        .filter(|shard| {
            let owner = &shard.spec.owner;
            let key = (owner.kind.clone(), shard.namespace().unwrap_or_default(), owner.name.clone());
            // A ledger of what was given up is no orphan: it ends by itself when its clusters return.
            shard.spec.abandoned.is_none() && !owners.contains(&key)
        })
        .map(orphan)
        .collect();
    orphans.sort_by(|a, b| (&a.namespace, &a.owner, &a.shard).cmp(&(&b.namespace, &b.owner, &b.shard)));
    match machine(args.output, &orphans)? {
        Some(text) => print(&text)?,
        None => show(&orphans, args.output == Some(Format::Wide))?,
    }
    Ok(if orphans.is_empty() { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

async fn list<K>(hub: &Hub, namespace: Option<&str>, what: &str) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api = |client: Client| {
        namespace.map_or_else(|| Api::all(client.clone()), |n| Api::namespaced(client.clone(), n))
    };
    hub.list(api(hub.client.clone()), &ListParams::default(), what, namespace).await
}

fn orphan(shard: &SyncShard) -> Orphan {
    let owner = &shard.spec.owner;
    Orphan {
        namespace: shard.namespace().unwrap_or_default(),
        owner: format!("{}/{}", owner.kind, owner.name),
        shard: shard.name_any(),
        clusters: shard.spec.clusters.iter().map(|row| row.cluster.clone()).collect(),
        revision: shard.spec.combinations.iter().map(|combination| combination.revision).max(),
        made: made(&shard.metadata),
    }
}

fn show(orphans: &[Orphan], wide: bool) -> anyhow::Result<()> {
    if orphans.is_empty() {
        eprintln!("no orphans: every shard has its deployment intent group or logical cloud");
        return Ok(());
    }
    let mut table = Table::new(&["NAMESPACE", "OWNER", "SHARD", "REV", "CLUSTERS", "AGE"]);
    let now = Timestamp::now();
    for orphan in orphans {
        table.row(vec![
            orphan.namespace.clone(),
            orphan.owner.clone(),
            orphan.shard.clone(),
            orphan.revision.map(|revision| revision.to_string()).unwrap_or_default(),
            some(&orphan.clusters, if wide { usize::MAX } else { 3 }),
            age(orphan.made, now),
        ]);
    }
    print(&table.text())
}

/// The first of many names.
pub fn some(names: &[String], most: usize) -> String {
    match names.len().checked_sub(most) {
        Some(more @ 1..) => format!("{} and {more} more", names[..most].join(", ")),
        _ => names.join(", "),
    }
}
