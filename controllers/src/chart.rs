//! Fetches charts, checks and compiles them. Each is fetched once, and kept by digest on disk and, compiled, in memory. What a
//! tenant can make go wrong has a reason and a sentence.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use emco_helm::{Chart, Compiled, LoadError};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::api::key_queue::{Key, KeyQueue};
use crate::api::turns::Turns;
use crate::remote::dialer::Dialer;

mod credentials;
mod disk;
mod docker;
mod error;
mod git;
mod http;
mod index;
mod limits;
mod low_priority;
mod maps;
mod oci;
pub mod on_hub;
mod ready;
mod repository;
mod slots;
mod speed;
mod wish;

pub use crate::git::GitLimits;
pub use credentials::ChartCredentials;
pub use error::{BUSY, CHANGED, ChartError};
pub use git::{Git, Reference, tar_of};
pub(crate) use http::public_roots;
pub use http::trust;
pub use limits::ChartLimits;
use low_priority::Worker;
pub use maps::{MapKey, Maps};
pub use oci::Oci;
pub use repository::Repository;
use slots::Slots;
pub use slots::Turn;
use wish::{Download, Place, Wish};

/// How often a chart that was not kept is asked for again.
pub const WANTED_EACH: Duration = Duration::from_mins(1);

/// Wishes remembered. What is forgotten is on disk.
const GIVEN: usize = 4096;

/// Where a chart comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A Helm repository over HTTP(S).
    Repository(Repository),
    /// An OCI registry.
    Oci(Oci),
    /// A folder of a Git repository over HTTP(S).
    Git(Git),
    /// An archive that the hub holds.
    ConfigMap {
        /// How messages name it, such as `ConfigMap shop-chart, key chart.tgz`.
        label: String,
        /// The archive.
        bytes: Vec<u8>,
    },
}

impl Source {
    /// The place that is reached through the dialer; the label and bytes of an archive that the hub holds.
    fn place(self) -> Result<Place, (String, Vec<u8>)> {
        match self {
            Self::Repository(repository) => Ok(Place::Repository(repository)),
            Self::Oci(oci) => Ok(Place::Oci(oci)),
            Self::Git(git) => Ok(Place::Git(git)),
            Self::ConfigMap { label, bytes } => Err((label, bytes)),
        }
    }
}

/// Adds a part to a hash, so that parts that are divided in another way have another one.
fn mix(hash: &mut Sha256, part: &[u8]) {
    hash.update(part.len().to_be_bytes());
    hash.update(part);
}

/// One wish for a chart.
#[derive(Clone, Debug)]
pub struct FetchRequest<'a> {
    /// Where from.
    pub source: Source,
    /// Of the Secret that the source names.
    pub credentials: Option<ChartCredentials>,
    /// The project's `chartSources`.
    pub sources: Option<&'a [String]>,
    /// `sha256:...` that the archive must have.
    pub pinned: Option<&'a str>,
    /// Of the object that wants it, for all of its downloads.
    pub turn: &'a Turn,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// `sha256:` and 64 hexadecimal digits over the archive.
    pub digest: String,
    /// The archive.
    pub bytes: Arc<[u8]>,
    /// Ready to be rendered.
    pub compiled: Arc<Compiled>,
    /// As `Chart.yaml` says.
    pub name: String,
    /// As `Chart.yaml` says.
    pub version: String,
    /// As `Chart.yaml` says; empty if it does not.
    pub app_version: String,
    /// The commit that it was packed of, where it comes from Git.
    pub commit: Option<String>,
}

