//! Asks an API server, by dry runs of the apply, what taking an object of others over would come to.

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::adopt;
use emco_engine::path::ApiPath;
use serde_json::Value;

use super::{TRIES_TO_KNOW, leave_out, leave_out_nulls};
use crate::api::{ApiError, ApiResult, ApiServer, Content, Method, Request};

/// One apply that is only tried.
pub struct TriedApply<'a> {
    /// Who is asked.
    pub server: &'a dyn ApiServer,
    /// The object.
    pub path: &'a ApiPath,
    /// Field manager of the owner.
    pub manager: &'a str,
    /// The manifest with the owner's marks.
    pub body: &'a Value,
    /// The account that it would be sent as; none: the credentials of the Cluster.
    pub account: Option<&'a str>,
}

/// The least that takes an object of others over.
pub enum Least {
    /// This value of `spec.sync.conflicts`.
    Policy {
        /// The value.
        policy: ConflictPolicy,
        /// The object as the apply would leave it.
        after: Value,
        /// Fields that other managers hold with other values, with the server's words.
        held: Vec<(String, String)>,
    },
    /// None: the server refuses the apply whatever becomes of other managers.
    Refused(ApiError),
}

impl TriedApply<'_> {
    /// The object as it is now, read as who would apply it; `None` where there is none.
    pub async fn read(&self) -> ApiResult<Option<Value>> {
        match self.server.send(Request::new(Method::Get, self.path).acting_as(self.account)).await {
            Ok(live) => Ok(Some(live)),
            Err(error) if error.lacks(&self.path.name()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the apply would answer, without the fields that the cluster does not know.
    pub async fn send(&self, force: bool) -> ApiResult<Value> {
        let mut body = self.body.clone();
        let mut tries = TRIES_TO_KNOW;
        loop {
            let request = Request::new(Method::Patch, self.path)
                .query("fieldManager", self.manager)
                .query("force", if force { "true" } else { "false" })
                .query("dryRun", "All")
                .acting_as(self.account)
                .body(Content::Apply, &body);
            let answer = self.server.send(request).await;
            tries -= 1;
            match &answer {
                Err(error)
                    if tries > 0
                        && (!leave_out(&mut body, error).is_empty() || leave_out_nulls(&mut body, error)) => {
                }
                _ => return answer,
            }
        }
    }

    /// With force; the inner error names the fields that would change.
    pub async fn if_same(&self, live: &Value) -> ApiResult<Result<Value, Vec<String>>> {
        let after = self.send(true).await?;
        let fields = adopt::differences(live, &after);
        Ok(if fields.is_empty() { Ok(after) } else { Err(fields) })
    }

    /// Without force, unless force changes nothing: managers that hold the same value in another spelling lose nothing.
    pub async fn unless_held(&self, live: &Value) -> ApiResult<Value> {
        let answer = self.send(false).await;
        if !answer.as_ref().is_err_and(ApiError::is_contested) {
            return answer;
        }
        match self.if_same(live).await {
            Ok(Ok(after)) => Ok(after),
            _ => answer,
        }
    }

    /// The least that takes the object over.
    pub async fn least(&self, live: &Value) -> Least {
        let of = |policy, after, held| Least::Policy { policy, after, held };
        let after = match self.send(true).await {
            Ok(after) => after,
            Err(error) => return Least::Refused(error),
        };
        if adopt::differences(live, &after).is_empty() {
            return of(ConflictPolicy::AdoptIfSame, after, Vec::new());
        }
        match self.send(false).await {
            Ok(after) => of(ConflictPolicy::Adopt, after, Vec::new()),
            Err(ApiError::Status { code: 409, causes, .. }) if !causes.is_empty() => {
                of(ConflictPolicy::Force, after, causes)
            }
            Err(error) => Least::Refused(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::MemoryServer;

    /// The least for a map whose manager holds these values, where the manifest has `a: 1`.
    async fn least(data: Value) -> Least {
        let server = MemoryServer::new();
        let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": data});
        let live = server.put("kubectl", &map(data));
        let body = emco_engine::marks::mark(map(json!({"a": "1"})), "hash", "digest", "shop/till");
        let path = ApiPath::core("default", "configmaps").then("c");
        let tried =
            TriedApply { server: &server, path: &path, manager: "emco-hash", body: &body, account: None };
        let least = tried.least(&live).await;
        assert_eq!(server.object(path.as_str()), Some(live), "nothing is changed");
        least
    }

    fn named(least: &Least) -> (ConflictPolicy, usize) {
        match least {
            Least::Policy { policy, held, .. } => (*policy, held.len()),
            Least::Refused(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn the_least_is_what_the_server_says_of_values_and_of_who_holds_them() {
        assert_eq!(named(&least(json!({"a": "1", "b": "2"})).await), (ConflictPolicy::AdoptIfSame, 0));
        assert_eq!(named(&least(json!({"b": "2"})).await), (ConflictPolicy::Adopt, 0));
        assert_eq!(named(&least(json!({"a": "2"})).await), (ConflictPolicy::Force, 1));
    }
}
