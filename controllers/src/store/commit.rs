//! Stores a plan as a revision: AppContext and packs side by side, all acknowledged before this returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::AppContext;
use emco_crds::app_context::{
    AppContextSpec, AssignmentRef, ContextApp, ContextWave, FORMAT, OwnerRef, RevisionChanges, Variant,
};
use emco_crds::composite_app::{ChartPin, Dependency};
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::fields::Level;
use emco_crds::names::{finalizer, label};
use emco_engine::identity::SetDigest;
use emco_engine::pack;
use emco_engine::rollout::{Outline, Waves};
use emco_engine::set::{Assignment, ManifestSet, deployed};
use emco_engine::snapshot::Running;
use futures::future::{join, try_join_all};
use kube::Resource;
use serde_json::{Value, json};

use super::context::StoreContext;
use super::limit::{self, Limit, TooMuch};
use super::load::{Stored, contexts};
use super::packs::{pack_bytes, pack_collection, pack_object, reference};
use super::{collect, explain};
use crate::api::{ApiError, ApiServerExt, parse};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::sync::prepared::Prepared;

/// Variants named in the AppContext itself; the packs have all.
const MOST_VARIANTS: usize = 16;

/// A revision to be written.
pub struct Draft<'a> {
    /// Whose.
    pub owner: &'a Owner,
    /// `status.revision` of the owner: numbers are never used again, also where AppContexts were lost.
    pub at_least: i64,
    /// Plan digest.
    pub digest: String,
    /// Inputs digest.
    pub inputs_digest: String,
    /// Why.
    pub cause: Cause,
    /// Namespace on the clusters.
    pub namespace: String,
    /// Rights it is applied with.
    pub level: Level,
    /// Apps, in order.
    pub apps: Vec<String>,
    /// Who gets what.
    pub assignment: Assignment,
    /// The sets.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// How much may be stored.
    pub limit: Limit,
    /// What only deployments have.
    pub deployment: Option<OfDeployment>,
}

/// What only a revision of a deployment has.
#[derive(Default)]
pub struct OfDeployment {
    /// Helm release.
    pub release: Option<String>,
    /// The logical cloud.
    pub logical_cloud: Option<String>,
    /// The composite application.
    pub composite_app: Option<String>,
    /// What each app waits for.
    pub depends_on: BTreeMap<String, Vec<Dependency>>,
    /// The charts it was made of.
    pub charts: Vec<ChartPin>,
    /// How it reaches its clusters; `None`: all at once.
    pub waves: Option<Arc<Waves>>,
    /// Why each cluster was chosen or not, in parts, which are stored later.
    pub explanation: Vec<Vec<u8>>,
    /// Counts of what differs from the revision before, as far as that is known.
    pub changes: Option<RevisionChanges>,
}

fn context_waves(waves: &Waves) -> Vec<ContextWave> {
    let wave = |Outline { name, clusters, .. }| ContextWave {
        name,
        clusters: i64::try_from(clusters).unwrap_or(i64::MAX),
    };
    waves.outline().into_iter().map(wave).collect()
}

/// Writes the next revision and its packs. The inner error: it does not fit, and nothing was written.
pub async fn commit(ctx: &StoreContext, draft: Draft<'_>) -> Result<Result<Stored, TooMuch>, Failure> {
    let committed = write(ctx, draft).await;
    if committed.is_err() {
        // Packs of a revision that did not come to be are nobody's, should the next plan be another one.
        collect::request(ctx);
    }
    committed
}

