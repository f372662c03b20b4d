//! One Kubernetes API server, as small as the operator needs it: requests, answers, typed errors. The hub, every edge
//! and the in-memory server of the tests are all of this trait, so the same code runs against each.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use emco_engine::conditions;
use emco_engine::path::ApiPath;
use emco_engine::selector::{FieldSelector, LabelSelector};
use futures::stream::BoxStream;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub mod account;
pub mod boot_clock;
pub(crate) mod each_key;
pub mod fence;
pub mod key_queue;
pub mod listeners;
pub mod looks;
mod pages;
pub(crate) mod places;
pub mod plan_turns;
pub mod planning;
pub(crate) mod priority;
pub mod pulse;
pub mod renders;
pub mod requests;
pub(crate) mod rests;
pub(crate) mod shares;
pub(crate) mod turns;
pub mod unreachable;
pub mod views;
pub mod withheld;
pub mod world;

pub use pages::pages;

/// HTTP verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read one object or a list.
    Get,
    /// Create.
    Post,
    /// Replace; needs the resourceVersion.
    Put,
    /// Change in part; the body's content type says how.
    Patch,
    /// Remove; preconditions travel in the body.
    Delete,
}

/// What a body is, which for PATCH also says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// `application/json`
    Json,
    /// Server-side apply (`application/apply-patch+yaml`; JSON is YAML).
    Apply,
    /// `application/merge-patch+json`
    Merge,
    /// `application/json-patch+json`
    JsonPatch,
}

/// Which representation is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accept {
    /// Whole objects.
    #[default]
    Full,
    /// `PartialObjectMetadata`: metadata alone.
    Metadata,
}

/// What can be requested: text of this program, or a path whose names were encoded. A text made at run time is neither.
pub trait IntoPath: Send {
    /// The path.
    fn into_path(self) -> ApiPath;
}

impl IntoPath for ApiPath {
    fn into_path(self) -> ApiPath {
        self
    }
}

impl IntoPath for &ApiPath {
    fn into_path(self) -> ApiPath {
        self.clone()
    }
}

#[cfg(not(test))]
impl IntoPath for &'static str {
    fn into_path(self) -> ApiPath {
        ApiPath::new(self)
    }
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Verb.
    pub method: Method,
    /// Absolute path, such as `/apis/apps/v1/namespaces/shop/deployments/web`.
    pub path: ApiPath,
    /// Query parameters, not yet encoded.
    pub query: Vec<(&'static str, String)>,
    /// Why it must not be sent, where a selector cannot be written.
    selector_fault: Option<&'static str>,
    /// Body with its kind.
    pub body: Option<(Content, Bytes)>,
    /// Whole objects or metadata alone.
    pub accept: Accept,
    /// `system:serviceaccount:...` to act as; `None` acts as the registered credential.
    pub impersonate: Option<String>,
}

impl Request {
    /// A request without query and body.
    pub fn new(method: Method, path: impl IntoPath) -> Self {
        Self {
            method,
            path: path.into_path(),
            query: Vec::new(),
            selector_fault: None,
            body: None,
            accept: Accept::Full,
            impersonate: None,
        }
    }

    /// Adds a query parameter. Selectors have types of their own.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if matches!(name, "fieldSelector" | "labelSelector") {
            self.selector_fault = Some("a selector was written as text");
        }
        self.query.push((name, value.into()));
        self
    }

    /// Asks for objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &FieldSelector) -> Self {
        self.query.push(("fieldSelector", selector.as_str().to_owned()));
        self
    }

    /// Asks for objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &LabelSelector) -> Self {
        self.selector_fault = self.selector_fault.or_else(|| selector.fault());
        self.query.push(("labelSelector", selector.as_str().to_owned()));
        self
    }

    /// Why it cannot be sent, as a sentence.
    pub fn fault(&self) -> Option<String> {
        let selector = |fault: &str| {
            let path = conditions::truncate(self.path.as_str(), 120);
            format!("a selector of {path} cannot be requested: {fault}")
        };
        self.path.fault_sentence().or_else(|| self.selector_fault.map(selector))
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn body(mut self, content: Content, value: &Value) -> Self {
        self.body = Some((content, Bytes::from(value.to_string())));
        self
    }

    /// Acts as an account of the cluster.
    #[must_use]
    pub fn acting_as(mut self, account: Option<&str>) -> Self {
        self.impersonate = account.map(str::to_owned);
        self
    }

    /// Asks for metadata alone.
    #[must_use]
    pub const fn metadata(mut self) -> Self {
        self.accept = Accept::Metadata;
        self
    }
}

