//! Connects to the hub's API server through kube's client, by kubeconfig or in-cluster.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use http::HeaderMap;
use kube::client::ClientBuilder;
use serde_json::Value;
use tokio::time::timeout;

use crate::api::requests::Requests;
use crate::api::withheld::Subject;
use crate::api::{ApiError, ApiResult, ApiServer, Request, WatchEvent};
use crate::remote::dialer::HubHosts;
use crate::remote::wire::{self, ReadLimits, protocol, unreachable};

mod fenced;
mod measured;
mod overlaid;

pub use fenced::Fenced;
pub use overlaid::Overlaid;

/// Until an answer begins.
const ANSWER_BEGINS: Duration = Duration::from_secs(10);
/// One answer.
const LIMITS: ReadLimits = ReadLimits { bytes: 64 << 20, time: Duration::from_secs(60) };

/// The hub's API server, or another one that kube's client leads to.
#[derive(Clone)]
pub struct HubApi {
    client: kube::Client,
    /// What messages call it.
    server: &'static str,
}

impl HubApi {
    /// Wraps a client. It must not retry by itself: whoever calls decides, and knows what time is left.
    pub const fn new(client: kube::Client) -> Self {
        Self { client, server: "the hub's API server" }
    }

    /// The same of a cluster, for a program that goes there by a kubeconfig.
    pub const fn of_cluster(client: kube::Client) -> Self {
        Self { client, server: "the cluster's API server" }
    }

    /// Makes the client too, without its own retries and read time-out (a watch may be silent for long). Its requests are measured.
    pub fn connect(mut config: kube::Config, requests: Arc<Requests>) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.read_timeout = None;
        config.connect_timeout = Some(Duration::from_secs(5));
        let client = ClientBuilder::try_from(config)?.with_layer(&measured::Measure(requests));
        Ok(Self::new(client.build()))
    }

    /// The client, for kube-runtime's controllers.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    async fn open(&self, request: Request, watch: bool) -> ApiResult<http::Response<kube::client::Body>> {
        let request = wire::http_request("", request, watch)?.map(kube::client::Body::from);
        match timeout(ANSWER_BEGINS, self.client.send(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(explain(self.server, &error)),
            Err(_) => {
                let server = self.server;
                Err(unreachable("Timeout", &format!("{server} did not answer within {ANSWER_BEGINS:?}")))
            }
        }
    }
}

#[async_trait]
impl ApiServer for HubApi {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        let subject = Subject::of(&request.path);
        let (head, body) = self.open(request, false).await?.into_parts();
        let bytes = wire::collect(self.server, body, LIMITS).await?;
        let answer = wire::answer(self.server, head.status.as_u16(), &head.headers, bytes).await;
        Subject::withhold(subject.as_ref(), answer)
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        let subject = Subject::of(&request.path);
        let (head, body) = self.open(request, true).await?.into_parts();
        if head.status.is_success() {
            return Ok(wire::events(self.server, body));
        }
        let bytes = wire::collect(self.server, body, LIMITS).await?;
        let answer = wire::answer(self.server, head.status.as_u16(), &head.headers, bytes).await;
        match Subject::withhold(subject.as_ref(), answer) {
            Err(error) => Err(error),
            Ok(_) => Err(protocol(&format!("{} answers a watch with {}", self.server, head.status))),
        }
    }
}

fn explain(server: &str, error: &kube::Error) -> ApiError {
    if let kube::Error::Api(status) = error {
        return serde_json::to_value(status).map_or_else(
            |_| protocol(&format!("{server} answers an unreadable Status")),
            |status| wire::status_error(500, &HeaderMap::new(), &status),
        );
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    let lower = text.to_ascii_lowercase();
    let reason = if lower.contains("dns") || lower.contains("resolve") {
        "DNSFailed"
    } else if lower.contains("certificate") || lower.contains("tls") {
        "TLSFailed"
    } else if lower.contains("timed out") || lower.contains("deadline") {
        "Timeout"
    } else if lower.contains("refused") {
        "ConnectionRefused"
    } else {
        "ConnectionLost"
    };
    unreachable(reason, &format!("{server} cannot be reached: {text}"))
}

/// The hosts of the hub as this process reaches it, and `others` that it cannot know, for the dialer: no tenant's or admin's name
/// may lead there unnoticed. Within the hub its address is in the environment, whatever the configuration names; some clouds have
/// a name there.
pub fn own_hosts(config: &kube::Config, others: &[String]) -> HubHosts {
    let in_cluster = std::env::var("KUBERNETES_SERVICE_HOST").unwrap_or_default();
    let own = [config.cluster_url.host().unwrap_or_default(), in_cluster.as_str()];
    HubHosts::new(own.into_iter().chain(others.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests;
