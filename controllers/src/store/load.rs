//! Reads stored revisions with their content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::AppContext;
use emco_crds::app_context::{AppContextSpec, FORMAT};
use emco_crds::names::label;
use emco_engine::identity::SetDigest;
use emco_engine::pack::{self, Pack};
use emco_engine::set::ManifestSet;
use emco_engine::snapshot::Running;

use super::owner::Owner;
use super::packs::read_pack;
use super::shards::stored_shards;
use crate::object::LogFields;
use crate::object::meta;
use crate::runtime::context::{Context, Failure};

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
pub fn contexts(ctx: &Context, owner: &Owner) -> Vec<Arc<AppContext>> {
    let of_owner = |context: &AppContext| {
        context.metadata.namespace.as_deref() == Some(owner.namespace.as_str())
            && context.metadata.labels.as_ref().and_then(|l| l.get(label::OWNER)) == Some(&owner.hash)
    };
    let mut all = ctx.stores.contexts.state_filter(of_owner);
    if let Some(written) = ctx.revisions.written.lock().get(&owner.hash)
        && !all.iter().any(|context| context.spec.revision >= written.spec.revision)
    {
        all.push(Arc::clone(written));
    }
    all.sort_by_key(|context| std::cmp::Reverse(context.spec.revision));
    all
}

/// Something of an owner that a later version wrote: then nothing of it is changed. The sentence says what.
pub fn of_a_later_format(ctx: &Context, owner: &Owner) -> Option<String> {
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
pub async fn newest(ctx: &Context, owner: &Owner) -> Result<Option<Stored>, Failure> {
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

/// Reads a revision's packs. The inner error says what is missing or broken.
pub(crate) async fn load(
    ctx: &Context,
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
    let wanted: BTreeSet<&SetDigest> =
        assignment.values().flat_map(|apps| apps.values().map(|a| &a.set)).collect();
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
    });
    if broken.is_none() {
        ctx.revisions.contents.lock().put(uid.to_owned(), Arc::clone(&running));
    }
    Ok(Ok(running))
}
