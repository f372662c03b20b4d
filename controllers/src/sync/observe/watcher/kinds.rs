//! Keeps one watch per kind that owners want and per health rule that it is judged by.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_engine::apis::ApiResource;
use emco_engine::order;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::super::edge::Edge;
use super::super::KindKey;
use super::Watcher;
use super::hearing::Hearing;

/// So long, after a start, custom resources are not looked at without the health rules: afterwards they are `Unknown`.
const RULES: Duration = Duration::from_secs(5);

/// A watch that runs.
struct Running {
    resource: ApiResource,
    /// Since when its kind is judged as its first list judges it.
    since: u64,
    stop: CancellationToken,
    task: JoinHandle<Watcher>,
}

/// Keeps one watch per wanted kind until stopped.
pub async fn run(edge: Arc<Edge>, stop: CancellationToken) {
    let mut wanted = edge.observed.wanted();
    let mut rules = edge.observed.rules().changes();
    let mut running: BTreeMap<KindKey, Running> = BTreeMap::new();
    // Until when custom resources that are not watched yet wait for the rules, and those that are for their turn.
    let mut begin = (!edge.observed.rules().is_known()).then(|| Instant::now() + RULES);
    let mut turn: Option<Instant> = None;
    loop {
        begin = begin.filter(|at| *at > Instant::now());
        turn = turn.filter(|at| *at > Instant::now());
        let now = wanted.borrow_and_update().clone();
        // Another version of a kind is another watch. So is another rule: no content is kept, so what is there is listed afresh.
        let stays = |kind: &KindKey, watch: &Running| {
            let same = turn.is_some() || watch.since == edge.observed.rules().since(kind);
            now.get(kind) == Some(&watch.resource) && same
        };
        let mut before = ended(running.extract_if(.., |kind, watch| !stays(kind, watch)).collect()).await;
        for (kind, resource) in now {
            if begin.is_some() && !order::is_built_in(&kind.0) || running.contains_key(&kind) {
                continue;
            }
            let since = edge.observed.rules().since(&kind);
            // What is known of the watch holds under another rule, too: a kind that cannot be watched stays so.
            let before = before.remove(&kind).filter(|watcher| watcher.resource == resource);
            let watcher = before.unwrap_or_else(|| Watcher {
                edge: edge.clone(),
                kind: kind.clone(),
                resource: resource.clone(),
                link: edge.link(),
                hearing: Hearing::new(),
                trouble: None,
                error: None,
            });
            let stop = stop.child_token();
            let task = tokio::spawn(watcher.run(stop.clone()));
            running.insert(kind, Running { resource, since, stop, task });
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
async fn ended(watches: BTreeMap<KindKey, Running>) -> BTreeMap<KindKey, Watcher> {
    for watch in watches.values() {
        watch.stop.cancel();
    }
    let mut left = BTreeMap::new();
    for (kind, watch) in watches {
        if let Ok(watcher) = watch.task.await {
            left.insert(kind, watcher);
        }
    }
    left
}
