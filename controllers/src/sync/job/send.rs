//! Applies one object to a cluster.

use std::sync::atomic::Ordering;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::apis::ApiResource;
use emco_engine::drift::{self, bundles, joint};
use emco_engine::path::ApiPath;
use emco_engine::{adopt, marks};
use serde_json::{Value, json};

use super::super::edge::Session;
use super::desired::Item;
use super::takeover::{Stripped, Takeover};
use super::{JobContext, undeclared};
use crate::api::{ApiError, ApiResult, Content, Method, Request};

mod git;
mod unions;

/// A version that no object has: versions count changes of a database, as numbers of 64 bits with a sign, and this is the last
/// of them. An apply that names it makes an object, for whose version servers do not look at what was sent, and is refused
/// where there is one.
const NO_VERSION: &str = "9223372036854775807";

/// What an object is applied over.
#[derive(Clone)]
pub(super) enum Over {
    /// Nothing: where there is an object of that name, the server refuses it as a conflict.
    Nothing,
    /// An object of ours, by UID: with force, and over this very object alone.
    Ours(String),
    /// An object of ours whose label others took off: with force, at the version that was looked at.
    Stripped(Stripped),
    /// An object of others that becomes ours.
    Others(Takeover),
}

impl Over {
    pub const fn uid(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Ours(uid) | Self::Stripped(Stripped { uid, .. }) | Self::Others(Takeover { uid, .. }) => {
                Some(uid.as_str())
            }
        }
    }

    /// Who took our marks off an object that we applied before, if somebody did.
    pub fn stripped_by(&self) -> Option<&str> {
        match self {
            Self::Nothing | Self::Ours(_) => None,
            Self::Stripped(Stripped { by, .. }) | Self::Others(Takeover { by, .. }) => by.as_deref(),
        }
    }

    /// Whether it is ours already, with its label or without.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_) | Self::Stripped(_))
    }

    /// Whether fields of other managers are taken.
    fn forces(&self) -> bool {
        self.is_ours() || self.takes(ConflictPolicy::Force)
    }

    /// Whether it is an object of others that is taken over in this way.
    fn takes(&self, how: ConflictPolicy) -> bool {
        matches!(self, Self::Others(takeover) if takeover.how == how)
    }

    /// The version that was looked at, where fields are taken from others and no label says that it is ours: another deployment may
    /// have taken the object over since, and its marks are fields, too. Of what is to be made: none that an object can have.
    fn version(&self) -> Option<Value> {
        match self {
            Self::Nothing => Some(Value::from(NO_VERSION)),
            Self::Others(takeover) if takeover.how == ConflictPolicy::Force => {
                Some(Value::from(takeover.version.as_str()))
            }
            Self::Stripped(stripped) => Some(Value::from(stripped.version.as_str())),
            _ => None,
        }
    }
}

/// Why an object was not applied.
pub(super) enum Refusal {
    Server(ApiError),
    /// An object of others has other values in these fields.
    Differs(Vec<String>),
    /// Another deployment took the object over since it was looked at.
    Taken,
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
    /// Entries of earlier sets in a list that others add to.
    pub said: &'a [Value],
    pub placed_by: &'a str,
}

/// The apply of one object. Fields that the cluster does not know are left out, and come with the answer.
pub(super) async fn apply(
    sending: &Sending<'_>,
    session: &Session,
    ctx: &JobContext,
    stale: impl Fn() -> bool,
) -> Option<Sent> {
    let Sending { item, over, adopted, theirs, said, placed_by } = *sending;
    let manifest = item.manifest()?;
    let resource: &ApiResource = session.resource_of(&manifest.json)?;
    let path = resource.path(&item.id.namespace, Some(&item.id.name));
    let patch = Patch { path, account: manifest.account.as_deref(), session, ctx };
    let mut body = manifest.json.clone();
    bundles::leave_empty(&mut body);
    if let (false, Some(metadata)) =
        (resource.namespaced, body.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.remove("namespace");
    }
    let mut version = over.version();
    if over.uid().is_some() {
        let mut left = theirs;
        if matches!(over, Over::Others(_)) {
            // Nothing is ours yet: what is left to others is not said.
            drift::owned::leave(&mut body, &Value::Null, &json!({".": {}}), theirs);
            left = &[];
        }
        match patch.leave_to_others(&mut body, left, said).await {
            Ok(looked_at) => version = version.or(looked_at),
            // The watch tells its end.
            Err(error) if error.is_not_found() => return None,
            Err(error) => return Some(Sent::refused(Refusal::Server(error))),
        }
    }
    let mut marked = marks::mark(body, &ctx.owner.hash, &item.token, placed_by);
    if adopted {
        marked = marks::adopt(marked);
    }
    if let Some(metadata) = marked.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.extend(over.uid().map(|uid| ("uid".to_owned(), Value::from(uid))));
        metadata.extend(version.map(|version| ("resourceVersion".to_owned(), version)));
    }
    let mut left_out = Vec::new();
    let mut force = over.forces();
    if over.takes(ConflictPolicy::AdoptIfSame) {
        match patch.compare(&mut marked, &mut left_out, &stale).await? {
            Ok(()) => force = true,
            Err(refusal) => return Some(Sent::refused(refusal)),
        }
    }
    let mut answer = patch.send(&mut marked, force, false, &mut left_out, &stale).await?;
    if over.is_ours()
        && let Err(error) = &answer
        && let Some(claimed) = patch.claim_unions(&mut marked, error).await
    {
        answer = match claimed {
            Ok(()) => patch.send(&mut marked, force, false, &mut left_out, &stale).await?,
            Err(error) => Err(error),
        };
    }
    // Managers that hold the same value in another spelling, such as 0.1 of a CPU and 100m, lose nothing.
    if over.takes(ConflictPolicy::Adopt)
        && answer.as_ref().is_err_and(ApiError::is_contested)
        && patch.compare(&mut marked, &mut left_out, &stale).await?.is_ok()
    {
        answer = patch.send(&mut marked, true, false, &mut left_out, &stale).await?;
    }
    let rewritten = answer.as_ref().map(|live| rewritten(&marked, live, &ctx.manager)).unwrap_or_default();
    Some(Sent { answer: answer.map_err(Refusal::Server), left_out, rewritten })
}

