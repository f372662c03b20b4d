//! Revisions of owners: plans in, AppContexts, packs and shard targets out, and back again. The write-ahead order is kept
//! here: contents are acknowledged before a shard names them, and a shard names them before a worker acts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::app_context::{AppContextSpec, FORMAT, PackKind, PackRef};
use emco_crds::names::{finalizer, label, owner_short};
use emco_crds::{AppContext, SyncShard};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::marks;
use emco_engine::pack::{self, Pack, PackObject};
use emco_engine::set::ManifestSet;
use emco_engine::shard;
use emco_engine::snapshot::Running;
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::api::{ApiResult, ApiServerExt};
use crate::context::{Context, Failure};
use crate::objects;
use crate::sync::Sync;

mod abandon;
mod answers;
mod begun;
mod collect;
mod commit;
mod content;
mod end;
mod explain;
mod grow;
mod kept;
mod lately;
mod ledger;
mod limit;
mod lost;
mod mend;
mod outcome;
mod targets;

pub use abandon::{GiveUp, due_in, leave, mistyped};
use answers::Answers;
use begun::Begun;
pub use begun::{News, begin, news, quiet};
pub use collect::Collector;
pub use commit::{Draft, commit};
use content::contents;
pub use end::{Ending, end, trim};
pub use explain::explain;
use kept::{Contents, Footprints};
pub use lately::lately;
pub use ledger::{abandoned, owners_on, reconcile as reconcile_ledger};
pub use limit::{Limit, TooMuch, mebibytes};
pub use lost::{lost, search_confirmed};
pub use mend::{mend, read_again_what_is_lost};
pub use outcome::{is_new, note};
pub use targets::retarget;

/// An object that produces revisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// `DeploymentIntentGroup` or `LogicalCloud`.
    pub kind: &'static str,
    /// Namespace on the hub.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Label value on everything that is its.
    pub hash: String,
}

impl Owner {
    /// The owner that an object is.
    pub fn of<K: Resource<DynamicType = ()>>(ctx: &Context, kind: &'static str, object: &K) -> Self {
        let (namespace, name) = (objects::namespace(object).to_owned(), objects::name(object).to_owned());
        let hash = marks::owner_hash(&ctx.installation.id, kind, &namespace, &name);
        Self { kind, uid: objects::uid(object).to_owned(), hash, namespace, name }
    }

    /// Name of one of its revisions: `dig-shop-3`.
    pub fn context_name(&self, revision: i64) -> String {
        format!("{}-{}-{revision}", owner_short(self.kind), self.name)
    }

    fn labels(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            (label::OWNER, self.hash.clone()),
            (label::OWNER_KIND, self.kind.to_owned()),
            (label::OWNER_NAME, self.name.clone()),
        ])
    }
}

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

/// How revisions are kept.
#[derive(Clone, Debug)]
pub struct RevisionSettings {
    /// So long a pack is unreferenced before it is deleted.
    pub unreferenced_for: Duration,
    /// Bytes of a shard above which it gives rows to another one.
    pub largest_shard: usize,
    /// So long, at most, nothing but the clusters' work is done about a revision that was just targeted.
    pub quiet: Duration,
}

impl Default for RevisionSettings {
    fn default() -> Self {
        Self {
            unreferenced_for: Duration::from_mins(15),
            largest_shard: emco_engine::shard::LARGEST,
            quiet: Duration::from_millis(250),
        }
    }
}

