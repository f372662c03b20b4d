//! Lists and watches a kind for the store. One small task per kind lists in pages and watches; it lists afresh after
//! `410 Gone`, after a silence in which something was written, and when the connection's epoch says that another store answers.
//! A kind whose watches fail is listed on a timer instead, and rows say so. Where the credentials of the Cluster may not list a
//! namespace, the account of its logical cloud is asked as.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::selector::FieldSelector;
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::super::edge::{Edge, Link};
use super::super::errors::Trouble;
use super::KindKey;
use super::store::Place;
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request, WatchEvent};
use hearing::{Hearing, LIVED};

mod hearing;
mod kinds;
mod listing;

pub use kinds::run;

/// After so much silence there was a probe at least, which cannot have seen less than the watch told, unless the store went back.
const PROBED: Duration = Duration::from_secs(70);
/// Between two tries to list a kind on the whole cluster that is known in the namespaces where it is needed.
const SELDOM: Duration = Duration::from_mins(10);

struct Watcher {
    edge: Arc<Edge>,
    kind: KindKey,
    place: Place,
    resource: ApiResource,
    /// Who may look there, too.
    account: Option<Arc<str>>,
    /// It is asked as that account, for the credentials of the Cluster may not look there.
    acts: bool,
    link: watch::Receiver<Link>,
    hearing: Hearing,
    /// What rows say of the watch.
    trouble: Option<Trouble>,
    /// How the last watch that did not live ended.
    error: Option<ApiError>,
    /// The last list was refused because the kind is not served.
    missing: bool,
}

/// Where the watch goes on, and how it ended where it did not live.
type Outcome = Result<Option<Position>, (Option<Position>, ApiError)>;

/// Where the watch stands.
struct Position {
    epoch: u64,
    version: String,
    /// The connection was lost meanwhile: what answers now may be an older state of the store.
    doubtful: bool,
}

impl Position {
    fn number(&self) -> u64 {
        self.version.parse().unwrap_or_default()
    }
}

/// Whether a watch that ends so cannot go on where it was: what it was told to begin with is too old, or its kind is not served.
fn cannot_go_on(error: &ApiError) -> bool {
    error.code() == 410 || hearing::is_unserved(error)
}

