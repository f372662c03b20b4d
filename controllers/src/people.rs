//! Gives people credentials of their own on clusters: has clusters issue them, and keeps them in Secrets beside the logical cloud.
//!
//! Clusters are asked by tasks, one for each logical cloud and cluster, so that no cluster waits for another one and no reconcile for any.
//! What they bring is written by the reconcile of the logical cloud (`reconcile/logical_cloud/people.rs`), the only one that writes the Secrets.
//! A task that dies with its process leaves a request on a cluster and nothing else: its key was in memory alone, and the next task begins
//! with another one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emco_engine::identity::ClusterId;
use emco_engine::people::Wanted;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::api::key_queue::{Key, KeyQueue};
use index::Index;

mod certificate;
pub(crate) mod index;
mod issue;
pub(crate) mod remains;
mod request;
pub(crate) mod secrets;
mod token;

pub(crate) use issue::{Order, issue};

/// Clusters that are asked at once, and those of one namespace of the hub.
const AT_ONCE: usize = 64;
const OF_ONE_PROJECT: usize = 16;
/// The first of several credentials waits for the others, so that one write has them all.
const GATHER: Duration = Duration::from_secs(2);

/// A credential as it goes into a Secret.
pub(crate) struct Issued {
    /// The kubeconfig, which says whose it is and how long it holds.
    pub text: Zeroizing<String>,
}

/// Why a cluster issued none. No part of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// From the closed set of logical clouds; `None` where the row of the cluster says it, or it is a matter of moments.
    pub reason: Option<&'static str>,
    /// A sentence.
    pub message: String,
    /// The first pause before it is asked again; it doubles.
    pub pause: Duration,
    /// The longest one.
    pub longest: Duration,
}

/// The work on one cluster.
struct Job {
    /// Tells it from one that was forgotten with its logical cloud and is still under way.
    number: u64,
    wanted: Wanted,
    stop: CancellationToken,
    /// When it ended, and with what.
    done: Option<(Instant, Result<Issued, Refusal>)>,
}

/// A task that may begin.
pub(crate) struct Begun {
    /// Its number.
    pub number: u64,
    /// Told when nobody wants what it brings.
    pub stop: CancellationToken,
}

/// What the last tries on one cluster came to.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    wanted: Wanted,
    /// The last refusal.
    pub refusal: Refusal,
    /// Tries that failed in a row.
    pub failures: u32,
    /// Unix milliseconds before which it is not asked again.
    pub not_before_ms: i64,
}

/// What this process knows of one logical cloud.
#[derive(Default)]
struct Cloud {
    /// What its Secrets hold; `None` before they are read, while its reconcile has it, and after a write that failed.
    index: Option<Index>,
    /// Versions of Secrets that the watch told of meanwhile.
    told: BTreeMap<String, Option<u64>>,
    jobs: BTreeMap<ClusterId, Job>,
    tried: BTreeMap<ClusterId, Tried>,
}

impl Cloud {
    /// Notes that one more try came to nothing.
    fn refused(&mut self, cluster: &ClusterId, wanted: &Wanted, refusal: Refusal, now_ms: i64) {
        let failures = self.tried.get(cluster).map_or(0, |tried| tried.failures);
        let pause = refusal.pause.saturating_mul(1_u32 << failures.min(16)).min(refusal.longest);
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        let (failures, not_before_ms) = (failures.saturating_add(1), now_ms.saturating_add(pause));
        let tried = Tried { wanted: wanted.clone(), refusal, failures, not_before_ms };
        self.tried.insert(cluster.clone(), tried);
    }
}

/// A look for what a person made on clusters.
enum Look {
    UnderWay,
    Found(Vec<String>),
}

/// How such a look stands.
pub(crate) enum Looked {
    /// It is for the caller to begin it.
    Begins,
    /// Its end wakes the logical cloud.
    UnderWay,
    /// It is over.
    Found(Vec<String>),
}

/// A version as the hub counts them; `None` of what is none.
fn number(version: Option<&str>) -> Option<u64> {
    version.and_then(|version| version.parse().ok())
}

/// Whether a Secret is another one than what is known.
fn is_newer(index: &Index, name: &str, now: Option<u64>) -> bool {
    number(index.version_of(name)).zip(now).is_none_or(|(known, now)| now > known)
}

/// What this process knows of the credentials of all people. It is bounded by logical clouds with a `user` and their clusters.
pub struct People {
    clouds: Mutex<BTreeMap<Key, Cloud>>,
    /// How clusters are reached, as digests.
    endpoints: Mutex<BTreeMap<ClusterId, String>>,
    begun: AtomicU64,
    /// What is looked for, or was found, of people that are named no more.
    looks: Mutex<BTreeMap<Key, Look>>,
    places: Arc<Semaphore>,
    of_projects: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// Logical clouds that have to look again.
    pub wake: KeyQueue,
}

