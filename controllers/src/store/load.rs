//! Reads stored revisions with their content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::AppContext;
use emco_crds::app_context::{AppContextSpec, FORMAT};
use emco_crds::names::label;
use emco_engine::identity::{ClusterId, Combination, SetDigest};
use emco_engine::pack::{self, Pack};
use emco_engine::set::{Assigned, Assignment, ManifestSet, combinations};
use emco_engine::shard;
use emco_engine::snapshot::Running;

use super::context::StoreContext;
use super::packs::read_pack;
use super::shards::{shards, stored_shards};
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::stores::indexes;

/// A stored revision with its content.
#[derive(Clone)]
pub struct Stored {
    /// The AppContext's spec.
    pub spec: AppContextSpec,
    /// Its name.
    pub name: String,
    /// Its content, as the planner reads it.
    pub running: Arc<Running>,
}

/// All AppContexts of an owner, newest first: what the watch saw and what this process wrote since.
pub fn contexts(ctx: &StoreContext, owner: &Owner) -> Vec<Arc<AppContext>> {
    let mut all = ctx.stores.contexts.indexed(indexes::OWNER, &owner.hash);
    all.retain(|context| {
        meta::namespace(context.as_ref()) == owner.namespace
            && context.metadata.labels.as_ref().and_then(|l| l.get(label::OWNER)) == Some(&owner.hash)
    });
    if let Some(written) = ctx.revisions.written.lock().get(&owner.hash)
        && !all.iter().any(|context| context.spec.revision >= written.spec.revision)
    {
        all.push(Arc::clone(written));
    }
    all.sort_by_key(|context| std::cmp::Reverse(context.spec.revision));
    all
}

/// Something of an owner that a later version wrote: then nothing of it is changed. The sentence says what.
pub fn of_a_later_format(ctx: &StoreContext, owner: &Owner) -> Option<String> {
    let shards = stored_shards(ctx, owner);
    let shards = shards.iter().map(|o| ("SyncShard", meta::name(o.as_ref()).to_owned(), o.spec.format));
    let contexts = contexts(ctx, owner);
    let contexts = contexts.iter().map(|o| ("AppContext", meta::name(o.as_ref()).to_owned(), o.spec.format));
    let (kind, name, format) = shards.chain(contexts).find(|(_, _, format)| *format > FORMAT)?;
    Some(format!(
        "{kind} {name} has format {format}, and this version reads format {FORMAT}: nothing is changed; upgrade the operator"
    ))
}

/// The newest revision whose content is complete. One that was being written when the process died, and that no shard names,
/// is passed over.
pub async fn newest(ctx: &StoreContext, owner: &Owner) -> Result<Option<Stored>, Failure> {
    for context in contexts(ctx, owner) {
        match load(ctx, &context).await? {
            Ok(running) => {
                return Ok(Some(Stored {
                    spec: context.spec.clone(),
                    name: meta::name(context.as_ref()).to_owned(),
                    running,
                }));
            }
            Err(why) => {
                let (revision, LogFields { project, deployment, object }) =
                    (context.spec.revision, owner.log_fields(ctx));
                tracing::warn!(project, deployment, object, revision, %why, "the content of a revision cannot be read");
            }
        }
    }
    Ok(None)
}

/// One revision with all of its content. The inner error: it is not stored, or what of it cannot be read.
pub async fn revision(
    ctx: &StoreContext,
    owner: &Owner,
    number: i64,
) -> Result<Result<Stored, Unavailable>, Failure> {
    let found = contexts(ctx, owner).into_iter().find(|context| context.spec.revision == number);
    let Some(context) = found else { return Ok(Err(Unavailable::NotStored)) };
    let running = match load(ctx, &context).await? {
        Ok(running) => running,
        Err(why) => return Ok(Err(Unavailable::Unreadable(why))),
    };
    if running.assignment.values().flat_map(BTreeMap::values).any(|a| !running.sets.contains_key(&a.set)) {
        let why = missing_pack(ctx, &context).await?.unwrap_or_else(|| "manifests are missing".to_owned());
        return Ok(Err(Unavailable::Unreadable(why)));
    }
    Ok(Ok(Stored { spec: context.spec.clone(), name: meta::name(context.as_ref()).to_owned(), running }))
}

/// Why a revision cannot be had.
pub enum Unavailable {
    /// The hub has none of this number.
    NotStored,
    /// Some of its content is missing or broken.
    Unreadable(String),
}