impl Watcher {
    /// Watches until stopped; what it knows of the watch is for the next one.
    async fn run(mut self, stop: CancellationToken) -> Self {
        tokio::select! {
            // One that was told to stop says nothing more: its place may be taken.
            biased;
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
        self
    }

    async fn follow(&mut self) {
        let mut position: Option<Position> = None;
        loop {
            let (epoch, server, waited) = self.connected().await;
            if waited {
                self.hearing.reconnected();
            }
            if let Some(at) = &mut position {
                at.doubtful |= waited;
            }
            if position.as_ref().is_some_and(|p| p.epoch != epoch) {
                self.edge.observed.unlisted(&self.kind, &self.place, None);
                position = None;
            }
            let overdue = Instant::now() >= self.hearing.due();
            match position.take() {
                Some(at) if !overdue => {
                    let opened = Instant::now();
                    let outcome = self.watch(&server, at).await;
                    position = self.ended(opened, outcome).await;
                }
                _ => position = self.listed(&server, epoch).await,
            }
        }
    }

    /// Lists. After a failure it waits.
    async fn listed(&mut self, server: &Arc<dyn ApiServer>, epoch: u64) -> Option<Position> {
        match self.list(server, epoch).await {
            Ok((position, missed)) => {
                if std::mem::take(&mut self.missing) {
                    self.hearing.returned();
                }
                self.hearing.listed(missed);
                let kind = &self.resource.kind;
                let trouble = match &self.error {
                    Some(error) if self.hearing.polls() => Some(hearing::refused(kind, error)),
                    _ if self.hearing.deaf() => Some(hearing::silent(kind)),
                    _ => None,
                };
                self.tell(trouble);
                Some(position)
            }
            Err(error) if self.asks_otherwise(&error) => None,
            Err(error) => {
                self.missing = hearing::is_unserved(&error);
                let early = self.hearing.may_be_early();
                if self.missing {
                    self.edge.refresh_apis();
                }
                // A definition that is made anew is not there for moments.
                if !(self.missing && early) {
                    let early = self.place != Place::Everywhere && early;
                    let trouble = hearing::refusal(&self.resource, &error).filter(|_| !early);
                    self.edge.observed.unlisted(&self.kind, &self.place, trouble);
                }
                self.hearing.failed();
                let kind = &self.resource.kind;
                let lasts = self.hearing.fails_for_long() && !self.missing;
                self.tell(lasts.then(|| hearing::unlistable(kind, &error)));
                self.pause().await;
                None
            }
        }
    }

    /// Whether a refused list is tried at once as the account; the try after that is one of the Cluster's credentials again.
    fn asks_otherwise(&mut self, error: &ApiError) -> bool {
        if error.code() != 403 || self.account.is_none() {
            return false;
        }
        self.acts = !self.acts;
        self.acts
    }

    /// Whom requests are sent as.
    fn actor(&self) -> Option<&str> {
        self.account.as_deref().filter(|_| self.acts)
    }

    /// Notes how a watch ended. One that ended at once is followed by a pause, whatever it ended with; but the first that cannot go on
    /// where it was is followed by a list at once.
    async fn ended(&mut self, opened: Instant, outcome: Outcome) -> Option<Position> {
        let (position, error) = match outcome {
            Ok(position) => (position, None),
            Err((position, error)) => (position.map(|at| Position { doubtful: true, ..at }), Some(error)),
        };
        if opened.elapsed() >= LIVED {
            return position;
        }
        let begins_anew = position.is_none() && self.hearing.works();
        let message = "each watch ends at once".to_owned();
        self.error = Some(error.unwrap_or(ApiError::Unreachable { reason: "ConnectionLost", message }));
        self.hearing.failed();
        if !begins_anew {
            self.pause().await;
        }
        position
    }

    /// Says in rows what is wrong with the watch. The text stays while the reason does.
    fn tell(&mut self, trouble: Option<Trouble>) {
        let same = |before: &Trouble| trouble.as_ref().is_some_and(|now| now.reason == before.reason);
        if self.trouble.as_ref().is_some_and(same) {
            return;
        }
        self.edge.observed.unwatched(&self.kind, &self.place, trouble.clone());
        self.trouble = trouble;
    }

    /// Waits for the connection; also says whether there was none.
    async fn connected(&mut self) -> (u64, Arc<dyn ApiServer>, bool) {
        let mut waited = false;
        loop {
            let epoch = self.link.borrow_and_update().as_ref().map(|link| link.epoch);
            if let (Some(epoch), Some(server)) = (epoch, self.edge.server()) {
                return (epoch, server, waited);
            }
            waited = true;
            if self.link.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits before the next try, less when the connection becomes another, or the kind is served again. (Nodes that come and go are no
    /// reason.)
    async fn pause(&mut self) {
        let (ApiResource { group, version, kind, .. }, observed) = (&self.resource, &self.edge.observed);
        let serves = |apis: &Arc<ApiList>| apis.find(group, version, kind).is_some();
        let which = |link: &Link| {
            link.as_ref().map(|link| (link.epoch, link.connected(), link.apis.as_ref().is_some_and(serves)))
        };
        let before = which(&self.link.borrow_and_update());
        let seldom = self.place == Place::Everywhere && observed.is_known_in_parts(&self.kind);
        let pause = if seldom { SELDOM } else { self.hearing.pause() };
        let mut proven = observed.proven();
        let (own, missing, link) = (&self.kind, self.missing, &mut self.link);
        let is_proven =
            async { while proven.changed().await.is_ok() && *proven.borrow_and_update() != *own {} };
        let changed = async {
            tokio::select! {
                _ = link.wait_for(|link| which(link) != before) => {}
                () = is_proven, if missing => {}
            }
        };
        let _ = timeout(pause, changed).await;
    }

    async fn watch(&mut self, server: &Arc<dyn ApiServer>, mut at: Position) -> Outcome {
        if std::mem::take(&mut at.doubtful) {
            match self.went_back(server, &at).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) if cannot_go_on(&error) => return Err((None, error)),
                Err(error) => return Err((Some(at), error)),
            }
        }
        let request = self
            .request()
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("resourceVersion", at.version.clone());
        let mut events = match server.watch(request).await {
            Ok(events) => events,
            Err(error) if cannot_go_on(&error) => return Err((None, error)),
            Err(error) => return Err((Some(at), error)),
        };
        let mut asked = Instant::now();
        let mut lives = Some(asked + LIVED);
        let mut delivered = false;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                changed = self.link.changed() => {
                    if changed.is_err() {
                        return Ok(Some(at));
                    }
                    let same = self.link.borrow_and_update().as_ref().is_some_and(|link| link.epoch == at.epoch);
                    if same { continue }
                    return Ok(Some(at));
                }
                () = sleep_until(lives.unwrap_or(asked + PROBED)), if lives.is_some() => {
                    lives = None;
                    self.error = None;
                    self.hearing.lives();
                    if !self.hearing.deaf() {
                        self.tell(None);
                    }
                    continue;
                }
                () = sleep_until(asked + PROBED) => {
                    asked = Instant::now();
                    let revision = self.edge.revision();
                    if revision.is_some_and(|revision| revision < at.number()) {
                        match self.went_back(server, &at).await {
                            Ok(true) => return Ok(None),
                            Ok(false) => self.hearing.heard(),
                            Err(error) => return Err((Some(at), error)),
                        }
                    }
                    // Where nothing at all was written, no event is missing.
                    if revision == Some(at.number()) {
                        self.hearing.heard();
                    }
                    if asked < self.hearing.due() {
                        continue;
                    }
                    return Ok(None);
                }
            };
            asked = Instant::now();
            let version = match event {
                Some(Ok(WatchEvent::Applied(object))) => self.take(&object, true),
                Some(Ok(WatchEvent::Deleted(object))) => self.take(&object, false),
                Some(Ok(WatchEvent::Bookmark(version))) => {
                    let told = version.parse().unwrap_or_default();
                    self.edge.observed.bookmark(&self.kind, &self.place, told);
                    Some(version)
                }
                Some(Err(error)) if cannot_go_on(&error) => return Err((None, error)),
                Some(Err(error)) => return Err((Some(at), error)),
                // An ordinary end, after minutes. One that comes at once is a server that cannot serve us.
                None if delivered => return Ok(Some(at)),
                None => {
                    let message = "the watch ended".to_owned();
                    return Err((Some(at), ApiError::Unreachable { reason: "ConnectionLost", message }));
                }
            };
            delivered = true;
            // Until the watch lives, what it delivers may be all that it ever does.
            if lives.is_none() {
                self.hearing.delivered();
                self.tell(None);
            }
            if let Some(version) = version {
                at.version = version;
            }
        }
    }

