//! Lists every kind that a cluster serves for what carries our label and is in no inventory. For the moments in which
//! an inventory may know too little: a cluster that comes back after its work was given up, content that is lost, an
//! inventory that was made anew.

use std::collections::BTreeSet;

use emco_crds::names::label;
use emco_engine::apis::ApiResource;
use emco_engine::drift;
use emco_engine::identity::Identity;
use emco_engine::selector::LabelSelector;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;

use super::super::absence::{self, AllServed};
use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::work::Work;
use super::desired::{App, PruneSet};
use super::row::Facts;
use super::{Job, JobContext, Key};
use crate::api::{ApiError, Method, Request};

/// Objects per page.
const PAGE: &str = "500";

impl Job {
    /// Adds what a scan of all kinds finds; once per connection. False: it has to be tried again.
    pub(super) async fn scanned(
        &mut self,
        pruned: &mut PruneSet,
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
                Ok((found, _)) => {
                    self.memory.backoff.worked(&Key::Scan);
                    self.memory.scanned = Some((session.epoch, found));
                }
                Err(trouble) => {
                    self.failed(Key::Scan, trouble.clone());
                    let attempts = self.memory.backoff.last(&Key::Scan).map_or(1, |tries| tries.count);
                    facts.trouble(None, None, &trouble, attempts);
                    facts.keep = true;
                    return false;
                }
            }
        }
        let found = self.memory.scanned.as_ref().map(|(_, found)| found.clone()).unwrap_or_default();
        for id in found.into_iter().filter(|id| !keep.iter().any(|app| app.set.names(id))) {
            pruned.objects.entry(id).or_default();
        }
        true
    }

    /// Whether the row asks for what carries our label, besides what it names.
    pub(super) fn searches(&self, work: &Work) -> bool {
        work.held.iter().any(|(since, named)| named.is_found() && self.counts(*since))
    }
}

/// Lists the metadata of every kind by our label. (Our entry in `managedFields` tells ours from what the cluster's own
/// controllers copied our label to.) With the proof that these are all kinds there are.
async fn scan(ctx: &JobContext, session: &Session) -> Result<(BTreeSet<Identity>, AllServed), Trouble> {
    let proof = absence::all_served(&ctx.edge, session).await?;
    let all = &session.apis;
    let preferred = |r: &&ApiResource| r.listable && all.preferred(&r.group, &r.kind) == Some(*r);
    let kinds: Vec<ApiResource> = all.resources.iter().filter(preferred).cloned().collect();
    let mut lists =
        stream::iter(kinds.into_iter().map(|kind| list(ctx, session, kind))).buffer_unordered(ctx.in_flight);
    let mut found = BTreeSet::new();
    while let Some(list) = lists.next().await {
        found.extend(list?);
    }
    Ok((found, proof))
}

async fn list(ctx: &JobContext, session: &Session, kind: ApiResource) -> Result<Vec<Identity>, Trouble> {
    let mut found = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let mut request = Request::new(Method::Get, kind.path("", None))
            .labels(&LabelSelector::is(label::OWNER, &ctx.owner.hash))
            .query("limit", PAGE)
            .metadata();
        if let Some(next) = next.take() {
            request = request.query("continue", next);
        }
        let page = match session.send(&ctx.edge, request).await {
            Ok(page) => page,
            Err(error) => return refused(ctx, session, &kind, &error).await.map(|()| found),
        };
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        found.extend(items.iter().filter_map(|item| identity(item, &kind, &ctx.manager)));
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => next = Some(token.to_owned()),
            _ => return Ok(found),
        }
    }
}

/// A kind whose list was refused has no objects only if that is proven: rights change, and a server that starts refuses for a
/// moment. The inventory is no proof here, for a scan is asked for where it may know too little.
async fn refused(
    ctx: &JobContext,
    session: &Session,
    kind: &ApiResource,
    error: &ApiError,
) -> Result<(), Trouble> {
    match error.code() {
        401 | 403 => {
            let text = format!(
                "what is left of {} in {} cannot be seen: grant the credentials list of {}, on the whole cluster",
                kind.kind,
                kind.api_version(),
                kind.plural
            );
            Err(Trouble::new("Forbidden", &text, Retry::Slowly))
        }
        404 => absence::kind(&ctx.edge, session, &kind.group, &kind.kind).await.map(drop),
        // A kind without lists keeps nothing that could be listed.
        405 => Ok(()),
        _ => Err(Trouble::of_request(error)),
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
