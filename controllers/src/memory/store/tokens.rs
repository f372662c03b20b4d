//! Issues tokens of service accounts that are there, unsigned: nobody here checks them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Store, Target};
use crate::api::ApiResult;

impl Store {
    /// Answers a `TokenRequest`.
    pub fn token(&self, target: &Target, body: &Value) -> ApiResult<Value> {
        let account = self.get(&Target { subresource: String::new(), ..target.clone() })?;
        let seconds = body.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(3600);
        let bound = body.pointer("/spec/boundObjectRef");
        let secret = bound.map(|to| json!({"name": to.get("name"), "uid": to.get("uid")}));
        let audiences =
            body.pointer("/spec/audiences").and_then(Value::as_array).filter(|all| !all.is_empty());
        let audiences = audiences.cloned().unwrap_or_else(|| vec![json!("https://kubernetes.default.svc")]);
        let claims = json!({
            "sub": format!("system:serviceaccount:{}:{}", target.namespace, target.name),
            "iat": self.now, "exp": self.now + seconds,
            "aud": audiences,
            "kubernetes.io": {
                "namespace": target.namespace, "secret": secret,
                "serviceaccount": {"name": target.name, "uid": account.pointer("/metadata/uid")},
            },
        });
        let token = format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()));
        Ok(json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
            "spec": body.get("spec"), "status": {"token": token},
        }))
    }
}