/// Why a request gave no object.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    /// No answer: the server could not be reached, or not in time.
    #[error("{}", one_line(message))]
    Unreachable {
        /// `Timeout`, `ConnectionRefused`, `DNSFailed`, `TLSFailed`, `ConnectionLost`.
        reason: &'static str,
        /// At most 256 bytes, no secrets.
        message: String,
    },
    /// The server answered with a Kubernetes Status.
    #[error("{}", one_line(message))]
    Status {
        /// HTTP code.
        code: u16,
        /// The Status' reason, such as `AlreadyExists`; empty where it had none.
        reason: String,
        /// The Status' message, at most 1,024 bytes; of a refusal (401, 403) at most 4,096.
        message: String,
        /// From `Retry-After` or the Status' details, seconds.
        retry_after: Option<u64>,
        /// Causes of the details: `(field, message)`, at most 16. For apply conflicts these name the other managers.
        causes: Vec<(String, String)>,
    },
    /// The server answered something that is not Kubernetes: HTML, a broken body, more than the limit.
    #[error("{}", one_line(.0))]
    Protocol(String),
}

/// A server's text as one line: it must not write lines of a log that look like ours.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(text)
    }
}

impl ApiError {
    /// HTTP code; 0 where there was no Status.
    pub const fn code(&self) -> u16 {
        match self {
            Self::Status { code, .. } => *code,
            _ => 0,
        }
    }

    /// The Status' reason.
    pub fn reason(&self) -> &str {
        match self {
            Self::Status { reason, .. } => reason,
            Self::Unreachable { reason, .. } => reason,
            Self::Protocol(_) => "Protocol",
        }
    }

    /// How long the server wants to be left alone (429, 503), as far as it is believed; zero where it does not say.
    pub fn asks_for(&self) -> Duration {
        const LONGEST: Duration = Duration::from_mins(5);
        match self {
            Self::Status { retry_after: Some(seconds), .. } => Duration::from_secs(*seconds).min(LONGEST),
            _ => Duration::ZERO,
        }
    }

    /// 404.
    pub const fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// The server itself says that it has no object of this name. Any other 404 says only that nothing is served there: of a
    /// proxy, of a server that is not the cluster's, or of one that starts and has not read all definitions yet.
    pub fn lacks(&self, name: &str) -> bool {
        matches!(self, Self::Status { code, message, .. } if withheld::is_absence(*code, message, name))
    }

    /// 409 of any kind.
    pub const fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// 403 because the user has no right to do such a thing, whatever the object says.
    pub fn lacks_right(&self) -> bool {
        matches!(self, Self::Status { code: 403, message, .. } if withheld::lacking(message).is_some())
    }

    /// 409 because other managers hold fields with other values.
    pub fn is_contested(&self) -> bool {
        matches!(self, Self::Status { code: 409, causes, .. } if !causes.is_empty())
    }

    /// 409 because an object of that name exists.
    pub fn already_exists(&self) -> bool {
        self.reason() == "AlreadyExists"
    }
}

/// Result of a request.
pub type ApiResult<T> = Result<T, ApiError>;

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// Created or changed.
    Applied(Value),
    /// Gone; the last state.
    Deleted(Value),
    /// Only the resourceVersion moved.
    Bookmark(String),
}