impl Default for People {
    fn default() -> Self {
        Self {
            clouds: Mutex::default(),
            endpoints: Mutex::default(),
            begun: AtomicU64::new(0),
            looks: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            of_projects: Mutex::default(),
            wake: KeyQueue::default(),
        }
    }
}

impl People {
    /// What the Secrets of a logical cloud hold, as far as it was read. It is the caller's until it is [`Self::keep`]t.
    pub(crate) fn take_index(&self, key: &Key) -> Option<Index> {
        let mut clouds = self.clouds.lock();
        let cloud = clouds.entry(key.clone()).or_default();
        cloud.told.clear();
        cloud.index.take()
    }

    /// Remembers it, unless somebody else changed a Secret meanwhile: then the logical cloud looks again.
    pub(crate) fn keep(&self, key: &Key, index: Index) {
        let mut clouds = self.clouds.lock();
        let cloud = clouds.entry(key.clone()).or_default();
        if std::mem::take(&mut cloud.told).iter().any(|(name, now)| is_newer(&index, name, *now)) {
            drop(clouds);
            self.wake.enqueue(&key.0, &key.1);
        } else {
            cloud.index = Some(index);
        }
    }

    /// Forgets a logical cloud whose Secrets are empty; its tasks end.
    pub(crate) fn forget(&self, key: &Key) {
        if let Some(cloud) = self.clouds.lock().remove(key) {
            for job in cloud.jobs.values() {
                job.stop.cancel();
            }
        }
        let mut projects = self.of_projects.lock();
        projects.retain(|_, places| Arc::strong_count(places) > 1);
    }

    /// A Secret came, changed or went. Answers whether its logical cloud has to look again: somebody else did that after this process wrote
    /// it last.
    pub fn secret_changed(&self, key: &Key, name: &str, version: Option<&str>) -> bool {
        let mut clouds = self.clouds.lock();
        let Some(cloud) = clouds.get_mut(key) else { return false };
        let now = number(version);
        let Some(index) = &cloud.index else {
            cloud.told.insert(name.to_owned(), now);
            return false;
        };
        let changed = is_newer(index, name, now);
        if changed {
            cloud.index = None;
        }
        changed
    }

    /// A Cluster is reached so. Answers whether it was another way before: credentials that name the old one are of no use.
    pub fn endpoint_seen(&self, cluster: &ClusterId, digest: &str) -> bool {
        let before = self.endpoints.lock().insert(cluster.clone(), digest.to_owned());
        before.is_some_and(|before| before != digest)
    }

    /// A Cluster is gone.
    pub fn endpoint_gone(&self, cluster: &ClusterId) {
        self.endpoints.lock().remove(cluster);
    }

    /// How it is reached, as a digest.
    pub(crate) fn endpoint(&self, cluster: &ClusterId) -> Option<String> {
        self.endpoints.lock().get(cluster).cloned()
    }

