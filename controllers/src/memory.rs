//! An API server in memory that answers as a real one, with faults on demand. Reconcilers and the sync engine run
//! against it in fast tests; `e2e/tests/memory` asks it and a real API server the same and compares the answers.
//!
//! It knows resourceVersions, generations, finalizers, preconditions, label selectors, watches, namespaces that drain,
//! server-side apply with field ownership, and workloads that become ready at once, and refuses
//! changes of the fields that cannot be changed. An account that asks hears its rules. Of schemas and defaults it knows the unions of
//! workloads, and what custom resources may say to be nothing; it does not run admission, or check rights; its watches send no bookmarks. It knows who owns a field, not who owns the map
//! around it: on a real server the maker of a map that was taken away as a whole still conflicts over it.

mod apply;
mod fields;
mod fixed;
mod kinds;
mod query;
mod refusals;
mod reviews;
mod schemas;
mod store;
mod unions;
mod watching;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use emco_engine::apis::{ApiList, ApiResource};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::api::withheld::Subject;
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request, WatchEvent};
use store::Store;
pub use watching::Watching;

/// What goes wrong with a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The server never sees it; the caller gets this error.
    Refuse(ApiError),
    /// The server carries it out; the answer is lost.
    LoseAnswer,
    /// The server carries it out; the answer comes when there is a permit.
    Hold(Arc<Semaphore>),
}

/// Decides per request; the number counts requests from 0.
pub type Faults = Arc<dyn Fn(&Request, u64) -> Option<Fault> + Send + Sync>;

/// One request as it was seen, for assertions on who wrote what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Verb.
    pub method: Method,
    /// Path.
    pub path: String,
    /// `fieldManager` of the query; empty where none was given.
    pub manager: String,
    /// The account it was sent as; empty: the client's own.
    pub account: String,
}

/// The server. Clones share their state.
#[derive(Clone)]
pub struct MemoryServer {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    store: Store,
    faults: Option<Faults>,
    requests: u64,
    seen: Vec<Seen>,
    down: bool,
    watching: Watching,
    asked: u64,
}

impl Default for MemoryServer {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryServer {
    /// A server with Kubernetes' usual kinds, EMCO's own, and the namespaces `default` and `kube-system`.
    pub fn new() -> Self {
        let inner = Inner {
            store: Store::new(),
            faults: None,
            requests: 0,
            seen: Vec::new(),
            down: false,
            watching: Watching::default(),
            asked: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Another server that has stored what this one has now, and answers as it does. Nobody watches it, and it has no fault plan.
    #[must_use]
    pub fn copied(&self) -> Self {
        let inner = self.inner.lock();
        let copy = Inner {
            store: inner.store.copied(),
            faults: None,
            requests: 0,
            seen: Vec::new(),
            down: inner.down,
            watching: inner.watching,
            asked: 0,
        };
        Self { inner: Arc::new(Mutex::new(copy)) }
    }

    /// Installs a fault plan; `None` removes it.
    pub fn faults(&self, faults: Option<Faults>) {
        self.inner.lock().faults = faults;
    }

    /// Removes the fault plan.
    pub fn take_faults(&self) -> Option<Faults> {
        self.inner.lock().faults.take()
    }

    /// While down, every request is refused as unreachable and watches end.
    pub fn set_down(&self, down: bool) {
        let mut inner = self.inner.lock();
        inner.down = down;
        if down {
            inner.store.end_watches();
        }
    }

    /// Serves watches in this way from now on. Those that are open end.
    pub fn set_watching(&self, watching: Watching) {
        let mut inner = self.inner.lock();
        inner.watching = watching;
        inner.store.end_watches();
    }

    /// Watches asked for since the beginning.
    pub fn watches_asked(&self) -> u64 {
        self.inner.lock().asked
    }

    /// How far its store has come.
    pub fn revision(&self) -> u64 {
        self.inner.lock().store.revision()
    }

    /// It begins again with an older state of its store. Watches end.
    pub fn go_back(&self, to: u64) {
        self.inner.lock().store.go_back(to);
    }

    /// Whether workloads become ready at once (they do, unless switched off).
    pub fn set_workloads_ready(&self, ready: bool) {
        self.inner.lock().store.workloads_ready = ready;
    }

    /// Sets the clock by which it issues tokens, seconds since 1970.
    pub fn set_now(&self, now: i64) {
        self.inner.lock().store.now = now;
    }

    /// Everything asked since the last call, but dry runs and reviews.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.inner.lock().seen)
    }

    /// Writes (anything but GET) since the last call of [`Self::take_seen`].
    pub fn writes(&self) -> Vec<Seen> {
        self.inner.lock().seen.iter().filter(|s| s.method != Method::Get).cloned().collect()
    }

    /// What it serves.
    pub fn apis(&self) -> ApiList {
        self.inner.lock().store.apis()
    }

    /// UID of `kube-system`: the identity of a cluster.
    pub fn uid(&self) -> String {
        self.object("/api/v1/namespaces/kube-system")
            .and_then(|o| o.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned))
            .unwrap_or_default()
    }

