//! Lets a write pass only while the lease is surely held, and ends it before the lease may be over.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::api::{ApiError, ApiResult, ApiServer, Method, Request};

/// Whether this process may write: the lease is valid for longer than the request may take.
pub trait Fence: Send + Sync + 'static {
    /// Whether a write may begin now.
    fn may_write(&self) -> bool;

    /// How long a write that is sent now may take; none: it must not be sent. Asked right before every write.
    fn grant(&self) -> Option<Duration> {
        self.may_write().then_some(Duration::MAX)
    }
}

/// Sends a request; a write only while the fence grants it time, and no longer than that. `None`: it was not sent.
pub async fn send_fenced(
    fence: &dyn Fence,
    server: &dyn ApiServer,
    request: Request,
) -> Option<ApiResult<Value>> {
    if request.method == Method::Get {
        return Some(server.send(request).await);
    }
    let time = fence.grant()?;
    let late = |_| {
        let message = "no answer as long as the lease was surely held".to_owned();
        Err(ApiError::Unreachable { reason: "Timeout", message })
    };
    Some(timeout(time, server.send(request)).await.unwrap_or_else(late))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures::stream::BoxStream;

    use super::*;
    use crate::api::WatchEvent;

    /// Never answers.
    struct Silent;

    #[async_trait]
    impl ApiServer for Silent {
        async fn send(&self, _: Request) -> ApiResult<Value> {
            std::future::pending().await
        }
        async fn watch(&self, _: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
            std::future::pending().await
        }
    }

    struct For(Option<Duration>);

    impl Fence for For {
        fn may_write(&self) -> bool {
            self.0.is_some()
        }
        fn grant(&self) -> Option<Duration> {
            self.0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_ends_within_the_time_the_fence_grants() {
        let begun = tokio::time::Instant::now();
        let four = For(Some(Duration::from_secs(4)));
        let write = || Request::new(Method::Delete, "/api/v1/namespaces/a");
        let error = send_fenced(&four, &Silent, write()).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("lease"), "{error}");
        assert_eq!(begun.elapsed().as_secs(), 4);
        assert!(send_fenced(&For(None), &Silent, write()).await.is_none());
        // A read may take longer: whoever asks bounds it.
        let read = Request::new(Method::Get, "/api/v1/namespaces/a");
        assert!(timeout(Duration::from_secs(60), send_fenced(&four, &Silent, read)).await.is_err());
    }
}
