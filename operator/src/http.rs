//! Requests of probes, scrapers and people on this machine come in; health, metrics and inner state go out. Nothing here
//! asks the hub: an outage of the hub must not restart the operator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use emco_controllers::metrics::{CONTENT_TYPE, Metrics};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::readiness::Readiness;
use crate::telemetry::LogFilter;

/// Connections of one listener.
const CONNECTIONS: usize = 64;
/// Until a request's head has come.
const HEAD: Duration = Duration::from_secs(5);
/// One connection, however it is used: scrapers come again.
const CONNECTION: Duration = Duration::from_secs(300);
/// Bytes of a request's body.
const BODY: usize = 4096;

/// What everybody may ask.
pub fn public(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(page).with_state(metrics))
        .layer(DefaultBodyLimit::max(BODY))
}

/// What only this machine may ask. `state` gives the inner state when it is asked for.
pub fn debug(state: Arc<dyn Fn() -> Value + Send + Sync>, log: LogFilter) -> Router {
    Router::new()
        .route("/debug/state", get(move || async move { format!("{:#}\n", state()) }))
        .route("/debug/log", get(shown).put(change).with_state(log))
        .layer(DefaultBodyLimit::max(BODY))
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let missing = readiness.missing();
    if missing.is_empty() {
        return "ok\n".into_response();
    }
    let text = missing.iter().fold(String::new(), |text, (name, why)| text + &format!("{name}: {why}\n"));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn page(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.page() {
        Ok(page) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n").into_response(),
    }
}

async fn shown(State(log): State<LogFilter>) -> String {
    format!("{}\n", log.shown())
}

async fn change(State(log): State<LogFilter>, body: Bytes) -> Response {
    let Ok(text) = std::str::from_utf8(&body) else {
        return (StatusCode::BAD_REQUEST, "the body is not UTF-8 text\n").into_response();
    };
    match log.change(text.trim()) {
        Ok(()) => {
            tracing::info!(filter = text.trim(), "the log filter was changed");
            format!("{}\n", log.shown()).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

/// Binds; the error names the flag that chose the address.
pub async fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}: choose another address with {flag}"))
}

/// Serves until dropped.
pub async fn serve(listener: TcpListener, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of files, most likely; some will be closed.
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // A peer that goes away in the middle is no event.
            let _ = timeout(CONNECTION, connection).await;
            drop(slot);
        });
    }
}
