//! Requests become HTTP, HTTP answers become JSON, watch events or typed errors. Shared by the hub and the edges.

use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use emco_engine::conditions::shorten;
pub use emco_engine::conditions::truncate as cut;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::timeout;

use crate::api::withheld::values;
use crate::api::{Accept, ApiError, ApiResult, Content, Method, Request, WatchEvent};

/// Longest text quoted of a Status.
const STATUS_BYTES: usize = 1024;
/// The same of a refusal: who asked stands first at length, and each right that is missing last.
const REFUSAL_BYTES: usize = 4096;
/// Longest text of a Status that is read for values to leave out. An object has at most 3 MiB.
const QUOTING_BYTES: usize = 4 << 20;
/// Longest explanation of our own.
const MESSAGE_BYTES: usize = 256;
/// Causes kept of a Status.
pub const CAUSES: usize = 16;
/// Answers larger than this are parsed on a thread that may block.
const LARGE: usize = 1 << 20;
/// One event of a watch; an object is at most 3 MiB in etcd's limit.
const LINE_BYTES: usize = 8 << 20;
/// A watch without even a bookmark for so long is taken for dead; API servers send one each minute.
const WATCH_IDLE: Duration = Duration::from_secs(300);

/// No answer, with a sentence.
pub fn unreachable(reason: &'static str, message: &str) -> ApiError {
    ApiError::Unreachable { reason, message: cut(message, MESSAGE_BYTES) }
}

/// Something that is not Kubernetes, with a sentence of our own.
pub fn protocol(message: &str) -> ApiError {
    ApiError::Protocol(cut(message, MESSAGE_BYTES))
}

/// Builds the HTTP request, with a path below `base` (empty, or such as `/k8s/clusters/c-1`) and no host.
pub fn http_request(base: &str, request: Request, watch: bool) -> ApiResult<http::Request<Bytes>> {
    if let Some(fault) = request.fault() {
        return Err(unsendable(&fault));
    }
    let Request { method, path, query, body, accept, impersonate, .. } = request;
    let mut uri = format!("{base}{path}");
    let mut pairs = query;
    if watch {
        for (name, value) in [("watch", "true"), ("allowWatchBookmarks", "true")] {
            if !pairs.iter().any(|(known, _)| *known == name) {
                pairs.push((name, value.to_owned()));
            }
        }
    }
    if !pairs.is_empty() {
        let mut encoder = url::form_urlencoded::Serializer::new(String::new());
        encoder.extend_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str())));
        uri.push(if uri.contains('?') { '&' } else { '?' });
        uri.push_str(&encoder.finish());
    }
    let verb = match method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
    };
    let listing = method == Method::Get && !watch && is_collection(path.as_str());
    let (content, bytes) = match body {
        Some((content, bytes)) => (Some(content), bytes),
        None => (None, Bytes::new()),
    };
    let mut built =
        http::Request::builder().method(verb).uri(uri).body(bytes).map_err(|_| {
            protocol(&format!("{} is not a path that can be requested", cut(path.as_str(), 160)))
        })?;
    let headers = built.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static(accept_header(accept, listing)));
    if let Some(content) = content {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(content)));
    }
    if let Some(account) = impersonate {
        headers.insert("impersonate-user", impersonation(&account)?);
    }
    Ok(built)
}

/// A request with a name that no object, or a label that no object can have. Another try gives nothing else, so it is the sender's
/// fault.
pub fn unsendable(fault: &str) -> ApiError {
    ApiError::Status {
        code: 400,
        reason: "BadRequest".to_owned(),
        message: cut(fault, MESSAGE_BYTES),
        retry_after: None,
        causes: Vec::new(),
    }
}

/// Acting as a user or a group would be acting as anybody: only `ServiceAccounts` are.
pub fn impersonation(account: &str) -> ApiResult<HeaderValue> {
    let refused = || protocol(&format!("{} is not a ServiceAccount that can be acted as", cut(account, 120)));
    let rest = account.strip_prefix("system:serviceaccount:").ok_or_else(refused)?;
    let (namespace, name) = rest.split_once(':').ok_or_else(refused)?;
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
    };
    if !plain(namespace) || !plain(name) {
        return Err(refused());
    }
    HeaderValue::from_str(account).map_err(|_| refused())
}

