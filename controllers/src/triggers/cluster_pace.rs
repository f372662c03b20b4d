//! Bounds how often a cluster tells others that it changed: at most one change in 30 s, the first at once.
//!
//! Edits of people, and who a cluster is, are told at once. What it says by itself opens a time of 30 s. Its connection and its status
//! say the same change one after the other, so what follows at first is told once more a moment later; all else waits for the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::cluster_view::ClusterView;
use crate::api::key_queue::Key;

/// Between two changes that a cluster tells by itself.
pub const APART: Duration = Duration::from_secs(30);
/// Changes that follow the first within this time belongs to it.
pub const ECHO: Duration = Duration::from_secs(2);
/// States by which others find a cluster, until they are told. No more probes of one cluster begin in 30 s.
const MOST: usize = 64;

/// A change that is told: what the cluster was when others heard of it last, what it was meanwhile, and what it is.
#[derive(Debug)]
pub struct ClusterChange {
    /// The Cluster.
    pub key: Key,
    /// In their order; the last one is now, or the last there was.
    pub views: Vec<ClusterView>,
    /// It came.
    pub came: bool,
    /// It is no more.
    pub gone: bool,
    /// Not all that it was is among the views.
    pub overflowed: bool,
}

struct Seen {
    told: ClusterView,
    /// Not told yet; the last one is now. Those before are others than it and than the one that was told, by what others find them by.
    since: Vec<ClusterView>,
    overflowed: bool,
    /// The time at which the change was told that others wait for.
    began: Option<Instant>,
    due: Option<Instant>,
}

impl Seen {
    fn new(view: ClusterView) -> Self {
        Self { told: view, since: Vec::new(), overflowed: false, began: None, due: None }
    }

    fn note(&mut self, view: ClusterView) {
        let told = &self.told;
        self.since.retain(|state| state.is_found_anew(told) && state.is_found_anew(&view));
        if self.since.len() >= MOST {
            self.since.remove(0);
            self.overflowed = true;
        }
        self.since.push(view);
    }

    /// All that was not told.
    fn take(&mut self, key: &Key) -> ClusterChange {
        let mut views = vec![self.told.clone()];
        views.append(&mut self.since);
        if let Some(now) = views.last() {
            self.told = now.clone();
        }
        let overflowed = std::mem::take(&mut self.overflowed);
        ClusterChange { key: key.clone(), views, came: false, gone: false, overflowed }
    }
}

#[derive(Default)]
struct Inner {
    clusters: BTreeMap<Key, Seen>,
    due: BTreeSet<(Instant, Key)>,
}

/// Changes that clusters told, and that they are about to tell: one entry for each Cluster.
#[derive(Default)]
pub struct ClusterPace {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl ClusterPace {
    /// Takes in a Cluster of the first list. Whoever reads it has not begun yet.
    pub fn begin(&self, key: &Key, look: impl FnOnce() -> Option<ClusterView>) {
        let mut inner = self.inner.lock();
        if let Some(view) = look() {
            inner.clusters.insert(key.clone(), Seen::new(view));
        }
    }

    /// Takes in what a cluster is now, if it is there; what is to be told at once. Two tasks may come at the same time: each looks while the
    /// other one waits, so that the last one that is taken in is the last there was.
    pub fn note(&self, key: &Key, look: impl FnOnce() -> Option<ClusterView>) -> Option<ClusterChange> {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let view = look()?;
        let Some(seen) = inner.clusters.get_mut(key) else {
            inner.clusters.insert(key.clone(), Seen::new(view.clone()));
            let (key, views) = (key.clone(), vec![view]);
            return Some(ClusterChange { key, views, came: true, gone: false, overflowed: false });
        };
        let last = seen.since.last_mut().unwrap_or(&mut seen.told);
        if *last == view {
            return None;
        }
        if view.has_only_begun(last) {
            *last = view;
            return None;
        }
        let at_once = view.is_written_anew(last);
        seen.note(view);
        let open = seen.began.is_some_and(|began| now < began + APART);
        if !at_once && open {
            if seen.due.is_none() {
                let began = seen.began.unwrap_or(now);
                let due = if now < began + ECHO { began + ECHO } else { began + APART };
                seen.due = Some(due);
                inner.due.insert((due, key.clone()));
                self.changed.notify_one();
            }
            return None;
        }
        if !at_once {
            seen.began = Some(now);
        }
        if let Some(due) = seen.due.take() {
            inner.due.remove(&(due, key.clone()));
        }
        Some(seen.take(key))
    }