/// All charts.
pub struct ChartStore {
    limits: ChartLimits,
    dialer: Arc<Dialer>,
    disk: disk::Disk,
    ready: Mutex<ready::Ready<Compiled>>,
    /// What ConfigMaps gave.
    pub maps: Maps,
    /// Archives that the hub keeps.
    pub on_hub: on_hub::OnHub,
    /// By project: what one sends takes long to unpack.
    works: Arc<Turns>,
    slots: Arc<Slots>,
    /// What wishes gave, for those that are in memory.
    given: Mutex<BTreeMap<String, String>>,
    /// When each `CompositeApp` was last asked for its charts.
    asked: Mutex<BTreeMap<Key, tokio::time::Instant>>,
    /// When the sources of each `CompositeApp` were last looked at although its charts are here.
    looked: Mutex<BTreeMap<Key, tokio::time::Instant>>,
    /// Of `CompositeApp`s that lack a chart, or may download one now.
    pub wanted: Arc<KeyQueue>,
    /// Of `CompositeApp`s whose charts came.
    pub arrived: Arc<KeyQueue>,
    /// One fetch of the same chart at a time: the others then find it on disk.
    running: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl ChartStore {
    /// Keeps archives below `cache_dir`, which is made if absent. The error is a sentence.
    pub fn new(cache_dir: PathBuf, dialer: Arc<Dialer>, limits: ChartLimits) -> Result<Arc<Self>, String> {
        let disk = disk::Disk::open(cache_dir, limits.disk_bytes)?;
        let ready = ready::Ready::new(limits.compiled, limits.compiled_bytes);
        let works = Turns::new(limits.works);
        let wanted = Arc::<KeyQueue>::default();
        let slots = Slots::new(limits.fetches, limits.fetches_of_project, limits.time, Arc::clone(&wanted));
        Ok(Arc::new(Self {
            limits,
            dialer: dialer.of("charts"),
            disk,
            ready: Mutex::new(ready),
            maps: Maps::default(),
            on_hub: on_hub::OnHub::new(Arc::clone(&wanted)),
            works,
            slots,
            given: Mutex::default(),
            asked: Mutex::default(),
            looked: Mutex::default(),
            wanted,
            arrived: Arc::default(),
            running: Mutex::default(),
        }))
    }

    /// Gives the chart. What is pinned and on disk costs no request; the caller's right to it is checked all the same: the
    /// entry on disk is found by source and credentials together, never by the digest that a tenant may write.
    pub async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, ChartError> {
        let FetchRequest { source, credentials, sources, pinned, turn } = request;
        let place = match source.place() {
            Ok(place) => place,
            Err((label, bytes)) => {
                let bytes = self.of_config_map(&label, bytes)?;
                return self.checked(Download { bytes, commit: None }, None, (pinned, turn)).await;
            }
        };
        let wish = Wish { place, credentials, sources, pinned };
        let got = self.of_place(&wish, turn).await?;
        let fetched = self.checked(got, Some(&wish.place), (pinned, turn)).await?;
        self.gave(wish.key(self.disk.salt()), &fetched.digest);
        Ok(fetched)
    }

    /// Gives a pinned chart that is in memory, on disk or in its `ConfigMap`, without any download. The caller's right to it is
    /// checked as in `fetch`.
    pub async fn at_hand(&self, request: FetchRequest<'_>) -> Option<Arc<Compiled>> {
        if matches!(request.source, Source::ConfigMap { .. }) {
            return self.fetch(request).await.ok().map(|fetched| fetched.compiled);
        }
        let FetchRequest { source, credentials, sources, pinned, turn } = request;
        let place = source.place().ok()?;
        let wish = Wish { place, credentials, sources, pinned };
        wish.home().ok()?;
        let key = wish.key(self.disk.salt());
        if self.given.lock().get(&key).map(String::as_str) == pinned
            && let Some(compiled) = self.ready.lock().get(pinned?)
        {
            return Some(compiled);
        }
        let kept = self.kept(&key, &wish).await?;
        let fetched = self.checked(kept, Some(&wish.place), (pinned, turn)).await.ok()?;
        self.gave(key, &fetched.digest);
        Some(fetched.compiled)
    }

    /// Takes an archive that was kept elsewhere as if its source had just given it, if it is the pinned one and the project may
    /// still have it of that source.
    pub async fn restore(&self, request: FetchRequest<'_>, bytes: &Arc<[u8]>) {
        let FetchRequest { source, credentials, sources, pinned, turn } = request;
        let Ok(place) = source.place() else { return };
        let wish = Wish { place, credentials, sources, pinned };
        let digest = digest(bytes);
        if wish.home().is_err() || pinned != Some(digest.as_str()) {
            return;
        }
        if let Err(error) = self.disk.write(&wish.key(self.disk.salt()), &digest, bytes, turn.project()).await
        {
            tracing::warn!(error, "a chart's archive cannot be kept on disk");
        }
    }

    /// Asks for the charts of a `CompositeApp` that are not here: once a minute, for what cannot be kept would be downloaded for ever.
    pub fn want(&self, namespace: &str, name: &str) {
        let (now, who) = (tokio::time::Instant::now(), (namespace.to_owned(), name.to_owned()));
        let mut asked = self.asked.lock();
        asked.retain(|_, since| now.duration_since(*since) < WANTED_EACH);
        if let Entry::Vacant(first) = asked.entry(who) {
            first.insert(now);
            self.wanted.enqueue(namespace, name);
        }
    }

    /// Whether the sources of a `CompositeApp` may be looked at again without anybody asking: once a minute.
    pub fn may_look(&self, namespace: &str, name: &str) -> bool {
        let mut looked = self.looked.lock();
        looked.retain(|_, since| since.elapsed() < WANTED_EACH);
        !looked.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    /// Notes that the sources of a `CompositeApp` were looked at now.
    pub fn looked(&self, namespace: &str, name: &str) {
        let who = (namespace.to_owned(), name.to_owned());
        self.looked.lock().insert(who, tokio::time::Instant::now());
    }

    fn gave(&self, key: String, digest: &str) {
        let mut given = self.given.lock();
        if given.len() >= GIVEN {
            given.clear();
        }
        given.insert(key, digest.to_owned());
    }

    async fn checked(
        &self,
        got: Download,
        place: Option<&Place>,
        (pinned, turn): (Option<&str>, &Turn),
    ) -> Result<Fetched, ChartError> {
        let Download { bytes, commit } = got;
        let digest = digest(&bytes);
        if let Some(pinned) = pinned.filter(|pinned| *pinned != digest) {
            return Err(changed(pinned, &digest));
        }
        let compiled = self.compiled(&digest, &bytes, turn.project()).await?;
        let chart = compiled.chart();
        if let Some(place) = place {
            place.same(chart)?;
        }
        let (name, version, app_version) =
            (chart.name().to_owned(), chart.version().to_owned(), chart.app_version().to_owned());
        Ok(Fetched { digest, bytes, compiled, name, version, app_version, commit })
    }

    fn of_config_map(&self, label: &str, bytes: Vec<u8>) -> Result<Arc<[u8]>, ChartError> {
        if bytes.len() > self.limits.archive_bytes {
            return Err(ChartError::new(
                "ChartTooLarge",
                &format!("{label} holds more than {} bytes", self.limits.archive_bytes),
            ));
        }
        if !bytes.starts_with(&[0x1f, 0x8b]) {
            return Err(ChartError::new(
                "ChartInvalid",
                &format!("{label} holds no chart archive: put the file that helm package makes there"),
            ));
        }
        Ok(Arc::from(bytes))
    }

    async fn of_place(&self, wish: &Wish<'_>, mine: &Turn) -> Result<Download, ChartError> {
        // Also of what is on disk.
        let home = wish.home()?;
        let key = wish.key(self.disk.salt());
        if let Some(found) = self.kept(&key, wish).await {
            return Ok(found);
        }
        let turn = self.turn(&key);
        // Nobody waits here: reconciles are few, and downloads take long.
        let Ok(_turn) = turn.try_lock() else {
            self.slots.queue(mine);
            return Err(ChartError::busy());
        };
        if let Some(found) = self.kept(&key, wish).await {
            return Ok(found);
        }
        if !self.slots.take(mine) {
            return Err(ChartError::busy());
        }
        let before = self.disk.reference(&key).await;
        let kept = match &before {
            Some(digest) => self.disk.read(digest).await,
            None => None,
        };
        let worker = self.worker(mine.project());
        let got = Box::pin(wish.download(&self.dialer, &self.limits, (&home, &worker), kept)).await?;
        // An archive that cannot be kept is fetched again next time; that is no reason to fail now.
        if let Err(error) = self.disk.write(&key, &digest(&got.bytes), &got.bytes, mine.project()).await {
            tracing::warn!(error, "a chart's archive cannot be kept on disk");
        }
        mine.downloaded();
        Ok(got)
    }

    async fn kept(&self, key: &str, wish: &Wish<'_>) -> Option<Download> {
        let pinned = wish.pinned?;
        let known = self.disk.reference(key).await?;
        if known != pinned {
            return None;
        }
        wish.place.again(self.disk.read(pinned).await?)
    }

    fn turn(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut running = self.running.lock();
        running.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = running.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        running.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }

    /// A chart that is compiled and was found in its ConfigMap when that was read last.
    pub fn kept_of_map(&self, place: &MapKey, digest: &str) -> Option<Arc<Compiled>> {
        if self.maps.has(place, digest) { self.ready.lock().get(digest) } else { None }
    }

    /// Bytes of compiled charts in memory.
    #[cfg(test)]
    pub(crate) fn compiled_bytes(&self) -> usize {
        self.ready.lock().bytes()
    }

    /// Forgets the compiled form of all others; their archives stay on disk.
    pub fn keep_only(&self, is_pinned: impl Fn(&str) -> bool) {
        self.ready.lock().keep_only(is_pinned);
    }

    /// Of a project's charts.
    fn worker(&self, project: &str) -> Worker {
        Worker::new(&self.works, project)
    }

    async fn compiled(
        &self,
        digest: &str,
        bytes: &Arc<[u8]>,
        project: &str,
    ) -> Result<Arc<Compiled>, ChartError> {
        if let Some(known) = self.ready.lock().get(digest) {
            return Ok(known);
        }
        let place = self.worker(project).place().await;
        // Somebody may have compiled it meanwhile.
        if let Some(known) = self.ready.lock().get(digest) {
            return Ok(known);
        }
        let (archive, limits) = (Arc::clone(bytes), self.limits.load.clone());
        let compiled = Arc::new(low_priority::run_at(place, move || compile(&archive, &limits)).await??);
        let held = compiled.chart().held_bytes();
        self.ready.lock().put(digest, Arc::clone(&compiled), held, Arc::from(project));
        Ok(compiled)
    }
}

fn compile(archive: &[u8], limits: &emco_helm::Limits) -> Result<Compiled, ChartError> {
    let chart = Chart::load(archive, limits).map_err(|error| match error {
        LoadError::Limit(_) => ChartError::new("ChartTooLarge", &error.to_string()),
        _ => ChartError::new("ChartInvalid", &format!("the archive is no chart: {error}")),
    })?;
    if chart.is_library() {
        let (name, version) = (chart.name(), chart.version());
        return Err(ChartError::new(
            "ChartIsLibrary",
            &format!(
                "chart {name} {version} is a library for other charts and installs nothing: name the chart that uses it"
            ),
        ));
    }
    Compiled::new(chart)
        .map_err(|error| ChartError::new("ChartInvalid", &format!("the chart cannot be installed: {error}")))
}

/// The refusal of other bytes than those that were seen first. Which field accepts them, who knows the object says.
pub(crate) fn changed(pinned: &str, found: &str) -> ChartError {
    ChartError::new(
        CHANGED,
        &format!("the same version now has other bytes: pinned is {pinned}, the source gives {found}"),
    )
}

/// `sha256:...` of an archive.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
pub(crate) mod tests;
