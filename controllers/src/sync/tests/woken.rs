//! Which rows of a shard look again when it is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::identity::ClusterId;
use emco_engine::set::ManifestSet;
use tokio::time::sleep;

use super::rig::*;

const CLUSTERS: usize = 24;
const MANY: usize = 72;
/// Longer than anything that follows of a write here. All of them are over before each row looks by itself, after three minutes.
const REST: Duration = Duration::from_secs(20);

fn names(clusters: usize) -> Vec<String> {
    (0..clusters).map(|n| format!("c{n:02}")).collect()
}

/// What each cluster is to have: its page.
fn wanted(pages: &[usize]) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    let of = |(name, page): (String, &usize)| {
        (cluster(&name), vec![app("web", vec![config("page", &page.to_string())])])
    };
    names(pages.len()).into_iter().zip(pages).map(of).collect()
}

async fn installed(pages: &[usize]) -> Rig {
    let names = names(pages.len());
    let rig = Rig::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    rig.start().await;
    rig.target(&wanted(pages)).await;
    complete(&rig, pages.len()).await;
    rig
}

async fn complete(rig: &Rig, clusters: usize) {
    for name in names(clusters) {
        rig.until_complete(&name).await;
    }
    sleep(REST).await;
}

fn passes(rig: &Rig) -> u64 {
    rig.sync.lock().as_ref().unwrap().metrics().passes.load(Ordering::Relaxed)
}

fn pages(rig: &Rig) -> Vec<String> {
    let page = |name: String| {
        let page = rig.edge(&name).object("/api/v1/namespaces/shop/configmaps/page").unwrap();
        page["data"]["value"].as_str().unwrap().to_owned()
    };
    names(CLUSTERS).into_iter().map(page).collect()
}

/// Looks of all rows while four of them move, one after the other.
async fn looks(clusters: usize) -> Vec<u64> {
    let mut all = vec![0; clusters];
    let rig = installed(&all).await;
    sleep(REST).await;
    let mut found = Vec::new();
    for n in 0..4 {
        all[n] = n + 1;
        let before = passes(&rig);
        rig.target(&wanted(&all)).await;
        complete(&rig, clusters).await;
        found.push(passes(&rig) - before);
    }
    found
}

#[tokio::test(start_paused = true)]
async fn a_row_that_moves_wakes_no_other_row_of_its_shard() {
    let (few, many) = (looks(CLUSTERS).await, looks(MANY).await);
    assert!(few.iter().all(|looks| *looks > 0), "{few:?}");
    assert_eq!(few, many, "with {CLUSTERS} clusters and with {MANY}");
}

#[tokio::test(start_paused = true)]
async fn rows_that_slept_through_writes_of_others_do_what_comes_later() {
    let mut all = vec![0; CLUSTERS];
    let rig = installed(&all).await;
    // Some in each round, and each of them in some round; in the last one all.
    for round in 1..=6_usize {
        for (n, page) in all.iter_mut().enumerate() {
            if round == 6 || (n * 7 + round * 5) % 11 < 3 {
                *page = round;
            }
        }
        rig.target(&wanted(&all)).await;
        complete(&rig, CLUSTERS).await;
        // As a process has it that looks at everything.
        let slept = pages(&rig);
        assert_eq!(slept, all.iter().map(ToString::to_string).collect::<Vec<_>>(), "round {round}");
        rig.crash().await;
        for name in names(CLUSTERS) {
            rig.edge(&name).take_seen();
        }
        rig.start().await;
        complete(&rig, CLUSTERS).await;
        assert_eq!(pages(&rig), slept, "round {round}");
        for name in names(CLUSTERS) {
            let writes = rig.edge(&name).writes();
            let of_the_shop = writes.iter().filter(|write| write.path.contains("/namespaces/shop/"));
            assert_eq!(of_the_shop.count(), 0, "{name} in round {round}: nothing was left to be done");
        }
    }
}
