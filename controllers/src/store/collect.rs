//! Collects packs that no revision and no shard names, kept charts that no CompositeApp pins and no revision was made of, and what was
//! written down of plans of deployments that are gone, by mark and sweep.
//!
//! What is unreferenced in a live list is annotated. When it still is after a time it is deleted, with the version that carries the
//! mark. A process that needs it in between takes the mark away, and then the deletion is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::app_context::{FORMAT, PackKind};
use emco_crds::names::{annotation, label};
use emco_crds::{AppContext, CompositeApp, DeploymentIntentGroup, OwnerKind, SyncShard};
use emco_engine::path::ApiPath;
use emco_engine::selector::LabelSelector;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::context::StoreContext;
use super::packs::pack_collection;
use super::plan_details;
use crate::api::{ApiError, ApiResult, ApiServerExt, Method, Request, pages};
use crate::chart::on_hub;
use crate::object::meta;

mod parts;

use parts::Parts;

/// What becomes unreferenced in the same moment is looked at together. A process has known a mark for at least this time before it
/// acts on it, whatever the clock says.
const SETTLE: Duration = Duration::from_mins(1);
/// Owners that are asked for by name; more are listed all together.
const MOST_NAMED: usize = 32;

/// Collects packs. What it remembers may be lost: a process looks once when it begins.
#[derive(Default)]
pub struct Collector {
    /// Marked packs by path: the version with the mark, and when this process first saw it.
    marked: BTreeMap<ApiPath, (String, Instant)>,
}

/// A pack, as metadata.
struct Listed {
    path: ApiPath,
    name: String,
    uid: String,
    version: String,
    owner: String,
    mark: Option<String>,
}

impl Listed {
    fn is_chart(&self) -> bool {
        self.name.starts_with(on_hub::PREFIX)
    }

    /// What changes inside of objects with the plan of a deployment.
    fn is_plan(&self) -> bool {
        self.name.starts_with(plan_details::PREFIX)
    }

    /// What others name: a pack, or the archive that this is a part of.
    fn named(&self) -> &str {
        if self.is_chart() { on_hub::of_part(&self.name) } else { &self.name }
    }
}

/// Since when an object says that it is unreferenced.
pub(crate) fn mark(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(annotation::UNREFERENCED_SINCE)?.as_str()
}

/// Takes the mark away from exactly this version.
pub(crate) async fn unmark(ctx: &StoreContext, path: &ApiPath, version: Option<&str>) -> ApiResult<()> {
    annotate(ctx, path, version, &Value::Null).await.map(drop)
}

