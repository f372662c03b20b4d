//! Requests come in, connections to send them on go out: one of HTTP/2 for all, or one of HTTP/1.1 for each.

use std::sync::Arc;
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
use crate::dialer::Dialer;

/// How long an idle HTTP/1.1 connection may take to say that it is ready for another request.
const READY: Duration = Duration::from_millis(200);

/// A connection to send one request on.
pub struct Lane {
    wire: Wire,
    /// Requests were sent on it before.
    pub reused: bool,
}

enum Wire {
    H2(http2::SendRequest<Full<Bytes>>),
    H1(http1::SendRequest<Full<Bytes>>),
}

#[derive(Default)]
struct Known {
    h2: Option<http2::SendRequest<Full<Bytes>>>,
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
                known.h2 = Some(sender.clone());
                Lane { wire: Wire::H2(sender), reused: false }
            }
            Fresh::H1(sender) => {
                known.speaks_h1 = true;
                Lane { wire: Wire::H1(sender), reused: false }
            }
        })
    }

    async fn existing(&self) -> Option<Lane> {
        loop {
            let mut idle = {
                let mut known = self.known.lock();
                if known.h2.as_ref().is_some_and(http2::SendRequest::is_closed) {
                    known.h2 = None;
                }
                if let Some(sender) = &known.h2 {
                    return Some(Lane { wire: Wire::H2(sender.clone()), reused: true });
                }
                known.idle.pop()?
            };
            if matches!(timeout(READY, idle.ready()).await, Ok(Ok(()))) {
                return Some(Lane { wire: Wire::H1(idle), reused: true });
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
            self.known.lock().h2 = None;
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
