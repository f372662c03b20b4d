//! Applies one object to a cluster.

use std::sync::atomic::Ordering;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::apis::ApiResource;
use emco_engine::path::ApiPath;
use emco_engine::{adopt, drift, marks};
use serde_json::{Value, json};

use super::super::edge::Session;
use super::desired::Item;
use super::takeover::Takeover;
use super::{JobContext, undeclared};
use crate::runtime::api::{ApiError, ApiResult, Content, Method, Request};

/// An answer names a few unknown fields at a time.
const TRIES_TO_KNOW: usize = 4;

/// What an object is applied over.
#[derive(Clone)]
pub(super) enum Over {
    /// Nothing, as far as is known: without force, so that an object made by others at this moment is met as a conflict.
    Nothing,
    /// An object of ours, by UID: with force, and over this very object alone.
    Ours(String),
    /// An object of others that becomes ours.
    Others(Takeover),
}

impl Over {
    pub const fn uid(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Ours(uid) | Self::Others(Takeover { uid, .. }) => Some(uid.as_str()),
        }
    }

    /// Whether fields of other managers are taken.
    const fn forces(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Ours(_) => true,
            Self::Others(takeover) => matches!(takeover.how, ConflictPolicy::Force),
        }
    }

    /// Whether the object must equal its manifest already.
    const fn compares(&self) -> bool {
        matches!(self, Self::Others(takeover) if matches!(takeover.how, ConflictPolicy::AdoptIfSame))
    }
}

/// Why an object was not applied.
pub(super) enum Refusal {
    Server(ApiError),
    /// An object of others has other values in these fields.
    Differs(Vec<String>),
}

/// What an apply came to.
pub(super) struct Sent {
    pub answer: Result<Value, Refusal>,
    /// Fields that the cluster does not know.
    pub left_out: Vec<String>,
    /// Fields that its admission rewrote.
    pub rewritten: Vec<String>,
}

impl Sent {
    const fn refused(refusal: Refusal) -> Self {
        Self { answer: Err(refusal), left_out: Vec::new(), rewritten: Vec::new() }
    }
}

/// One object to be applied.
pub(super) struct Sending<'a> {
    pub item: &'a Item,
    pub over: &'a Over,
    /// It was there before it was ours.
    pub adopted: bool,
    /// Fields that are left to others: they are said as they are, at exactly this version.
    pub theirs: &'a [String],
    pub placed_by: &'a str,
}

/// The apply of one object. Fields that the cluster does not know are left out, and come with the answer.
pub(super) async fn apply(
    sending: &Sending<'_>,
    session: &Session,
    ctx: &JobContext,
    stale: impl Fn() -> bool,
) -> Option<Sent> {
    let Sending { item, over, adopted, theirs, placed_by } = *sending;
    let manifest = item.manifest()?;
    let resource: &ApiResource = session.resource_of(&manifest.json)?;
    let path = resource.path(&item.id.namespace, Some(&item.id.name));
    let mut body = manifest.json.clone();
    if let (false, Some(metadata)) =
        (resource.namespaced, body.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.remove("namespace");
    }
    let mut live = Value::Null;
    if over.compares() || matches!(over, Over::Ours(_)) && !theirs.is_empty() {
        live = match session.send(&ctx.edge, Request::new(Method::Get, path.clone())).await {
            Ok(live) => live,
            // The watch tells its end.
            Err(error) if error.is_not_found() => return None,
            Err(error) => return Some(Sent::refused(Refusal::Server(error))),
        };
    }
    if matches!(over, Over::Others(_)) {
        // Nothing is ours yet: what is left to others is not said.
        drift::owned::leave(&mut body, &Value::Null, &json!({".": {}}), theirs);
    }
    let mut version = live.pointer("/metadata/resourceVersion").cloned();
    if !over.compares() && !live.is_null() {
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let entries = entries.map_or(&[][..], Vec::as_slice);
        // Without an entry of ours nothing is known to be others': all of it is said.
        match drift::entry(entries, &ctx.manager, "Apply") {
            Some(fields) => drift::owned::leave(&mut body, &live, fields, theirs),
            None => version = None,
        }
    }
    let mut marked = marks::mark(body, &ctx.hash, &item.token, placed_by);
    if adopted {
        marked = marks::adopt(marked);
    }
    if let (Some(uid), Some(metadata)) =
        (over.uid(), marked.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("uid".to_owned(), Value::from(uid));
        metadata.extend(version.map(|version| ("resourceVersion".to_owned(), version)));
    }
    let patch = Patch { path, session, ctx };
    let mut left_out = Vec::new();
    if over.compares() {
        // With force: all that the apply would change is told, whoever has it.
        match patch.send(&mut marked, true, true, &mut left_out, &stale).await? {
            Ok(after) => {
                let fields = adopt::differences(&live, &after);
                if !fields.is_empty() {
                    return Some(Sent::refused(Refusal::Differs(fields)));
                }
            }
            Err(error) => return Some(Sent::refused(Refusal::Server(error))),
        }
    }
    let answer = patch.send(&mut marked, over.forces(), false, &mut left_out, &stale).await?;
    let rewritten = answer.as_ref().map(|live| rewritten(&marked, live, &ctx.manager)).unwrap_or_default();
    Some(Sent { answer: answer.map_err(Refusal::Server), left_out, rewritten })
}

/// Where an apply goes.
struct Patch<'a> {
    path: ApiPath,
    session: &'a Session,
    ctx: &'a JobContext,
}

impl Patch<'_> {
    /// Sends an apply, or asks what it would come to, without the fields that the cluster does not know.
    async fn send(
        &self,
        marked: &mut Value,
        force: bool,
        dry: bool,
        left_out: &mut Vec<String>,
        stale: &impl Fn() -> bool,
    ) -> Option<ApiResult<Value>> {
        let mut answer = None;
        for _ in 0..TRIES_TO_KNOW {
            if stale() {
                return None;
            }
            let mut request = Request::new(Method::Patch, self.path.clone())
                .query("fieldManager", self.ctx.manager.as_str())
                .query("force", if force { "true" } else { "false" })
                .body(Content::Apply, marked);
            if dry {
                request = request.query("dryRun", "All");
            }
            let answered = self.session.send(&self.ctx.edge, request).await;
            let unknown = answered.as_ref().err().map(|error| undeclared::leave_out(marked, error));
            answer = Some(answered);
            match unknown {
                Some(fields) if !fields.is_empty() => {
                    let more = u64::try_from(fields.len()).unwrap_or(u64::MAX);
                    self.ctx.edge.metrics.left_out.fetch_add(more, Ordering::Relaxed);
                    left_out.extend(fields);
                }
                _ => break,
            }
        }
        answer
    }
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