    /// One object by path, without a request being counted.
    pub fn object(&self, path: &str) -> Option<Value> {
        let inner = self.inner.lock();
        let target = inner.store.resolve(path).ok()?;
        inner.store.get(&target).ok()
    }

    /// All objects of all kinds, by `plural.group/namespace/name`, without a request being counted.
    pub fn objects(&self) -> BTreeMap<String, Value> {
        self.inner.lock().store.all()
    }

    /// All objects of a kind, without a request being counted.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.inner.lock().store.of_kind(kind).cloned().collect()
    }

    /// Which versions of them it has, in order.
    pub fn versions_of(&self, kind: &str) -> Vec<String> {
        let text = |object: &Value, key: &str| {
            let text = object.get("metadata").and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let inner = self.inner.lock();
        let version = |o: &Value| {
            let (namespace, name, version) =
                (text(o, "namespace"), text(o, "name"), text(o, "resourceVersion"));
            format!("{namespace}/{name}@{version} of {}", inner.store.returns())
        };
        inner.store.of_kind(kind).map(version).collect()
    }

    /// Puts an object there as another client would (create or replace by server-side apply of `manager`).
    ///
    /// # Panics
    /// When the object's kind is unknown: a mistake in the test.
    #[allow(clippy::panic)]
    pub fn put(&self, manager: &str, object: &Value) -> Value {
        let mut inner = self.inner.lock();
        match inner.store.put(manager, object) {
            Ok(value) => value,
            Err(error) => panic!("cannot put {object}: {error}"),
        }
    }

    /// Sets the status of an object, as its controller would.
    pub fn set_status(&self, path: &str, status: &Value) -> ApiResult<Value> {
        let mut inner = self.inner.lock();
        let target = inner.store.resolve(&format!("{path}/status"))?;
        let mut object = inner.store.get(&target)?;
        if let Some(map) = object.as_object_mut() {
            map.insert("status".to_owned(), status.clone());
        }
        inner.store.replace(&target, &object, "controller", store::Via::Put)
    }

    /// Deletes an object as another client would.
    pub fn remove(&self, path: &str) {
        let mut inner = self.inner.lock();
        if let Ok(target) = inner.store.resolve(path) {
            let _ = inner.store.delete(&target, None);
        }
    }

    /// Takes the definition of a kind away, with its objects.
    pub fn undefine(&self, plural: &str, group: &str) {
        self.inner.lock().store.undefine(plural, group);
    }

    /// Serves one more kind.
    pub fn register(&self, resource: ApiResource) {
        self.inner.lock().store.register(resource);
    }
}

/// What a request comes to, and what its answer waits for.
type Carried = (ApiResult<Value>, Option<Arc<Semaphore>>);

impl MemoryServer {
    fn carry_out(&self, request: &Request) -> ApiResult<Carried> {
        let (faults, number) = {
            let mut inner = self.inner.lock();
            let number = inner.requests;
            inner.requests += 1;
            if inner.down {
                return Err(unreachable("ConnectionRefused", "the server is down"));
            }
            (inner.faults.clone(), number)
        };
        // Not under the lock: what a plan does to this server meanwhile is done before the answer.
        let fault = faults.and_then(|faults| faults(request, number));
        if let Some(Fault::Refuse(error)) = fault {
            return Err(error);
        }
        let mut inner = self.inner.lock();
        let manager = query::value(request, "fieldManager").unwrap_or_default().to_owned();
        if !query::is_dry(request) && !reviews::is_one(request) {
            let account = request.impersonate.clone().unwrap_or_default();
            inner.seen.push(Seen {
                method: request.method,
                path: request.path.to_string(),
                manager,
                account,
            });
        }
        let answer = query::answer(&mut inner.store, request);
        match fault {
            Some(Fault::LoseAnswer) => Err(unreachable("Timeout", "no answer within the time-out")),
            Some(Fault::Hold(gate)) => Ok((answer, Some(gate))),
            Some(Fault::Refuse(_)) | None => Ok((answer, None)),
        }
    }
}

#[async_trait]
impl ApiServer for MemoryServer {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        // Every request is a point where others may run, as with a real server.
        tokio::task::yield_now().await;
        let subject = Subject::of(&request.path);
        let (answer, gate) = Subject::withhold(subject.as_ref(), self.carry_out(&request))?;
        if let Some(gate) = gate {
            let _ = gate.acquire().await;
        }
        Subject::withhold(subject.as_ref(), answer)
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        tokio::task::yield_now().await;
        let mut inner = self.inner.lock();
        if inner.down {
            return Err(unreachable("ConnectionRefused", "the server is down"));
        }
        inner.asked += 1;
        let (watching, asked) = (inner.watching, inner.asked);
        let receiver = query::watch(&mut inner.store, &request)?;
        drop(inner);
        watching::serve(watching, asked, receiver.boxed())
    }
}

fn unreachable(reason: &'static str, message: &str) -> ApiError {
    ApiError::Unreachable { reason, message: message.to_owned() }
}

/// A Kubernetes Status as an error.
fn status(code: u16, reason: &str, message: impl Into<String>) -> ApiError {
    ApiError::Status {
        code,
        reason: reason.to_owned(),
        message: message.into(),
        retry_after: None,
        causes: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