/// The `managedFields` of an object.
pub(super) fn entries(live: &Value) -> &[Value] {
    live.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// Where an apply goes.
struct Patch<'a> {
    path: ApiPath,
    /// Who applies it. Reads are the operator's own.
    account: Option<&'a str>,
    session: &'a Session,
    ctx: &'a JobContext,
}

impl Patch<'_> {
    /// The object as it is.
    async fn live(&self) -> ApiResult<Value> {
        self.session.send(&self.ctx.edge, Request::new(Method::Get, self.path.clone())).await
    }

    /// Says of an object that is there what others have as it is, or not at all; answers the version that was looked at where the apply is
    /// about no other one.
    async fn leave_to_others(
        &self,
        body: &mut Value,
        theirs: &[String],
        said: &[Value],
    ) -> ApiResult<Option<Value>> {
        if theirs.is_empty() && joint::field(body).is_none() {
            return Ok(None);
        }
        let live = self.live().await?;
        let ours = drift::entry(entries(&live), &self.ctx.manager, "Apply");
        joint::join(body, &live, ours, said);
        let mut counts = !joint::entries(body).is_empty();
        // Without an entry of ours nothing is known to be others': all of it is said.
        if let Some(fields) = ours.filter(|_| !theirs.is_empty()) {
            drift::owned::leave(body, &live, fields, theirs);
            counts = true;
        }
        Ok(live.pointer("/metadata/resourceVersion").cloned().filter(|_| counts))
    }

    /// Whether an apply with force would change nothing of an object of others, by the API server's own word. The apply that
    /// follows is about the version that was compared.
    async fn compare(
        &self,
        marked: &mut Value,
        left_out: &mut Vec<String>,
        stale: &impl Fn() -> bool,
    ) -> Option<Result<(), Refusal>> {
        let live = match self.live().await {
            Ok(live) => live,
            Err(error) => return Some(Err(Refusal::Server(error))),
        };
        if marks::owner_of(&live).is_some() {
            return Some(Err(Refusal::Taken));
        }
        if let (Some(version), Some(metadata)) = (
            live.pointer("/metadata/resourceVersion"),
            marked.get_mut("metadata").and_then(Value::as_object_mut),
        ) {
            metadata.insert("resourceVersion".to_owned(), version.clone());
        }
        let after = match self.send(marked, true, true, left_out, stale).await? {
            Ok(after) => after,
            Err(error) => return Some(Err(Refusal::Server(error))),
        };
        let fields = adopt::differences(&live, &after);
        Some(if fields.is_empty() { Ok(()) } else { Err(Refusal::Differs(fields)) })
    }

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
        for _ in 0..undeclared::TRIES_TO_KNOW {
            if stale() {
                return None;
            }
            let mut request = Request::new(Method::Patch, self.path.clone())
                .query("fieldManager", self.ctx.manager.as_str())
                .query("force", if force { "true" } else { "false" })
                .acting_as(self.account)
                .body(Content::Apply, marked);
            if dry {
                request = request.query("dryRun", "All");
            }
            let answered = self.session.send(&self.ctx.edge, request).await;
            let refusal = answered.as_ref().err();
            let fields = refusal.map(|error| undeclared::leave_out(marked, error)).unwrap_or_default();
            let tries =
                !fields.is_empty() || refusal.is_some_and(|error| undeclared::leave_out_nulls(marked, error));
            answer = Some(answered);
            let more = u64::try_from(fields.len()).unwrap_or(u64::MAX);
            self.ctx.edge.metrics.left_out.fetch_add(more, Ordering::Relaxed);
            left_out.extend(fields);
            if !tries {
                break;
            }
        }
        answer
    }
}

/// Fields that the cluster's admission changed on the way: their names, as people write them.
fn rewritten(marked: &Value, live: &Value, manager: &str) -> Vec<String> {
    let entries = entries(live);
    // Mostly only the values differ; where admission's changes are an update in our name, that says so, too.
    let mut pointers = super::rewritten::pointers(marked, live);
    if drift::entry(entries, manager, "Update").is_some() {
        pointers.extend(drift::judge(marked, entries, manager).rewritten);
        pointers.sort();
        pointers.dedup();
    }
    pointers.iter().map(|p| p.replace('/', ".").replace("~1", "/").replace("~0", "~")).collect()
}
