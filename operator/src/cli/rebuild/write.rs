//! Clusters on which an owner was found in; rows of its shards on the hub out, which let nothing happen there.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use emco_crds::app_context::{FORMAT, OwnerRef};
use emco_crds::names::{finalizer, label};
use emco_crds::{SyncShard, SyncShardSpec};
use emco_engine::identity::ClusterId;
use emco_engine::shard;
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};

use super::super::hub::Hub;
use super::{Known, Owner};

/// Tries to write a shard that the operator writes, too.
const TRIES: usize = 5;
/// Stands where an owner is not there.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Adds rows to a shard of the owner, or makes its first one.
pub async fn write(
    hub: &Hub,
    known: &Known,
    owner: &Owner,
    clusters: &BTreeMap<ClusterId, Option<String>>,
) -> anyhow::Result<()> {
    let (_, namespace, name) = owner;
    let api = Api::<SyncShard>::namespaced(hub.client.clone(), namespace);
    let params = PostParams { field_manager: Some("emco-cli".to_owned()), ..PostParams::default() };
    let mut by_shard: BTreeMap<Option<String>, BTreeMap<ClusterId, Option<String>>> = BTreeMap::new();
    let there: Vec<&SyncShard> = known.shards_of(owner, false).collect();
    let slots: Vec<(i64, i32)> = there.iter().map(|stored| (stored.spec.slot, stored.spec.bits)).collect();
    for (cluster, uid) in clusters {
        let home = shard::home(cluster, &slots).and_then(|at| there.get(at)).or_else(|| there.first());
        let home = home.map(|stored| stored.name_any());
        by_shard.entry(home).or_default().insert(cluster.clone(), uid.clone());
    }
    for (home, clusters) in by_shard {
        let what = format!("{namespace}/{}", home.as_deref().unwrap_or(name));
        let Some(home) = home else {
            let fresh = first(known, owner, &clusters)?;
            let made = api.create(&params, &fresh).await;
            made.map_err(|error| hub.sentence(&error, "create a shard for", &what))?;
            continue;
        };
        let mut tries = 0;
        loop {
            let mut stored =
                api.get(&home).await.map_err(|error| hub.sentence(&error, "read shard", &what))?;
            if stored.spec.format > FORMAT {
                return Err(anyhow!(
                    "shard {what} was written by a later version of EMCO: use its kubectl emco"
                ));
            }
            let Some(spec) = shard::adopt(&stored.spec, &clusters) else { break };
            let generation = stored.metadata.generation.unwrap_or_default();
            let writes = shard::writes(&stored.spec, stored.status.as_ref(), generation) + 1;
            stored.spec = SyncShardSpec { writes, ..spec };
            match api.replace(&home, &params, &stored).await {
                Ok(_) => break,
                // The operator was faster.
                Err(kube::Error::Api(status)) if status.code == 409 && tries < TRIES => tries += 1,
                Err(error) => return Err(hub.sentence(&error, "write shard", &what)),
            }
        }
    }
    Ok(())
}

/// A shard for an owner that has none.
fn first(
    known: &Known,
    owner: &Owner,
    clusters: &BTreeMap<ClusterId, Option<String>>,
) -> anyhow::Result<SyncShard> {
    let (kind, namespace, name) = owner;
    let uid = known.owners.get(owner).cloned().unwrap_or_else(|| NO_UID.to_owned());
    let empty = SyncShardSpec {
        format: FORMAT,
        owner: OwnerRef { kind: kind.clone(), name: name.clone(), uid },
        next_id: 1,
        writes: 1,
        ..SyncShardSpec::default()
    };
    let spec = shard::adopt(&empty, clusters).context("there is nothing to adopt")?;
    let mut made = SyncShard::new(&format!("{}-{name}-s0-0", kind.short()), spec);
    made.metadata.namespace = Some(namespace.clone());
    made.metadata.finalizers = Some(vec![finalizer::INVENTORY.to_owned()]);
    made.metadata.labels = Some(
        [
            (label::OWNER, known.hash(owner)),
            (label::OWNER_KIND, kind.to_string()),
            (label::OWNER_NAME, name.clone()),
            (label::SLOT, "0".to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into(),
    );
    Ok(made)
}
