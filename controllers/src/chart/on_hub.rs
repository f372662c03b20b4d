//! Keeps the archives of pinned charts on the hub: a new Pod, or a standby that takes over, needs no chart server.
//!
//! An archive is stored in Secrets of the operator's namespace, for charts of private registries are nobody else's, in parts that
//! the API server takes. It is found by the namespace, the source and the digest of its pin: a tenant reaches what its own
//! CompositeApp resolved, and nothing of others. The collector removes what no CompositeApp pins and no stored revision was made of;
//! where a namespace has as much as it may, what only earlier revisions were made of goes, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::composite_app::ChartPin;
use emco_crds::names::{annotation, label};
use emco_engine::path::ApiPath;
use emco_engine::selector::LabelSelector;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{digest, mix};
use crate::api::key_queue::KeyQueue;
use crate::api::{ApiResult, ApiServer, ApiServerExt as _, Method, Request, pages};

mod room;

use room::{Archive, Known, Parts, Writing};

/// Name of every part begins so.
pub const PREFIX: &str = "emco-chart-";
/// Type of the Secrets.
const TYPE: &str = "emco.io/chart";
/// Key of the bytes.
const KEY: &str = "archive";
/// Bytes in one part; the API server takes 1 MiB.
const PART: usize = 768 << 10;
/// Bytes of the largest archive that is kept. Most charts have less than 200 KiB.
const LARGEST: usize = 8 << 20;
/// Bytes that are kept for one namespace: what a tenant cannot fill is the hub's store.
const OF_NAMESPACE: usize = 32 << 20;

/// Where archives are kept.
#[derive(Clone, Copy)]
pub struct Hub<'a> {
    /// The hub's API server.
    pub server: &'a dyn ApiServer,
    /// The operator's namespace.
    pub namespace: &'a str,
}

/// What became of an archive that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The hub has it.
    Yes,
    /// It is larger than what is kept.
    TooLarge,
    /// Its namespace has as much as it may.
    Full,
}

impl Kept {
    /// Why a new operator Pod needs the chart's source; `None` where it does not.
    pub fn sentence(self) -> Option<String> {
        let why = match self {
            Self::Yes => return None,
            Self::TooLarge => format!("it has more than {} MiB", LARGEST >> 20),
            Self::Full => format!("the charts of the namespace have {} MiB", OF_NAMESPACE >> 20),
        };
        Some(format!("is not kept on the hub, as {why}: a new operator Pod needs its source"))
    }
}

/// Archives that the hub has.
#[derive(Default)]
pub struct OnHub {
    known: Mutex<Known>,
    /// Of `CompositeApp`s that there may be room for now.
    wanted: Arc<KeyQueue>,
}

/// The name of an archive, which a part's number follows.
pub fn name(namespace: &str, pin: &ChartPin) -> String {
    let mut hash = Sha256::new();
    for part in [namespace, &pin.source, &pin.digest] {
        mix(&mut hash, part.as_bytes());
    }
    let hash = hex::encode(hash.finalize());
    format!("{PREFIX}{}", hash.get(..32).unwrap_or_default())
}

/// The archive that a part belongs to.
pub fn of_part(part: &str) -> &str {
    part.rsplit_once('-').map_or(part, |(name, _)| name)
}

