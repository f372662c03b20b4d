//! Speaks to an API server over one HTTP/2 connection (more for many watches, or a few of HTTP/1.1). Connections are made
//! when they are needed and made again when they ended; whether the cluster counts as reachable is the pool's to say.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, HOST, HeaderMap, HeaderValue, IF_NONE_MATCH, USER_AGENT};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::kubeconfig::Credentials;
use super::wire::{self, ReadLimits, protocol, unreachable};
use crate::api::requests::{self, Requests};
use crate::api::withheld::Subject;
use crate::api::{ApiError, ApiResult, ApiServer, IntoPath, Method, Request, WatchEvent};
use crate::remote::dialer::Dialer;

use lanes::{Lane, Lanes};

mod built_in;
mod connect;
mod exec;
mod lanes;
mod lent;

pub use exec::Executed;

const AGENT: &str = concat!("emco-operator/", env!("CARGO_PKG_VERSION"));

/// A timer that fires so much later says that this process was starved, and nothing about the cluster.
const STARVED: Duration = Duration::from_secs(1);

/// Bounds on one edge.
#[derive(Clone, Copy, Debug)]
pub struct EdgeSettings {
    /// Requests in flight, watches apart.
    pub in_flight: usize,
    /// Watches open, one per kind. Kinds beyond that are listed on a timer, and rows say so.
    pub watches: usize,
    /// Further watches, for kinds of Kubernetes itself: a tenant that defines many kinds leaves workloads watched.
    pub watches_built_in: usize,
    /// Until an answer begins, connecting included.
    pub answer_begins: Duration,
    /// One answer.
    pub answer: ReadLimits,
    /// How long a read waits for its turn before that time begins; a write's turn counts as its time.
    pub turn: Duration,
    /// HTTP/2 pings: a connection whose ping is not answered within the same time is dead.
    pub ping: Duration,
}

impl Default for EdgeSettings {
    fn default() -> Self {
        Self {
            in_flight: 4,
            watches: 512,
            watches_built_in: 64,
            answer_begins: Duration::from_secs(10),
            answer: ReadLimits { bytes: 32 << 20, time: Duration::from_secs(30) },
            turn: Duration::from_secs(30),
            ping: Duration::from_secs(20),
        }
    }
}

/// One remote API server.
pub struct Edge {
    credentials: Credentials,
    settings: EdgeSettings,
    server: String,
    permits: Semaphore,
    watches: Arc<Semaphore>,
    watches_built_in: Arc<Semaphore>,
    lanes: Lanes,
    dialer: Arc<Dialer>,
    refused: Notify,
    requests: Arc<Requests>,
}

/// An answer as it came.
pub struct RawAnswer {
    /// HTTP code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Edge {
    /// Nothing is dialled yet, and requests are not measured.
    pub fn new(credentials: Credentials, dialer: Arc<Dialer>, settings: EdgeSettings) -> Arc<Self> {
        Self::measured(credentials, dialer, settings, Arc::default())
    }

