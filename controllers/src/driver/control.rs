//! Reconciles a stream of objects: each one at a time, failures with a growing pause.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use emco_crds::Conditioned;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryStreamExt};
use kube::Resource;
use kube::core::object::HasStatus;
use kube::runtime::controller::{Action, Config, Controller, Error};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::key_queue::Key;
use crate::api::places::{self, Places};
use crate::api::rests::Rests;
use crate::driver::metrics::{Metrics, ReconcileResult};
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::meta::{name, namespace, uid};
use crate::object::{status, transitions};
use crate::reconcile::context::Context;
use crate::tenancy::namespace_access;

/// Pause after the first failure; doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Pause after losing a race with another write: the watch has brought it by then, or brings it any moment.
const A_MOMENT: Duration = Duration::from_millis(10);
/// Pause where a right is on its way that we gave ourselves.
const RIGHTS_COME: Duration = Duration::from_millis(500);
/// Races lost in a row before the next one counts, and is logged, as a failure.
const QUICK_TRIES: u32 = 3;

/// How many reconciles run.
static RUNNING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);

/// Waits until no reconcile runs.
pub async fn idle() {
    // The sender is never dropped.
    let _ = RUNNING.subscribe().wait_for(|running| *running == 0).await;
}

struct Shared<F> {
    ctx: Arc<Context>,
    metrics: Arc<Metrics>,
    kind: &'static str,
    reconcile: F,
    places: Arc<Places>,
    rests: Rests,
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

/// Runs a controller until `stop`; metrics have its `kind`. Every change of an object is looked at, those of its status by ourselves too: a status that
/// was worked out while the store had an older one is compared with what is really stored then. (Filtered, a status that went
/// from one value to another and back within a moment would stay at the other.)
pub async fn control<K, F>(
    stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
    store: Store<K>,
    enqueued: impl Stream<Item = ObjectRef<K>> + Send + 'static,
    (ctx, metrics): (Arc<Context>, Arc<Metrics>),
    (kind, at_once, apart): (&'static str, u16, Duration),
    reconcile: F,
    stop: CancellationToken,
) where
    K: Resource<DynamicType = ()>
        + HasStatus
        + Clone
        + Serialize
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
    K::Status: Conditioned + Serialize + Clone + Default + Send + Sync,
    K::DynamicType: Eq + Hash + Clone + Debug + Unpin,
    F: Fn(Arc<Context>, String, String) -> BoxFuture<'static, Reconciled> + Send + Sync + 'static,
{
    let queued = |object: &K| (namespace(object).to_owned(), name(object).to_owned());
    let (changed, asked, queue) = (Arc::clone(&metrics), Arc::clone(&metrics), Arc::clone(&metrics));
    let stream = stream.inspect_ok(move |object| changed.queue().woken(kind, queued(object)));
    let enqueued = enqueued.inspect(move |object| asked.queue().woken(kind, key_of(object)));
    let places = Arc::new(Places::new(at_once));
    let enqueued = futures::stream::select(enqueued, places.freed.stream::<K>());
    let rests = Rests::new(apart);
    let shared = Arc::new(Shared { ctx, metrics, kind, reconcile, places, rests });
    let gone = Arc::clone(&shared);
    Controller::for_stream(stream, store)
        .with_config(Config::default().concurrency(at_once))
        .reconcile_on(enqueued)
        .graceful_shutdown_on(async move { stop.cancelled().await })
        .run(step::<K, F>, pause::<K, F>, shared)
        .for_each(move |result| {
            if let Err(Error::ObjectNotFound(object)) = &result {
                let key = (object.namespace.clone().unwrap_or_default(), object.name.clone());
                queue.queue().gone(kind, &key);
                gone.rests.gone(&key);
                forget(&gone.ctx, kind, &key);
            }
            futures::future::ready(())
        })
        .await;
}

/// Forgets an object that is not there, whoever asked for it: also one that never was.
fn forget(ctx: &Context, kind: &str, key: &Key) {
    ctx.failing.ended(kind, key);
    match kind {
        "DeploymentIntentGroup" => ctx.looks.gone(key),
        "LogicalCloud" => ctx.cloud_looks.gone(key),
        "Cluster" => ctx.accesses.gone(key),
        _ => {}
    }
}

fn key_of<K: Resource>(object: &ObjectRef<K>) -> Key {
    (object.namespace.clone().unwrap_or_default(), object.name.clone())
}

async fn step<K, F>(object: Arc<K>, shared: Arc<Shared<F>>) -> Result<Action, Failure>
where
    K: Resource<DynamicType = ()> + HasStatus + Serialize,
    K::Status: Conditioned + Serialize + Clone + Default,
    F: Fn(Arc<Context>, String, String) -> BoxFuture<'static, Reconciled>,
{
    let _counted = Counted::new();
    let key = (namespace(object.as_ref()).to_owned(), name(object.as_ref()).to_owned());
    // Until everything was listed once, a missing object proves nothing, and nobody may act on it.
    shared.ctx.stores.loaded().await;
    // Who gets none is queued again when there is one.
    let Some(_place) = shared.places.take(&key) else { return Ok(Action::requeue(places::LOOK_AGAIN)) };
    if let Err(left) = shared.rests.begin(&key) {
        return Ok(Action::requeue(left));
    }
    shared.metrics.queue().begun(shared.kind, &key);
    let begun = std::time::Instant::now();
    let outcome = (shared.reconcile)(Arc::clone(&shared.ctx), key.0.clone(), key.1.clone()).await;
    let outcome = outcome.or_else(|failure| until_rights_come(&shared.ctx, object.as_ref(), failure));
    let result = match &outcome {
        Ok(Outcome::Settled) => ReconcileResult::Settled,
        Ok(Outcome::After(_)) => ReconcileResult::Again,
        Err(failure) => {
            let before = shared.ctx.failing.count(shared.kind, &key);
            if lost_race(before, failure) { ReconcileResult::Conflict } else { ReconcileResult::Failed }
        }
    };
    shared.metrics.reconciled(shared.kind, result, begun.elapsed());
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(failure) => {
            if shared.ctx.failing.failed(shared.kind, &key, &failure) {
                tell(&shared.ctx, object.as_ref()).await;
            }
            return Err(failure);
        }
    };
    if shared.ctx.failing.ended(shared.kind, &key) {
        // The status that was written meanwhile speaks of failures: the next look says how things are.
        return Ok(Action::requeue(A_MOMENT));
    }
    let held = shared.ctx.newborn.left(uid(object.as_ref()));
    if held.is_some_and(|left| left.is_zero()) {
        transitions::tell_held(&shared.ctx, object.as_ref()).await;
    }
    Ok(match outcome.at_latest(held.filter(|left| !left.is_zero())) {
        Outcome::Settled => Action::await_change(),
        Outcome::After(pause) => Action::requeue(pause),
    })
}

/// A right that we gave ourselves a moment ago is no failure while the hub does not heed it yet.
fn until_rights_come<K>(ctx: &Context, object: &K, failure: Failure) -> Reconciled
where
    K: Resource<DynamicType = ()>,
{
    match &failure {
        Failure::Hub(error) if namespace_access::comes_for(ctx, object, error) => {
            let (kind, namespace, name) = (K::kind(&()), namespace(object), name(object));
            tracing::debug!(%kind, namespace, name, %error, "a right is on its way");
            Ok(Outcome::After(RIGHTS_COME))
        }
        _ => Err(failure),
    }
}

/// Writes into the status of an object that its reconcile fails, where it does not say so yet. Where another write was faster, the next
/// failure is told.
async fn tell<K>(ctx: &Context, object: &K)
where
    K: Resource<DynamicType = ()> + HasStatus + Serialize,
    K::Status: Conditioned + Serialize + Clone + Default,
{
    let known = object.status().cloned().unwrap_or_default();
    if let Err(error) = status::write(ctx, object, object.status(), &known).await {
        tracing::debug!(kind = %K::kind(&()), name = name(object), %error, "a failure was not written down");
    }
}

#[allow(clippy::needless_pass_by_value)] // the signature of kube's Controller
fn pause<K, F>(object: Arc<K>, failure: &Failure, shared: Arc<Shared<F>>) -> Action
where
    K: Resource<DynamicType = ()>,
{
    let key = (namespace(object.as_ref()).to_owned(), name(object.as_ref()).to_owned());
    let count = shared.ctx.failing.count(shared.kind, &key);
    if lost_race(count.saturating_sub(1), failure) {
        tracing::debug!(kind = %K::kind(&()), namespace = key.0, name = key.1, %failure, "tried again");
        return Action::requeue(A_MOMENT);
    }
    tracing::warn!(kind = %K::kind(&()), namespace = key.0, name = key.1, %failure, "a reconcile failed");
    let jitter = Duration::from_millis(shared.ctx.world.random.next() % 100);
    Action::requeue(until_again(count, failure) + jitter)
}

/// Whether a reconcile only lost a race with another write. After so many failures in a row it is a failure, too: what is
/// counted as one is logged as one.
fn lost_race(failures: u32, failure: &Failure) -> bool {
    failures < QUICK_TRIES && matches!(failure, Failure::Hub(error) if error.is_conflict())
}

/// After so many failures in a row: a growing pause, and not less than the hub asked for.
fn until_again(count: u32, failure: &Failure) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << count.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    match failure {
        Failure::Hub(error) => doubled.max(error.asks_for()),
        Failure::Stored(_) | Failure::Planning(_) => doubled,
    }
}