async fn annotate(
    ctx: &StoreContext,
    path: &ApiPath,
    version: Option<&str>,
    mark: &Value,
) -> ApiResult<String> {
    let annotations = json!({annotation::UNREFERENCED_SINCE: mark});
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
    let answer = ctx.hub().merge(path, &patch).await?;
    Ok(answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Has the collector look soon: something may be named no more.
pub fn request(ctx: &StoreContext) {
    ctx.revisions.gc_requested.notify_one();
    ctx.revisions.gone.notify_one();
}

impl Collector {
    /// Looks once, and then whenever something was let go of. Never ends.
    pub async fn run(mut self, ctx: Arc<impl Deref<Target = StoreContext>>) {
        let after = ctx.revisions.settings.unreferenced_for;
        let settle = SETTLE.min(after);
        ctx.stores.loaded().await;
        let mut pause = settle;
        loop {
            sleep(pause).await;
            pause = match self.look(&ctx).await {
                Ok(true) => after,
                Ok(false) => {
                    ctx.revisions.gc_requested.notified().await;
                    settle
                }
                Err(error) => {
                    tracing::warn!(%error, "packs that nobody names cannot be collected now; it is tried again");
                    SETTLE
                }
            };
        }
    }

    /// Marks, takes marks away, and deletes what is due. Whether something is left to be looked at again.
    pub async fn look(&mut self, ctx: &StoreContext) -> ApiResult<bool> {
        let torn = ctx.charts.on_hub.torn();
        let packs = packs(ctx).await?;
        let mut parts = Parts::of(&packs);
        for (owner, name) in torn.iter().filter(|(owner, name)| !parts.has(owner, name)) {
            ctx.charts.on_hub.forget(owner, name);
        }
        let seen = self.seen(&packs);
        // What the watches show as named needs no lists; they may only lag behind what was just written.
        let shown = shown(ctx, &packs);
        let asked: Vec<&Listed> =
            packs.iter().filter(|pack| pack.mark.is_some() || !shown.contains(pack.named())).collect();
        if asked.is_empty() {
            return Ok(false);
        }
        // After the packs: whoever named one of them before it was listed is seen here.
        let named = named(ctx, &asked).await?;
        let mut left = false;
        for pack in asked {
            let known = seen.get(&pack.path).copied();
            match step(ctx, pack, named.contains(pack.named()), known).await {
                Ok(Step::Done) => {}
                Ok(Step::Deleted) => parts.deleted(ctx, pack),
                Ok(Step::Waits) => left = true,
                Ok(Step::Marked(version)) => {
                    self.marked.insert(pack.path.clone(), (version, Instant::now()));
                    left = true;
                }
                // Somebody was faster: it is looked at again.
                Err(error) if error.is_conflict() || error.is_not_found() => left = true,
                Err(error) => return Err(error),
            }
        }
        Ok(left)
    }

    /// When this process first saw each mark.
    fn seen(&mut self, packs: &[Listed]) -> BTreeMap<ApiPath, Instant> {
        let now = Instant::now();
        let before = std::mem::take(&mut self.marked);
        for pack in packs.iter().filter(|pack| pack.mark.is_some()) {
            let since = match before.get(&pack.path) {
                Some((version, since)) if *version == pack.version => *since,
                _ => now,
            };
            self.marked.insert(pack.path.clone(), (pack.version.clone(), since));
        }
        self.marked.iter().map(|(path, (_, since))| (path.clone(), *since)).collect()
    }
}

/// What became of one pack.
enum Step {
    /// It is named.
    Done,
    /// It is gone.
    Deleted,
    /// Its time has not come.
    Waits,
    /// It has a mark; the version with it.
    Marked(String),
}

/// One pack, one request at most.
async fn step(ctx: &StoreContext, pack: &Listed, named: bool, seen: Option<Instant>) -> ApiResult<Step> {
    let version = Some(pack.version.as_str());
    let now = ctx.now();
    let Some(mark) = &pack.mark else {
        if named {
            return Ok(Step::Done);
        }
        return annotate(ctx, &pack.path, version, &json!(now.to_string())).await.map(Step::Marked);
    };
    if named {
        unmark(ctx, &pack.path, version).await?;
        return Ok(Step::Done);
    }
    let after = ctx.revisions.settings.unreferenced_for;
    let age = mark.parse::<Timestamp>().ok().map(|since| now.duration_since(since));
    match age {
        // Not our writing, or of a clock that went wrong: it begins anew.
        None => annotate(ctx, &pack.path, version, &json!(now.to_string())).await.map(Step::Marked),
        Some(age) if age < SignedDuration::ZERO => {
            annotate(ctx, &pack.path, version, &json!(now.to_string())).await.map(Step::Marked)
        }
        Some(age)
            if age.unsigned_abs() >= after && seen.is_some_and(|s| s.elapsed() >= SETTLE.min(after)) =>
        {
            ctx.hub().delete(&pack.path, Some(&pack.uid), version).await?;
            tracing::debug!(pack = pack.name, "a pack that nobody names is deleted");
            Ok(Step::Deleted)
        }
        Some(_) => Ok(Step::Waits),
    }
}

/// All packs on the hub.
async fn packs(ctx: &StoreContext) -> ApiResult<Vec<Listed>> {
    let mut all = Vec::new();
    for kind in [PackKind::ConfigMap, PackKind::Secret] {
        let collection = pack_collection(&ctx.namespace, kind);
        let request =
            Request::new(Method::Get, &collection).labels(&LabelSelector::has(label::OWNER)).metadata();
        pages(ctx.hub(), request, |object| {
            let text = |pointer: &str| {
                object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let name = text("/metadata/name");
            if ["emco-pack-", on_hub::PREFIX, plan_details::PREFIX].iter().any(|of| name.starts_with(of)) {
                let owner = object.pointer("/metadata/labels").and_then(|labels| labels.get(label::OWNER));
                all.push(Listed {
                    path: collection.clone().then(&name),
                    name,
                    uid: text("/metadata/uid"),
                    version: text("/metadata/resourceVersion"),
                    owner: owner.and_then(Value::as_str).unwrap_or_default().to_owned(),
                    mark: mark(&object).map(str::to_owned),
                });
            }
        })
        .await?;
    }
    Ok(all)
}

/// Names of packs that the watches saw named.
fn shown(ctx: &StoreContext, packs: &[Listed]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if packs.iter().any(Listed::is_plan) {
        names.extend(ctx.stores.digs.state().iter().map(|dig| plan_details::secret_of(ctx, dig)));
    }
    let mut revisions = Revisions::default();
    for context in ctx.stores.contexts.state() {
        of_context(&context, &mut names);
        revisions.add(&context);
    }
    for context in ctx.revisions.written.lock().values() {
        of_context(context, &mut names);
        revisions.add(context);
    }
    revisions.name_charts(ctx, &mut names);
    for shard in ctx.stores.shards.state() {
        of_shard(&shard, &mut names);
    }
    for app in ctx.stores.apps.state() {
        of_app(&app, &mut names);
    }
    names
}

/// Names of packs that are named on the hub now, by revisions and shards of the owners of these.
async fn named(ctx: &StoreContext, packs: &[&Listed]) -> ApiResult<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let charts = packs.iter().any(|pack| pack.is_chart());
    if charts {
        pinned(ctx, &mut names).await?;
    }
    if packs.iter().any(|pack| pack.is_plan()) {
        each_of::<DeploymentIntentGroup>(ctx, None, None, |dig| {
            names.insert(plan_details::secret_of(ctx, &dig));
            Ok(())
        })
        .await?;
    }
    let stored = packs.iter().filter(|pack| !pack.is_chart() && !pack.is_plan());
    let owners: BTreeSet<&str> = stored.map(|pack| pack.owner.as_str()).collect();
    if owners.is_empty() && !charts {
        return Ok(names);
    }
    let packed = !owners.is_empty();
    let all = || LabelSelector::has(label::OWNER);
    let of_owners =
        if owners.len() > MOST_NAMED { all() } else { LabelSelector::among(label::OWNER, owners) };
    // Revisions of any owner may be made of a chart.
    let of_revisions = if charts { all() } else { of_owners.clone() };
    let mut revisions = Revisions::default();
    each_of::<AppContext>(ctx, None, Some(&of_revisions), |context| {
        if context.spec.format > FORMAT {
            return Err(later(context.spec.format));
        }
        of_context(&context, &mut names);
        revisions.add(&context);
        Ok(())
    })
    .await?;
    revisions.name_charts(ctx, &mut names);
    // Shards name packs alone.
    if !packed {
        return Ok(names);
    }
    each_of::<SyncShard>(ctx, None, Some(&of_owners), |shard| {
        if shard.spec.format > FORMAT {
            return Err(later(shard.spec.format));
        }
        of_shard(&shard, &mut names);
        Ok(())
    })
    .await?;
    Ok(names)
}

/// Reads every object of a kind on the hub, of one namespace or of all. One that cannot be read may name anything, so it is an
/// error.
pub(crate) async fn each_of<K>(
    ctx: &StoreContext,
    namespace: Option<&str>,
    selector: Option<&LabelSelector>,
    mut each: impl FnMut(K) -> Result<(), String>,
) -> ApiResult<()>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let mut request = Request::new(Method::Get, meta::collection::<K>(namespace));
    if let Some(selector) = selector {
        request = request.labels(selector);
    }
    let mut unreadable = None;
    pages(ctx.hub(), request, |object| {
        let read = serde_json::from_value(object).map_err(|error| error.to_string()).and_then(&mut each);
        unreadable = unreadable.take().or_else(|| read.err());
    })
    .await?;
    let kind = K::kind(&());
    unreadable
        .map_or(Ok(()), |error| Err(ApiError::Protocol(format!("a stored {kind} cannot be read: {error}"))))
}

/// Adds the names of archives that `CompositeApps` of the hub pin now.
async fn pinned(ctx: &StoreContext, names: &mut BTreeSet<String>) -> ApiResult<()> {
    each_of::<CompositeApp>(ctx, None, None, |app| {
        of_app(&app, names);
        Ok(())
    })
    .await
}

fn of_app(app: &CompositeApp, names: &mut BTreeSet<String>) {
    let pins = app.status.iter().flat_map(|status| &status.apps);
    names.extend(pins.map(|pin| on_hub::name(meta::namespace(app), pin)));
}

/// Archives that revisions were made of, by namespace and owner.
#[derive(Default)]
struct Revisions(BTreeMap<(String, OwnerKind, String), BTreeMap<i64, Vec<String>>>);

impl Revisions {
    fn add(&mut self, context: &AppContext) {
        let (namespace, owner) = (meta::namespace(context), &context.spec.owner);
        let key = (namespace.to_owned(), owner.kind.clone(), owner.name.clone());
        let names = context.spec.charts.iter().map(|pin| on_hub::name(namespace, pin)).collect();
        self.0.entry(key).or_default().insert(context.spec.revision, names);
    }

    /// Adds the names: those of the running revision, and of earlier ones unless their namespace has as much as it may and lacks
    /// room for a chart.
    fn name_charts(self, ctx: &StoreContext, names: &mut BTreeSet<String>) {
        for ((namespace, ..), revisions) in self.0 {
            let most = if ctx.charts.on_hub.is_full(&on_hub::owner(&namespace)) { 1 } else { usize::MAX };
            names.extend(revisions.into_values().rev().take(most).flatten());
        }
    }
}

pub(super) fn later(format: i32) -> String {
    format!("it has format {format}, and this version reads format {FORMAT}")
}

fn of_context(context: &AppContext, names: &mut BTreeSet<String>) {
    names.extend(context.spec.packs.iter().map(|pack| pack.name.clone()));
    names.extend(context.spec.assignment.iter().map(|assignment| assignment.pack.clone()));
}

fn of_shard(shard: &SyncShard, names: &mut BTreeSet<String>) {
    let held = shard.spec.clusters.iter().flat_map(|row| &row.held);
    names.extend(held.filter_map(|held| held.identities.as_ref().map(|identities| identities.pack.clone())));
}
