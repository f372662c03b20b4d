//! Lends a connection to kube's client: the code of the command line asks a cluster by it, as an account of the cluster.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::uri::PathAndQuery;
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use super::super::wire::{self, protocol};
use super::{Edge, RawAnswer};
use crate::api::withheld::Subject;
use crate::api::{ApiError, ApiResult};

impl Edge {
    /// A client of kube's on this connection; with an account, it acts as that.
    pub fn client(self: Arc<Self>, account: Option<&str>) -> Client {
        Client::new(Lent { edge: self, account: account.map(str::to_owned) }, "default")
    }

    /// One request as it is, to a path below the API's. A refusal comes without what a server may quote of values.
    async fn pass(&self, mut request: http::Request<Bytes>, account: Option<&str>) -> ApiResult<RawAnswer> {
        let subject = Subject::at(request.uri().path());
        let asked = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        *request.uri_mut() = format!("{}{asked}", self.credentials.base)
            .parse()
            .map_err(|_| protocol("a path cannot be requested"))?;
        if let Some(account) = account {
            request.headers_mut().insert("impersonate-user", wire::impersonation(account)?);
        }
        let RawAnswer { status, headers, body } = self.whole(request).await?;
        if (200..300).contains(&status) {
            return Ok(RawAnswer { status, headers, body });
        }
        let refused = wire::answer(&self.server, status, &headers, body).await;
        match Subject::withhold(subject.as_ref(), refused) {
            Err(error @ ApiError::Status { .. }) => {
                let body = Bytes::from(status_of(&error).to_string());
                Ok(RawAnswer { status: error.code(), headers, body })
            }
            Err(error) => Err(error),
            Ok(_) => Err(protocol(&format!("{} answers with {status}", self.server))),
        }
    }
}

/// A refusal as API servers write it.
fn status_of(error: &ApiError) -> Value {
    let causes = match error {
        ApiError::Status { causes, .. } => causes.as_slice(),
        _ => &[],
    };
    let causes: Vec<Value> =
        causes.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
    let message = match error {
        ApiError::Status { message, .. } => message.clone(),
        other => other.to_string(),
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": error.code(),
        "reason": error.reason(), "message": message, "details": {"causes": causes},
    })
}

struct Lent {
    edge: Arc<Edge>,
    account: Option<String>,
}

impl Service<http::Request<Body>> for Lent {
    type Response = http::Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (edge, account) = (Arc::clone(&self.edge), self.account.clone());
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let answer = edge.pass(http::Request::from_parts(head, body), account.as_deref()).await?;
            let mut response = http::Response::new(Full::new(answer.body));
            *response.status_mut() = http::StatusCode::from_u16(answer.status)?;
            let kind = answer.headers.get(CONTENT_TYPE).cloned();
            let kind = kind.unwrap_or_else(|| HeaderValue::from_static("application/json"));
            response.headers_mut().insert(CONTENT_TYPE, kind);
            Ok(response)
        })
    }
}
