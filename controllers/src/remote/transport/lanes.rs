//! Gives each request a connection: one of HTTP/2 for all, or one of HTTP/1.1 for each. Watches beyond what one connection of
//! HTTP/2 carries get connections of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connect::{self, Fresh};
use super::{Credentials, EdgeSettings};
use crate::api::ApiResult;
use crate::remote::dialer::Dialer;

/// How long an idle HTTP/1.1 connection may take to say that it is ready for another request.
const READY: Duration = Duration::from_millis(200);

/// Watches on one connection of HTTP/2. API servers allow 100 requests at a time on each, proxies 100 to 128; the rest is for
/// ordinary requests, and all windows together stay within the connection's.
const PER_CONNECTION: usize = 64;
/// The least that a server is taken to allow. One that stops at fewer is asked no less.
const LEAST: usize = 8;

/// A connection to send one request on.
pub struct Lane {
    wire: Wire,
    /// Held by each watch on the connection.
    watches: Option<Arc<()>>,
    /// Requests were sent on it before.
    pub reused: bool,
}

enum Wire {
    H2(http2::SendRequest<Full<Bytes>>),
    H1(http1::SendRequest<Full<Bytes>>),
}

/// A connection of HTTP/2, and what its watches hold.
#[derive(Clone)]
struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    watches: Arc<()>,
}

impl Shared {
    fn new(sender: http2::SendRequest<Full<Bytes>>) -> Self {
        Self { sender, watches: Arc::new(()) }
    }

    fn watched(&self) -> usize {
        Arc::strong_count(&self.watches) - 1
    }

    fn lane(&self, watch: bool, reused: bool) -> Lane {
        Lane {
            wire: Wire::H2(self.sender.clone()),
            watches: watch.then(|| Arc::clone(&self.watches)),
            reused,
        }
    }
}

#[derive(Default)]
struct Known {
    h2: Option<Shared>,
    /// For watches alone, where the first carries as many as it can.
    more: Vec<Shared>,
    idle: Vec<http1::SendRequest<Full<Bytes>>>,
    speaks_h1: bool,
}

/// The connections of one edge.
pub struct Lanes {
    credentials: Credentials,
    dialer: Arc<Dialer>,
    settings: EdgeSettings,
    known: Mutex<Known>,
    /// One at a time makes the first connection: with HTTP/2 the others then share it.
    making: tokio::sync::Mutex<()>,
    /// Watches that one connection carries, as far as is known.
    per_connection: AtomicUsize,
    lost: Arc<Notify>,
}

impl Lanes {
    pub fn new(credentials: Credentials, dialer: Arc<Dialer>, settings: EdgeSettings) -> Self {
        Self {
            credentials,
            dialer,
            settings,
            known: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            per_connection: AtomicUsize::new(PER_CONNECTION),
            lost: Arc::new(Notify::new()),
        }
    }

    pub fn lost(&self) -> Arc<Notify> {
        Arc::clone(&self.lost)
    }

    /// A connection there is, else a new one.
    pub async fn take(&self) -> ApiResult<Lane> {
        if let Some(lane) = self.existing().await {
            return Ok(lane);
        }
        let _making = if self.known.lock().speaks_h1 { None } else { Some(self.making.lock().await) };
        if let Some(lane) = self.existing().await {
            return Ok(lane);
        }
        let fresh = connect::connect(&self.credentials, &self.dialer, &self.settings, &self.lost).await?;
        let mut known = self.known.lock();
        Ok(match fresh {
            Fresh::H2(sender) => {
                known.speaks_h1 = false;
                let shared = Shared::new(sender);
                let lane = shared.lane(false, false);
                known.h2 = Some(shared);
                lane
            }
            Fresh::H1(sender) => {
                known.speaks_h1 = true;
                Lane { wire: Wire::H1(sender), watches: None, reused: false }
            }
        })
    }

