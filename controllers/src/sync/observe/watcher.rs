//! Wanted kinds in, events for the store out. One small task per kind lists in pages and watches; it lists afresh after
//! `410 Gone`, after a silence in which something was written, and when the connection's epoch says that another store answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use emco_crds::names::label;
use emco_engine::apis::ApiResource;
use emco_engine::health;
use emco_engine::identity::Identity;
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::super::edge::{Edge, Link};
use super::super::errors::{Retry, Trouble};
use super::super::metrics::count;
use super::{KindKey, Seen};
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request, WatchEvent};

/// Objects per page of a list.
const PAGE: u64 = 500;
/// Pages of a list: more objects of ours of one kind on one cluster than this are not worked with.
const PAGES: usize = 400;
/// A server sends a bookmark every minute, and it is probed as often. A watch that is silent for three probes, while they saw the
/// store move on, has nobody behind it any more.
const SILENCE: Duration = Duration::from_secs(190);
/// After so much silence there was a probe at least, which cannot have seen less than the watch told, unless the store went back.
const PROBED: Duration = Duration::from_secs(70);

/// Keeps one watch per wanted kind until stopped.
pub async fn run(edge: Arc<Edge>, stop: CancellationToken) {
    let mut wanted = edge.observed.wanted();
    let mut running: BTreeMap<KindKey, (ApiResource, CancellationToken)> = BTreeMap::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        // Another version of a kind is another watch.
        running.retain(|kind, (resource, token)| {
            let keep = now.get(kind) == Some(resource);
            if !keep {
                token.cancel();
            }
            keep
        });
        for (kind, resource) in now {
            running.entry(kind.clone()).or_insert_with(|| {
                let token = stop.child_token();
                let watcher =
                    Watcher { edge: edge.clone(), kind, resource: resource.clone(), link: edge.link() };
                tokio::spawn(watcher.run(token.clone()));
                (resource, token)
            });
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

struct Watcher {
    edge: Arc<Edge>,
    kind: KindKey,
    resource: ApiResource,
    link: watch::Receiver<Link>,
}

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

impl Watcher {
    async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&mut self) {
        let mut position: Option<Position> = None;
        let mut failures: u32 = 0;
        loop {
            let (epoch, server, waited) = self.connected().await;
            if let Some(at) = &mut position {
                at.doubtful |= waited;
            }
            if position.as_ref().is_some_and(|p| p.epoch != epoch) {
                self.edge.observed.unlisted(&self.kind, None);
                position = None;
            }
            let outcome = match position.take() {
                None => self.list(&server, epoch).await,
                Some(at) => self.watch(&server, at).await,
            };
            match outcome {
                Ok(at) => {
                    failures = 0;
                    position = at;
                }
                Err((at, error)) => {
                    position = at.map(|at| Position { doubtful: true, ..at });
                    if position.is_none() {
                        self.edge.observed.unlisted(&self.kind, refusal(&error));
                    }
                    failures = failures.saturating_add(1);
                    self.pause(failures).await;
                }
            }
        }
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

    /// Waits before the next try, less when the connection changes.
    async fn pause(&mut self, failures: u32) {
        let wait = Duration::from_millis(500_u64.saturating_mul(1 << failures.min(7)).min(60_000));
        let _ = timeout(wait, self.link.changed()).await;
    }

    fn request(&self) -> Request {
        let request =
            Request::new(Method::Get, self.resource.path("", None)).query("labelSelector", label::OWNER);
        // The content matters only where it says how the object is.
        if health::has_rule(&self.resource.group, &self.resource.kind) { request } else { request.metadata() }
    }

    async fn list(
        &self,
        server: &Arc<dyn ApiServer>,
        epoch: u64,
    ) -> Result<Option<Position>, (Option<Position>, ApiError)> {
        count(&self.edge.metrics.lists);
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES {
            let mut request = self.request().query("limit", PAGE.to_string());
            if let Some(next) = next.take() {
                request = request.query("continue", next);
            }
            let page = self.edge.send(server, request).await.map_err(|error| (None, error))?;
            let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            all.extend(items.iter().filter_map(|item| self.seen(item)));
            let metadata = page.get("metadata");
            let text =
                |key: &str| metadata.and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default();
            if text("continue").is_empty() {
                let version = text("resourceVersion").to_owned();
                self.edge.observed.listed(&self.kind, version.parse().unwrap_or_default(), all);
                return Ok(Some(Position { epoch, version, doubtful: false }));
            }
            next = Some(text("continue").to_owned());
        }
        let text = format!(
            "more than {} objects of kind {} carry our label",
            PAGES as u64 * PAGE,
            self.resource.kind
        );
        Err((None, ApiError::Protocol(text)))
    }

    async fn watch(
        &mut self,
        server: &Arc<dyn ApiServer>,
        mut at: Position,
    ) -> Result<Option<Position>, (Option<Position>, ApiError)> {
        if std::mem::take(&mut at.doubtful) {
            match self.went_back(server, &at).await {
                Ok(true) => return Ok(None),
                Ok(false) => {}
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
            Err(error) if error.code() == 410 => return Ok(None),
            Err(error) => return Err((Some(at), error)),
        };
        let mut heard = Instant::now();
        let mut asked = heard;
        let mut told = false;
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
                () = sleep_until(asked + PROBED) => {
                    asked = Instant::now();
                    let revision = self.edge.revision();
                    if revision.is_some_and(|revision| revision < at.number()) {
                        match self.went_back(server, &at).await {
                            Ok(true) => return Ok(None),
                            Ok(false) => heard = asked,
                            Err(error) => return Err((Some(at), error)),
                        }
                    }
                    // Where nothing at all was written, there is nothing to be told of.
                    if revision == Some(at.number()) {
                        heard = asked;
                    }
                    if heard + SILENCE > asked {
                        continue;
                    }
                    return Ok(None);
                }
            };
            heard = Instant::now();
            asked = heard;
            let version = match event {
                Some(Ok(WatchEvent::Applied(object))) => self.take(&object, true),
                Some(Ok(WatchEvent::Deleted(object))) => self.take(&object, false),
                Some(Ok(WatchEvent::Bookmark(version))) => {
                    self.edge.observed.bookmark(&self.kind, version.parse().unwrap_or_default());
                    Some(version)
                }
                Some(Err(error)) if error.code() == 410 => return Ok(None),
                Some(Err(error)) => return Err((Some(at), error)),
                // An ordinary end, after minutes. One that comes at once is a server that cannot serve us.
                None if told => return Ok(Some(at)),
                None => {
                    let message = "the watch ended".to_owned();
                    return Err((Some(at), ApiError::Unreachable { reason: "ConnectionLost", message }));
                }
            };
            told = true;
            if let Some(version) = version {
                at.version = version;
            }
        }
    }

    /// Whether the store was put back to before what this watch knows. A watch that goes on in such a store is told nothing of
    /// what was undone. Asked of the kind itself: others may be stored elsewhere, with versions of their own.
    async fn went_back(&self, server: &Arc<dyn ApiServer>, at: &Position) -> ApiResult<bool> {
        let witness = self.edge.observed.newest(&self.kind);
        let request = match &witness {
            Some((id, _)) => Request::new(Method::Get, self.resource.path(&id.namespace, None))
                .query("fieldSelector", format!("metadata.name={}", id.name)),
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
            self.edge.observed.unlisted(&self.kind, None);
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

    fn seen(&self, object: &Value) -> Option<(Identity, Seen)> {
        let metadata = object.get("metadata")?;
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = Identity {
            group: self.resource.group.clone(),
            kind: self.resource.kind.clone(),
            namespace: text("namespace"),
            name: text("name"),
        };
        // Items of a list do not say what kind they are; the rules of health want to know.
        let mut whole = object.clone();
        if let Some(map) = whole.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::from(self.resource.api_version()));
            map.insert("kind".to_owned(), Value::from(self.resource.kind.clone()));
        }
        let seen = Seen::of(&id, &whole)?;
        Some((id, seen))
    }
}

/// What a refused list means for those who need it; `None` while it may still come.
fn refusal(error: &ApiError) -> Option<Trouble> {
    match error.code() {
        401 | 403 => Some(Trouble::new("Forbidden", &error.to_string(), Retry::Soon)),
        404 | 405 => Some(Trouble::new("KindMissing", &error.to_string(), Retry::Soon)),
        _ => None,
    }
}
