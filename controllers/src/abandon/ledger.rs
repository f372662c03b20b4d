//! Remembers abandoned work in the provider's namespace: it is worked off when the cluster returns, and taken back when its
//! owner wants the cluster again. A ledger is a shard: workers, fences and statuses are those of any other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::app_context::FORMAT;
use emco_crds::names::{finalizer, label};
use emco_crds::sync_shard::{Abandoned, ShardRow};
use emco_crds::{Cluster, ClusterProvider, SyncShard, SyncShardSpec};
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::selector::{FieldSelector, LabelSelector};
use emco_engine::shard::{self, GivenUp};
use kube::Resource;
use serde_json::{Value, json};

use crate::api::{ApiServerExt, Method, Request, pages, parse};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::events;
use crate::object::meta;
use crate::rows::remove_shard;
use crate::store::{StoreContext, empty, replace};
use crate::stores::indexes;
use crate::tenancy::facts;
use crate::tenancy::owned_namespace;

/// Rows of one ledger: far below what an object can hold.
const MOST_ROWS: usize = 128;

/// Ledgers of an owner, by namespace and name.
fn of(ctx: &StoreContext, owner: &Owner) -> Vec<Arc<SyncShard>> {
    let mut all = ctx.stores.shards.indexed(indexes::OWNER, &owner.hash);
    all.retain(|stored| {
        stored.spec.abandoned.is_some()
            && stored.spec.format <= FORMAT
            && stored.metadata.labels.as_ref().and_then(|l| l.get(label::OWNER)) == Some(&owner.hash)
    });
    all
}

/// Clusters where something of an owner was given up and may still be.
pub fn abandoned(ctx: &StoreContext, owner: &Owner) -> Vec<ClusterId> {
    let all = of(ctx, owner);
    let rows = all.iter().flat_map(|ledger| &ledger.spec.clusters);
    let clusters: BTreeSet<ClusterId> = rows.filter_map(|row| ClusterId::parse(&row.cluster)).collect();
    clusters.into_iter().collect()
}

/// Owners that left something on a cluster, as `Kind/namespace/name`.
pub fn owners_on(ctx: &StoreContext, cluster: &ClusterId) -> BTreeSet<String> {
    let all = ctx.stores.shards.indexed(indexes::ROW, cluster.as_str());
    let all = all.iter().filter(|stored| stored.spec.abandoned.is_some());
    let owner = |stored: &Arc<SyncShard>| {
        format!("{}/{}/{}", stored.spec.owner.kind, stored.owner_namespace(), stored.spec.owner.name)
    };
    all.map(owner).collect()
}

fn entries(row: &ShardRow) -> Vec<GivenUp> {
    let Some(cluster) = ClusterId::parse(&row.cluster) else { return Vec::new() };
    let held = row.held.iter().filter_map(|held| held.identities.clone());
    held.map(|identities| GivenUp { cluster: cluster.clone(), uid: row.uid.clone(), identities }).collect()
}

/// What is remembered of these clusters.
pub(super) fn noted(
    ctx: &StoreContext,
    owner: &Owner,
    wanted: impl Fn(&ClusterId) -> bool,
) -> BTreeMap<ClusterId, Vec<GivenUp>> {
    let mut noted: BTreeMap<ClusterId, Vec<GivenUp>> = BTreeMap::new();
    for ledger in of(ctx, owner) {
        for entry in ledger.spec.clusters.iter().flat_map(entries).filter(|entry| wanted(&entry.cluster)) {
            noted.entry(entry.cluster.clone()).or_default().push(entry);
        }
    }
    noted
}

/// Where the ledger of a cluster is: in its provider's namespace, unless that ends.
async fn place(ctx: &StoreContext, cluster: &ClusterId) -> Result<Option<String>, Failure> {
    let space = if let Some(found) = facts::registered(ctx, cluster) {
        meta::namespace(found.as_ref()).to_owned()
    } else {
        let Some(space) = space_of(ctx, cluster.provider()).await? else { return Ok(None) };
        space
    };
    Ok((!ends(ctx, &space).await?).then_some(space))
}

/// Namespace of a provider. One that the watch does not show is asked for: it is no reason to forget. Without the provider, it is
/// the namespace that says whose it was, as the hub has it now.
async fn space_of(ctx: &StoreContext, provider: &str) -> Result<Option<String>, Failure> {
    if let Some(shown) = ctx.stores.providers.named("", provider) {
        return Ok(Some(owned_namespace::of_provider(&shown).to_owned()));
    }
    if let Some(live) = live_provider(ctx, provider).await? {
        return Ok(Some(owned_namespace::of_provider(&live).to_owned()));
    }
    let selector = LabelSelector::is(label::PROVIDER, provider);
    let request = Request::new(Method::Get, ApiPath::new("/api/v1/namespaces")).labels(&selector).metadata();
    let mut found = None;
    pages(ctx.hub(), request, |namespace| {
        let text = |pointer: &str| namespace.pointer(pointer).and_then(Value::as_str);
        if text("/metadata/deletionTimestamp").is_none() && found.is_none() {
            found = text("/metadata/name").map(str::to_owned);
        }
    })
    .await?;
    Ok(found)
}