    /// A Cluster is no more.
    pub fn gone(&self, key: &Key) -> Option<ClusterChange> {
        let mut inner = self.inner.lock();
        let mut seen = inner.clusters.remove(key)?;
        if let Some(due) = seen.due {
            inner.due.remove(&(due, key.clone()));
        }
        Some(ClusterChange { gone: true, ..seen.take(key) })
    }

    /// Waits until something is due.
    pub async fn until_due(&self) {
        loop {
            let first = self.inner.lock().due.first().map(|(due, _)| *due);
            match first {
                Some(due) if due <= Instant::now() => return,
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// The first of the changes that are due.
    pub fn take_due(&self) -> Option<ClusterChange> {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        while inner.due.first().is_some_and(|(due, _)| *due <= now) {
            let (due, key) = inner.due.pop_first()?;
            let seen = inner.clusters.get_mut(&key).filter(|seen| seen.due == Some(due));
            let Some(seen) = seen else { continue };
            seen.due = None;
            if seen.began.is_none_or(|began| began + APART <= due) {
                seen.began = Some(now);
            }
            if !seen.since.is_empty() {
                return Some(seen.take(&key));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use emco_engine::identity::ClusterId;
    use emco_engine::snapshot::{ClusterFacts, Scheduling};
    use tokio::time::{advance, sleep};

    use super::super::cluster_view::Link;
    use super::*;

    fn view(reachable: bool, tier: &str) -> ClusterView {
        let facts = ClusterFacts {
            id: ClusterId::new("acme", "a"),
            labels: [("tier".to_owned(), tier.to_owned())].into(),
            properties: BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable,
            by_git: false,
            uid: Some("uid-a".to_owned()),
            kubernetes_version: None,
            apis: None,
            nodes: None,
            network_policy: None,
        };
        ClusterView { facts: Some(facts), ..ClusterView::default() }
    }

    fn key() -> Key {
        ("acme".to_owned(), "a".to_owned())
    }

    fn of_version(number: usize) -> ClusterView {
        let mut view = view(true, "edge");
        view.facts.as_mut().unwrap().kubernetes_version = Some(format!("v1.{number}.0"));
        view
    }

    fn note(pace: &ClusterPace, view: ClusterView) -> Option<ClusterChange> {
        pace.note(&key(), || Some(view))
    }

    /// One that came and answered long ago.
    async fn settled() -> ClusterPace {
        let pace = ClusterPace::default();
        assert!(note(&pace, view(true, "edge")).is_some_and(|change| change.came));
        advance(APART * 2).await;
        pace
    }

    /// True for each state in which it answers, as others are told.
    fn answers(change: &ClusterChange) -> Vec<bool> {
        let answers = |view: &ClusterView| view.facts.as_ref().is_some_and(|facts| facts.reachable);
        change.views.iter().map(answers).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_change_is_told_at_once_and_what_follows_is_one_more() {
        let pace = settled().await;
        let first = note(&pace, view(false, "edge")).unwrap();
        assert_eq!(answers(&first), [true, false]);
        advance(ECHO * 2).await;
        for reachable in [true, false, true] {
            assert!(note(&pace, view(reachable, "edge")).is_none());
        }
        assert!(pace.take_due().is_none(), "it is not its time");
        let begun = Instant::now();
        pace.until_due().await;
        let waited = begun.elapsed();
        assert!(waited + ECHO * 2 >= APART && waited + ECHO < APART, "{waited:?}");
        assert_eq!(answers(&pace.take_due().unwrap()), [false, true], "nobody is found by what was between");
        assert!(pace.take_due().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_flaps_every_second_tells_twice_in_half_a_minute() {
        let pace = settled().await;
        let mut told = 0;
        for second in 0..600 {
            told += usize::from(note(&pace, view(second % 2 == 1, "edge")).is_some());
            sleep(Duration::from_secs(1)).await;
            while pace.take_due().is_some() {
                told += 1;
            }
        }
        assert!((20..=42).contains(&told), "{told} in ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_that_a_flapping_cluster_was_is_told() {
        let pace = settled().await;
        let mut known = true;
        for second in 0..100 {
            let change = note(&pace, view(second % 3 == 0, "edge"));
            known = change.iter().flat_map(answers).next_back().unwrap_or(known);
            sleep(Duration::from_secs(1)).await;
            known = pace.take_due().iter().flat_map(answers).next_back().unwrap_or(known);
        }
        pace.until_due().await;
        known = pace.take_due().iter().flat_map(answers).next_back().unwrap_or(known);
        assert_eq!(known, 99 % 3 == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_people_write_is_told_at_once_with_all_that_waits() {
        let pace = settled().await;
        assert!(note(&pace, view(false, "edge")).is_some());
        assert!(note(&pace, view(true, "edge")).is_none());
        for tier in ["core", "edge", "core"] {
            assert!(note(&pace, view(true, tier)).is_some(), "{tier}");
        }
        assert!(note(&pace, view(true, "core")).is_none(), "it says nothing new");
        advance(APART * 2).await;
        assert!(pace.take_due().is_none(), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_flaps_has_only_what_others_found_it_by_told() {
        let pace = settled().await;
        assert!(note(&pace, view(false, "edge")).is_some());
        assert!(note(&pace, of_version(33)).is_none());
        for number in 0..10 * MOST {
            assert!(note(&pace, view(number % 2 == 0, "edge")).is_none());
        }
        pace.until_due().await;
        let change = pace.take_due().unwrap();
        assert!(!change.overflowed);
        assert_eq!(change.views, [view(false, "edge"), of_version(33), view(false, "edge")]);
    }

    #[tokio::test(start_paused = true)]
    async fn more_versions_than_are_remembered_are_told_as_unknown() {
        let pace = settled().await;
        assert!(note(&pace, view(false, "edge")).is_some_and(|change| !change.overflowed));
        for number in 0..=MOST + 1 {
            assert!(note(&pace, of_version(number)).is_none());
        }
        pace.until_due().await;
        let change = pace.take_due().unwrap();
        assert!(change.overflowed && change.views.len() == MOST + 1, "{}", change.views.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_probe_that_fails_is_told_and_its_beginning_is_not() {
        let pace = settled().await;
        let linked = |link: Link| ClusterView { link, ..view(true, "edge") };
        assert!(note(&pace, linked(Link::Connecting)).is_none());
        assert!(note(&pace, linked(Link::Failed("Timeout"))).is_some(), "nothing was told just before");
        advance(APART * 2).await;
        assert!(note(&pace, linked(Link::Unconnected(None))).is_some(), "it is let go of");
        let secret = || linked(Link::Unconnected(Some("SecretNotFound".to_owned())));
        assert!(note(&pace, secret()).is_some(), "this is of people");
        assert!(note(&pace, linked(Link::Connecting)).is_none() && note(&pace, secret()).is_none());
        pace.until_due().await;
        assert!(pace.take_due().is_some(), "work may be due again that was not while it was tried");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_cluster_is_now_is_read_while_nobody_else_notes_it() {
        let pace = ClusterPace::default();
        let looks = || {
            assert!(pace.inner.try_lock().is_none(), "another task may note something newer meanwhile");
            Some(view(true, "edge"))
        };
        pace.begin(&key(), looks);
        assert!(pace.note(&key(), looks).is_none());
        assert!(pace.gone(&key()).is_some());
        assert!(pace.note(&key(), || None).is_none());
        assert!(pace.inner.lock().clusters.is_empty(), "it is not there any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_went_leaves_nothing_to_tell() {
        let pace = settled().await;
        note(&pace, view(false, "edge"));
        note(&pace, view(true, "edge"));
        let gone = pace.gone(&key()).unwrap();
        assert!(gone.gone && answers(&gone) == [false, true]);
        let inner = pace.inner.lock();
        assert!(inner.clusters.is_empty() && inner.due.is_empty());
    }
}
