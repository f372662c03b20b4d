//! The hub as the holder of the lease may write to it: nothing is sent that could arrive after somebody else took over.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::api::{ApiError, ApiResult, ApiServer, Request, WatchEvent};
use crate::sync::{Fence, send_fenced};

/// An API server that takes writes only while the fence is open.
pub struct Fenced {
    hub: Arc<dyn ApiServer>,
    fence: Arc<dyn Fence>,
}

impl Fenced {
    /// Puts a fence before a hub.
    pub fn new(hub: Arc<dyn ApiServer>, fence: Arc<dyn Fence>) -> Self {
        Self { hub, fence }
    }
}

#[async_trait]
impl ApiServer for Fenced {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        send_fenced(self.fence.as_ref(), self.hub.as_ref(), request).await.unwrap_or_else(|| {
            let message =
                "this operator does not surely hold the lease: nothing is written to the hub".to_owned();
            Err(ApiError::Unreachable { reason: "Timeout", message })
        })
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        self.hub.watch(request).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;

    use super::*;
    use crate::api::ApiServerExt;
    use crate::memory::MemoryServer;

    struct Gate(AtomicBool);
    impl Fence for Gate {
        fn may_write(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn without_the_lease_the_hub_is_read_and_not_written() {
        let (hub, gate) = (MemoryServer::new(), Arc::new(Gate(AtomicBool::new(true))));
        let fenced = Fenced::new(Arc::new(hub.clone()), gate.clone());
        let space = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        fenced.create("/api/v1/namespaces", &space("one")).await.unwrap();
        gate.0.store(false, Ordering::SeqCst);
        fenced.create("/api/v1/namespaces", &space("two")).await.unwrap_err();
        fenced.delete("/api/v1/namespaces/one", None, None).await.unwrap_err();
        assert!(fenced.get_opt("/api/v1/namespaces/one").await.unwrap().is_some());
        assert!(hub.object("/api/v1/namespaces/two").is_none());
    }
}
