//! Reads the manifests of a set from the packs that the revision's AppContext names. Read from the hub once and kept
//! within a limit of bytes. What cannot be read stops the rows that need it; it never lets anything be removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::AppContext;
use emco_crds::app_context::{FORMAT, PackKind, PackRef};
use emco_crds::names::label;
use emco_crds::sync_shard::IdentitiesRef;
use emco_engine::identity::{Identity, SetDigest};
use emco_engine::pack::{self, Pack, PackError};
use emco_engine::path::ApiPath;
use emco_engine::selector::LabelSelector;
use emco_engine::set::Assignment;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::errors::{Retry, Trouble};
use super::prepared::Prepared;
use crate::api::{ApiError, ApiServer, ApiServerExt, Method, Request};

mod cache;

use cache::Cache;
pub use cache::set_bytes;

/// Where an owner's revisions are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Namespace of the owner on the hub.
    pub namespace: String,
    /// Owner hash: label of its `AppContexts`.
    pub owner: String,
    /// The revision.
    pub revision: i64,
}

/// Stored content of plans.
#[async_trait]
pub trait Content: Send + Sync + 'static {
    /// The manifests of a set.
    async fn set(&self, source: &Source, set: &SetDigest) -> Result<Arc<Prepared>, Trouble>;
    /// The identities of a pack.
    async fn identities(&self, reference: &IdentitiesRef) -> Result<Arc<BTreeSet<Identity>>, Trouble>;
}

/// Content as the hub stores it.
pub struct HubContent {
    hub: Arc<dyn ApiServer>,
    /// The operator's own namespace: packs are there.
    namespace: String,
    cache: Mutex<Cache>,
    // One load of one thing at a time: a thousand clusters that want one pack read it once.
    loading: Vec<tokio::sync::Mutex<()>>,
}

impl HubContent {
    /// Reads packs from `namespace` and keeps at most about `bytes` of them.
    pub fn new(hub: Arc<dyn ApiServer>, namespace: String, bytes: usize) -> Self {
        let loading = (0..16).map(|_| tokio::sync::Mutex::new(())).collect();
        Self { hub, namespace, cache: Mutex::new(Cache::new(bytes)), loading }
    }

    /// Keeps a set that the hub has as a whole: whoever stored it leaves it here, so that it is not read back at once.
    pub fn stored(&self, set: Arc<Prepared>) {
        let mut cache = self.cache.lock();
        if cache.set(&set.set.digest).is_none() {
            cache.keep_set(set.set.digest.clone(), set);
        }
    }

    /// Forgets what was read for revisions that are gone.
    pub fn forget_gone(&self, is_there: impl Fn(&Source) -> bool) {
        self.cache.lock().forget_gone(is_there);
    }

    async fn turn(&self, key: &str) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let place =
            key.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        match self.loading.get(place % self.loading.len().max(1)) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }

    /// The packs of a revision, in the order of its AppContext.
    async fn packs_of(&self, source: &Source) -> Result<Vec<PackRef>, Trouble> {
        if let Some(known) = self.cache.lock().packs_of(source) {
            return Ok(known);
        }
        let path = crate::object::meta::collection::<AppContext>(Some(&source.namespace));
        let selector = LabelSelector::is(label::OWNER, &source.owner)
            .and(&LabelSelector::is(label::REVISION, &source.revision.to_string()));
        let request = Request::new(Method::Get, path).labels(&selector).query("limit", "8");
        let answer = self.hub.send(request).await.map_err(|error| hub_trouble(&error))?;
        let items = answer.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut packs = Vec::new();
        let mut found = false;
        for item in items {
            let context: AppContext = serde_json::from_value(item.clone()).map_err(|error| {
                lost(&format!("AppContext of revision {} does not parse: {error}", source.revision))
            })?;
            if context.spec.format > FORMAT {
                return Err(lost(&format!(
                    "AppContext {} has format {} and this version reads format {FORMAT}: upgrade the operator",
                    context.metadata.name.unwrap_or_default(),
                    context.spec.format
                )));
            }
            found = true;
            packs.extend(context.spec.packs);
        }
        if !found {
            return Err(lost(&format!(
                "AppContext of revision {} is not in namespace {}: restore it, or change the deployment to make a new revision",
                source.revision, source.namespace
            )));
        }
        self.cache.lock().keep_packs_of(source.clone(), packs.clone());
        Ok(packs)
    }

    /// What a revision gives to each cluster.
    pub async fn assignment(&self, source: &Source) -> Result<Assignment, Trouble> {
        let mut packs = Vec::new();
        // Secrets hold manifests alone.
        for reference in self.packs_of(source).await?.iter().filter(|pack| pack.kind == PackKind::ConfigMap) {
            packs.push(self.pack(reference.kind, &reference.name, &reference.digest).await?);
        }
        let packs: Vec<&Pack> = packs.iter().map(AsRef::as_ref).collect();
        pack::assignment(&packs).map_err(|error| lost(&error.to_string()))
    }

    async fn pack(&self, kind: PackKind, name: &str, digest: &str) -> Result<Arc<Pack>, Trouble> {
        if let Some(pack) = self.cache.lock().pack(name) {
            return Ok(pack);
        }
        let _turn = self.turn(name).await;
        if let Some(pack) = self.cache.lock().pack(name) {
            return Ok(pack);
        }
        let (plural, data) = match kind {
            PackKind::ConfigMap => ("configmaps", "binaryData"),
            PackKind::Secret => ("secrets", "data"),
        };
        let path = ApiPath::core(&self.namespace, plural).then(name);
        let object = self.hub.get_opt(&path).await.map_err(|error| hub_trouble(&error))?;
        let what = format!("pack {name} in namespace {}", self.namespace);
        let Some(object) = object else {
            return Err(lost(&format!(
                "{what} is missing: restore it, or change the deployment to make a new revision"
            )));
        };
        let text =
            object.get(data).and_then(|d| d.get(pack::KEY)).and_then(Value::as_str).unwrap_or_default();
        let bytes =
            STANDARD.decode(text).map_err(|error| lost(&format!("{what} does not hold base64: {error}")))?;
        let found = hex::encode(Sha256::digest(&bytes));
        if !digest.is_empty() && digest.trim_start_matches("sha256:") != found {
            return Err(lost(&format!(
                "{what} was changed: its content does not have the digest it was stored with"
            )));
        }
        let pack = Arc::new(Pack::read(&bytes).map_err(|error| lost(&format!("{what}: {error}")))?);
        self.cache.lock().keep_pack(name.to_owned(), pack.clone());
        Ok(pack)
    }
}

