//! Asks an API server in one request who it is and where its store stands. Failures become reasons.

use emco_engine::selector::FieldSelector;
use serde_json::Value;

use super::State;
use super::transport::Edge;
use super::wire::{at, cut, protocol};
use crate::api::{ApiError, ApiResult, ApiServer, Method, Request};

/// The answer of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// UID of kube-system: who the cluster is.
    pub uid: String,
    /// The store's revision, which only a restored store ever lowers.
    pub revision: u64,
}

/// Reachability, identity and revision at once.
pub async fn probe(edge: &Edge) -> ApiResult<Probe> {
    let request = Request::new(Method::Get, "/api/v1/namespaces")
        .fields(&FieldSelector::name("kube-system"))
        .query("limit", "1")
        .metadata();
    // An idle connection may have died unseen; that says nothing about the server.
    let answer = match edge.send(request.clone()).await {
        Err(ApiError::Unreachable { reason: "ConnectionLost", .. }) => edge.send(request).await?,
        other => other?,
    };
    let uid = at(&answer, "/items/0/metadata/uid").as_str();
    let revision = at(&answer, "/metadata/resourceVersion").as_str().and_then(|text| text.parse().ok());
    match (uid, revision) {
        (Some(uid), Some(revision)) => Ok(Probe { uid: cut(uid, 64), revision }),
        (None, Some(_)) => Err(protocol(&format!(
            "{} has no namespace kube-system, whose uid tells clusters apart: is this a Kubernetes cluster?",
            edge.server()
        ))),
        _ => Err(protocol(&format!("{} answers a list without resourceVersion", edge.server()))),
    }
}

/// The server's version, such as `v1.36.3`.
pub async fn version(edge: &Edge) -> ApiResult<String> {
    let answer: Value = edge.send(Request::new(Method::Get, "/version")).await?;
    match at(&answer, "/gitVersion").as_str() {
        Some(version) if !version.is_empty() => Ok(cut(version, 64)),
        _ => Err(protocol(&format!("{} does not tell its version", edge.server()))),
    }
}

/// The state that an error of a probe means.
pub fn failed(server: &str, error: &ApiError) -> State {
    let (reason, message) = match error {
        // For people a connection that ends at once is one that is refused; the message says which it was.
        ApiError::Unreachable { reason: "ConnectionLost", message } => ("ConnectionRefused", message.clone()),
        ApiError::Unreachable { reason, message } => (*reason, message.clone()),
        ApiError::Protocol(message) => ("ServerError", message.clone()),
        ApiError::Status { code: 401, .. } => (
            "Unauthorized",
            format!(
                "{server} refuses the credentials (401): they expired or were revoked; put a new kubeconfig into the Secret"
            ),
        ),
        ApiError::Status { code: 403, message, .. } => (
            "Forbidden",
            format!(
                "the credentials lack a right that every cluster needs (list namespaces, get /version, /api, /apis): {message}"
            ),
        ),
        ApiError::Status { code, message, .. } => {
            ("ServerError", format!("{server} answers {code}: {message}"))
        }
    };
    State::Failed { reason, message: cut(&message, 256) }
}
