//! The process dies at any request, or an answer is lost: the edge ends exactly as wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::rig::*;
use crate::crash_points;
use crate::memory::{Fault, Faults, MemoryServer};

fn first() -> Vec<Arc<emco_engine::set::ManifestSet>> {
    vec![
        app("web", vec![config("c", "1"), config("old", "1"), deployment("web", "nginx:1")]),
        app_of(
            "db",
            vec![
                hook(job("migrate"), &["pre-install"], 0, &["hook-succeeded"]),
                manifest(config("d", "1"), None),
            ],
        ),
    ]
}

fn second() -> Vec<Arc<emco_engine::set::ManifestSet>> {
    vec![app("web", vec![config("c", "2"), deployment("web", "nginx:2")])]
}

/// Calls `hit` at the n-th write.
fn at(server: &MemoryServer, n: u64, fault: impl Fn() -> Option<Fault> + Send + Sync + 'static) {
    let count = AtomicU64::new(0);
    let faults: Faults = Arc::new(move |request, _| {
        if request.method == crate::api::Method::Get || count.fetch_add(1, Ordering::Relaxed) != n {
            return None;
        }
        fault()
    });
    server.faults(Some(faults));
}

async fn check(rig: &Rig) {
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c", "deployments.apps/shop/web"]);
    let live = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").unwrap();
    assert_eq!(live["data"]["value"], "2");
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert!(rig.ours("a").is_empty());
}

async fn installed_and_updated(rig: &Rig) {
    rig.target(&on("a", &first())).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &second())).await;
    rig.until_complete("a").await;
}

/// Writes of a life in which nothing went wrong: at which of them something does.
fn points(undisturbed: &Rig) -> Vec<u64> {
    let writes = u64::try_from(undisturbed.edge("a").writes().len()).unwrap();
    assert!(writes >= 8, "only {writes} writes were there to fail");
    crash_points::chosen(0..writes)
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_ends_with_an_exact_edge() {
    let undisturbed = Rig::new(&["a"]);
    undisturbed.start().await;
    installed_and_updated(&undisturbed).await;
    for n in points(&undisturbed) {
        for lost in [false, true] {
            let rig = Rig::new(&["a"]);
            let died = Arc::new(tokio::sync::Notify::new());
            let bell = died.clone();
            at(&rig.edge("a"), n, move || {
                bell.notify_one();
                // The process dies before the request arrives, or before its answer does.
                if lost { Some(Fault::LoseAnswer) } else { Some(Fault::Refuse(gone())) }
            });
            rig.start().await;
            tokio::select! {
                () = installed_and_updated(&rig) => {}
                () = died.notified() => {}
            }
            rig.crash().await;
            rig.edge("a").faults(None);
            rig.target(&on("a", &second())).await;
            rig.start().await;
            check(&rig).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_any_write_is_made_good_without_a_restart() {
    let undisturbed = Rig::new(&["a"]);
    undisturbed.start().await;
    installed_and_updated(&undisturbed).await;
    check(&undisturbed).await;
    for n in points(&undisturbed) {
        let rig = Rig::new(&["a"]);
        at(&rig.edge("a"), n, || Some(Fault::LoseAnswer));
        rig.start().await;
        rig.target(&on("a", &first())).await;
        rig.until_complete("a").await;
        rig.target(&on("a", &second())).await;
        check(&rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_changes_in_the_middle_leaves_nothing_of_the_first_behind() {
    for pause in [0, 1, 5, 20, 200] {
        let rig = Rig::new(&["a"]);
        rig.start().await;
        rig.target(&on("a", &first())).await;
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        rig.target(&on("a", &second())).await;
        check(&rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_restored_from_an_older_backup_is_listed_afresh() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    // The watch says nothing of what a restore undid; the new epoch does.
    rig.edges.set_down(&cluster("a"), true);
    rig.edge("a").set_down(false);
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
    rig.edges.link(&cluster("a"), |link| {
        link.epoch += 1;
        link.state = crate::remote::State::Connected;
    });
    rig.until("it is there again", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/c").is_some()
    })
    .await;
}

fn gone() -> crate::api::ApiError {
    crate::api::ApiError::Unreachable { reason: "ConnectionLost", message: "the process died".to_owned() }
}
