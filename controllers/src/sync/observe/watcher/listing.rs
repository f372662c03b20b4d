//! Lists a kind in pages, and reads what a list or an event shows of an object.

use std::sync::Arc;

use emco_crds::names::label;
use emco_engine::health;
use emco_engine::identity::Identity;
use emco_engine::selector::LabelSelector;
use serde_json::Value;

use super::super::super::metrics::count;
use super::super::Seen;
use super::{Position, Watcher};
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request};

/// Objects per page of a list.
const PAGE: u64 = 500;
/// Objects judged one after the other without a pause.
const TOGETHER: usize = 10;
/// Pages of a list: more objects of ours of one kind on one cluster than this are not worked with.
const PAGES: usize = 400;

impl Watcher {
    pub(super) fn request(&self) -> Request {
        let request = Request::new(Method::Get, self.resource.path(self.place.namespace(), None))
            .labels(&LabelSelector::has(label::OWNER))
            .acting_as(self.actor());
        // The content matters only where it says how the object is.
        if health::has_rule(&self.resource.group, &self.resource.kind) { request } else { request.metadata() }
    }

    /// A complete list; also whether it shows what the watch before it did not deliver.
    pub(super) async fn list(&self, server: &Arc<dyn ApiServer>, epoch: u64) -> ApiResult<(Position, bool)> {
        count(&self.edge.metrics.lists);
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES {
            let mut request = self.request().query("limit", PAGE.to_string());
            if let Some(next) = next.take() {
                request = request.query("continue", next);
            }
            let page = self.edge.send(server, request).await?;
            let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            for some in items.chunks(TOGETHER) {
                all.extend(some.iter().filter_map(|item| self.seen(item)));
                // Rules of users take their time, and others use this thread.
                tokio::task::yield_now().await;
            }
            let metadata = page.get("metadata");
            let text =
                |key: &str| metadata.and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default();
            if text("continue").is_empty() {
                let version = text("resourceVersion").to_owned();
                let read = version.parse().unwrap_or_default();
                let missed = self.edge.observed.listed(&self.kind, &self.place, read, all);
                return Ok((Position { epoch, version, doubtful: false }, missed));
            }
            next = Some(text("continue").to_owned());
        }
        let text = format!(
            "more than {} objects of kind {} carry our label",
            PAGES as u64 * PAGE,
            self.resource.kind
        );
        Err(ApiError::Protocol(text))
    }

    pub(super) fn seen(&self, object: &Value) -> Option<(Identity, Seen)> {
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
        let seen = self.edge.observed.rules().judged(&id, &whole)?;
        Some((id, seen))
    }
}