async fn write(ctx: &StoreContext, mut draft: Draft<'_>) -> Result<Result<Stored, TooMuch>, Failure> {
    let of = draft.deployment.take().unwrap_or_default();
    let known = contexts(ctx, draft.owner);
    let previous = known.first().map(|context| context.spec.revision);
    let revision = previous.unwrap_or(0).max(draft.at_least) + 1;
    let sets: Vec<Arc<ManifestSet>> = draft.sets.values().cloned().collect();
    let unwritable =
        |error: pack::PackError| Failure::Stored(format!("the revision cannot be stored: {error}"));
    let mut packs = pack::write_sets(&draft.owner.uid, &sets).map_err(unwritable)?;
    let assignment = pack::write_assignment(&draft.owner.uid, &draft.assignment).map_err(unwritable)?;
    let assignment_ref = assignment.first().map(|first| AssignmentRef { pack: first.name.clone() });
    packs.extend(assignment);
    if let Some(waves) = &of.waves {
        packs.push(pack::write_waves(&draft.owner.uid, waves).map_err(unwritable)?);
    }
    if let Err(too_much) = limit::fits(ctx, draft.owner, &packs, &draft.limit) {
        return Ok(Err(too_much));
    }
    let mut spec = AppContextSpec {
        format: FORMAT,
        owner: OwnerRef {
            kind: draft.owner.kind.clone(),
            name: draft.owner.name.clone(),
            uid: draft.owner.uid.clone(),
        },
        revision,
        digest: draft.digest.clone(),
        inputs_digest: Some(draft.inputs_digest.clone()),
        previous,
        cause: draft.cause,
        release: of.release,
        namespace: Some(draft.namespace.clone()),
        level: Some(draft.level),
        logical_cloud: of.logical_cloud,
        composite_app: of.composite_app.clone(),
        apps: draft.apps.iter().map(|app| context_app(app, &draft, &of.depends_on)).collect(),
        charts: of.charts,
        waves: of.waves.as_deref().map(context_waves).unwrap_or_default(),
        packs: packs.iter().map(reference).collect(),
        assignment: assignment_ref,
        explain: explain::names(&draft.owner.context_name(revision), &of.explanation),
        changes: of.changes,
    };
    let unfinished = unfinished(ctx, known.first(), &spec).await?;
    if let Some(context) = &unfinished {
        spec = context.spec.clone();
    }
    let revision = spec.revision;
    let name = draft.owner.context_name(revision);
    let mut labels = draft.owner.labels();
    labels.insert(label::REVISION, revision.to_string());
    let object = json!({
        "apiVersion": AppContext::api_version(&()), "kind": AppContext::kind(&()),
        "metadata": {
            "name": name, "namespace": draft.owner.namespace, "labels": labels, "finalizers": [finalizer::INVENTORY],
        },
        "spec": spec,
    });
    let collection = meta::collection::<AppContext>(Some(&draft.owner.namespace));
    let stored_packs = try_join_all(packs.iter().map(|object| store_pack(ctx, draft.owner, object)));
    // Found out while the hub is at work.
    let wanted = ctx.revisions.workers.as_ref().map(|_| deployed(&draft.assignment, &draft.sets));
    let wanted = wanted.unwrap_or_default().into_values();
    let prepared = async { wanted.map(|set| Arc::new(Prepared::of(set))).collect::<Vec<_>>() };
    let stored_packs = async {
        let (stored, prepared) = join(stored_packs, prepared).await;
        stored.map(|_| prepared)
    };
    let (context, prepared): (AppContext, _) = if let Some(context) = unfinished {
        (context, stored_packs.await?)
    } else {
        let (context, prepared) = join(ctx.hub().create(&collection, &object), stored_packs).await;
        let prepared = prepared?;
        (parse(&name, context?)?, prepared)
    };
    if let Some(workers) = &ctx.revisions.workers {
        for set in prepared {
            workers.stored(set);
        }
    }
    let running = Arc::new(Running {
        revision,
        plan_digest: draft.digest,
        inputs_digest: draft.inputs_digest,
        composite_app: of.composite_app.unwrap_or_default(),
        assignment: draft.assignment,
        sets: draft.sets,
        parts: BTreeMap::new(),
        waves: of.waves,
    });
    let uid = meta::uid(&context);
    ctx.revisions.contents.lock().put(uid.to_owned(), Arc::clone(&running));
    ctx.revisions.placements.lock().put(&draft.owner.hash, uid, &running.assignment);
    // Counted before the watch shows it: plans of one project that are stored at once share its room.
    ctx.stores.stored_bytes.note(&context, false);
    ctx.revisions.written.lock().insert(draft.owner.hash.clone(), Arc::new(context));
    Ok(Ok(Stored { spec, name, running }))
}

