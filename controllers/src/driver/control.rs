//! A stream of objects in, reconciles out: each object one at a time, failures with a growing pause.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryStreamExt};
use kube::Resource;
use kube::runtime::controller::{Action, Config, Controller, Error};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Failure, Outcome, Reconciled};
use crate::metrics::{Metrics, ReconcileResult};
use crate::objects::{name, namespace};
use crate::wakes::Key;

/// Pause after the first failure; doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Pause after losing a race with another write: the watch has brought it by then, or brings it any moment.
const A_MOMENT: Duration = Duration::from_millis(10);
/// Races lost in a row before that counts as a failure.
const QUICK_TRIES: u32 = 3;

/// How many reconciles run.
static RUNNING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);

/// Waits until no reconcile runs.
pub async fn idle() {
    // The sender is never dropped.
    let _ = RUNNING.subscribe().wait_for(|running| *running == 0).await;
}

/// Kinds as metrics name them.
const KINDS: [&str; 8] = [
    "ClusterProvider",
    "Cluster",
    "Project",
    "LogicalCloud",
    "CompositeApp",
    "CompositeProfile",
    "DeploymentIntentGroup",
    "DeploymentApproval",
];

struct Shared<F> {
    ctx: Arc<Context>,
    metrics: Arc<Metrics>,
    kind: &'static str,
    reconcile: F,
    failures: Mutex<BTreeMap<Key, u32>>,
}

struct Counted;

impl Counted {
    fn new() -> Self {
        RUNNING.send_modify(|running| *running += 1);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.send_modify(|running| *running = running.saturating_sub(1));
    }
}

/// Runs a controller until `stop`. Every change of an object is looked at, those of its status by ourselves too: a status that
/// was worked out while the store had an older one is compared with what is really stored then. (Filtered, a status that went
/// from one value to another and back within a moment would stay at the other.)
pub async fn control<K, F>(
    stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
    store: Store<K>,
    woken: impl Stream<Item = ObjectRef<K>> + Send + 'static,
    (ctx, metrics): (Arc<Context>, Arc<Metrics>),
    at_once: u16,
    reconcile: F,
    stop: CancellationToken,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin,
    F: Fn(Arc<Context>, String, String) -> BoxFuture<'static, Reconciled> + Send + Sync + 'static,
{
    let kind: &'static str = KINDS.iter().find(|kind| **kind == K::kind(&())).copied().unwrap_or("Other");
    let queued = |object: &K| (namespace(object).to_owned(), name(object).to_owned());
    let (changed, asked, queue) = (Arc::clone(&metrics), Arc::clone(&metrics), Arc::clone(&metrics));
    let stream = stream.inspect_ok(move |object| changed.queue().woken(kind, queued(object)));
    let woken = woken.inspect(move |object| asked.queue().woken(kind, key_of(object)));
    let shared = Arc::new(Shared { ctx, metrics, kind, reconcile, failures: Mutex::default() });
    Controller::for_stream(stream, store)
        .with_config(Config::default().concurrency(at_once))
        .reconcile_on(woken)
        .graceful_shutdown_on(async move { stop.cancelled().await })
        .run(step::<K, F>, pause::<K, F>, shared)
        .for_each(move |result| {
            // What went before its turn came.
            if let Err(Error::ObjectNotFound(object)) = &result {
                let namespace = object.namespace.clone().unwrap_or_default();
                queue.queue().gone(kind, &(namespace, object.name.clone()));
            }
            futures::future::ready(())
        })
        .await;
}

fn key_of<K: Resource>(object: &ObjectRef<K>) -> Key {
    (object.namespace.clone().unwrap_or_default(), object.name.clone())
}

async fn step<K, F>(object: Arc<K>, shared: Arc<Shared<F>>) -> Result<Action, Failure>
where
    K: Resource<DynamicType = ()>,
    F: Fn(Arc<Context>, String, String) -> BoxFuture<'static, Reconciled>,
{
    let _counted = Counted::new();
    let key = (namespace(object.as_ref()).to_owned(), name(object.as_ref()).to_owned());
    // Until everything was listed once, a missing object proves nothing, and nobody may act on it.
    shared.ctx.stores.loaded().await;
    shared.metrics.queue().begun(shared.kind, &key);
    let begun = std::time::Instant::now();
    let outcome = (shared.reconcile)(Arc::clone(&shared.ctx), key.0.clone(), key.1.clone()).await;
    let result = match &outcome {
        Ok(Outcome::Settled) => ReconcileResult::Settled,
        Ok(Outcome::After(_)) => ReconcileResult::Again,
        Err(_) => ReconcileResult::Failed,
    };
    shared.metrics.reconciled(shared.kind, result, begun.elapsed());
    let outcome = outcome?;
    shared.failures.lock().remove(&key);
    Ok(match outcome {
        Outcome::Settled => Action::await_change(),
        Outcome::After(pause) => Action::requeue(pause),
    })
}

#[allow(clippy::needless_pass_by_value)] // the signature of kube's Controller
fn pause<K, F>(object: Arc<K>, failure: &Failure, shared: Arc<Shared<F>>) -> Action
where
    K: Resource<DynamicType = ()>,
{
    let key = (namespace(object.as_ref()).to_owned(), name(object.as_ref()).to_owned());
    let mut failures = shared.failures.lock();
    let count = failures.entry(key.clone()).or_insert(0);
    *count = count.saturating_add(1);
    let count = *count;
    let doubled = FIRST_PAUSE.saturating_mul(1 << (count - 1).min(16)).min(LONGEST_PAUSE);
    drop(failures);
    let jitter = Duration::from_millis(shared.ctx.world.random.next() % 100);
    let conflict = matches!(failure, Failure::Hub(error) if error.is_conflict());
    if conflict {
        tracing::debug!(kind = %K::kind(&()), namespace = key.0, name = key.1, %failure, "tried again");
        if count <= QUICK_TRIES {
            return Action::requeue(A_MOMENT);
        }
    } else {
        tracing::warn!(kind = %K::kind(&()), namespace = key.0, name = key.1, %failure, "a reconcile failed");
    }
    Action::requeue(doubled + jitter)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn idle_is_told_by_the_last_reconcile_that_ends() {
        let (one, two) = (Counted::new(), Counted::new());
        let idle = tokio::spawn(idle());
        tokio::task::yield_now().await;
        drop(one);
        tokio::task::yield_now().await;
        assert!(!idle.is_finished());
        drop(two);
        idle.await.unwrap();
        assert_eq!(super::idle().now_or_never(), Some(()), "nothing runs");
    }
}