/// The first pack of a revision that cannot be read.
async fn missing_pack(ctx: &StoreContext, context: &AppContext) -> Result<Option<String>, Failure> {
    for reference in &context.spec.packs {
        if let Err(why) = read_pack(ctx, reference).await? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Whether all that clusters are to have is of this revision.
pub fn are_of(targets: &BTreeMap<ClusterId, Combination>, running: &Running) -> bool {
    let wanted = combinations(&running.assignment);
    targets.iter().all(|(cluster, apps)| wanted.get(cluster) == Some(apps))
}

/// The revision whose content clusters are to have, as their rows say: the newest, as a rule; an earlier one while it is pinned, or
/// where its successor was stored and not targeted yet. `said` is the one that the owner's status names.
pub async fn targeted(
    ctx: &StoreContext,
    owner: &Owner,
    newest: Option<&Stored>,
    said: Option<i64>,
) -> Result<Option<Stored>, Failure> {
    let targets = targets(ctx, owner);
    let is_it = |running: &Running| are_of(&targets, running);
    let Some(newest) = newest else { return Ok(None) };
    if targets.is_empty() || is_it(&newest.running) {
        return Ok(Some(newest.clone()));
    }
    let mut earlier = contexts(ctx, owner);
    earlier.sort_by_key(|context| Some(context.spec.revision) != said);
    for context in earlier {
        if let Ok(running) = load(ctx, &context).await?
            && is_it(&running)
        {
            let name = meta::name(context.as_ref()).to_owned();
            return Ok(Some(Stored { spec: context.spec.clone(), name, running }));
        }
    }
    Ok(Some(newest.clone()))
}

/// What clusters are to have as their rows say, where these are of several revisions: the newest was stored, and not targeted everywhere.
/// What no revision has any more is left out.
pub async fn mixed(
    ctx: &StoreContext,
    owner: &Owner,
    newest: &Stored,
    targets: &BTreeMap<ClusterId, Combination>,
) -> Result<Running, Failure> {
    let mut revisions = vec![Arc::clone(&newest.running)];
    for context in
        contexts(ctx, owner).into_iter().filter(|context| meta::name(context.as_ref()) != newest.name)
    {
        revisions.extend(load(ctx, &context).await?);
    }
    let mut known: BTreeMap<(&str, &SetDigest), &Assigned> = BTreeMap::new();
    let mut mixed = Running { assignment: Assignment::new(), ..newest.running.as_ref().clone() };
    for running in revisions.iter().rev() {
        for (app, assigned) in running.assignment.values().flatten() {
            known.insert((app, &assigned.set), assigned);
        }
        mixed.sets.extend(running.sets.iter().map(|(digest, set)| (digest.clone(), Arc::clone(set))));
    }
    for (cluster, apps) in targets {
        let of = |(app, set): (&String, &SetDigest)| {
            Some((app.clone(), (*known.get(&(app.as_str(), set))?).clone()))
        };
        mixed.assignment.insert(cluster.clone(), apps.iter().filter_map(of).collect());
    }
    Ok(mixed)
}

/// What clusters are to have, as their rows say.
pub fn targets(ctx: &StoreContext, owner: &Owner) -> BTreeMap<ClusterId, Combination> {
    let shards = shards(ctx, owner);
    let rows = shards.iter().flat_map(|stored| shard::rows(&stored.spec, stored.status.as_ref()));
    rows.filter_map(|row| {
        let target = row.target.filter(|target| !target.is_found())?;
        Some((row.cluster, target.apps))
    })
    .collect()
}

/// Reads a revision's packs. The inner error says what is missing or broken.
pub(crate) async fn load(
    ctx: &StoreContext,
    context: &AppContext,
) -> Result<Result<Arc<Running>, String>, Failure> {
    if context.spec.format > FORMAT {
        return Ok(Err(format!(
            "it has format {}, and this version reads format {FORMAT}",
            context.spec.format
        )));
    }
    let uid = meta::uid(context);
    if let Some(known) = ctx.revisions.contents.lock().get(uid) {
        return Ok(Ok(known));
    }
    let mut packs = Vec::new();
    let mut broken = None;
    for reference in &context.spec.packs {
        match read_pack(ctx, reference).await? {
            Ok(pack) => packs.push(pack),
            Err(why) => broken = Some(why),
        }
    }
    let packs: Vec<&Pack> = packs.iter().collect();
    let assignment = match pack::assignment(&packs) {
        Ok(assignment) => assignment,
        Err(error) => return Ok(Err(broken.unwrap_or_else(|| error.to_string()))),
    };
    let mut waves = None;
    for pack in &packs {
        match pack.waves() {
            Ok(found) => waves = found.map(Arc::new).or(waves),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    // Without them it would go everywhere at once.
    if waves.is_none() && !context.spec.waves.is_empty() {
        return Ok(Err(broken.unwrap_or_else(|| "no pack holds its waves".to_owned())));
    }
    let wanted: BTreeSet<&SetDigest> =
        assignment.values().flat_map(|apps| apps.values().flat_map(Assigned::sets)).collect();
    let mut sets: BTreeMap<SetDigest, Arc<ManifestSet>> = BTreeMap::new();
    let mut parts = BTreeMap::new();
    for digest in wanted {
        // A set that cannot be read is left out: the planner makes it again, or keeps what is there.
        if let Ok(set) = pack::assemble(digest, &packs) {
            sets.insert(digest.clone(), Arc::new(set));
        } else if let Some(part) = pack::salvage(digest, &packs) {
            parts.insert(digest.clone(), Arc::new(part));
        }
    }
    let spec = &context.spec;
    let running = Arc::new(Running {
        revision: spec.revision,
        plan_digest: spec.digest.clone(),
        inputs_digest: spec.inputs_digest.clone().unwrap_or_default(),
        composite_app: spec.composite_app.clone().unwrap_or_default(),
        assignment,
        sets,
        parts,
        waves,
    });
    if broken.is_none() {
        ctx.revisions.contents.lock().put(uid.to_owned(), Arc::clone(&running));
    }
    Ok(Ok(running))
}
