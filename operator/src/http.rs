//! Serves metrics to scrapers, and inner state to people on this machine.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use emco_controllers::driver::metrics::{CONTENT_TYPE, Metrics};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::telemetry::LogFilter;

/// Bytes of a request's body.
const BODY: usize = 4096;

/// What scrapers may ask.
pub fn metrics(metrics: Arc<Metrics>) -> Router {
    Router::new().route("/metrics", get(page).with_state(metrics)).layer(DefaultBodyLimit::max(BODY))
}

/// What only this machine may ask. `state` gives the inner state when it is asked for.
pub fn debug(state: Arc<dyn Fn() -> Value + Send + Sync>, log: LogFilter) -> Router {
    Router::new()
        .route("/debug/state", get(move || async move { format!("{:#}\n", state()) }))
        .route("/debug/log", get(shown).put(change).with_state(log))
        .layer(DefaultBodyLimit::max(BODY))
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
