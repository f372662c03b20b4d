//! Finds out which `ServiceAccount` the operator is on the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{ApiResult, ApiServer, ApiServerExt};

/// The `ServiceAccount` the operator runs as.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Namespaces whose binding was seen by this process.
    pub(crate) bound: Arc<Mutex<BTreeMap<String, Bound>>>,
}

/// A binding of ours.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// UID of its namespace.
    pub uid: String,
    /// When this process made it; `None` where it was there.
    pub made: Option<Instant>,
}

impl Account {
    /// Asks the hub who we are. Other users, such as a person at a terminal, have the rights they have.
    pub async fn of(hub: &dyn ApiServer) -> ApiResult<Option<Self>> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer = hub.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await?;
        let user = answer.pointer("/status/userInfo/username").and_then(Value::as_str).unwrap_or_default();
        Ok(Self::parse(user))
    }

    pub(crate) fn parse(user: &str) -> Option<Self> {
        let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned(), bound: Arc::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_account_needs_bindings() {
        let account = Account::parse("system:serviceaccount:emco-system:emco-operator").unwrap();
        assert_eq!((account.namespace.as_str(), account.name.as_str()), ("emco-system", "emco-operator"));
        assert!(Account::parse("kubernetes-admin").is_none());
    }
}