/// An API server.
#[async_trait]
pub trait ApiServer: Send + Sync + 'static {
    /// One request, one JSON answer. Never retries; bounded by a time-out and a limit on the answer's size.
    async fn send(&self, request: Request) -> ApiResult<Value>;

    /// Opens a watch on a collection path (`watch=true`, bookmarks asked for; the caller gives `resourceVersion` and selectors in the query).
    /// The stream ends when the connection does; `410 Gone` arrives as `ApiError::Status`.
    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>>;
}

/// Typed and shorter forms of common requests.
#[async_trait]
pub trait ApiServerExt: ApiServer {
    /// Reads one object; `None` when the server itself says that there is none. Any other 404 is an error: see [`ApiError::lacks`].
    async fn get_opt(&self, path: impl IntoPath) -> ApiResult<Option<Value>> {
        let path = path.into_path();
        match self.send(Request::new(Method::Get, &path)).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.lacks(&path.name()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one object of a type; `None` when there is none.
    async fn get_as<T: DeserializeOwned>(&self, path: impl IntoPath) -> ApiResult<Option<T>> {
        let path = path.into_path();
        self.get_opt(&path).await?.map(|value| parse(path, value)).transpose()
    }

    /// Creates.
    async fn create(&self, collection: impl IntoPath, object: &Value) -> ApiResult<Value> {
        self.send(
            Request::new(Method::Post, collection)
                .query("fieldManager", HUB_MANAGER)
                .body(Content::Json, object),
        )
        .await
    }

    /// Replaces; the object carries the resourceVersion it was read with.
    async fn replace(&self, path: impl IntoPath, object: &Value) -> ApiResult<Value> {
        self.send(
            Request::new(Method::Put, path).query("fieldManager", HUB_MANAGER).body(Content::Json, object),
        )
        .await
    }

    /// JSON merge patch.
    async fn merge(&self, path: impl IntoPath, patch: &Value) -> ApiResult<Value> {
        self.send(
            Request::new(Method::Patch, path).query("fieldManager", HUB_MANAGER).body(Content::Merge, patch),
        )
        .await
    }

    /// Deletes; `Ok(None)` when it was gone already, as the server itself says. `preconditions`: uid and resourceVersion.
    async fn delete(
        &self,
        path: impl IntoPath,
        uid: Option<&str>,
        resource_version: Option<&str>,
    ) -> ApiResult<Option<Value>> {
        let mut options = serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        if let (Some(object), true) = (options.as_object_mut(), uid.is_some() || resource_version.is_some()) {
            let mut preconditions = serde_json::Map::new();
            if let Some(uid) = uid {
                preconditions.insert("uid".to_owned(), uid.into());
            }
            if let Some(version) = resource_version {
                preconditions.insert("resourceVersion".to_owned(), version.into());
            }
            object.insert("preconditions".to_owned(), preconditions.into());
        }
        let path = path.into_path();
        match self.send(Request::new(Method::Delete, &path).body(Content::Json, &options)).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.lacks(&path.name()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<T: ApiServer + ?Sized> ApiServerExt for T {}

/// Field manager of everything the operator writes on the hub.
pub const HUB_MANAGER: &str = "emco-operator";

/// Reads a typed object out of an answer.
pub fn parse<T: DeserializeOwned>(path: impl Display, value: Value) -> ApiResult<T> {
    serde_json::from_value(value)
        .map_err(|error| ApiError::Protocol(format!("{path}: the answer does not parse: {error}")))
}

/// Tests write whole paths.
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod whole {
    use super::{ApiPath, IntoPath};

    impl IntoPath for &str {
        fn into_path(self) -> ApiPath {
            ApiPath::split(self)
        }
    }

    impl IntoPath for &String {
        fn into_path(self) -> ApiPath {
            self.as_str().into_path()
        }
    }

    impl IntoPath for String {
        fn into_path(self) -> ApiPath {
            self.as_str().into_path()
        }
    }
}
