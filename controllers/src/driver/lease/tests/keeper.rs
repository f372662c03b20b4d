//! A keeper on a thread of its own beside work that never yields, with short times, on a server in memory.

use std::sync::mpsc;

use super::*;
use crate::api::boot_clock::SystemBootClock;
use crate::api::world::system::SystemClock;
use crate::driver::lease::pulse::Pulse;
use crate::driver::lease::{Keeper, Keeping};

/// A lease of 3 s; its end is awaited in real time, since other threads are part of it.
fn settings() -> LeaseSettings {
    LeaseSettings {
        duration: secs(3),
        renew: Duration::from_millis(300),
        retry: Duration::from_millis(100),
        margin: secs(1),
        ..LeaseSettings::of("emco-system")
    }
}

async fn keeper(hub: &MemoryServer, pulse: Arc<Pulse>) -> (Keeper, mpsc::Receiver<Lost>) {
    let (sender, ended) = mpsc::channel();
    let own = hub.clone();
    let keeper = Keeper::start(Keeping {
        connect: Box::new(move || Ok(Arc::new(own))),
        boot: Arc::new(SystemBootClock),
        wall: Arc::new(SystemClock),
        identity: Identity::ephemeral(&SystemRandom::new()),
        settings: settings(),
        pulse,
        end: Box::new(move |lost| sender.send(lost.clone()).unwrap()),
    })
    .await;
    (keeper.unwrap(), ended)
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_work_never_yields() {
    let (hub, pulse) = (hub().await, Arc::new(Pulse::default()));
    let (mut keeper, ended) = keeper(&hub, pulse).await;
    assert_eq!(keeper.acquired().await.unwrap(), 1);
    let fence = keeper.fence();
    let begun = std::time::Instant::now();
    // Twice as long as the lease lasts, on the one thread of this runtime.
    while begun.elapsed() < secs(6) {
        assert!(fence.may_write());
        std::hint::spin_loop();
    }
    assert_eq!(lease(&hub)["spec"]["leaseTransitions"], 1);
    keeper.release().await;
    assert_eq!(lease(&hub)["spec"]["holderIdentity"], "");
    assert!(!fence.may_write() && ended.try_recv().is_err());
}

#[tokio::test]
async fn work_that_does_not_hear_of_the_loss_is_ended_from_outside() {
    let (hub, pulse) = (hub().await, Arc::new(Pulse::default()));
    let (mut keeper, ended) = keeper(&hub, pulse).await;
    keeper.acquired().await.unwrap();
    hub.remove(PATH);
    // The thread of this runtime waits here: nobody hears what the keeper tells.
    let lost = ended.recv_timeout(secs(10)).unwrap();
    assert!(matches!(lost, Lost::Deleted(_)), "{lost}");
    assert!(!keeper.fence().may_write());
    assert_eq!(keeper.lost().await, lost);
}

#[tokio::test]
async fn work_that_ends_when_the_lease_is_lost_is_not_ended_from_outside() {
    let (hub, pulse) = (hub().await, Arc::new(Pulse::default()));
    let (mut keeper, ended) = keeper(&hub, pulse).await;
    keeper.acquired().await.unwrap();
    hub.remove(PATH);
    assert!(matches!(keeper.lost().await, Lost::Deleted(_)));
    keeper.work_ended();
    assert!(ended.recv_timeout(secs(2)).is_err());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_silent_is_ended_before_the_lease_is_over() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let mut leading = elector.acquire().await;
    let (fence, pulse) = (elector.fence(), Arc::new(Pulse::default()));
    let begun = Instant::now();
    hub.set_down(true);
    let lost = tokio::select! {
        lost = leading.keep() => panic!("{lost}"),
        lost = crate::driver::lease::keeper::stalled(&fence, pulse) => lost,
    };
    assert!(matches!(lost, Lost::Stuck(_)), "{lost}");
    assert!(begun.elapsed() < secs(13), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_silent_for_two_minutes_gives_up_a_lease_that_is_renewed() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let mut leading = elector.acquire().await;
    let (fence, pulse) = (elector.fence(), Arc::new(Pulse::default()));
    let begun = Instant::now();
    let lost = tokio::select! {
        lost = leading.keep() => panic!("{lost}"),
        lost = crate::driver::lease::keeper::stalled(&fence, Arc::clone(&pulse)) => lost,
    };
    assert_eq!(lost, Lost::Stuck(120));
    assert!(begun.elapsed() >= secs(120));
    tokio::select! {
        lost = leading.keep() => panic!("{lost}"),
        lost = crate::driver::lease::keeper::stalled(&fence, Arc::clone(&pulse)) => panic!("{lost}"),
        never = pulse.beat() => match never {},
        () = sleep(secs(600)) => {}
    }
}
