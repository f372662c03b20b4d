//! Has a cluster issue another token like the stored one, and tries it there before it is stored.

use std::time::Duration;

use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::selector::FieldSelector;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::due::Renewable;
use super::tried::Refusal;
use crate::api::{ApiError, ApiResult, ApiServer, Content, Method, Request};
use crate::reconcile::context::Context;
use crate::remote::kubeconfig::claims::{self, Bound};
use crate::remote::kubeconfig::{read, with_token};
use crate::remote::wire::cut;

/// One request, whatever the connection allows.
const REQUEST: Duration = Duration::from_secs(20);
/// Longest token.
const BYTES: usize = 16 << 10;
/// Longest message.
const LONGEST: usize = 320;

/// A token that the cluster accepts.
pub struct Issued {
    /// The kubeconfig with it.
    pub kubeconfig: Zeroizing<String>,
    /// What it says of itself.
    pub bound: Bound,
}

impl Refusal {
    /// It may pass by itself.
    fn soon(message: &str) -> Self {
        let (pause, longest) = (Duration::from_secs(10), Duration::from_mins(5));
        Self { message: cut(message, LONGEST), lasts: false, pause, longest }
    }

    /// Somebody has to do something; nobody tells when it is done.
    fn lasting(message: &str) -> Self {
        let (pause, longest) = (Duration::from_mins(5), Duration::from_hours(1));
        Self { message: cut(message, LONGEST), lasts: true, pause, longest }
    }

    /// What an API server's refusal means.
    pub(super) fn by(who: &str, error: &ApiError) -> Self {
        match error.code() {
            0 | 429 | 500.. => Self::soon(&format!("{who} does not answer as it should: {error}")),
            _ => Self::lasting(&format!("{who} refuses: {error}")),
        }
    }
}

/// Asks for it. The connection is the one there is; without one it is asked for when the cluster answers again.
pub async fn ask(ctx: &Context, id: &ClusterId, uid: &str, known: &Renewable) -> Result<Issued, Refusal> {
    let Some(server) = ctx.world.edges.get(id) else {
        return Err(Refusal::soon("the cluster is not connected"));
    };
    let token = request(server.as_ref(), known).await?;
    let bound = judge(&token, known, ctx.now()).map_err(Refusal::lasting)?;
    let kubeconfig = with_token(&known.kubeconfig, &known.token, &token).ok_or_else(|| {
        Refusal::lasting(
            "the token does not stand exactly once in the kubeconfig, as `cluster add` writes it",
        )
    })?;
    try_it(ctx, id, uid, &kubeconfig).await?;
    Ok(Issued { kubeconfig, bound })
}

async fn send(server: &dyn ApiServer, request: Request) -> ApiResult<Value> {
    timeout(REQUEST, server.send(request)).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", REQUEST.as_secs());
        Err(ApiError::Unreachable { reason: "Timeout", message })
    })
}

/// A token for the same account and audiences, which ends with the same Secret.
async fn request(server: &dyn ApiServer, known: &Renewable) -> Result<Zeroizing<String>, Refusal> {
    let (namespace, name) = &known.bound.account;
    let path = ApiPath::core(namespace, "serviceaccounts").then(name).then("token");
    let secret = known.bound.secret.as_ref();
    let secret =
        secret.map(|(name, uid)| json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}));
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {
            "audiences": known.bound.audiences, "expirationSeconds": known.seconds, "boundObjectRef": secret,
        },
    });
    let answer = send(server, Request::new(Method::Post, path).body(Content::Json, &request)).await;
    let answer = answer.map_err(|error| Refusal::by("the cluster", &error))?;
    let text = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default();
    Ok(Zeroizing::new(text.to_owned()))
}

/// What a token is, if it may take the place of the known one. The sentence says what is wrong with it, and quotes nothing of it.
fn judge(token: &str, known: &Renewable, now: Timestamp) -> Result<Bound, &'static str> {
    if token.is_empty() || token.len() > BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the cluster answered what is no token");
    }
    let Some(bound) = claims::bound(token) else {
        return Err("the cluster issued a token that does not say whose it is and when it ends");
    };
    if (&bound.account, &bound.account_uid) != (&known.bound.account, &known.bound.account_uid) {
        return Err("the cluster issued a token of another account");
    }
    if bound.ends <= now {
        return Err("the cluster issued a token that does not hold now: compare its clock with the hub's");
    }
    if bound.ends <= known.bound.ends {
        return Err("the cluster issues no token that ends later than the stored one");
    }
    Ok(bound)
}

/// Whether the cluster accepts it, and is the one that it should be.
async fn try_it(ctx: &Context, id: &ClusterId, uid: &str, kubeconfig: &str) -> Result<(), Refusal> {
    let credentials = read(kubeconfig.as_bytes()).map_err(|error| Refusal::lasting(&error.message))?;
    let Some(server) = ctx.connector.try_with(id, credentials) else {
        return Err(Refusal::soon("the new token cannot be tried now"));
    };
    let request = Request::new(Method::Get, "/api/v1/namespaces")
        .fields(&FieldSelector::name("kube-system"))
        .query("limit", "1")
        .metadata();
    let answer = send(server.as_ref(), request).await;
    let answer = answer.map_err(|error| Refusal::by("with the new token, the cluster", &error))?;
    if answer.pointer("/items/0/metadata/uid").and_then(Value::as_str) != Some(uid) {
        return Err(Refusal::lasting("with the new token, another cluster answers"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn token(begins: i64, ends: i64, uid: &str) -> String {
        let claims = json!({
            "iat": begins, "exp": ends, "sub": "system:serviceaccount:emco-system:emco-hub",
            "kubernetes.io": {"serviceaccount": {"name": "emco-hub", "uid": uid}},
        });
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn known() -> Renewable {
        let token = token(NOW - 400, NOW + 200, "u");
        Renewable {
            kubeconfig: Zeroizing::new(String::new()),
            key: "kubeconfig".to_owned(),
            bound: claims::bound(&token).unwrap(),
            token: Zeroizing::new(token),
            seconds: 600,
        }
    }

    #[test]
    fn a_token_is_taken_if_it_is_of_the_same_account_and_ends_later() {
        let now = Timestamp::from_second(NOW).unwrap();
        let known = known();
        let said = |token: &str| judge(token, &known, now).map(|bound| bound.ends.as_second());
        assert_eq!(said(&token(NOW, NOW + 600, "u")), Ok(NOW + 600));
        for (token, words) in [
            (token(NOW, NOW + 600, "v"), "another account"),
            (token(NOW - 900, NOW - 300, "u"), "compare its clock"),
            (token(NOW, NOW + 200, "u"), "no token that ends later"),
            ("opaque".to_owned(), "does not say whose it is"),
            (String::new(), "no token"),
            ("a b".to_owned(), "no token"),
            ("a".repeat(BYTES + 1), "no token"),
        ] {
            assert!(said(&token).unwrap_err().contains(words), "{words}");
        }
    }

    #[test]
    fn what_may_pass_by_itself_is_told_from_what_somebody_has_to_do() {
        let status = |code: u16| ApiError::Status {
            code,
            reason: String::new(),
            message: "it is so".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        for (code, lasts) in [(403, true), (404, true), (422, true), (429, false), (500, false), (503, false)]
        {
            assert_eq!(Refusal::by("the cluster", &status(code)).lasts, lasts, "{code}");
        }
    }
}