    /// Nothing is dialled yet. Requests are measured.
    pub fn measured(
        credentials: Credentials,
        dialer: Arc<Dialer>,
        settings: EdgeSettings,
        requests: Arc<Requests>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server: format!("the API server {}", credentials.server()),
            permits: Semaphore::new(settings.in_flight.max(1)),
            watches: Arc::new(Semaphore::new(settings.watches.max(1))),
            watches_built_in: Arc::new(Semaphore::new(settings.watches_built_in)),
            lanes: Lanes::new(credentials.clone(), Arc::clone(&dialer), settings),
            dialer,
            refused: Notify::new(),
            requests,
            credentials,
            settings,
        })
    }

    /// How messages name it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Told when an HTTP/2 connection ended.
    pub fn lost(&self) -> Arc<Notify> {
        self.lanes.lost()
    }

    /// Notified when a request was answered with 401 or 403: the credentials may have lost what every cluster needs.
    pub const fn refused(&self) -> &Notify {
        &self.refused
    }

    /// Connects, if there is no connection. Waits for the dialer's turn without a limit of its own.
    pub async fn open(&self) -> ApiResult<()> {
        let lane = self.lanes.take().await?;
        self.lanes.give_back(lane);
        Ok(())
    }

    /// Reads a path with an `Accept` of the caller's choice.
    pub async fn get(
        &self,
        path: impl IntoPath,
        accept: &'static str,
        etag: Option<&HeaderValue>,
    ) -> ApiResult<RawAnswer> {
        let mut request = wire::http_request(&self.credentials.base, Request::new(Method::Get, path), false)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(etag) = etag {
            request.headers_mut().insert(IF_NONE_MATCH, etag.clone());
        }
        self.whole(request).await
    }

    async fn whole(&self, request: http::Request<Bytes>) -> ApiResult<RawAnswer> {
        let started = Instant::now();
        let reads = request.method() == http::Method::GET;
        let turn = if reads { self.settings.turn } else { self.settings.answer_begins };
        let _permit = self.turn(&self.permits, started + turn).await?;
        let from = if reads { Instant::now() } else { started };
        let (response, lane) = self.exchange(request, from + self.settings.answer_begins, false).await?;
        let (head, body) = response.into_parts();
        let body = wire::collect(&self.server, body, self.settings.answer).await?;
        self.lanes.give_back(lane);
        Ok(RawAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn turn<'a>(
        &self,
        permits: &'a Semaphore,
        until: Instant,
    ) -> ApiResult<tokio::sync::SemaphorePermit<'a>> {
        match timeout_at(until, permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(unreachable("Timeout", &format!("{} is still busy with earlier requests", self.server))),
        }
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
        deadline: Instant,
        watch: bool,
    ) -> ApiResult<(http::Response<Incoming>, Lane)> {
        let (verb, begun) = (requests::verb(request.method(), watch), std::time::Instant::now());
        let answer = self.sent(request, deadline, watch).await;
        let code = answer.as_ref().ok().map(|(response, _)| response.status().as_u16());
        self.requests.ended(requests::Target::Edge, verb, code, begun);
        if matches!(code, Some(401 | 403)) {
            self.refused.notify_one();
        }
        answer
    }

    /// Sends, on a connection there is or a new one. A request that surely was not sent is sent once more: the server may
    /// have closed an idle connection at that very moment.
    async fn sent(
        &self,
        request: http::Request<Bytes>,
        mut deadline: Instant,
        watch: bool,
    ) -> ApiResult<(http::Response<Incoming>, Lane)> {
        let request = self.finish(request)?;
        let mut again = true;
        loop {
            let lane =
                async { if watch { self.lanes.take_for_watch().await } else { self.lanes.take().await } };
            let mut lane = timeout_at(deadline, lane).await.map_err(|_| self.late())??;
            let reused = lane.reused;
            match timeout_at(deadline, lane.send(request.clone(), &self.credentials)).await {
                Ok(Ok(response)) => return Ok((response, lane)),
                Ok(Err(error)) => {
                    let unsent = error.is_canceled();
                    let harmless = reused && request.method() == http::Method::GET;
                    if again && (unsent || harmless) {
                        again = false;
                        self.lanes.discard(&lane);
                        continue;
                    }
                    return Err(connect::lost(&self.server, &error));
                }
                // This process had no time to look. The answer may be there; a read is repeated to know.
                Err(_) if again && request.method() == http::Method::GET && deadline.elapsed() > STARVED => {
                    again = false;
                    deadline = Instant::now() + self.settings.answer_begins;
                }
                Err(_) => {
                    self.lanes.crowded(&lane);
                    return Err(self.late());
                }
            }
        }
    }

    fn late(&self) -> ApiError {
        unreachable(
            "Timeout",
            &format!("{} did not answer within {:?}", self.server, self.settings.answer_begins),
        )
    }

    fn finish(&self, request: http::Request<Bytes>) -> ApiResult<http::Request<Full<Bytes>>> {
        let mut request = request.map(Full::new);
        let authority = connect::authority(&self.credentials);
        let host = HeaderValue::from_str(&authority)
            .map_err(|_| protocol(&format!("{} has a name that cannot be sent", self.server)))?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(authorization) = &self.credentials.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }
}

#[async_trait]
impl ApiServer for Edge {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        let subject = Subject::of(&request.path);
        let request = wire::http_request(&self.credentials.base, request, false)?;
        let RawAnswer { status, headers, body } = self.whole(request).await?;
        Subject::withhold(subject.as_ref(), wire::answer(&self.server, status, &headers, body).await)
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        let subject = Subject::of(&request.path);
        let permit = Arc::clone(&self.watches).try_acquire_owned().ok();
        let spare = || Arc::clone(&self.watches_built_in).try_acquire_owned().ok();
        let permit = permit.or_else(|| if built_in::is_built_in(&request.path) { spare() } else { None });
        let request = wire::http_request(&self.credentials.base, request, true)?;
        let deadline = Instant::now() + self.settings.answer_begins;
        let Some(permit) = permit else {
            let many = self.settings.watches;
            let text = format!("{} has {many} open watches already, as many as one cluster may", self.server);
            return Err(unreachable("Timeout", &text));
        };
        let (response, lane) = self.exchange(request, deadline, true).await?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            // Permit and connection live as long as the stream does.
            let held = (permit, lane);
            return Ok(wire::events(&self.server, body)
                .map(move |event| {
                    let _held = &held;
                    event
                })
                .boxed());
        }
        let status = head.status.as_u16();
        let body = wire::collect(&self.server, body, self.settings.answer).await?;
        self.lanes.give_back(lane);
        match Subject::withhold(
            subject.as_ref(),
            wire::answer(&self.server, status, &head.headers, body).await,
        ) {
            Err(error) => Err(error),
            Ok(_) => Err(protocol(&format!("{} answers a watch with {status}", self.server))),
        }
    }
}

#[cfg(test)]
mod tests;
