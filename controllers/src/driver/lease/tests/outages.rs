//! A hub that is down, hangs or answers by halves, and what its holder and its standby make of that.

use super::*;
use crate::memory::Watching;

#[tokio::test(start_paused = true)]
async fn a_hub_that_does_not_answer_closes_the_fence_before_the_lease_ends() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let fence = elector.fence();
    let mut leading = elector.acquire().await;
    keep_for(&mut leading, Duration::from_millis(2_050)).await;
    let renewed = Instant::now();
    hub.set_down(true);
    let watch = async {
        sleep(Duration::from_millis(9_500)).await;
        let time = fence.grant().expect("the lease is held for longer than its margin");
        assert!(time < secs(3) && time > secs(2), "{time:?}");
        sleep(Duration::from_millis(1_000)).await;
        assert!(!fence.may_write(), "3 s before the end nothing may be sent any more");
    };
    let (lost, ()) = tokio::join!(leading.keep(), watch);
    assert!(matches!(lost, Lost::Expired { .. }), "{lost}");
    assert!(lost.to_string().contains("the server is down"), "{lost}");
    assert!(renewed.elapsed() <= secs(30), "{:?}", renewed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_is_survived() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let mut leading = elector.acquire().await;
    let outage = async {
        sleep(secs(6)).await;
        hub.set_down(true);
        sleep(secs(9)).await;
        hub.set_down(false);
    };
    tokio::join!(keep_for(&mut leading, secs(60)), outage);
    assert!(elector.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_lease_is_survived_if_nobody_took_it() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let fence = elector.fence();
    let mut leading = elector.acquire().await;
    let outage = async {
        sleep(secs(6)).await;
        hub.set_down(true);
        sleep(secs(20)).await;
        assert!(!fence.may_write(), "others may have the lease");
        hub.set_down(false);
    };
    tokio::join!(keep_for(&mut leading, secs(60)), outage);
    assert!(fence.may_write());
    assert_eq!(lease(&hub)["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_standby_leaves_the_lease_to_its_holder_after_an_outage_of_the_hub() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    let mut leading = first.acquire().await;
    let outages = async {
        for seconds in [14, 17, 22, 25] {
            sleep(secs(6)).await;
            hub.set_down(true);
            sleep(secs(seconds)).await;
            hub.set_down(false);
        }
        sleep(secs(20)).await;
    };
    tokio::select! {
        () = outages => {}
        lost = leading.keep() => panic!("{lost}"),
        _ = second.acquire() => panic!("it was taken from a holder that lives"),
    }
    assert!(first.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_cut_off_gives_way_to_who_took_the_lease() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    let mut leading = first.acquire().await;
    // Only the renewals of the first one fail; it goes on trying when the lease is over for others.
    let mine = first.identity().to_owned();
    hub.faults(Some(Arc::new(move |request, _| {
        let (_, body) = request.body.as_ref()?;
        String::from_utf8_lossy(body).contains(&mine).then(|| {
            Fault::Refuse(ApiError::Unreachable { reason: "Timeout", message: "cut off".to_owned() })
        })
    })));
    let died = Instant::now();
    let overlap = async {
        loop {
            assert!(!(first.fence().may_write() && second.fence().may_write()));
            sleep(Duration::from_millis(50)).await;
        }
    };
    let both = async {
        let taken = async {
            let epoch = second.acquire().await.epoch();
            (epoch, died.elapsed())
        };
        tokio::join!(leading.keep(), taken)
    };
    tokio::select! {
        () = overlap => {}
        (lost, (epoch, after)) = both => {
            assert!(matches!(lost, Lost::Taken { .. }), "{lost}");
            assert!(epoch == 2 && after >= secs(13) && after < secs(14), "{epoch} {after:?}");
        }
    }
    assert!(!first.fence().may_write() && second.fence().may_write());
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_waited_out_where_no_watch_works() {
    for watching in
        [Watching::Gone, Watching::GoneLater, Watching::Refused, Watching::Empty, Watching::Silent]
    {
        let (hub, clock) = (hub().await, TestClock::new());
        let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
        drop(first.acquire().await);
        hub.set_watching(watching);
        let died = Instant::now();
        let taken = timeout(secs(60), second.acquire()).await.map(|leading| leading.epoch());
        assert_eq!(taken, Ok(2), "{watching:?}");
        assert!(
            died.elapsed() >= secs(13) && died.elapsed() <= secs(15),
            "{watching:?} {:?}",
            died.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_waited_out_where_every_other_read_fails() {
    let (hub, clock) = (hub().await, TestClock::new());
    let (first, second) = (elector(&hub, &clock, 0), elector(&hub, &clock, 0));
    drop(first.acquire().await);
    hub.set_watching(Watching::Gone);
    let fails = AtomicBool::new(false);
    hub.faults(Some(Arc::new(move |request, _| {
        (request.method == Method::Get && fails.fetch_xor(true, Ordering::Relaxed)).then(|| {
            Fault::Refuse(ApiError::Unreachable { reason: "Timeout", message: "cut off".to_owned() })
        })
    })));
    let died = Instant::now();
    let taken = timeout(secs(90), second.acquire()).await.map(|leading| leading.epoch());
    assert_eq!(taken, Ok(2));
    // A holder that lives would have given it up.
    assert!(died.elapsed() >= secs(30) && died.elapsed() <= secs(36), "{:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_404_that_does_not_name_the_lease_does_not_end_its_holder() {
    let (hub, clock) = (hub().await, TestClock::new());
    let elector = elector(&hub, &clock, 0);
    let mut leading = elector.acquire().await;
    let proxy = async {
        sleep(secs(6)).await;
        hub.faults(Some(Arc::new(|request, _| {
            (request.method == Method::Put).then(|| Fault::Refuse(no_page()))
        })));
        sleep(secs(9)).await;
        hub.faults(None);
    };
    tokio::join!(keep_for(&mut leading, secs(60)), proxy);
    assert!(elector.fence().may_write());
    hub.remove(PATH);
    assert!(matches!(leading.keep().await, Lost::Deleted(_)), "what the hub names is believed");
}

fn no_page() -> ApiError {
    ApiError::Status {
        code: 404,
        reason: String::new(),
        message: "404 page not found".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}