    /// What tasks brought for this wish, once all of it came or waited long enough; the time to wait otherwise. What was brought for another
    /// wish is dropped: its person may have no rights any more. Refusals are noted.
    pub(crate) fn take_issued(
        &self,
        key: &Key,
        wanted: &Wanted,
        now_ms: i64,
    ) -> Result<BTreeMap<ClusterId, Issued>, Duration> {
        let mut clouds = self.clouds.lock();
        let Some(cloud) = clouds.get_mut(key) else { return Ok(BTreeMap::new()) };
        for job in cloud.jobs.values().filter(|job| job.wanted != *wanted) {
            job.stop.cancel();
        }
        cloud.jobs.retain(|_, job| job.wanted == *wanted || job.done.is_none());
        cloud.tried.retain(|_, tried| tried.wanted == *wanted);
        let refused: Vec<ClusterId> = cloud
            .jobs
            .iter()
            .filter(|(_, job)| matches!(job.done, Some((_, Err(_)))))
            .map(|(cluster, _)| cluster.clone())
            .collect();
        for cluster in refused {
            if let Some((_, Err(refusal))) = cloud.jobs.remove(&cluster).and_then(|job| job.done) {
                cloud.refused(&cluster, wanted, refusal, now_ms);
            }
        }
        let first = cloud.jobs.values().filter_map(|job| job.done.as_ref().map(|(at, _)| *at)).min();
        let Some(first) = first else { return Ok(BTreeMap::new()) };
        let waited = first.elapsed();
        if cloud.jobs.values().any(|job| job.done.is_none()) && waited < GATHER {
            return Err(GATHER.saturating_sub(waited));
        }
        let (done, running): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut cloud.jobs).into_iter().partition(|(_, job)| job.done.is_some());
        cloud.jobs = running;
        let mut issued = BTreeMap::new();
        for (cluster, job) in done {
            if let Some((_, Ok(one))) = job.done {
                cloud.tried.remove(&cluster);
                issued.insert(cluster, one);
            }
        }
        Ok(issued)
    }

    /// What clusters issued could not be kept: it is as if they had refused, or they would be asked again and again.
    pub(crate) fn not_kept(
        &self,
        key: &Key,
        wanted: &Wanted,
        clusters: &[ClusterId],
        refusal: &Refusal,
        now_ms: i64,
    ) {
        let mut clouds = self.clouds.lock();
        let cloud = clouds.entry(key.clone()).or_default();
        for cluster in clusters {
            cloud.refused(cluster, wanted, refusal.clone(), now_ms);
        }
    }

    /// Whether a cluster is being asked.
    pub(crate) fn is_asked(&self, key: &Key, cluster: &ClusterId) -> bool {
        self.clouds.lock().get(key).is_some_and(|cloud| cloud.jobs.contains_key(cluster))
    }

    /// What the last tries on a cluster came to.
    pub(crate) fn tried(&self, key: &Key, cluster: &ClusterId) -> Option<Tried> {
        self.clouds.lock().get(key)?.tried.get(cluster).cloned()
    }

    /// Clusters that are not the logical cloud's any more are not asked any more.
    pub(crate) fn retain(&self, key: &Key, keeps: impl Fn(&ClusterId) -> bool) {
        let mut clouds = self.clouds.lock();
        let Some(cloud) = clouds.get_mut(key) else { return };
        for (cluster, job) in &cloud.jobs {
            if !keeps(cluster) {
                job.stop.cancel();
            }
        }
        cloud.jobs.retain(|cluster, job| keeps(cluster) || job.done.is_none());
        cloud.tried.retain(|cluster, _| keeps(cluster));
    }

    /// Notes that a cluster is asked from now on. `None` where it is already, by an earlier wish: that ends first.
    pub(crate) fn begin(&self, key: &Key, cluster: &ClusterId, wanted: &Wanted) -> Option<Begun> {
        let mut clouds = self.clouds.lock();
        let cloud = clouds.entry(key.clone()).or_default();
        if cloud.jobs.contains_key(cluster) {
            return None;
        }
        let (stop, number) = (CancellationToken::new(), self.begun.fetch_add(1, Ordering::Relaxed));
        let job = Job { number, wanted: wanted.clone(), stop: stop.clone(), done: None };
        cloud.jobs.insert(cluster.clone(), job);
        Some(Begun { number, stop })
    }

    /// A task ended: its logical cloud looks again. What belongs to nobody any more is dropped.
    pub(crate) fn end(&self, key: &Key, cluster: &ClusterId, number: u64, result: Result<Issued, Refusal>) {
        let mut clouds = self.clouds.lock();
        let Some(cloud) = clouds.get_mut(key) else { return };
        match cloud.jobs.get_mut(cluster).filter(|job| job.number == number) {
            Some(job) if job.stop.is_cancelled() => drop(cloud.jobs.remove(cluster)),
            Some(job) => job.done = Some((Instant::now(), result)),
            None => return,
        }
        drop(clouds);
        self.wake.enqueue(&key.0, &key.1);
    }

    /// What was found on clusters of a person who is named no more. What was found is told once; a look that another process began begins anew.
    pub(crate) fn look(&self, key: &Key) -> Looked {
        let mut looks = self.looks.lock();
        match looks.remove(key) {
            Some(Look::Found(found)) => Looked::Found(found),
            before => {
                looks.insert(key.clone(), Look::UnderWay);
                if before.is_some() { Looked::UnderWay } else { Looked::Begins }
            }
        }
    }

    /// A look is over: its logical cloud looks again.
    pub(crate) fn found(&self, key: &Key, found: Vec<String>) {
        self.looks.lock().insert(key.clone(), Look::Found(found));
        self.wake.enqueue(&key.0, &key.1);
    }

    /// Somebody is named again, or the logical cloud ends: what an earlier look found is of no use.
    pub(crate) fn look_no_more(&self, key: &Key) {
        let mut looks = self.looks.lock();
        if matches!(looks.get(key), Some(Look::Found(_))) {
            looks.remove(key);
        }
    }

    /// A place among those who ask clusters, held while requests are under way and not while a signature is awaited.
    pub(crate) async fn place(
        &self,
        namespace: &str,
    ) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let own = {
            let mut projects = self.of_projects.lock();
            Arc::clone(
                projects
                    .entry(namespace.to_owned())
                    .or_insert_with(|| Arc::new(Semaphore::new(OF_ONE_PROJECT))),
            )
        };
        let own = own.acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some((own, of_all))
    }
}

#[cfg(test)]
mod tests;
