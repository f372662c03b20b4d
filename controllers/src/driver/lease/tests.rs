//! Candidates around one Lease on a server in memory, with clocks that tests move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::api::world::system::SystemRandom;
use crate::api::{ApiServerExt, Method};
use crate::driver::installation::ensure_namespace;
use crate::memory::{Fault, MemoryServer};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/emco-system/leases/emco-operator";

/// Goes with tokio's (paused) time, and jumps where a machine sleeps while its timers stand still.
struct TestClock {
    start: Instant,
    slept_ms: AtomicU64,
}

impl TestClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), slept_ms: AtomicU64::new(0) })
    }

    fn sleep_machine(&self, time: Duration) {
        self.slept_ms.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl BootClock for TestClock {
    fn now(&self) -> Duration {
        self.start.elapsed() + Duration::from_millis(self.slept_ms.load(Ordering::Relaxed))
    }
}

/// A wall clock that is wrong by hours and stands still: nothing may depend on it.
struct WrongClock(i64);

impl Clock for WrongClock {
    fn now_ms(&self) -> i64 {
        1_790_000_000_000 + self.0 * 3_600_000
    }
}

async fn hub() -> MemoryServer {
    let hub = MemoryServer::new();
    ensure_namespace(&hub, "emco-system").await.unwrap();
    hub
}

fn elector(hub: &MemoryServer, clock: &Arc<TestClock>, hours: i64) -> Elector {
    let identity = Identity::ephemeral(&SystemRandom::new());
    with_identity(hub, clock, hours, identity)
}

fn with_identity(hub: &MemoryServer, clock: &Arc<TestClock>, hours: i64, identity: Identity) -> Elector {
    let settings = LeaseSettings::of("emco-system");
    Elector::new(Arc::new(hub.clone()), clock.clone(), Arc::new(WrongClock(hours)), identity, settings)
}

fn lease(hub: &MemoryServer) -> Value {
    hub.object(PATH).unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Keeps a lease for a while, which must not lose it.
async fn keep_for(leading: &mut Leading<'_>, time: Duration) {
    if let Ok(lost) = timeout(time, leading.keep()).await {
        panic!("{lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_candidate_makes_the_lease_and_renews_it_every_2_s() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let fence = elector.fence();
    assert!(!fence.may_write());
    let mut leading = elector.acquire().await;
    assert!(fence.may_write());
    assert_eq!(leading.epoch(), 1);
    let spec = lease(&hub)["spec"].clone();
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseDurationSeconds"]),
        (&json!(elector.identity()), &json!(13))
    );
    assert_eq!(spec["leaseTransitions"], 1);
    let time = spec["renewTime"].as_str().unwrap();
    assert_eq!(time.len(), "2026-11-21T11:20:00.000000Z".len(), "{time}");
    assert!(time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    hub.take_seen();
    keep_for(&mut leading, secs(301)).await;
    assert_eq!(hub.writes().len(), 150);
    assert!(hub.take_seen().iter().all(|seen| seen.method == Method::Put));
    assert!(fence.may_write());
}

#[tokio::test(start_paused = true)]
async fn a_second_candidate_stands_by_without_asking_and_takes_what_is_released() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 9), elector(&hub, &TestClock::new(), -9));
    let mut leading = first.acquire().await;
    let standby = async {
        let leading = second.acquire().await;
        (leading.epoch(), Instant::now())
    };
    let holder = async {
        sleep(secs(1)).await;
        hub.take_seen();
        keep_for(&mut leading, secs(300)).await;
        assert!(!second.fence().may_write());
        let reads = hub.take_seen().iter().filter(|seen| seen.method == Method::Get).count();
        assert_eq!(reads, 0, "a standby only listens while the lease is renewed");
        leading.release().await;
        assert!(!first.fence().may_write());
        Instant::now()
    };
    let ((epoch, taken), released) = tokio::join!(standby, holder);
    assert_eq!(epoch, 2);
    assert!(taken - released < secs(1), "{:?}", taken - released);
    assert_eq!(lease(&hub)["spec"]["holderIdentity"], second.identity());
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_waited_out_by_our_own_clock_and_never_overlaps() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 24));
    let died = Instant::now();
    let leading = first.acquire().await;
    drop(leading);
    let overlap = async {
        // As long as the first may write, the second may not.
        loop {
            assert!(!(first.fence().may_write() && second.fence().may_write()));
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = overlap => {}
        leading = second.acquire() => assert_eq!(leading.epoch(), 2),
    }
    assert!(died.elapsed() >= secs(13) && died.elapsed() < secs(14), "{:?}", died.elapsed());
    assert!(!first.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_the_same_identity_takes_over_at_once_in_a_higher_epoch() {
    let (hub, clock) = (hub().await, TestClock::new());
    let dir = tempfile::tempdir().unwrap();
    let random = SystemRandom::new();
    let name = {
        let killed = with_identity(&hub, &clock, 0, Identity::claim(dir.path(), &random).unwrap());
        assert_eq!(killed.acquire().await.epoch(), 1);
        killed.identity().to_owned()
    };
    let identity = Identity::claim(dir.path(), &random).unwrap();
    assert_eq!(identity.as_str(), name);
    let again = with_identity(&hub, &clock, 0, identity);
    let start = Instant::now();
    assert_eq!(again.acquire().await.epoch(), 2);
    assert!(start.elapsed() < secs(1));
}

#[test]
fn an_identity_in_use_is_not_given_out_twice() {
    let dir = tempfile::tempdir().unwrap();
    let random = SystemRandom::new();
    let first = Identity::claim(dir.path(), &random).unwrap();
    let second = Identity::claim(dir.path(), &random).unwrap();
    assert!(first.is_kept() && !second.is_kept());
    assert_ne!(first.as_str(), second.as_str());
    drop((first, second));
    assert!(Identity::claim(dir.path(), &random).unwrap().is_kept());
}

#[test]
fn a_damaged_identity_is_replaced_and_an_unusable_directory_named() {
    let dir = tempfile::tempdir().unwrap();
    let random = SystemRandom::new();
    for damaged in [&b"x"[..], b"\xff\xfe\xfd", b"0123456789abcdeg", &vec![b'a'; 100_000]] {
        std::fs::write(dir.path().join("identity"), damaged).unwrap();
        let made = Identity::claim(dir.path(), &random).unwrap();
        let name = made.as_str().to_owned();
        drop(made);
        assert_eq!(Identity::claim(dir.path(), &random).unwrap().as_str(), name);
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Identity::claim(&file, &random).unwrap_err();
    assert!(error.contains("--state-dir") && error.contains(&file.display().to_string()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_neither_lose_the_lease_nor_make_two_holders() {
    let (hub, clock) = (hub().await, TestClock::new());
    // Every second write is carried out, and its answer lost: also the one that makes the lease.
    let lose = AtomicBool::new(false);
    hub.faults(Some(Arc::new(move |request, _| {
        (request.method != Method::Get && !lose.fetch_xor(true, Ordering::Relaxed))
            .then_some(Fault::LoseAnswer)
    })));
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    let mut leading = first.acquire().await;
    let epoch = leading.epoch();
    let both = async {
        tokio::join!(keep_for(&mut leading, secs(120)), timeout(secs(120), second.acquire())).1.is_err()
    };
    assert!(both.await, "the second candidate took a lease that was renewed");
    assert_eq!(lease(&hub)["spec"]["leaseTransitions"], epoch);
    assert!(first.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_stopped_finds_its_fence_closed_and_gives_up() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &TestClock::new(), 0));
    let mut leading = first.acquire().await;
    keep_for(&mut leading, secs(11)).await;
    // Its machine sleeps for a minute; the other's does not.
    assert_eq!(second.acquire().await.epoch(), 2);
    clock.sleep_machine(secs(60));
    assert!(!first.fence().may_write());
    hub.take_seen();
    let lost = leading.keep().await;
    assert!(matches!(lost, Lost::Expired { .. }), "{lost}");
    assert!(hub.writes().is_empty(), "a lease that ended is not renewed");
    assert_eq!(lease(&hub)["spec"]["holderIdentity"], second.identity());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_machine_slept_looks_again_before_it_takes() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    let mut leading = first.acquire().await;
    let sleepy = async {
        let mut standby = std::pin::pin!(second.acquire());
        for _ in 0..5 {
            assert!(
                timeout(secs(7), &mut standby).await.is_err(),
                "a lease that was renewed all the time was taken"
            );
            // Nothing of it runs, and its clock goes on.
            sleep(secs(3600)).await;
        }
        assert!(timeout(secs(120), &mut standby).await.is_err());
    };
    tokio::select! {
        () = sleepy => {}
        lost = leading.keep() => panic!("{lost}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_learns_who_took_emptied_or_deleted_its_lease() {
    let taken = json!({"holderIdentity": "else", "leaseTransitions": 9});
    for (change, words) in [
        (Some(taken), "emco-system/emco-operator was taken by else"),
        (Some(json!({"holderIdentity": ""})), "emptied by somebody else"),
        (None, "emco-system/emco-operator was deleted"),
    ] {
        let hub = hub().await;
        let elector = elector(&hub, &TestClock::new(), 0);
        let mut leading = elector.acquire().await;
        if let Some(spec) = change {
            let mut object = lease(&hub);
            object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            hub.replace(PATH, &object).await.unwrap();
        } else {
            hub.remove(PATH);
        }
        let lost = leading.keep().await;
        assert!(lost.to_string().contains(words), "{lost}");
        assert!(!elector.fence().may_write());
    }
}

/// A wall clock that somebody sets.
struct SetClock(std::sync::atomic::AtomicI64);

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_by_hours_neither_loses_nor_takes_the_lease() {
    let (hub, boot) = (hub().await, TestClock::new());
    let wall = Arc::new(SetClock(std::sync::atomic::AtomicI64::new(1_790_000_000_000)));
    let identity = || Identity::ephemeral(&SystemRandom::new());
    let settings = || LeaseSettings::of("emco-system");
    let of =
        |wall: Arc<SetClock>| Elector::new(Arc::new(hub.clone()), boot.clone(), wall, identity(), settings());
    let (first, second) = (of(wall.clone()), of(wall.clone()));
    let mut leading = first.acquire().await;
    let mut waiting = Box::pin(second.acquire());
    for hours in [1, -2, 1] {
        wall.0.fetch_add(hours * 3_600_000, Ordering::Relaxed);
        tokio::select! {
            lost = leading.keep() => panic!("{lost}"),
            _ = &mut waiting => panic!("it was taken from a holder that lives"),
            () = sleep(secs(90)) => {}
        }
        assert!(first.fence().may_write());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_older_than_it_was_ends_the_holder_since_the_hub_went_back_in_time() {
    let hub = hub().await;
    let elector = elector(&hub, &TestClock::new(), 0);
    let mut leading = elector.acquire().await;
    let mut ahead = lease(&hub);
    ahead["metadata"]["resourceVersion"] = json!("900000");
    leading.record = record::Record::new(ahead);
    let lost = leading.keep().await;
    assert!(matches!(lost, Lost::Restored(_)), "{lost}");
    assert!(!elector.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn an_annotation_on_the_lease_does_not_end_it() {
    let hub = hub().await;
    let elector = elector(&hub, &TestClock::new(), 0);
    let mut leading = elector.acquire().await;
    hub.merge(PATH, &json!({"metadata": {"annotations": {"note": "kept"}}})).await.unwrap();
    keep_for(&mut leading, secs(60)).await;
    assert_eq!(lease(&hub)["metadata"]["annotations"]["note"], "kept");
}

fn put_shards(hub: &MemoryServer) {
    for (name, epoch) in [("a", 4), ("b", 17), ("c", 11)] {
        hub.put(
            "t",
            &json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
                "metadata": {"namespace": "default", "name": name}, "spec": {"epoch": epoch},
            }),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_lease_begins_above_the_epochs_of_the_shards_there_are() {
    let hub = hub().await;
    put_shards(&hub);
    let elector = elector(&hub, &TestClock::new(), 0);
    assert_eq!(elector.acquire().await.epoch(), 18);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_older_than_restored_shards_is_taken_above_their_epochs() {
    let (hub, clock) = (hub().await, TestClock::new());
    let before = elector(&hub, &clock, 0);
    let leading = before.acquire().await;
    assert_eq!(leading.epoch(), 1);
    leading.release().await;
    put_shards(&hub);
    let after = elector(&hub, &clock, 0);
    assert_eq!(after.acquire().await.epoch(), 18);
    assert_eq!(lease(&hub)["spec"]["leaseTransitions"], 18);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_taken_while_the_epochs_of_shards_cannot_be_read() {
    let hub = hub().await;
    put_shards(&hub);
    // A server that starts does not serve the kinds of its definitions yet.
    let starting = |code: u16, message: &str| ApiError::Status {
        code,
        reason: "NotFound".to_owned(),
        message: message.to_owned(),
        retry_after: None,
        causes: Vec::new(),
    };
    let missing = starting(404, "the server could not find the requested resource");
    hub.faults(Some(Arc::new(move |request, _| {
        request.path.ends_with("/syncshards").then(|| Fault::Refuse(missing.clone()))
    })));
    let elector = elector(&hub, &TestClock::new(), 0);
    assert!(timeout(secs(60), elector.acquire()).await.is_err());
    assert_eq!(hub.object(PATH), None);
    hub.faults(None);
    assert_eq!(elector.acquire().await.epoch(), 18);
}

#[tokio::test(start_paused = true)]
async fn of_many_candidates_at_once_one_holds() {
    let hub = hub().await;
    let electors: Vec<Elector> = (0..8).map(|_| elector(&hub, &TestClock::new(), 0)).collect();
    let all = electors.iter().map(|elector| async { timeout(secs(10), elector.acquire()).await.is_ok() });
    let held = futures::future::join_all(all).await;
    assert_eq!(held.iter().filter(|held| **held).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_vanished_is_not_made_anew_before_its_holder_must_know() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    let leading = first.acquire().await;
    let deleted = async {
        sleep(secs(3)).await;
        hub.remove(PATH);
        Instant::now()
    };
    let (next, at) = tokio::join!(second.acquire(), deleted);
    assert!(at.elapsed() >= secs(13), "{:?}", at.elapsed());
    assert!(!first.fence().may_write());
    drop((leading, next));
}

mod keeper;
mod outages;