#[cfg(test)]
mod missing;
#[cfg(test)]
mod told;

#[cfg(test)]
mod tests {
    use emco_crds::Project;
    use futures::FutureExt;
    use kube::runtime::reflector;
    use parking_lot::Mutex;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::api::ApiError;
    use crate::reconcile_tests::{Log, Rig};

    fn answered(code: u16, retry_after: Option<u64>) -> Failure {
        let (reason, message) = (String::new(), "later".to_owned());
        Failure::Hub(ApiError::Status { code, reason, message, retry_after, causes: Vec::new() })
    }

    #[test]
    fn pauses_grow_and_are_not_shorter_than_the_hub_asks_for() {
        let millis = |count, failure: &Failure| until_again(count, failure).as_millis();
        let plain = answered(503, None);
        assert_eq!(
            [1, 2, 3, 9, 10, u32::MAX].map(|count| millis(count, &plain)),
            [200, 400, 800, 51_200, 60_000, 60_000]
        );
        for code in [429, 503] {
            let busy = answered(code, Some(7));
            assert_eq!([1, 6, 7].map(|count| millis(count, &busy)), [7_000, 7_000, 12_800], "{code}");
            let absurd = answered(code, Some(u64::MAX));
            assert_eq!([1, 20].map(|count| millis(count, &absurd)), [300_000, 300_000], "{code}");
        }
        assert_eq!(millis(1, &Failure::Stored("torn".to_owned())), 200);
    }

