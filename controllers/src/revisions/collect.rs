//! Packs that no revision and no shard names in, their end out: mark and sweep. What is unreferenced in a live list is
//! annotated; when it still is after a time it is deleted, with the version that carries the mark. Whoever needs it in
//! between takes the mark away, and then the deletion is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::app_context::{FORMAT, PackKind};
use emco_crds::names::{annotation, label};
use emco_crds::{AppContext, SyncShard};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::pack_collection;
use crate::api::{ApiError, ApiResult, ApiServerExt, Method, Request};
use crate::context::Context;
use crate::objects;

/// What is let go of in the same moment is looked at together; and so long, at least, this process has known a mark that it
/// acts on, whatever the clock says.
const SETTLE: Duration = Duration::from_mins(1);
/// Objects per answer.
const PAGE: &str = "500";
/// Owners that are asked for by name; more are listed all together.
const MOST_NAMED: usize = 32;

/// Collects packs. What it remembers may be lost: a process looks once when it begins.
#[derive(Default)]
pub struct Collector {
    /// Marked packs by path: the version with the mark, and when this process first saw it.
    marked: BTreeMap<String, (String, Instant)>,
}

/// A pack, as metadata.
struct Listed {
    path: String,
    name: String,
    uid: String,
    version: String,
    owner: String,
    mark: Option<String>,
}

/// Since when an object says that it is unreferenced.
pub(super) fn mark(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(annotation::UNREFERENCED_SINCE)?.as_str()
}

/// Takes the mark away from exactly this version.
pub(super) async fn unmark(ctx: &Context, path: &str, version: Option<&str>) -> ApiResult<()> {
    annotate(ctx, path, version, &Value::Null).await.map(drop)
}

async fn annotate(ctx: &Context, path: &str, version: Option<&str>, mark: &Value) -> ApiResult<String> {
    let annotations = json!({annotation::UNREFERENCED_SINCE: mark});
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": annotations}});
    let answer = ctx.hub().merge(path, &patch).await?;
    Ok(answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
}

impl Collector {
    /// Looks once, and then whenever something was let go of. Never ends.
    pub async fn run(mut self, ctx: Arc<Context>) {
        let after = ctx.revisions.settings.unreferenced_for;
        let settle = SETTLE.min(after);
        ctx.stores.loaded().await;
        let mut pause = settle;
        loop {
            sleep(pause).await;
            pause = match self.look(&ctx).await {
                Ok(true) => after,
                Ok(false) => {
                    ctx.revisions.litter.notified().await;
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
    pub async fn look(&mut self, ctx: &Context) -> ApiResult<bool> {
        let packs = packs(ctx).await?;
        let seen = self.seen(&packs);
        // What the watches show as named needs no lists; they may only lag behind what was just written.
        let shown = shown(ctx);
        let asked: Vec<&Listed> =
            packs.iter().filter(|pack| pack.mark.is_some() || !shown.contains(&pack.name)).collect();
        if asked.is_empty() {
            return Ok(false);
        }
        // After the packs: whoever named one of them before it was listed is seen here.
        let named = named(ctx, &asked).await?;
        let mut left = false;
        for pack in asked {
            let known = seen.get(&pack.path).copied();
            match step(ctx, pack, named.contains(&pack.name), known).await {
                Ok(Step::Done) => {}
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
    fn seen(&mut self, packs: &[Listed]) -> BTreeMap<String, Instant> {
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
    /// It is named, or gone.
    Done,
    /// Its time has not come.
    Waits,
    /// It has a mark; the version with it.
    Marked(String),
}

/// One pack, one request at most.
async fn step(ctx: &Context, pack: &Listed, named: bool, seen: Option<Instant>) -> ApiResult<Step> {
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
            Ok(Step::Done)
        }
        Some(_) => Ok(Step::Waits),
    }
}

/// All packs on the hub.
async fn packs(ctx: &Context) -> ApiResult<Vec<Listed>> {
    let mut all = Vec::new();
    for kind in [PackKind::ConfigMap, PackKind::Secret] {
        let collection = pack_collection(&ctx.namespace, kind);
        let request = Request::new(Method::Get, &collection).query("labelSelector", label::OWNER).metadata();
        pages(ctx, request, |object| {
            let text = |pointer: &str| {
                object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let name = text("/metadata/name");
            if name.starts_with("emco-pack-") {
                let owner = object.pointer("/metadata/labels").and_then(|labels| labels.get(label::OWNER));
                all.push(Listed {
                    path: format!("{collection}/{name}"),
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
fn shown(ctx: &Context) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for context in ctx.stores.contexts.state() {
        of_context(&context, &mut names);
    }
    for context in ctx.revisions.written.lock().values() {
        of_context(context, &mut names);
    }
    for shard in ctx.stores.shards.state() {
        of_shard(&shard, &mut names);
    }
    names
}

/// Names of packs that are named on the hub now, by revisions and shards of the owners of these.
async fn named(ctx: &Context, packs: &[&Listed]) -> ApiResult<BTreeSet<String>> {
    let owners: BTreeSet<&str> = packs.iter().map(|pack| pack.owner.as_str()).collect();
    let selector = if owners.len() > MOST_NAMED {
        label::OWNER.to_owned()
    } else {
        format!("{} in ({})", label::OWNER, owners.into_iter().collect::<Vec<_>>().join(","))
    };
    let mut names = BTreeSet::new();
    let request =
        |collection: String| Request::new(Method::Get, collection).query("labelSelector", selector.clone());
    let mut unreadable = None;
    pages(ctx, request(objects::collection::<AppContext>(None)), |object| {
        match serde_json::from_value::<AppContext>(object) {
            Ok(context) if context.spec.format > FORMAT => unreadable = Some(later(context.spec.format)),
            Ok(context) => of_context(&context, &mut names),
            Err(error) => unreadable = Some(error.to_string()),
        }
    })
    .await?;
    pages(ctx, request(objects::collection::<SyncShard>(None)), |object| {
        match serde_json::from_value::<SyncShard>(object) {
            Ok(shard) if shard.spec.format > FORMAT => unreadable = Some(later(shard.spec.format)),
            Ok(shard) => of_shard(&shard, &mut names),
            Err(error) => unreadable = Some(error.to_string()),
        }
    })
    .await?;
    match unreadable {
        // What cannot be read may name anything.
        Some(error) => Err(ApiError::Protocol(format!("a stored revision or shard cannot be read: {error}"))),
        None => Ok(names),
    }
}

fn later(format: i32) -> String {
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

/// Every object of a list, page by page.
async fn pages(ctx: &Context, request: Request, mut each: impl FnMut(Value)) -> ApiResult<()> {
    let mut next = None;
    loop {
        let mut page = request.clone().query("limit", PAGE);
        if let Some(next) = next.take() {
            page = page.query("continue", next);
        }
        let mut answer = ctx.hub().send(page).await?;
        if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
            items.into_iter().for_each(&mut each);
        }
        match answer.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => next = Some(token.to_owned()),
            _ => return Ok(()),
        }
    }
}
