//! Has a cluster issue a token of the service account that a person has there.

use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_engine::path::ApiPath;
use jiff::Timestamp;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::issue::{Asked, Order, Refused};
use crate::api::{Content, Method, Request};
use crate::remote::kubeconfig::claims;

/// Longest token.
const BYTES: usize = 16 << 10;

/// A token, and when it ends.
pub(super) async fn token(
    asked: &Asked<'_>,
    order: &Order,
) -> Result<(Zeroizing<String>, Timestamp), Refused> {
    let person = &order.wanted.person;
    let path = ApiPath::core(&person.namespace, "serviceaccounts").then(&person.account).then("token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": order.seconds()},
    });
    let answer = asked.send(Request::new(Method::Post, path).body(Content::Json, &request)).await;
    let answer = answer.map_err(|error| {
        // The account is on its way, or was just removed by somebody and is on its way again.
        if error.lacks(&person.account) {
            return Refused::soon(format!("service account {} is not there yet", person.account));
        }
        Refused::by("create", "serviceaccounts/token", &error)
    })?;
    let text = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default();
    let token = Zeroizing::new(text.to_owned());
    let expires =
        judge(&token, order, asked.now()).map_err(|words| Refused::of(Reason::CredentialRefused, words))?;
    Ok((token, expires))
}

/// When a token of the person ends. The sentence says what is wrong with it, and quotes nothing of it.
fn judge(token: &str, order: &Order, now: Timestamp) -> Result<Timestamp, &'static str> {
    if token.len() > BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the cluster answered what is no token");
    }
    let person = &order.wanted.person;
    let whose = claims::account_name(token);
    if whose != Some((person.namespace.clone(), person.account.clone())) {
        return Err("the cluster issued a token of another account");
    }
    match claims::ends(token) {
        Some(ends) if ends > now => Ok(ends),
        Some(_) => Err("the cluster issued a token that does not hold now: compare its clock with the hub's"),
        None => Err("the cluster issued a token without an end"),
    }
}