/// A provider as the hub has it now. It is listed, as all that people want: the operator has no right to more.
async fn live_provider(ctx: &StoreContext, name: &str) -> Result<Option<ClusterProvider>, Failure> {
    let path = meta::collection::<ClusterProvider>(None);
    let mut found = None;
    let request = Request::new(Method::Get, &path).fields(&FieldSelector::name(name));
    pages(ctx.hub(), request, |provider| found = Some(provider)).await?;
    Ok(found.map(|provider| parse(path, provider)).transpose()?)
}

/// Whether a namespace is gone or going, as the hub itself says: the watch of namespaces may be behind, and what it does not
/// show yet is no reason to forget.
async fn ends(ctx: &StoreContext, namespace: &str) -> Result<bool, Failure> {
    let seen = ctx.stores.namespaces.named("", namespace);
    if seen.is_some_and(|seen| !meta::deleting(seen.as_ref())) {
        return Ok(false);
    }
    let live = ctx.hub().get_opt(ApiPath::namespace(namespace)).await?;
    Ok(live.is_none_or(|live| live.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null())))
}

/// Writes down what is given up. Clusters for which there is no place any more are returned.
pub(super) async fn note(
    ctx: &StoreContext,
    owner: &Owner,
    given_up: Vec<GivenUp>,
) -> Result<BTreeSet<ClusterId>, Failure> {
    let mut by_space: BTreeMap<String, Vec<GivenUp>> = BTreeMap::new();
    let mut nowhere = BTreeSet::new();
    for one in given_up {
        match place(ctx, &one.cluster).await? {
            Some(space) => by_space.entry(space).or_default().push(one),
            None => drop(nowhere.insert(one.cluster)),
        }
    }
    for (space, entries) in by_space {
        note_in(ctx, owner, &space, entries).await?;
    }
    Ok(nowhere)
}

async fn note_in(
    ctx: &StoreContext,
    owner: &Owner,
    space: &str,
    entries: Vec<GivenUp>,
) -> Result<(), Failure> {
    let there: Vec<_> =
        of(ctx, owner).into_iter().filter(|stored| meta::namespace(stored.as_ref()) == space).collect();
    let mut rest = entries;
    for ledger in &there {
        let has = |one: &GivenUp| {
            ledger.spec.clusters.iter().any(|r| r.cluster == one.cluster.as_str() && r.uid == one.uid)
        };
        let (known, mut fresh): (Vec<GivenUp>, Vec<GivenUp>) = rest.into_iter().partition(has);
        let elsewhere = |one: &GivenUp| {
            // Workers look at one row of a cluster only.
            ledger.spec.clusters.iter().any(|r| r.cluster == one.cluster.as_str())
        };
        let room = MOST_ROWS.saturating_sub(ledger.spec.clusters.len());
        let (other, mut free): (Vec<GivenUp>, Vec<GivenUp>) = fresh.drain(..).partition(elsewhere);
        rest = free.split_off(room.min(free.len()));
        rest.extend(other);
        let mine: Vec<GivenUp> = known.into_iter().chain(free).collect();
        let next = meta::writes(ledger) + 1;
        if let Some(spec) = shard::note(&ledger.spec, next, &mine) {
            replace(ctx, ledger, spec).await?;
        }
    }
    let mut names: BTreeSet<String> = there.iter().map(|l| meta::name(l.as_ref()).to_owned()).collect();
    while !rest.is_empty() {
        let more = rest.split_off(MOST_ROWS.min(rest.len()));
        let (name, part) = vacant(owner, &names);
        let ledger = SyncShardSpec {
            abandoned: Some(Abandoned { namespace: owner.namespace.clone() }),
            part,
            writes: 1,
            ..empty(owner, ctx.epoch, (0, 0))
        };
        let spec = shard::note(&ledger, 1, &rest).unwrap_or(ledger);
        create(ctx, owner, space, &name, &spec).await?;
        names.insert(name);
        rest = more;
    }
    Ok(())
}

/// A name that is free: tenants may have owners of the same name.
fn vacant(owner: &Owner, taken: &BTreeSet<String>) -> (String, i64) {
    let hash = owner.hash.get(..8).unwrap_or_default();
    let name = |n: i64| format!("abandoned-{}-{}-{hash}-{n}", owner.kind.short(), owner.name);
    let mut n = 0;
    while taken.contains(&name(n)) {
        n += 1;
    }
    (name(n), n)
}