#[async_trait]
impl Content for HubContent {
    async fn set(&self, source: &Source, set: &SetDigest) -> Result<Arc<Prepared>, Trouble> {
        {
            let mut cache = self.cache.lock();
            if let Some(known) = cache.set(set) {
                cache.asked(source, None, Some(set));
                return Ok(known);
            }
        }
        // Which packs a revision has was read before, perhaps of an owner of the same name that is gone.
        let remembered = self.cache.lock().packs_of(source).is_some();
        match self.assembled(source, set).await {
            Err(_) if remembered => {
                self.cache.lock().forget_packs_of(source);
                self.assembled(source, set).await
            }
            other => other,
        }
    }

    async fn identities(&self, reference: &IdentitiesRef) -> Result<Arc<BTreeSet<Identity>>, Trouble> {
        let pack = self.pack(PackKind::ConfigMap, &reference.pack, &reference.digest).await?;
        match pack.identities() {
            Ok(Some(identities)) => Ok(Arc::new(identities)),
            Ok(None) => Err(lost(&format!("pack {} holds no identities", reference.pack))),
            Err(error) => Err(lost(&format!("pack {}: {error}", reference.pack))),
        }
    }
}

impl HubContent {
    async fn assembled(&self, source: &Source, set: &SetDigest) -> Result<Arc<Prepared>, Trouble> {
        let mut holding: BTreeMap<String, Arc<Pack>> = BTreeMap::new();
        // A pack that cannot be read stops what is in it, and nothing else.
        let mut unread = None;
        for reference in self.packs_of(source).await? {
            // The name of a pack is a digest of its content: what it did not hold, it never holds.
            if self.cache.lock().sets_of(&reference.name).is_some_and(|sets| !sets.contains(set)) {
                continue;
            }
            match self.pack(reference.kind, &reference.name, &reference.digest).await {
                Ok(pack) if pack.holds(set) => {
                    self.cache.lock().asked(source, Some(&reference.name), None);
                    holding.insert(reference.name, pack);
                }
                Ok(_) => {}
                Err(trouble) => unread = unread.or(Some(trouble)),
            }
        }
        let packs: Vec<&Pack> = holding.values().map(AsRef::as_ref).collect();
        let whole = pack::assemble(set, &packs).map_err(|error| match (error, unread) {
            (PackError::Missing(_), Some(unread)) => unread,
            (PackError::Missing(_), None) => {
                lost(&format!("no pack of revision {} holds all of set {set}", source.revision))
            }
            (other, _) => lost(&other.to_string()),
        })?;
        let whole = Arc::new(Prepared::of(Arc::new(whole)));
        let mut cache = self.cache.lock();
        cache.keep_set(set.clone(), whole.clone());
        cache.asked(source, None, Some(set));
        drop(cache);
        Ok(whole)
    }
}

/// Content that is not there or not whole: the row stops.
fn lost(message: &str) -> Trouble {
    Trouble::new("ContentLost", message, Retry::Slowly)
}

/// The hub did not answer: waiting, nothing is lost.
fn hub_trouble(error: &ApiError) -> Trouble {
    Trouble::new("Progressing", &format!("the hub did not give the stored manifests: {error}"), Retry::Soon)
}

#[cfg(test)]
mod tests;
