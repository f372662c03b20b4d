//! A chart's source comes in; its archive, checked and compiled, goes out. Fetched once, kept by digest on disk and, compiled,
//! in memory. What a tenant can make go wrong has a reason and a sentence.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use emco_helm::{Chart, Compiled, LoadError};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::dialer::Dialer;
use crate::remote::wire::cut;

mod credentials;
mod disk;
mod docker;
mod git;
mod http;
mod index;
mod maps;
mod oci;
mod ready;
mod repository;
mod wish;

pub use credentials::ChartCredentials;
pub use git::{Git, GitLimits, Reference};
pub use maps::{MapKey, Maps};
pub use oci::Oci;
pub use repository::Repository;
use wish::{Download, Place, Wish};

/// Bounds on fetching and keeping charts.
#[derive(Clone, Debug)]
pub struct ChartLimits {
    /// Bytes of a repository's index.
    pub index_bytes: usize,
    /// Bytes of a packed archive.
    pub archive_bytes: usize,
    /// What is fetched of a Git repository.
    pub git: GitLimits,
    /// One download from the first byte sent to the last received.
    pub time: Duration,
    /// Until an answer begins.
    pub answer_begins: Duration,
    /// Redirects followed, each judged anew.
    pub redirects: usize,
    /// Downloads at once.
    pub fetches: usize,
    /// Bytes of archives on disk.
    pub disk_bytes: u64,
    /// Compiled charts in memory.
    pub compiled: usize,
    /// Bytes of the archives whose compiled charts are in memory.
    pub compiled_bytes: usize,
    /// What one chart may unpack to.
    pub load: emco_helm::Limits,
}

impl Default for ChartLimits {
    fn default() -> Self {
        Self {
            index_bytes: 64 << 20,
            archive_bytes: 32 << 20,
            git: GitLimits::default(),
            time: Duration::from_secs(120),
            answer_begins: Duration::from_secs(15),
            redirects: 5,
            fetches: 4,
            disk_bytes: 1 << 30,
            compiled: 64,
            compiled_bytes: 64 << 20,
            load: emco_helm::Limits::default(),
        }
    }
}

/// Why there is no chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChartError {
    reason: &'static str,
    message: String,
}

impl ChartError {
    pub(crate) fn new(reason: &'static str, message: &str) -> Self {
        Self { reason, message: cut(message, 512) }
    }

    /// `ChartNotFound`, `ChartUnauthorized`, `ChartSourceNotAllowed`, `ChartDigestChanged`, `ChartInvalid`,
    /// `ChartTooLarge`, `ChartIsLibrary` or `SourceUnreachable`.
    pub const fn reason(&self) -> &'static str {
        self.reason
    }

    /// Trying again later may help although nobody changed anything here.
    pub fn is_transient(&self) -> bool {
        self.reason == "SourceUnreachable"
    }
}

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
    ready: Mutex<ready::Ready>,
    /// What ConfigMaps gave.
    pub maps: Maps,
    fetches: Semaphore,
    /// One fetch of the same chart at a time: the others then find it on disk.
    running: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl ChartStore {
    /// Keeps archives below `cache_dir`, which is made if absent. The error is a sentence.
    pub fn new(cache_dir: PathBuf, dialer: Arc<Dialer>, limits: ChartLimits) -> Result<Arc<Self>, String> {
        let disk = disk::Disk::open(cache_dir, limits.disk_bytes)?;
        let ready = ready::Ready::new(limits.compiled, limits.compiled_bytes);
        let fetches = Semaphore::new(limits.fetches.max(1));
        Ok(Arc::new(Self {
            limits,
            dialer,
            disk,
            ready: Mutex::new(ready),
            maps: Maps::default(),
            fetches,
            running: Mutex::default(),
        }))
    }

    /// Gives the chart. What is pinned and on disk costs no request; the caller's right to it is checked all the same: the
    /// entry on disk is found by source and credentials together, never by the digest that a tenant may write.
    pub async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, ChartError> {
        let FetchRequest { source, credentials, sources, pinned } = request;
        let place = match source {
            Source::ConfigMap { label, bytes } => {
                let bytes = self.of_config_map(&label, bytes)?;
                return self.checked(Download { bytes, commit: None }, None, pinned).await;
            }
            Source::Repository(repository) => Place::Repository(repository),
            Source::Oci(oci) => Place::Oci(oci),
            Source::Git(git) => Place::Git(git),
        };
        let wish = Wish { place, credentials, sources, pinned };
        let got = self.of_place(&wish).await?;
        self.checked(got, Some(&wish.place), pinned).await
    }

    async fn checked(
        &self,
        got: Download,
        place: Option<&Place>,
        pinned: Option<&str>,
    ) -> Result<Fetched, ChartError> {
        let Download { bytes, commit } = got;
        let digest = digest(&bytes);
        if let Some(pinned) = pinned.filter(|pinned| *pinned != digest) {
            return Err(changed(pinned, &digest, place.map_or("digest", Place::accepted_by)));
        }
        let compiled = self.compiled(&digest, &bytes).await?;
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

    async fn of_place(&self, wish: &Wish<'_>) -> Result<Download, ChartError> {
        // Also of what is on disk.
        let home = wish.home()?;
        let key = wish.key(self.disk.salt());
        if let Some(found) = self.kept(&key, wish).await {
            return Ok(found);
        }
        let turn = self.turn(&key);
        let _turn = turn.lock().await;
        if let Some(found) = self.kept(&key, wish).await {
            return Ok(found);
        }
        let _fetch = self
            .fetches
            .acquire()
            .await
            .map_err(|_| ChartError::new("SourceUnreachable", "the operator is shutting down"))?;
        let before = self.disk.reference(&key).await;
        let kept = match &before {
            Some(digest) => self.disk.read(digest).await,
            None => None,
        };
        let got = Box::pin(wish.download(&self.dialer, &self.limits, &home, kept)).await?;
        // An archive that cannot be kept is fetched again next time; that is no reason to fail now.
        if let Err(error) = self.disk.write(&key, &digest(&got.bytes), &got.bytes).await {
            tracing::warn!(error, "a chart's archive cannot be kept on disk");
        }
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

    async fn compiled(&self, digest: &str, bytes: &Arc<[u8]>) -> Result<Arc<Compiled>, ChartError> {
        if let Some(known) = self.ready.lock().get(digest) {
            return Ok(known);
        }
        let (archive, limits) = (Arc::clone(bytes), self.limits.load.clone());
        let made = tokio::task::spawn_blocking(move || compile(&archive, &limits))
            .await
            .map_err(|_| ChartError::new("ChartInvalid", "compiling the chart was ended"))?;
        let compiled = Arc::new(made?);
        self.ready.lock().put(digest, Arc::clone(&compiled), bytes.len());
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

/// The refusal of other bytes than those that were seen first; `edit` names the fields whose edit accepts them.
pub(crate) fn changed(pinned: &str, found: &str, edit: &str) -> ChartError {
    ChartError::new(
        "ChartDigestChanged",
        &format!(
            "the same version now has other bytes: pinned is {pinned}, the source gives {found}; check the source, then set {edit} to accept"
        ),
    )
}

/// `sha256:...` of an archive.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests;