/// Revisions written by this process, and contents read before. Harmless if lost.
#[derive(Default)]
pub struct Revisions {
    settings: RevisionSettings,
    /// Who works on it in the same process.
    workers: Option<Arc<Sync>>,
    /// Newest AppContext by owner hash, while the watch may not have seen it.
    written: Mutex<BTreeMap<String, Arc<AppContext>>>,
    contents: Mutex<Contents>,
    footprints: Mutex<Footprints>,
    /// Rings when packs may have lost their last reference.
    litter: Notify,
    answers: Answers,
    begun: Begun,
    /// Names of shards made by this process, by owner hash, until the watch shows them.
    made: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Revisions {
    /// With other settings than usual.
    pub fn new(settings: RevisionSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Leaves what it stores to workers of the same process, too: contents that the hub has, and shards as it answered.
    #[must_use]
    pub fn beside(self, workers: Arc<Sync>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// How long what is at rest is still left alone, since the process just began.
    pub fn calm(&self) -> Option<Duration> {
        self.workers.as_ref()?.calm()
    }
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

/// Shards of an owner as they are to be read: each cluster is in one of them, also while its row moves from one to another.
pub fn shards(ctx: &Context, owner: &Owner) -> Vec<Arc<SyncShard>> {
    let all = stored_shards(ctx, owner);
    let parts: Vec<_> = all.iter().map(|stored| (&stored.spec, stored.status.as_ref())).collect();
    let quiet = shard::superseded(&parts);
    let speaking = |(stored, quiet): (&Arc<SyncShard>, &BTreeSet<ClusterId>)| {
        if quiet.is_empty() {
            return Arc::clone(stored);
        }
        let mut part = stored.as_ref().clone();
        part.spec.clusters.retain(|row| ClusterId::parse(&row.cluster).is_none_or(|id| !quiet.contains(&id)));
        Arc::new(part)
    };
    all.iter().zip(&quiet).map(speaking).collect()
}

/// Something of an owner that a later version wrote: then nothing of it is changed. The sentence says what.
pub fn of_a_later_format(ctx: &Context, owner: &Owner) -> Option<String> {
    let shards = stored_shards(ctx, owner);
    let shards = shards.iter().map(|o| ("SyncShard", objects::name(o.as_ref()).to_owned(), o.spec.format));
    let contexts = contexts(ctx, owner);
    let contexts =
        contexts.iter().map(|o| ("AppContext", objects::name(o.as_ref()).to_owned(), o.spec.format));
    let (kind, name, format) = shards.chain(contexts).find(|(_, _, format)| *format > FORMAT)?;
    Some(format!(
        "{kind} {name} has format {format}, and this version reads format {FORMAT}: nothing is changed; upgrade the operator"
    ))
}

/// Shards of an owner as they are stored, by name.
fn stored_shards(ctx: &Context, owner: &Owner) -> Vec<Arc<SyncShard>> {
    let shown = ctx.stores.shards.state_filter(|shard: &SyncShard| {
        shard.metadata.namespace.as_deref() == Some(owner.namespace.as_str())
            && shard.metadata.labels.as_ref().and_then(|l| l.get(label::OWNER)) == Some(&owner.hash)
    });
    let mut all: Vec<_> = shown.into_iter().map(|shown| ctx.revisions.answers.newest(shown)).collect();
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    all
}

/// The newest revision whose content is complete. One that was being written when the process died, and that no shard names,
/// is passed over.
pub async fn newest(ctx: &Context, owner: &Owner) -> Result<Option<Stored>, Failure> {
    for context in contexts(ctx, owner) {
        match load(ctx, &context).await? {
            Ok(running) => {
                return Ok(Some(Stored {
                    spec: context.spec.clone(),
                    name: objects::name(context.as_ref()).to_owned(),
                    running,
                }));
            }
            Err(why) => {
                tracing::warn!(context = objects::name(context.as_ref()), %why, "the content of a revision cannot be read");
            }
        }
    }
    Ok(None)
}

/// Reads a revision's packs. The inner error says what is missing or broken.
async fn load(ctx: &Context, context: &AppContext) -> Result<Result<Arc<Running>, String>, Failure> {
    if context.spec.format > FORMAT {
        return Ok(Err(format!(
            "it has format {}, and this version reads format {FORMAT}",
            context.spec.format
        )));
    }
    let uid = objects::uid(context);
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
    for digest in wanted {
        // A set that cannot be read is left out: the planner makes it again, or keeps what is there.
        if let Ok(set) = pack::assemble(digest, &packs) {
            sets.insert(digest.clone(), Arc::new(set));
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
    });
    if broken.is_none() {
        ctx.revisions.contents.lock().put(uid.to_owned(), Arc::clone(&running));
    }
    Ok(Ok(running))
}

fn pack_collection(namespace: &str, kind: PackKind) -> String {
    let plural = if kind == PackKind::Secret { "secrets" } else { "configmaps" };
    format!("/api/v1/namespaces/{namespace}/{plural}")
}

async fn read_pack(ctx: &Context, reference: &PackRef) -> ApiResult<Result<Pack, String>> {
    let path = format!("{}/{}", pack_collection(&ctx.namespace, reference.kind), reference.name);
    let Some(object) = ctx.hub().get_opt(&path).await? else {
        return Ok(Err(format!("{} {} is missing", reference.kind.as_str(), reference.name)));
    };
    let what = format!("{} {}", reference.kind.as_str(), reference.name);
    let Some(bytes) = pack_bytes(&object) else { return Ok(Err(format!("{what} has no pack"))) };
    if hex::encode(Sha256::digest(&bytes)) != reference.digest {
        return Ok(Err(format!("{what} has another content than it was stored with")));
    }
    Ok(Pack::read(&bytes).map_err(|error| format!("{what}: {error}")))
}

/// The bytes in a pack's object, under `binaryData` of a ConfigMap or `data` of a Secret.
fn pack_bytes(object: &Value) -> Option<Vec<u8>> {
    use base64::Engine;
    let text = object.pointer("/binaryData/pack").or_else(|| object.pointer("/data/pack"))?.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// The object that stores a pack.
fn pack_object(owner: &Owner, object: &PackObject) -> Value {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&object.bytes);
    let mut value = json!({
        "apiVersion": "v1", "kind": object.kind.as_str(), "immutable": true,
        "metadata": {"name": object.name, "labels": owner.labels()},
    });
    if let Some(map) = value.as_object_mut() {
        if object.kind == PackKind::Secret {
            map.insert("type".to_owned(), json!(pack::SECRET_TYPE));
            map.insert("data".to_owned(), json!({"pack": text}));
        } else {
            map.insert("binaryData".to_owned(), json!({"pack": text}));
        }
    }
    value
}

fn reference(object: &PackObject) -> PackRef {
    PackRef {
        name: object.name.clone(),
        kind: object.kind,
        bytes: i64::try_from(object.bytes.len()).unwrap_or(i64::MAX),
        digest: object.digest.clone(),
    }
}

/// Finalizer of everything that is inventory.
const INVENTORY: &str = finalizer::INVENTORY;