/// The newest revision where it says exactly what is to be stored: its packs were not all written when an earlier attempt
/// ended, so it is completed instead of being stored a second time under another number.
async fn unfinished(
    ctx: &StoreContext,
    newest: Option<&Arc<AppContext>>,
    wanted: &AppContextSpec,
) -> Result<Option<AppContext>, Failure> {
    let Some(newest) = newest else { return Ok(None) };
    let same = |known: &AppContextSpec| {
        // The explanation is named after the revision, and decides nothing. Nor do counts of what differs from another one, nor where
        // charts came from: what was made of them is the same.
        let AppContextSpec { revision, previous, explain, charts, changes, .. } = known;
        let (revision, previous, changes) = (*revision, *previous, *changes);
        let (explain, charts) = (explain.clone(), charts.clone());
        *known == AppContextSpec { revision, previous, explain, charts, changes, ..wanted.clone() }
    };
    // A status that knows a later number than what is stored: that number is not used again.
    if newest.spec.revision + 1 != wanted.revision || !same(&newest.spec) {
        return Ok(None);
    }
    // Asked of the hub: what the watch showed may be gone, and a shard must never name a revision that is.
    let live: Option<AppContext> = ctx.hub().get_as(meta::path(newest.as_ref())).await?;
    Ok(live.filter(|live| !meta::deleting(live) && same(&live.spec)))
}

fn context_app(app: &str, draft: &Draft<'_>, depends_on: &BTreeMap<String, Vec<Dependency>>) -> ContextApp {
    let mut clusters: BTreeMap<&SetDigest, i64> = BTreeMap::new();
    for assigned in draft.assignment.values().filter_map(|apps| apps.get(app)) {
        *clusters.entry(&assigned.set).or_default() += 1;
    }
    let mut variants: Vec<Variant> = clusters
        .into_iter()
        .map(|(set, clusters)| Variant {
            set: set.0.clone(),
            resources: draft
                .sets
                .get(set)
                .map_or(0, |s| i64::try_from(s.manifests.len()).unwrap_or(i64::MAX)),
            clusters,
        })
        .collect();
    variants.sort_by(|a, b| b.clusters.cmp(&a.clusters).then_with(|| a.set.cmp(&b.set)));
    variants.truncate(MOST_VARIANTS);
    let depends_on = depends_on.get(app).cloned().unwrap_or_default();
    ContextApp { name: app.to_owned(), depends_on, variants }
}

/// How often a pack is looked at again that somebody else writes at the same time.
const TRIES: usize = 5;

/// Stores a pack. One of that name is the same content (names are digests), which is checked all the same: another content
/// is damage, and made good. A pack that is marked as unreferenced loses its mark before it counts as stored: without that,
/// it could be collected right after.
pub(crate) async fn store_pack(
    ctx: &StoreContext,
    owner: &Owner,
    object: &pack::PackObject,
) -> Result<(), Failure> {
    let collection = pack_collection(&ctx.namespace, object.kind);
    let path = collection.clone().then(&object.name);
    for _ in 0..TRIES {
        let refused = match ctx.hub().create(&collection, &pack_object(owner, object)).await {
            Ok(_) => return Ok(()),
            // Made by an earlier attempt, or the answer to our own was lost.
            Err(error) if error.already_exists() || matches!(error, ApiError::Unreachable { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        let Some(there) = ctx.hub().get_opt(&path).await? else {
            if refused.already_exists() {
                // Collected between the two requests: it is made anew.
                continue;
            }
            return Err(Failure::Hub(refused));
        };
        let text = |pointer: &str| there.pointer(pointer).and_then(Value::as_str);
        let version = text("/metadata/resourceVersion");
        if pack_bytes(&there).as_deref() != Some(object.bytes.as_slice()) {
            tracing::warn!(
                pack = object.name,
                "a pack has another content than its name says: it is made anew"
            );
            match ctx.hub().delete(&path, text("/metadata/uid"), version).await {
                Err(error) if !error.is_conflict() => return Err(error.into()),
                _ => continue,
            }
        }
        if collect::mark(&there).is_none() {
            return Ok(());
        }
        match collect::unmark(ctx, &path, version).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Stored(format!(
        "{} {} in namespace {} changes again and again while it is stored",
        object.kind.as_str(),
        object.name,
        ctx.namespace
    )))
}