const fn content_type(content: Content) -> &'static str {
    match content {
        Content::Json => "application/json",
        Content::Apply => "application/apply-patch+yaml",
        Content::Merge => "application/merge-patch+json",
        Content::JsonPatch => "application/json-patch+json",
    }
}

/// The server answers 406 when a list is asked for as one object, so the two have different names here.
const fn accept_header(accept: Accept, listing: bool) -> &'static str {
    match (accept, listing) {
        (Accept::Full, _) => "application/json",
        (Accept::Metadata, true) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        (Accept::Metadata, false) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
    }
}

/// Whether a path names a collection: `/api/v1/pods`, `/apis/apps/v1/namespaces/shop/deployments`.
fn is_collection(path: &str) -> bool {
    let mut parts = path.trim_matches('/').split('/');
    let skip = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return false,
    };
    let rest: Vec<&str> = parts.skip(skip).collect();
    match rest.as_slice() {
        [_] => true,
        ["namespaces", _, last] => !matches!(*last, "status" | "finalize"),
        _ => false,
    }
}

/// A part of a JSON value by its path; null where there is none.
pub fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// How much of an answer is read, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Bytes.
    pub bytes: usize,
    /// Until the whole body must be there.
    pub time: Duration,
}

/// Reads a whole body.
pub async fn collect<B>(server: &str, body: B, limits: ReadLimits) -> ApiResult<Bytes>
where
    B: Body<Data = Bytes>,
{
    let mut body = Box::pin(body);
    let read = async {
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| {
                unreachable(
                    "ConnectionLost",
                    &format!("{server} closed the connection in the middle of an answer"),
                )
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if all.len() + data.len() > limits.bytes {
                return Err(protocol(&format!(
                    "{server} answers more than {} bytes to one request",
                    limits.bytes
                )));
            }
            all.extend_from_slice(&data);
        }
        Ok(all.freeze())
    };
    match timeout(limits.time, read).await {
        Ok(done) => done,
        Err(_) => Err(unreachable(
            "Timeout",
            &format!("{server} did not finish an answer within {:?}", limits.time),
        )),
    }
}

/// An answer with a whole body becomes JSON or an error.
pub async fn answer(server: &str, status: u16, headers: &HeaderMap, bytes: Bytes) -> ApiResult<Value> {
    let parsed = if bytes.len() > LARGE {
        tokio::task::spawn_blocking(move || {
            serde_json::from_slice::<Value>(&bytes).map_err(|_| bytes.slice(..64))
        })
        .await
        .map_err(|_| protocol("the operator is shutting down"))?
    } else {
        serde_json::from_slice::<Value>(&bytes).map_err(|_| bytes)
    };
    match parsed {
        Ok(value) if (200..300).contains(&status) => Ok(value),
        Ok(value) if at(&value, "/kind") == "Status" => Err(status_error(status, headers, &value)),
        Ok(_) => Err(without_status(server, status, headers, b"")),
        Err(bytes) => Err(without_status(server, status, headers, &bytes)),
    }
}

