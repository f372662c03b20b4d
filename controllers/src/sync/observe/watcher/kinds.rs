//! Keeps one watch per kind that owners want and per health rule that it is judged by; more where a kind is looked at in namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_engine::order;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::super::edge::Edge;
use super::super::wants::{WatchKey, Watched};
use super::Watcher;
use super::hearing::Hearing;

/// So long, after a start, custom resources are not looked at without the health rules: afterwards they are `Unknown`.
const RULES: Duration = Duration::from_secs(5);

/// A watch that runs.
struct Running {
    to: Watched,
    /// Since when its kind is judged as its first list judges it.
    since: u64,
    stop: CancellationToken,
    task: JoinHandle<Watcher>,
}

/// Keeps one watch per wanted kind until stopped.
pub async fn run(edge: Arc<Edge>, stop: CancellationToken) {
    let mut wanted = edge.observed.wanted();
    let mut rules = edge.observed.rules().changes();
    let mut running: BTreeMap<WatchKey, Running> = BTreeMap::new();
    // Until when custom resources that are not watched yet wait for the rules, and those that are for their turn.
    let mut begin = (!edge.observed.rules().is_known()).then(|| Instant::now() + RULES);
    let mut turn: Option<Instant> = None;
    loop {
        begin = begin.filter(|at| *at > Instant::now());
        turn = turn.filter(|at| *at > Instant::now());
        let now = wanted.borrow_and_update().clone();
        // Another version of a kind is another watch. So is another rule: no content is kept, so what is there is listed afresh.
        let stays = |key: &WatchKey, watch: &Running| {
            let same = turn.is_some() || watch.since == edge.observed.rules().since(&key.kind);
            now.get(key) == Some(&watch.to) && same
        };
        let mut before = ended(running.extract_if(.., |key, watch| !stays(key, watch)).collect()).await;
        for (key, to) in now {
            if begin.is_some() && !order::is_built_in(&key.kind.0) || running.contains_key(&key) {
                continue;
            }
            let since = edge.observed.rules().since(&key.kind);
            // What is known of the watch holds under another rule, too: a kind that cannot be watched stays so.
            let same = |watcher: &Watcher| watcher.resource == to.resource && watcher.account == to.account;
            let before = before.remove(&key).filter(same);
            let watcher = before.unwrap_or_else(|| Watcher {
                edge: edge.clone(),
                kind: key.kind.clone(),
                place: key.place.clone(),
                resource: to.resource.clone(),
                account: to.account.clone(),
                acts: false,
                link: edge.link(),
                hearing: Hearing::new(),
                trouble: None,
                error: None,
                missing: false,
            });
            let stop = stop.child_token();
            let task = tokio::spawn(watcher.run(stop.clone()));
            running.insert(key, Running { to, since, stop, task });
        }
        let next = [begin, turn].into_iter().flatten().min();
        tokio::select! {
            () = stop.cancelled() => return,
            changed = wanted.changed() => if changed.is_err() { return },
            changed = rules.changed() => {
                if changed.is_err() { return }
                begin = None;
                turn = Some(turn.unwrap_or_else(|| Instant::now() + edge.observed.rules().turn(&edge.id)));
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

/// Ends watches. Each has said its last word before another one says its first.
async fn ended(watches: BTreeMap<WatchKey, Running>) -> BTreeMap<WatchKey, Watcher> {
    for watch in watches.values() {
        watch.stop.cancel();
    }
    let mut left = BTreeMap::new();
    for (key, watch) in watches {
        if let Ok(watcher) = watch.task.await {
            left.insert(key, watcher);
        }
    }
    left
}