    /// A connection with room for one more watch, else a new one.
    pub async fn take_for_watch(&self) -> ApiResult<Lane> {
        let first = self.take().await?;
        if matches!(first.wire, Wire::H1(_)) {
            return Ok(first);
        }
        if let Some(lane) = self.with_room() {
            return Ok(lane);
        }
        let _making = self.making.lock().await;
        if let Some(lane) = self.with_room() {
            return Ok(lane);
        }
        match connect::connect(&self.credentials, &self.dialer, &self.settings, &self.lost).await? {
            Fresh::H2(sender) => {
                let shared = Shared::new(sender);
                let lane = shared.lane(true, false);
                self.known.lock().more.push(shared);
                Ok(lane)
            }
            Fresh::H1(sender) => Ok(Lane { wire: Wire::H1(sender), watches: None, reused: false }),
        }
    }

    /// Connections of their own that no watch needs any more are closed.
    fn with_room(&self) -> Option<Lane> {
        let most = self.per_connection.load(Ordering::Relaxed);
        let mut known = self.known.lock();
        known.more.retain(|shared| !shared.sender.is_closed() && shared.watched() > 0);
        let first = known.h2.iter().filter(|shared| !shared.sender.is_closed());
        let room = first.chain(&known.more).find(|shared| shared.watched() < most);
        room.map(|shared| shared.lane(true, true))
    }

    /// No answer came in time while watches live on the connection: the server may allow fewer requests at a time. What is
    /// asked next gets another connection, and where it was a watch, fewer of them share one.
    pub fn crowded(&self, lane: &Lane) {
        let Wire::H2(_) = &lane.wire else { return };
        let mut known = self.known.lock();
        if known.h2.as_ref().is_some_and(|first| first.watched() >= LEAST)
            && let Some(first) = known.h2.take()
        {
            known.more.push(first);
        }
        let Some(watches) = &lane.watches else { return };
        // Without the connection's own, and the one that got no answer.
        let others = Arc::strong_count(watches).saturating_sub(2);
        if others >= LEAST {
            self.per_connection.fetch_min((others / 2).max(LEAST), Ordering::Relaxed);
        }
    }

    async fn existing(&self) -> Option<Lane> {
        loop {
            let mut idle = {
                let mut known = self.known.lock();
                if known.h2.as_ref().is_some_and(|shared| shared.sender.is_closed()) {
                    known.h2 = None;
                }
                if let Some(shared) = &known.h2 {
                    return Some(shared.lane(false, true));
                }
                known.idle.pop()?
            };
            if matches!(timeout(READY, idle.ready()).await, Ok(Ok(()))) {
                return Some(Lane { wire: Wire::H1(idle), watches: None, reused: true });
            }
        }
    }

    /// Keeps an HTTP/1.1 connection whose answer was read to its end for the next request.
    pub fn give_back(&self, lane: Lane) {
        let Wire::H1(sender) = lane.wire else { return };
        let mut known = self.known.lock();
        if !sender.is_closed() && known.idle.len() < self.settings.in_flight {
            known.idle.push(sender);
        }
    }

    /// Forgets an HTTP/2 connection that failed, so that the next request makes another.
    pub fn discard(&self, lane: &Lane) {
        if matches!(lane.wire, Wire::H2(_)) {
            let mut known = self.known.lock();
            let same =
                |shared: &Shared| lane.watches.as_ref().is_some_and(|w| Arc::ptr_eq(w, &shared.watches));
            match known.more.iter().position(same) {
                Some(index) => drop(known.more.swap_remove(index)),
                None => known.h2 = None,
            }
        }
    }
}

impl Lane {
    /// Sends one request and waits for the head of its answer.
    pub async fn send(
        &mut self,
        mut request: http::Request<Full<Bytes>>,
        credentials: &Credentials,
    ) -> hyper::Result<http::Response<Incoming>> {
        match &mut self.wire {
            Wire::H1(sender) => sender.send_request(request).await,
            Wire::H2(sender) => {
                // HTTP/2 takes scheme and authority from the URI, HTTP/1.1 must not have them there.
                let absolute = request.uri().path_and_query().cloned().and_then(|path| {
                    Uri::builder()
                        .scheme("https")
                        .authority(connect::authority(credentials))
                        .path_and_query(path)
                        .build()
                        .ok()
                });
                if let Some(uri) = absolute {
                    *request.uri_mut() = uri;
                }
                request.headers_mut().remove(http::header::HOST);
                sender.send_request(request).await
            }
        }
    }
}