/// A Status object becomes an error.
pub fn status_error<'a>(http: u16, headers: &HeaderMap, status: &'a Value) -> ApiError {
    let text = |value: &Value, max| cut(value.as_str().unwrap_or_default(), max);
    // Before they are cut: the rule stands behind the value, which may be a whole object.
    let quoting = |value: &'a Value| {
        let text = value.as_str().unwrap_or_default();
        text.get(..text.floor_char_boundary(QUOTING_BYTES)).unwrap_or_default()
    };
    let details = at(status, "/details");
    let causes = at(details, "/causes").as_array().map(Vec::as_slice).unwrap_or_default();
    let code =
        at(status, "/code").as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let code = code.unwrap_or(http);
    let message = values::withhold(quoting(at(status, "/message")));
    ApiError::Status {
        code,
        reason: text(at(status, "/reason"), 64),
        message: match code {
            401 | 403 => shorten(&message, REFUSAL_BYTES),
            // Fields that a server does not know are read line by line.
            _ => cut(&message, STATUS_BYTES),
        },
        retry_after: at(details, "/retryAfterSeconds")
            .as_u64()
            .filter(|s| *s > 0)
            .or_else(|| retry_after(headers)),
        causes: causes
            .iter()
            .take(CAUSES)
            .map(|cause| {
                let field = text(at(cause, "/field"), MESSAGE_BYTES);
                let message = values::withhold_cause(&field, quoting(at(cause, "/message")));
                (field, cut(&message, MESSAGE_BYTES))
            })
            .collect(),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// Answers without a Status. Nothing of their body is quoted: it may be anybody's page. A plain 404 counts as an API
/// server's (for a kind that it does not serve) only with the header that API servers add: behind a load balancer's own
/// 404 the object may well exist, and "gone" would be a lie.
fn without_status(server: &str, status: u16, headers: &HeaderMap, body: &[u8]) -> ApiError {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no content type");
    let kind = cut(kind, 48);
    let plain = |reason: &str, message: String| ApiError::Status {
        code: status,
        reason: reason.to_owned(),
        message: cut(&message, MESSAGE_BYTES),
        retry_after: retry_after(headers),
        causes: Vec::new(),
    };
    match status {
        404 if headers.contains_key("audit-id") && body.starts_with(b"404 page not found") => {
            plain("NotFound", format!("{server} does not serve this path"))
        }
        401 => plain("Unauthorized", format!("{server} answers 401 Unauthorized")),
        429 | 502 | 503 | 504 => {
            plain("", format!("{server} answers {status} ({kind}) without a Kubernetes Status"))
        }
        _ => protocol(&format!(
            "{server} answers {status} with {kind} instead of Kubernetes' JSON: is this the address of an API server?"
        )),
    }
}

struct Lines<B> {
    body: Pin<Box<B>>,
    buffer: BytesMut,
    scanned: usize,
    server: String,
    ended: bool,
}

/// A watch's body becomes its events.
pub fn events<B>(server: &str, body: B) -> BoxStream<'static, ApiResult<WatchEvent>>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    let state = Lines {
        body: Box::pin(body),
        buffer: BytesMut::new(),
        scanned: 0,
        server: server.to_owned(),
        ended: false,
    };
    futures::stream::unfold(state, |mut state| async move {
        if state.ended {
            return None;
        }
        let next = state.next().await?;
        state.ended = next.is_err();
        Some((next, state))
    })
    .boxed()
}

impl<B: Body<Data = Bytes>> Lines<B> {
    async fn next(&mut self) -> Option<ApiResult<WatchEvent>> {
        loop {
            if let Some(line) = self.take_line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(event(&self.server, &line));
            }
            if self.buffer.len() > LINE_BYTES {
                return Some(Err(protocol(&format!(
                    "{} sends an event of more than {LINE_BYTES} bytes",
                    self.server
                ))));
            }
            match timeout(WATCH_IDLE, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Ok(Some(Err(_))) => {
                    return Some(Err(unreachable(
                        "ConnectionLost",
                        &format!("{} closed a watch", self.server),
                    )));
                }
                Ok(None) => return None,
                Err(_) => {
                    return Some(Err(unreachable(
                        "ConnectionLost",
                        &format!("{} sent nothing on a watch for {WATCH_IDLE:?}", self.server),
                    )));
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.scanned..)?;
        if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.scanned + at).freeze();
            self.buffer.advance(1);
            self.scanned = 0;
            Some(line)
        } else {
            self.scanned = self.buffer.len();
            None
        }
    }
}

fn event(server: &str, line: &[u8]) -> ApiResult<WatchEvent> {
    let broken = || protocol(&format!("{server} sends something on a watch that is not an event"));
    let mut value: Value = serde_json::from_slice(line).map_err(|_| broken())?;
    let object = value.get_mut("object").map(Value::take).ok_or_else(broken)?;
    match at(&value, "/type").as_str() {
        Some("ADDED" | "MODIFIED") => Ok(WatchEvent::Applied(object)),
        Some("DELETED") => Ok(WatchEvent::Deleted(object)),
        Some("BOOKMARK") => at(&object, "/metadata/resourceVersion")
            .as_str()
            .map(|version| WatchEvent::Bookmark(version.to_owned()))
            .ok_or_else(broken),
        Some("ERROR") => Err(status_error(500, &HeaderMap::new(), &object)),
        _ => Err(broken()),
    }
}

#[cfg(test)]
mod tests;
