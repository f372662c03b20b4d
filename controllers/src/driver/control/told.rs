//! A failure of a reconcile that comes back is in the status of its object, whatever its kind, and in an Event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use emco_crds::Project;
use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use kube::runtime::{reflector, watcher};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::control;
use crate::api::account::Account;
use crate::api::{ApiError, ApiServer, ApiServerExt, Method, Request, WatchEvent};
use crate::driver::metrics::Metrics;
use crate::memory::MemoryServer;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile_tests::{Log, Rig};

const PROJECTS: &str = "/apis/emco.io/v1alpha1/projects";
const PATH: &str = "/apis/emco.io/v1alpha1/projects/team-a";

/// A controller of Projects on a hub in memory.
struct Bench {
    hub: MemoryServer,
    /// The number of reconciles that fail from now on.
    fails: Arc<AtomicUsize>,
    /// Whether the status is a warning.
    warns: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
    _stop: DropGuard,
}

/// Between the time at which objects are made and the clock.
const OLD: Duration = Duration::from_secs(1_795_000_000 - 1_767_225_600);

/// A reconcile that writes that all is well, or not, and fails afterwards while it has to.
async fn reconciled(
    ctx: Arc<Context>,
    (fails, failure): (Arc<AtomicUsize>, fn() -> Failure),
    warns: Arc<AtomicBool>,
) -> Reconciled {
    let project: Project = ctx.hub().get_as(PATH).await?.unwrap();
    let mut status = project.status.clone().unwrap_or_default();
    let warns = warns.load(Ordering::Relaxed);
    let state = if warns { ReadyState::Waiting } else { ReadyState::Ready };
    let reason = if warns { "NamespaceTaken" } else { "NamespaceReady" };
    status::set_ready(&ctx, &mut status, 1, &state, reason, "");
    status::write(&ctx, &project, project.status.as_ref(), &status).await?;
    let left = fails.load(Ordering::Relaxed);
    fails.store(left.saturating_sub(1), Ordering::Relaxed);
    if left > 0 { Err(failure()) } else { Ok(Outcome::Settled) }
}

fn full() -> Failure {
    Failure::Stored("the disk is full".to_owned())
}

fn forbidden() -> Failure {
    Failure::Hub(ApiError::Status {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "secrets is forbidden".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    })
}

impl Bench {
    async fn begin(fails: usize) -> Self {
        Self::made((fails, full), (OLD, false)).await
    }

    /// With a project of this age, whose status is a warning or not.
    async fn made((fails, failure): (usize, fn() -> Failure), (age, warns): (Duration, bool)) -> Self {
        let mut rig = Rig::new();
        rig.ctx.account = Account::parse("system:serviceaccount:emco-system:emco-operator");
        rig.clock.back(OLD.saturating_sub(age));
        rig.see();
        for kind in crate::stores::KINDS {
            rig.ctx.stores.listed.done(kind);
        }
        let hub = rig.hub.clone();
        let request =
            Request::new(Method::Get, PROJECTS).query("resourceVersion", hub.revision().to_string());
        let mut events = hub.watch(request).await.unwrap();
        let kind = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": "team-a"}, "spec": {}});
        hub.put("test", &kind);
        let (store, mut writer) = reflector::store::<Project>();
        let (sender, stream) = mpsc::unbounded();
        tokio::spawn(async move {
            writer.apply_watcher_event(&watcher::Event::Init);
            writer.apply_watcher_event(&watcher::Event::InitDone);
            while let Some(Ok(WatchEvent::Applied(object))) = events.next().await {
                let project: Project = serde_json::from_value(object).unwrap();
                writer.apply_watcher_event(&watcher::Event::Apply(project.clone()));
                let _ = sender.unbounded_send(Ok(project));
            }
        });
        let (fails, looks) = (Arc::new(AtomicUsize::new(fails)), Arc::new(AtomicUsize::new(0)));
        let stop = CancellationToken::new();
        let (to_come, looked) = (Arc::clone(&fails), Arc::clone(&looks));
        let warns = Arc::new(AtomicBool::new(warns));
        let warned = Arc::clone(&warns);
        let reconcile = move |ctx: Arc<Context>, _: String, _: String| {
            looked.fetch_add(1, Ordering::Relaxed);
            reconciled(ctx, (Arc::clone(&to_come), failure), Arc::clone(&warned)).boxed()
        };
        let parts = (Arc::new(rig.ctx), Metrics::new("1.0.0", "abc"));
        let asked = futures::stream::pending();
        tokio::spawn(control(
            stream,
            store,
            asked,
            parts,
            ("Project", 1, Duration::ZERO),
            reconcile,
            stop.clone(),
        ));
        Self { hub, fails, warns, looks, _stop: stop.drop_guard() }
    }

    /// Status, reason and message of the condition Ready.
    fn ready(&self) -> [String; 3] {
        let object = self.hub.object(PATH).unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
        ["status", "reason", "message"].map(|key| ready[key].as_str().unwrap_or_default().to_owned())
    }

    /// Events of type Warning that tell of failures.
    fn warnings(&self) -> usize {
        self.warned("ReconcileFailed")
    }

    /// Events of type Warning with this reason.
    fn warned(&self, reason: &str) -> usize {
        let warns = |event: &&Value| event["reason"] == reason && event["type"] == "Warning";
        self.hub.of_kind("Event").iter().filter(warns).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_fails_again_and_again_is_told_until_it_works() {
    let bench = Bench::begin(1000).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let told = "the disk is full; it is tried again by itself";
    assert_eq!(bench.ready(), ["False", "ReconcileFailed", told]);
    assert_eq!(bench.warnings(), 1);
    let looks = bench.looks.load(Ordering::Relaxed);
    assert!(looks < 20, "pauses grow: {looks}");
    let written = bench.hub.revision();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(bench.hub.revision(), written, "what is said is not written again");
    bench.fails.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(bench.ready()[0], "True");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_fails_once_is_no_news() {
    let bench = Bench::begin(1).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!((bench.ready()[0].as_str(), bench.warnings()), ("True", 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_new_object_warns_of_is_told_only_where_it_stays() {
    for (age, passes, at_once, in_the_end) in
        [(OLD, false, 1, 1), (Duration::ZERO, false, 0, 1), (Duration::ZERO, true, 0, 0)]
    {
        let bench = Bench::made((0, full), (age, true)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(bench.ready()[1], "NamespaceTaken", "the status says it at once");
        assert_eq!(bench.warned("NamespaceTaken"), at_once);
        bench.warns.store(!passes, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(bench.warned("NamespaceTaken"), in_the_end, "{age:?} {passes}");
        assert_eq!(bench.ready()[0] == "True", passes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_a_new_object_waits_for_some_seconds_is_no_failure() {
    for (age, fails) in [(Duration::ZERO, false), (OLD, true)] {
        let log = Log::begin();
        let bench = Bench::made((4, forbidden), (age, false)).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(bench.ready()[0], "True");
        let (said, looks) = (log.take(), bench.looks.load(Ordering::Relaxed));
        let told = said.lines().filter(|line| line.starts_with("WARN"));
        assert_eq!(
            told.filter(|line| line.contains("a reconcile failed kind=Project")).count() > 0,
            fails,
            "{said}"
        );
        assert!(looks > 4, "it was tried again: {looks}");
    }
}
