//! Makes an apply go through that is refused for what an API server filled in, or others said, in a union of the object.
//!
//! Such fields are made ours first, in `managedFields` alone: nothing rolls out for it. The next apply does not say them, so the
//! server takes them away and puts the new member there in one write. A process that ends in between leaves an object that is as it
//! was, and an entry that the next apply replaces.

use emco_engine::drift::unions;
use serde_json::{Value, json};

use super::{Patch, entries};
use crate::api::{ApiError, ApiResult, Content, Method, Request, withheld};

impl Patch<'_> {
    /// Makes ours what a refusal is about and the manifest's choice in a union excludes. `None`: there is nothing of it; otherwise the
    /// manifest can be applied at what is there now.
    pub(super) async fn claim_unions(&self, marked: &mut Value, error: &ApiError) -> Option<ApiResult<()>> {
        let ApiError::Status { code: 422, message, causes, .. } = error else { return None };
        if !withheld::is_validation(message) || !unions::has(marked) {
            return None;
        }
        let live = self.live().await.ok()?;
        let metadata = |object: &Value, name: &str| object.pointer(&format!("/metadata/{name}")).cloned();
        for name in ["uid", "resourceVersion"] {
            if metadata(marked, name).is_some_and(|wanted| Some(wanted) != metadata(&live, name)) {
                return None;
            }
        }
        let refused: Vec<&str> = causes.iter().map(|(field, _)| field.as_str()).collect();
        let stale = unions::stale(marked, &live, &refused);
        let claimed = unions::claimed(entries(&live), &self.ctx.manager, &stale);
        if let Some(claimed) = claimed {
            let version = metadata(&live, "resourceVersion");
            let patch = json!([
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
                {"op": "replace", "path": "/metadata/managedFields", "value": claimed},
            ]);
            let request = Request::new(Method::Patch, self.path.clone())
                .query("fieldManager", self.ctx.manager.as_str())
                .acting_as(self.account)
                .body(Content::JsonPatch, &patch);
            let now = match self.session.send(&self.ctx.edge, request).await {
                Ok(now) => now,
                Err(error) => return Some(Err(error)),
            };
            if let (Some(said), Some(now)) =
                (marked.pointer_mut("/metadata/resourceVersion"), metadata(&now, "resourceVersion"))
            {
                *said = now;
            }
        } else if stale.is_empty() {
            return None;
        }
        // A member that is said to be nothing would be ours, and stay.
        unions::drop_nulls(marked);
        Some(Ok(()))
    }
}
