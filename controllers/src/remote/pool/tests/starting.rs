//! API servers that start: they answer before they know all of their kinds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::api::Api;
use super::{Bed, State};
use crate::api::world::Edges;
use crate::remote::claim::Claim;

fn kinds(bed: &Bed) -> Vec<String> {
    let apis = bed.seen().apis.clone().unwrap();
    apis.resources.iter().filter(|r| r.group.is_empty()).map(|r| r.kind.clone()).collect()
}

#[tokio::test]
async fn a_server_that_is_not_ready_is_not_connected_before_it_is() {
    let (bed, api) = (Bed::new(), Api::new(true));
    api.ready.store(false, Ordering::SeqCst);
    api.kinds.lock().clear();
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let message = bed.failed("ServerError").await;
    assert!(message.contains("/readyz answers 500"), "{message}");
    assert!(bed.seen().apis.is_none() && bed.pool.get(&bed.id).is_none());
    api.kinds.lock().push("ConfigMap");
    api.ready.store(true, Ordering::SeqCst);
    bed.connected().await;
    assert_eq!(kinds(&bed), ["ConfigMap"]);
}

#[tokio::test]
async fn what_a_starting_server_does_not_show_yet_stays_known() {
    let (bed, api) = (Bed::impatient(), Api::new(true));
    api.kinds.lock().push("Widget");
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    assert_eq!(kinds(&bed), ["ConfigMap", "Widget"]);
    api.silent.store(true, Ordering::SeqCst);
    bed.failed("Timeout").await;
    api.ready.store(false, Ordering::SeqCst);
    api.kinds.lock().pop();
    api.silent.store(false, Ordering::SeqCst);
    bed.connected().await;
    assert!(api.count("/readyz") > 1);
    assert_eq!(kinds(&bed), ["ConfigMap", "Widget"]);
    assert_eq!(bed.seen().claim, Claim::Absent, "what is refused while it starts says nothing");
}

#[tokio::test]
async fn a_kind_that_vanished_is_kept_for_a_while_and_then_forgotten() {
    let (bed, api) = (Bed::with(|s| s.keep_vanished = Duration::from_millis(400)), Api::new(true));
    api.kinds.lock().push("Widget");
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    api.kinds.lock().pop();
    let asked = api.count("/readyz");
    crate::remote::Connections::refresh_apis(&*bed.pool, &bed.id);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while api.count("/readyz") == asked && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(kinds(&bed), ["ConfigMap", "Widget"]);
    let forgotten = |seen: &super::Observation| {
        seen.apis.as_ref().is_some_and(|apis| apis.resources.iter().all(|r| r.kind != "Widget"))
    };
    let seen = bed.until("the end of Widget", forgotten).await;
    assert_eq!(seen.state, State::Connected);
}
