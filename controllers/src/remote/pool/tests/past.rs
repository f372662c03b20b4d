//! Stores that are older than they were, other clusters behind a name, and what a claim tells of a cluster's past.

use super::*;

#[tokio::test]
async fn a_restored_store_and_another_cluster_are_listed_afresh() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let first = bed.connected().await.epoch;
    api.revision.store(150, Ordering::SeqCst);
    bed.pool.probe_now(&bed.id);
    api.revision.store(40, Ordering::SeqCst);
    let restored = bed.until("a new epoch", |seen| seen.epoch == first + 1).await;
    assert_eq!(restored.uid.as_deref(), Some("uid-1"));
    *api.uid.lock() = "uid-2".to_owned();
    let other = bed.until("another uid", |seen| seen.uid.as_deref() == Some("uid-2")).await;
    assert_eq!(other.epoch, first + 2);
    // A watch saw more than any probe did.
    bed.pool.went_back(&bed.id);
    bed.until("a new epoch of the same cluster", |seen| seen.epoch == first + 3).await;
}

#[tokio::test]
async fn a_store_that_lost_our_mark_is_listed_afresh_however_far_it_has_come() {
    let (bed, api) = (Bed::new(), Api::new(true));
    *api.claim.lock() = Some(json!({"installation": "ours", "since": "2026-03-01T12:00:00Z"}));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let first = bed.connected().await.epoch;
    // A mark was written; the store is put back to before it, and more is written there than ever before.
    bed.pool.marked(&bed.id, 120);
    api.revision.store(500, Ordering::SeqCst);
    bed.pool.refresh_apis(&bed.id);
    bed.until("a new epoch", |seen| seen.epoch == first + 1).await;
    // The mark of today, and the next that another round reads by itself, are no news.
    for version in [130, 140] {
        api.claimed_at.store(version, Ordering::SeqCst);
        let asked = api.count("/version");
        bed.pool.refresh_apis(&bed.id);
        while api.count("/version") == asked {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        bed.pool.marked(&bed.id, version);
    }
    api.kinds.lock().push("Widget");
    bed.pool.refresh_apis(&bed.id);
    let last = bed
        .until("a round after all of it", |seen| {
            seen.apis.as_ref().is_some_and(|apis| apis.find("", "v1", "Widget").is_some())
        })
        .await;
    assert_eq!(last.epoch, first + 1);
}

#[tokio::test]
async fn a_cluster_that_was_claimed_before_it_was_registered_has_a_past() {
    let (bed, api) = (Bed::new(), Api::new(true));
    *api.claim.lock() = Some(json!({"installation": "ours", "since": "2026-03-01T12:00:00Z"}));
    let server = bed.serve(&api, None).await;
    for (name, registered, returned) in
        [("again", "2026-03-01T12:00:01Z", true), ("before", "2026-03-01T11:59:59Z", false)]
    {
        let id = ClusterId::new("acme", name);
        let registered = Some(registered.parse().unwrap());
        let target = Target { registered, ..bed.target(server.address, "good", "1") };
        bed.pool.set_target(id.clone(), target);
        let seen = bed.until_of(&id, "Connected", Observation::connected).await;
        assert_eq!(seen.returned, returned, "{name}");
    }
}