fn part(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

/// A label's value for a namespace of any length.
pub fn owner(namespace: &str) -> String {
    let hash = hex::encode(Sha256::digest(namespace));
    hash.get(..32).unwrap_or_default().to_owned()
}

impl OnHub {
    /// `wanted` gets the `CompositeApp`s that there may be room for after there was none.
    pub fn new(wanted: Arc<KeyQueue>) -> Self {
        Self { known: Mutex::default(), wanted }
    }

    /// Stores an archive that a `CompositeApp` just resolved. What the hub has costs no request. Where there is no room, the
    /// `CompositeApp` is woken when there may be some.
    pub async fn keep(
        &self,
        hub: Hub<'_>,
        (namespace, app): (&str, &str),
        pin: &ChartPin,
        bytes: &[u8],
    ) -> ApiResult<Kept> {
        self.load(hub).await?;
        let (name, owner) = (name(namespace, pin), owner(namespace));
        if bytes.len() > LARGEST {
            return Ok(Kept::TooLarge);
        }
        {
            // Room is taken before the first request: several reconciles of a namespace run at once.
            let mut known = self.known.lock();
            if let Some(kept) = known.reserve(&owner, &name, bytes.len()) {
                if kept == Kept::Full {
                    let who = (namespace.to_owned(), app.to_owned());
                    known.refused.entry(owner).or_default().insert(who);
                }
                return Ok(kept);
            }
        }
        let mut writing = Writing { known: &self.known, owner: &owner, name: &name, whole: false };
        // The first part comes last: where it is, all are.
        for (number, chunk) in bytes.chunks(PART).enumerate().rev() {
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": TYPE, "immutable": true,
                "metadata": {
                    "name": part(&name, number), "namespace": hub.namespace,
                    "labels": {(label::OWNER): owner},
                    "annotations": {
                        (annotation::CHART): format!("{namespace}: {} {}", pin.chart, pin.version),
                        (annotation::BYTES): bytes.len().to_string(),
                    },
                },
                "data": {KEY: STANDARD.encode(chunk)},
            });
            match hub.server.create(ApiPath::core(hub.namespace, "secrets"), &object).await {
                Err(error) if !error.already_exists() => return Err(error),
                _ => {}
            }
        }
        writing.whole = true;
        Ok(Kept::Yes)
    }

    /// Reads the archive of a pin. One that is damaged is removed, so that it can be kept again. One of which a part is missing is
    /// kept again over what is there: a single answer that lacks an object removes nothing.
    pub async fn read(&self, hub: Hub<'_>, namespace: &str, pin: &ChartPin) -> ApiResult<Option<Arc<[u8]>>> {
        self.load(hub).await?;
        let (name, owner) = (name(namespace, pin), owner(namespace));
        let size = match self.known.lock().get(&owner, &name) {
            Some(Archive { bytes, parts: Parts::Whole }) => *bytes,
            _ => return Ok(None),
        };
        let mut parts = Vec::new();
        let mut bytes = Vec::with_capacity(size.min(LARGEST));
        for number in 0..size.min(LARGEST).div_ceil(PART) {
            let path = ApiPath::core(hub.namespace, "secrets").then(&part(&name, number));
            let Some(object) = hub.server.get_opt(&path).await? else {
                self.tear(&owner, &name);
                return Ok(None);
            };
            let text = object.pointer("/data").and_then(|data| data.get(KEY)?.as_str());
            bytes.extend(text.and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default());
            parts.push((path, object));
        }
        if digest(&bytes) == pin.digest {
            return Ok(Some(Arc::from(bytes)));
        }
        tracing::warn!(namespace, chart = pin.chart, "the kept archive of a chart is damaged and is removed");
        self.tear(&owner, &name);
        for (path, object) in parts {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            hub.server.delete(path, text("/metadata/uid"), text("/metadata/resourceVersion")).await?;
        }
        self.forget(&owner, &name);
        Ok(None)
    }

    /// The hub has all parts of it no more, and perhaps some. `owner` is the label of its parts.
    pub fn tear(&self, owner: &str, name: &str) {
        if let Some(archive) = self.known.lock().get(owner, name)
            && archive.parts == Parts::Whole
        {
            archive.parts = Parts::Torn;
        }
    }

    /// The hub has no part of it any more: there is room for others.
    pub fn forget(&self, owner: &str, name: &str) {
        let mut known = self.known.lock();
        let Known { archives, refused, .. } = &mut *known;
        let Some(of_namespace) = archives.get_mut(owner) else { return };
        // One that was written meanwhile stays.
        if of_namespace.get(name).is_none_or(|archive| archive.parts != Parts::Torn) {
            return;
        }
        of_namespace.remove(name);
        if of_namespace.is_empty() {
            archives.remove(owner);
        }
        for (namespace, app) in refused.remove(owner).unwrap_or_default() {
            self.wanted.enqueue(&namespace, &app);
        }
    }

    /// Whether there was no room for a chart of a namespace, by its owner label, since something of it went last.
    pub fn is_full(&self, owner: &str) -> bool {
        self.known.lock().refused.contains_key(owner)
    }

    /// Archives of which the hub may have no part: owner label and name.
    pub fn torn(&self) -> Vec<(String, String)> {
        let known = self.known.lock();
        let all =
            known.archives.iter().flat_map(|(owner, archives)| archives.iter().map(move |one| (owner, one)));
        let torn = all.filter(|(_, (_, archive))| archive.parts == Parts::Torn);
        torn.map(|(owner, (name, _))| (owner.clone(), name.clone())).collect()
    }

    /// Lists what is kept, once.
    async fn load(&self, hub: Hub<'_>) -> ApiResult<()> {
        if self.known.lock().listed {
            return Ok(());
        }
        let mut listed: BTreeMap<(String, String), Archive> = BTreeMap::new();
        let collection = ApiPath::core(hub.namespace, "secrets");
        let request =
            Request::new(Method::Get, collection).labels(&LabelSelector::has(label::OWNER)).metadata();
        pages(hub.server, request, |object| {
            let Some((owner, part, bytes)) = read_part(&object) else { return };
            let archive = listed
                .entry((owner, of_part(&part).to_owned()))
                .or_insert(Archive { bytes, parts: Parts::Torn });
            if part.ends_with("-0") {
                archive.parts = Parts::Whole;
            }
        })
        .await?;
        let mut known = self.known.lock();
        if !known.listed {
            known.listed = true;
            for ((owner, name), archive) in listed {
                known.archives.entry(owner).or_default().insert(name, archive);
            }
        }
        Ok(())
    }
}

/// The owner label of a part of an archive, its name, and the bytes of the whole; `None` for any other object.
fn read_part(object: &Value) -> Option<(String, String, usize)> {
    let metadata = object.get("metadata")?;
    let name = metadata.get("name")?.as_str()?;
    let bytes = metadata.get("annotations")?.get(annotation::BYTES)?.as_str()?.parse().ok()?;
    let owner = metadata.get("labels")?.get(label::OWNER)?.as_str()?;
    name.starts_with(PREFIX).then(|| (owner.to_owned(), name.to_owned(), bytes))
}

#[cfg(test)]
mod tests;