async fn create(
    ctx: &StoreContext,
    owner: &Owner,
    space: &str,
    name: &str,
    spec: &SyncShardSpec,
) -> Result<(), Failure> {
    let mut labels = owner.labels();
    labels.insert(label::SLOT, "0".to_owned());
    let object = json!({
        "apiVersion": SyncShard::api_version(&()), "kind": SyncShard::kind(&()),
        "metadata": {"name": name, "namespace": space, "labels": labels, "finalizers": [finalizer::INVENTORY]},
        "spec": spec,
    });
    ctx.hub().create(meta::collection::<SyncShard>(Some(space)), &object).await?;
    Ok(())
}

/// Forgets what rows of the owner's own shards have taken back. Whether anything was written.
pub(super) async fn forget(
    ctx: &StoreContext,
    owner: &Owner,
    specs: &[SyncShardSpec],
) -> Result<bool, Failure> {
    let mut wrote = false;
    for ledger in of(ctx, owner) {
        let is_taken = |row: &ShardRow| {
            let entries = entries(row);
            let taken = |one: &GivenUp| specs.iter().any(|spec| shard::taken(spec, one));
            !entries.is_empty() && entries.iter().all(taken)
        };
        let mut spec = ledger.spec.clone();
        spec.clusters.retain(|row| !is_taken(row));
        if spec != ledger.spec {
            replace(ctx, &ledger, spec).await?;
            wrote = true;
        }
    }
    Ok(wrote)
}

/// One ledger: what is gone from its cluster is forgotten, and with the last of it the ledger. One that somebody deleted, or
/// whose namespace ends, forgets what can never be removed.
pub async fn reconcile(ctx: &StoreContext, namespace: &str, name: &str) -> Result<(), Failure> {
    let Some(ledger) = ctx.stores.shards.named(namespace, name) else { return Ok(()) };
    if ledger.spec.abandoned.is_none() || ledger.spec.format > FORMAT {
        return Ok(());
    }
    if ledger.spec.clusters.is_empty() {
        return remove_shard(ctx, &ledger).await;
    }
    let next = meta::writes(&ledger) + 1;
    let worked = shard::retarget(&ledger.spec, ledger.status.as_ref(), next, 1, &BTreeMap::new());
    let mut spec = worked.unwrap_or_else(|| ledger.spec.clone());
    let removed: Vec<&ShardRow> = left_out(&ledger.spec, &spec);
    let ends = ends(ctx, namespace).await?;
    let hopeless = |row: &ShardRow| {
        ends || meta::deleting(ledger.as_ref())
            && ClusterId::parse(&row.cluster).is_none_or(|id| !is_registered(ctx, &id, row.uid.as_deref()))
    };
    let before = spec.clone();
    spec.clusters.retain(|row| !hopeless(row));
    if spec == ledger.spec {
        return Ok(());
    }
    let owner = format!("{}/{}/{}", ledger.spec.owner.kind, ledger.owner_namespace(), ledger.spec.owner.name);
    let forgotten: Vec<ShardRow> = left_out(&before, &spec).into_iter().cloned().collect();
    replace(ctx, &ledger, spec).await?;
    for row in removed {
        let note = format!("what {owner} had left on {} when it was given up is removed", row.cluster);
        tell(ctx, &ledger, row, false, "AbandonedRemoved", &note).await;
    }
    for row in &forgotten {
        let note = format!("what {owner} left on {} stays there: nobody remembers it any more", row.cluster);
        // A namespace that ends takes no Events.
        tracing::warn!(ledger = name, note, "abandoned work is forgotten");
        tell(ctx, &ledger, row, true, "AbandonedForgotten", &note).await;
    }
    Ok(())
}

fn left_out<'a>(before: &'a SyncShardSpec, after: &SyncShardSpec) -> Vec<&'a ShardRow> {
    before.clusters.iter().filter(|row| !after.clusters.iter().any(|other| other.id == row.id)).collect()
}

/// Whether the cluster may come back: it is registered, with this identity as far as it is known.
fn is_registered(ctx: &StoreContext, id: &ClusterId, uid: Option<&str>) -> bool {
    let known = |cluster: &Arc<Cluster>| cluster.status.as_ref().and_then(|status| status.uid.clone());
    facts::registered(ctx, id)
        .is_some_and(|cluster| known(&cluster).is_none_or(|known| uid.is_none_or(|uid| uid == known)))
}

/// On the Cluster, where there is one; else on the ledger.
async fn tell(
    ctx: &StoreContext,
    ledger: &SyncShard,
    row: &ShardRow,
    warning: bool,
    reason: &str,
    note: &str,
) {
    match ClusterId::parse(&row.cluster).and_then(|id| facts::registered(ctx, &id)) {
        Some(cluster) => events::emit(ctx, cluster.as_ref(), warning, reason, note).await,
        None => events::emit(ctx, ledger, warning, reason, note).await,
    }
}