    /// When one object is looked at while reconciles are answered so, the last one first; with what was counted.
    async fn looks(mut answers: Vec<Reconciled>) -> (Vec<Instant>, Arc<Metrics>) {
        let wanted = answers.len();
        answers.reverse();
        let mut rig = Rig::new();
        rig.see();
        for kind in crate::stores::KINDS {
            rig.ctx.stores.listed.done(kind);
        }
        let ctx = Arc::new(rig.ctx);
        let (store, mut writer) = reflector::store::<Project>();
        let mut project = Project::new("team-a", emco_crds::project::ProjectSpec::default());
        project.metadata.uid = Some("uid-1".to_owned());
        writer.apply_watcher_event(&watcher::Event::Init);
        writer.apply_watcher_event(&watcher::Event::InitApply(project.clone()));
        writer.apply_watcher_event(&watcher::Event::InitDone);
        let stream = futures::stream::iter([Ok(project)]).chain(futures::stream::pending());
        let (looked, mut looks) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let answers = Arc::new(Mutex::new(answers));
        let reconcile = move |_: Arc<Context>, _: String, _: String| -> BoxFuture<'static, Reconciled> {
            looked.send(Instant::now()).unwrap();
            let answer = answers.lock().pop().unwrap_or(Ok(Outcome::Settled));
            Box::pin(futures::future::ready(answer))
        };
        let metrics = Metrics::new("1.0.0", "abc");
        let controller = tokio::spawn(control(
            stream,
            store,
            futures::stream::pending(),
            (ctx, Arc::clone(&metrics)),
            ("Project", 1, Duration::ZERO),
            reconcile,
            stop.clone(),
        ));
        let mut times = Vec::new();
        while times.len() < wanted {
            times.push(looks.recv().await.unwrap());
        }
        stop.cancel();
        controller.await.unwrap();
        (times, metrics)
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_looked_at_again_when_the_overloaded_hub_said() {
        let answers = vec![Err(answered(503, Some(40))), Err(answered(429, Some(9))), Ok(Outcome::Settled)];
        let (times, _) = looks(answers).await;
        let between: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert_eq!(between, [40, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_an_object_that_is_gone_are_forgotten() {
        let rig = Rig::new();
        for kind in crate::stores::KINDS {
            rig.ctx.stores.listed.done(kind);
        }
        let mut project = Project::new("team-a", emco_crds::project::ProjectSpec::default());
        project.metadata.uid = Some("uid-1".to_owned());
        let (store, mut writer) = reflector::store::<Project>();
        writer.apply_watcher_event(&watcher::Event::Init);
        writer.apply_watcher_event(&watcher::Event::InitApply(project.clone()));
        writer.apply_watcher_event(&watcher::Event::InitDone);
        let reconcile = |_: Arc<Context>, _: String, _: String| -> BoxFuture<'static, Reconciled> {
            Box::pin(futures::future::ready(Err(answered(503, None))))
        };
        let (ctx, metrics) = (Arc::new(rig.ctx), Metrics::new("1.0.0", "abc"));
        let key = (String::new(), "team-a".to_owned());
        let stream = futures::stream::iter([Ok(project.clone())]).chain(futures::stream::pending());
        let stop = CancellationToken::new();
        let parts = (Arc::clone(&ctx), metrics);
        let none = futures::stream::pending();
        let controller =
            control(stream, store, none, parts, ("Project", 1, Duration::ZERO), reconcile, stop.clone());
        let controller = tokio::spawn(controller);
        tokio::time::sleep(LONGEST_PAUSE).await;
        assert!(ctx.failing.count("Project", &key) > 0);
        writer.apply_watcher_event(&watcher::Event::Delete(project));
        tokio::time::sleep(LONGEST_PAUSE * 2).await;
        assert_eq!(ctx.failing.count("Project", &key), 0, "it is gone");
        stop.cancel();
        controller.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_race_is_counted_as_a_failure_only_when_it_is_logged() {
        let log = Log::begin();
        let lost = || Err(answered(409, None));
        let (_, metrics) = looks(vec![lost(), lost(), lost(), Ok(Outcome::Settled)]).await;
        let counted = |metrics: &Metrics, result: &str| {
            let line = format!("emco_reconciles_total{{kind=\"Project\",result=\"{result}\"}} ");
            let page = metrics.page().unwrap();
            page.lines().find_map(|found| found.strip_prefix(&line).map(str::to_owned))
        };
        assert_eq!(counted(&metrics, "conflict").as_deref(), Some("3"));
        assert_eq!(counted(&metrics, "failed"), None);
        assert_eq!(log.take(), "");
        let (_, metrics) = looks(vec![lost(), lost(), lost(), lost(), Ok(Outcome::Settled)]).await;
        assert_eq!(counted(&metrics, "conflict").as_deref(), Some("3"));
        assert_eq!(counted(&metrics, "failed").as_deref(), Some("1"));
        let said = log.take();
        assert!(said.starts_with("WARN") && said.contains("a reconcile failed kind=Project"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }

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
