//! Applies one object to a cluster.

use std::sync::atomic::Ordering;

use emco_engine::apis::ApiResource;
use emco_engine::{drift, marks};
use serde_json::Value;

use super::super::edge::Session;
use super::desired::Item;
use super::{JobContext, undeclared};
use crate::runtime::api::{ApiError, ApiResult, Content, Method, Request};

/// An answer names a few unknown fields at a time.
const TRIES_TO_KNOW: usize = 4;

/// What an apply came to.
pub(super) struct Sent {
    pub answer: ApiResult<Value>,
    /// Fields that the cluster does not know.
    pub left_out: Vec<String>,
    /// Fields that its admission rewrote.
    pub rewritten: Vec<String>,
}

impl Sent {
    const fn refused(error: ApiError) -> Self {
        Self { answer: Err(error), left_out: Vec::new(), rewritten: Vec::new() }
    }
}

/// The apply of one object: with force over what is ours, and only over this very object; without over what is absent, so
/// that an object made by others at this moment is met as a conflict. Fields that are left to others (`theirs`) are said as
/// they are, at exactly this version. Fields that the cluster does not know are left out, and come with the answer.
pub(super) async fn apply(
    item: &Item,
    uid: Option<&str>,
    theirs: &[String],
    session: &Session,
    ctx: &JobContext,
    placed_by: &str,
    stale: impl Fn() -> bool,
) -> Option<Sent> {
    let manifest = item.manifest()?;
    let resource: &ApiResource = session.resource_of(&manifest.json)?;
    let path = resource.path(&item.id.namespace, Some(&item.id.name));
    let mut json = manifest.json.clone();
    if let (false, Some(metadata)) =
        (resource.namespaced, json.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.remove("namespace");
    }
    let mut version = None;
    if uid.is_some() && !theirs.is_empty() {
        match session.send(&ctx.edge, Request::new(Method::Get, path.clone())).await {
            Ok(live) => {
                let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
                let entries = entries.map_or(&[][..], Vec::as_slice);
                // Without an entry of ours nothing is known to be others': all of it is said.
                if let Some(fields) = drift::entry(entries, &ctx.manager, "Apply") {
                    drift::owned::leave(&mut json, &live, fields, theirs);
                    version = live.pointer("/metadata/resourceVersion").cloned();
                }
            }
            // The watch tells its end.
            Err(error) if error.is_not_found() => return None,
            Err(error) => return Some(Sent::refused(error)),
        }
    }
    let mut marked = marks::mark(json, &ctx.hash, &item.token, placed_by);
    if let (Some(uid), Some(metadata)) = (uid, marked.get_mut("metadata").and_then(Value::as_object_mut)) {
        metadata.insert("uid".to_owned(), Value::from(uid));
        metadata.extend(version.map(|version| ("resourceVersion".to_owned(), version)));
    }
    let force = if uid.is_some() { "true" } else { "false" };
    let mut answer = None;
    let mut left_out = Vec::new();
    for _ in 0..TRIES_TO_KNOW {
        if stale() {
            return None;
        }
        let request = Request::new(Method::Patch, path.clone())
            .query("fieldManager", ctx.manager.as_str())
            .query("force", force)
            .body(Content::Apply, &marked);
        let answered = session.send(&ctx.edge, request).await;
        let unknown = answered.as_ref().err().map(|error| undeclared::leave_out(&mut marked, error));
        answer = Some(answered);
        match unknown {
            Some(fields) if !fields.is_empty() => {
                let more = u64::try_from(fields.len()).unwrap_or(u64::MAX);
                ctx.edge.metrics.left_out.fetch_add(more, Ordering::Relaxed);
                left_out.extend(fields);
            }
            _ => break,
        }
    }
    let answer = answer?;
    let rewritten = answer.as_ref().map(|live| rewritten(&marked, live, &ctx.manager)).unwrap_or_default();
    Some(Sent { answer, left_out, rewritten })
}

/// Fields that the cluster's admission changed on the way: their names, as people write them.
fn rewritten(marked: &Value, live: &Value, manager: &str) -> Vec<String> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.map_or(&[][..], Vec::as_slice);
    // Mostly only the values differ; where admission's changes are an update in our name, that says so, too.
    let mut pointers = super::rewritten::pointers(marked, live);
    if drift::entry(entries, manager, "Update").is_some() {
        pointers.extend(drift::judge(marked, entries, manager).rewritten);
        pointers.sort();
        pointers.dedup();
    }
    pointers.iter().map(|p| p.replace('/', ".").replace("~1", "/").replace("~0", "~")).collect()
}
