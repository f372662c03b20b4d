//! Asks a server what it serves: through a connection of the operator, or through any other client.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::apis::ApiList;
use emco_engine::path::ApiPath;
use http::HeaderValue;
use http::header::ACCEPT;
use tokio::time::timeout;

use super::{ApiLists, Discovered};
use crate::api::{ApiResult, Method, Request};
use crate::remote::transport::{Edge, RawAnswer};
use crate::remote::wire::{self, ReadLimits, unreachable};

/// Until an answer begins.
const ANSWER_BEGINS: Duration = Duration::from_secs(10);
/// One answer.
const LIMITS: ReadLimits = ReadLimits { bytes: 64 << 20, time: Duration::from_secs(30) };

/// A server that answers plain reads.
pub trait Asked: Sync {
    /// How messages name it.
    fn server(&self) -> &str;

    /// Reads a path with an `Accept` of the caller's choice.
    fn get(
        &self,
        path: ApiPath,
        accept: &'static str,
        tag: Option<&HeaderValue>,
    ) -> impl Future<Output = ApiResult<RawAnswer>> + Send;
}

impl Asked for Edge {
    fn server(&self) -> &str {
        Self::server(self)
    }

    fn get(
        &self,
        path: ApiPath,
        accept: &'static str,
        tag: Option<&HeaderValue>,
    ) -> impl Future<Output = ApiResult<RawAnswer>> + Send {
        Self::get(self, path, accept, tag)
    }
}

/// A client of kube, which knows its own credentials.
struct Client {
    client: kube::Client,
    server: String,
}

impl Asked for Client {
    fn server(&self) -> &str {
        &self.server
    }

    async fn get(
        &self,
        path: ApiPath,
        accept: &'static str,
        _: Option<&HeaderValue>,
    ) -> ApiResult<RawAnswer> {
        let server = &self.server;
        let mut request = wire::http_request("", Request::new(Method::Get, path), false)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        let response = match timeout(ANSWER_BEGINS, self.client.send(request.map(kube::client::Body::from)))
            .await
        {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(unreachable("ConnectionLost", &format!("{server} cannot be reached: {error}")));
            }
            Err(_) => {
                return Err(unreachable(
                    "Timeout",
                    &format!("{server} did not answer within {ANSWER_BEGINS:?}"),
                ));
            }
        };
        let (head, body) = response.into_parts();
        let body = wire::collect(server, body, LIMITS).await?;
        Ok(RawAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

/// What a server serves, and the digest of it that the status of a Cluster has (`apiGroupsDigest`).
pub async fn served(client: kube::Client, server: &str) -> ApiResult<(Arc<ApiList>, String)> {
    let client = Client { client, server: server.to_owned() };
    let found = Discovered::read(&client, None, &ApiLists::default()).await?;
    Ok((found.list, found.digest))
}
