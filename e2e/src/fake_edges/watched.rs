//! Answers a watch: lines of what changes, and bookmarks while nothing does.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use super::store::{Query, status};
use super::{Shared, respond};

/// API servers send one each minute.
const BOOKMARK: Duration = Duration::from_mins(1);

struct Watch {
    store: Shared,
    changes: watch::Receiver<()>,
    path: String,
    query: Query,
    /// The revision up to which everything was told.
    told: u64,
}

/// Begins after the revision that the query names.
pub(super) fn answer(store: Shared, path: String, query: Query) -> Response {
    let known = store.lock();
    let (changes, told) = (known.changes(), query.version.unwrap_or_else(|| known.revision()));
    let remembered = known.since(told, &path, &query).is_some();
    drop(known);
    if !remembered {
        return respond(status(410, "Expired"));
    }
    let watch = Watch { store, changes, path, query, told };
    Body::from_stream(stream::unfold(watch, Watch::next)).into_response()
}

impl Watch {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            self.changes.mark_unchanged();
            let (lines, revision) = {
                let store = self.store.lock();
                (store.since(self.told, &self.path, &self.query)?, store.revision())
            };
            self.told = revision;
            if !lines.is_empty() {
                return Some((Ok(Bytes::from(lines)), self));
            }
            match timeout(BOOKMARK, self.changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => {
                    let metadata = json!({"resourceVersion": self.told.to_string()});
                    let line = json!({"type": "BOOKMARK", "object": {"metadata": metadata}});
                    return Some((Ok(Bytes::from(format!("{line}\n"))), self));
                }
            }
        }
    }
}
