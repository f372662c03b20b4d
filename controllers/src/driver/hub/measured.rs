//! Measures every request of a kube client, those of kube-runtime's watches included.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::BoxFuture;
use tower::{Layer, Service};

use crate::api::requests::{Requests, Target, verb};

/// Puts [`Measured`] around a client's service.
pub struct Measure(pub Arc<Requests>);

impl<S> Layer<S> for Measure {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, requests: Arc::clone(&self.0) }
    }
}

/// A service whose requests are measured.
#[derive(Clone)]
pub struct Measured<S> {
    inner: S,
    requests: Arc<Requests>,
}

/// A request under way. One that is given up has no answer.
struct UnderWay {
    requests: Arc<Requests>,
    verb: &'static str,
    begun: Instant,
    code: Option<u16>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.requests.ended(Target::Hub, self.verb, self.code, self.begun);
    }
}

impl<S, B, R> Service<http::Request<B>> for Measured<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let mut under_way = UnderWay {
            requests: Arc::clone(&self.requests),
            verb: verb(request.method(), watch),
            begun: Instant::now(),
            code: None,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            under_way.code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
            drop(under_way);
            answer
        })
    }
}