    /// Whether the store was put back to before what this watch knows. A watch that goes on in such a store is told nothing of
    /// what was undone. Asked of the kind itself: others may be stored elsewhere, with versions of their own.
    async fn went_back(&self, server: &Arc<dyn ApiServer>, at: &Position) -> ApiResult<bool> {
        let witness = self.edge.observed.newest(&self.kind, &self.place);
        let request = match &witness {
            Some((id, _)) => Request::new(Method::Get, self.resource.path(&id.namespace, None))
                .fields(&FieldSelector::name(&id.name))
                .acting_as(self.actor()),
            None => self.request(),
        };
        let page = self.edge.send(server, request.metadata().query("limit", "1")).await?;
        let version = page.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let behind =
            version.and_then(|text| text.parse::<u64>().ok()).is_some_and(|version| version < at.number());
        // By the time somebody asks, it may have come as far again as it was, on another way.
        let undone = witness.is_some_and(|(_, known)| {
            let live = page.pointer("/items/0").and_then(|item| self.seen(item));
            !live.is_some_and(|(_, live)| live.uid == known.uid && live.version >= known.version)
        });
        let back = behind || undone;
        if back {
            tracing::warn!(cluster = %self.edge.id, kind = self.resource.kind, "the store of the cluster went back: everything is listed afresh");
            self.edge.observed.unlisted(&self.kind, &self.place, None);
            // Where another kind has told already, all begin again anyway.
            if self.link.borrow().as_ref().is_some_and(|link| link.epoch == at.epoch) {
                self.edge.went_back();
            }
        }
        Ok(back)
    }

    fn take(&self, object: &Value, there: bool) -> Option<String> {
        let (id, seen) = self.seen(object)?;
        let version = seen.version_text.clone();
        self.edge.observed.event(&id, seen, there);
        Some(version)
    }
}
