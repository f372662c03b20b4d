//! Every kind that a cluster serves in; what carries our label there and is in no inventory out. For the moments in which an
//! inventory may know too little: a cluster that comes back after its work was given up, content that is lost, an inventory
//! that was made anew.

use std::collections::BTreeSet;

use emco_crds::names::label;
use emco_engine::apis::ApiResource;
use emco_engine::drift;
use emco_engine::identity::Identity;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;

use super::super::edge::Session;
use super::super::errors::Trouble;
use super::super::work::Work;
use super::desired::{App, Doomed};
use super::row::Facts;
use super::{Job, JobContext, Key};
use crate::api::{Method, Request};

/// Objects per page.
const PAGE: &str = "500";

impl Job {
    /// Adds what a scan of all kinds finds; once per connection. False: it has to be tried again.
    pub(super) async fn scanned(
        &mut self,
        doomed: &mut Doomed,
        keep: &[App],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        if self.memory.scanned.as_ref().is_none_or(|(epoch, _)| *epoch != session.epoch) {
            if self.waits(&Key::Scan, facts) {
                facts.keep = true;
                return false;
            }
            match scan(&self.ctx, session).await {
                Ok(found) => {
                    self.memory.backoff.worked(&Key::Scan);
                    self.memory.scanned = Some((session.epoch, found));
                }
                Err(trouble) => {
                    self.failed(Key::Scan, trouble.clone());
                    facts.trouble(None, None, &trouble, 1);
                    facts.keep = true;
                    return false;
                }
            }
        }
        let found = self.memory.scanned.as_ref().map(|(_, found)| found.clone()).unwrap_or_default();
        for id in found.into_iter().filter(|id| !keep.iter().any(|app| app.set.names(id))) {
            doomed.objects.entry(id).or_default();
        }
        true
    }

    /// Whether the row asks for what carries our label, besides what it names.
    pub(super) fn searches(&self, work: &Work) -> bool {
        work.held.iter().any(|(since, named)| named.is_found() && self.counts(*since))
    }
}

/// Lists the metadata of every kind by our label. (Our entry in `managedFields` tells ours from what the cluster's own
/// controllers copied our label to.)
async fn scan(ctx: &JobContext, session: &Session) -> Result<BTreeSet<Identity>, Trouble> {
    let all = &session.apis;
    let preferred = |r: &&ApiResource| r.listable && all.preferred(&r.group, &r.kind) == Some(*r);
    let kinds: Vec<ApiResource> = all.resources.iter().filter(preferred).cloned().collect();
    let mut lists =
        stream::iter(kinds.into_iter().map(|kind| list(ctx, session, kind))).buffer_unordered(ctx.in_flight);
    let mut found = BTreeSet::new();
    while let Some(list) = lists.next().await {
        found.extend(list?);
    }
    Ok(found)
}

async fn list(ctx: &JobContext, session: &Session, kind: ApiResource) -> Result<Vec<Identity>, Trouble> {
    let mut found = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut request = Request::new(Method::Get, kind.path("", None))
            .query("labelSelector", format!("{}={}", label::OWNER, ctx.hash))
            .query("limit", PAGE)
            .metadata();
        if let Some(next) = next.take() {
            request = request.query("continue", next);
        }
        let page = match session.send(&ctx.edge, request).await {
            Ok(page) => page,
            // What these credentials may not list, they did not apply.
            Err(error) if matches!(error.code(), 403..=405) => return Ok(found),
            Err(error) => return Err(Trouble::of_request(&error)),
        };
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        found.extend(items.iter().filter_map(|item| identity(item, &kind, &ctx.manager)));
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => next = Some(token.to_owned()),
            _ => return Ok(found),
        }
    }
}

fn identity(item: &Value, kind: &ApiResource, manager: &str) -> Option<Identity> {
    let metadata = item.get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    drift::entry(entries, manager, "Apply")?;
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(Identity {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: text("namespace"),
        name: text("name"),
    })
}
