//! The hub as it would be with other objects in some places: read, and never written.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use emco_engine::path::ApiPath;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::api::{ApiError, ApiResult, ApiServer, Method, Request, WatchEvent};

/// An API server with objects laid over those that it has. Lists are the server's own.
pub struct Overlaid {
    hub: Arc<dyn ApiServer>,
    objects: BTreeMap<ApiPath, Value>,
}

impl Overlaid {
    /// Lays objects over a hub.
    pub fn new(hub: Arc<dyn ApiServer>, objects: BTreeMap<ApiPath, Value>) -> Self {
        Self { hub, objects }
    }
}

fn refused() -> ApiError {
    let message = "nothing is written to the hub that is only looked at".to_owned();
    let reason = "MethodNotAllowed".to_owned();
    ApiError::Status { code: 405, reason, message, retry_after: None, causes: Vec::new() }
}

#[async_trait]
impl ApiServer for Overlaid {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        if request.method != Method::Get {
            return Err(refused());
        }
        match self.objects.get(&request.path) {
            Some(object) => Ok(object.clone()),
            None => self.hub.send(request).await,
        }
    }

    async fn watch(&self, _: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        Err(refused())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ApiServerExt as _;
    use crate::memory::MemoryServer;

    #[tokio::test]
    async fn what_lies_over_the_hub_is_read_and_nothing_is_written() {
        let hub = MemoryServer::new();
        let map = |name: &str, say: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"say": say}});
        hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
        hub.put("test", &map("one", "hub"));
        hub.put("test", &map("two", "hub"));
        let path = |name: &str| ApiPath::core("shop", "configmaps").then(name);
        let over = [("one", "file"), ("three", "file")].map(|(name, say)| (path(name), map(name, say)));
        let overlaid = Overlaid::new(Arc::new(hub.clone()), over.into());
        for (name, say) in
            [("one", Some("file")), ("two", Some("hub")), ("three", Some("file")), ("four", None)]
        {
            let found = overlaid.get_opt(path(name)).await.unwrap();
            assert_eq!(found.as_ref().and_then(|map| map["data"]["say"].as_str()), say, "{name}");
        }
        let collection = ApiPath::core("shop", "configmaps");
        assert_eq!(overlaid.create(&collection, &map("four", "new")).await.unwrap_err().code(), 405);
        assert_eq!(overlaid.merge(path("two"), &json!({"data": null})).await.unwrap_err().code(), 405);
        assert_eq!(overlaid.delete(path("two"), None, None).await.unwrap_err().code(), 405);
        assert_eq!(hub.object(path("two").as_str()).unwrap()["data"]["say"], "hub");
    }
}
