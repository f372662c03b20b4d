//! Reads what a service account's token says of itself. It is read, not judged: that is the cluster's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use super::Life;

fn of(token: &str) -> Option<Value> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&claims).ok()
}

/// When it ends, where it does.
pub fn ends(token: &str) -> Option<Timestamp> {
    Timestamp::from_second(of(token)?.get("exp")?.as_i64()?).ok()
}

/// From when to when it holds, where it ends.
pub fn life(token: &str) -> Option<Life> {
    let began = of(token)?.get("iat").and_then(Value::as_i64).and_then(|at| Timestamp::from_second(at).ok());
    ends(token).map(|end| Life::new(began, end))
}

/// UID of the service account it is of, where it says so: bound tokens and those of token Secrets say it in two ways.
pub fn account(token: &str) -> Option<String> {
    let claims = of(token)?;
    let bound = claims.pointer("/kubernetes.io/serviceaccount/uid");
    bound
        .or_else(|| claims.get("kubernetes.io/serviceaccount/service-account.uid"))?
        .as_str()
        .map(str::to_owned)
}

/// Namespace and name of the service account it is of.
pub fn account_name(token: &str) -> Option<(String, String)> {
    let claims = of(token)?;
    let subject = claims.get("sub")?.as_str()?.strip_prefix("system:serviceaccount:")?;
    subject.split_once(':').map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
}

/// Name of the Secret whose deletion ends it, where there is one.
pub fn secret(token: &str) -> Option<String> {
    let claims = of(token)?;
    let bound = claims.pointer("/kubernetes.io/secret/name");
    bound.or_else(|| claims.get("kubernetes.io/serviceaccount/secret.name"))?.as_str().map(str::to_owned)
}

/// What a token for a while says of itself, as far as another one like it needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// When it was issued, by the cluster's clock.
    pub issued: Timestamp,
    /// When it ends, by the same.
    pub ends: Timestamp,
    /// Namespace and name of its service account.
    pub account: (String, String),
    /// UID of its service account.
    pub account_uid: Option<String>,
    /// Whom it is for; empty where it does not say so.
    pub audiences: Vec<String>,
    /// Name and UID of the Secret whose deletion ends it.
    pub secret: Option<(String, String)>,
}

/// Of a token of a service account that says when it was issued and when it ends; `None` of any other.
pub fn bound(token: &str) -> Option<Bound> {
    let claims = of(token)?;
    let second = |key: &str| Timestamp::from_second(claims.get(key)?.as_i64()?).ok();
    let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let audiences = match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Some(Bound {
        issued: second("iat")?,
        ends: second("exp")?,
        account: account_name(token)?,
        account_uid: text("/kubernetes.io/serviceaccount/uid"),
        audiences,
        secret: text("/kubernetes.io/secret/name").zip(text("/kubernetes.io/secret/uid")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn a_token_says_when_it_ends_or_does_not() {
        assert_eq!(ends(&token(&json!({"exp": 1_800_000_000}))), Timestamp::from_second(1_800_000_000).ok());
        assert_eq!(ends(&token(&json!({"sub": "x"}))), None);
        assert_eq!(ends("opaque"), None);
        assert_eq!(life("opaque"), None);
        let day = life(&token(&json!({"iat": 1_800_000_000, "exp": 1_800_086_400}))).unwrap();
        assert_eq!(day.ends.duration_since(day.warns).as_hours(), 8);
    }

    #[test]
    fn both_kinds_of_tokens_say_whose_they_are() {
        let bound = json!({"kubernetes.io": {"serviceaccount": {"name": "a", "uid": "u1"}}});
        let lasting = json!({"kubernetes.io/serviceaccount/service-account.uid": "u2"});
        assert_eq!(account(&token(&bound)).as_deref(), Some("u1"));
        assert_eq!(account(&token(&lasting)).as_deref(), Some("u2"));
        assert_eq!(account("opaque"), None);
    }

    #[test]
    fn a_token_names_its_account_and_what_ends_it() {
        let bound = json!({"sub": "system:serviceaccount:ns:a", "kubernetes.io": {"secret": {"name": "s", "uid": "u"}}});
        assert_eq!(account_name(&token(&bound)), Some(("ns".to_owned(), "a".to_owned())));
        assert_eq!(secret(&token(&bound)).as_deref(), Some("s"));
        let lasting = json!({"kubernetes.io/serviceaccount/secret.name": "t"});
        assert_eq!(secret(&token(&lasting)).as_deref(), Some("t"));
        assert_eq!((account_name("opaque"), secret("opaque")), (None, None));
    }

    #[test]
    fn a_bound_token_says_what_another_one_like_it_needs() {
        let claims = json!({
            "iat": 1_800_000_000, "exp": 1_800_000_600, "aud": ["https://kubernetes.default.svc"],
            "sub": "system:serviceaccount:ns:a",
            "kubernetes.io": {"serviceaccount": {"name": "a", "uid": "u1"}, "secret": {"name": "s", "uid": "u2"}},
        });
        let said = bound(&token(&claims)).unwrap();
        assert_eq!(said.ends.duration_since(said.issued).as_secs(), 600);
        assert_eq!(said.account, ("ns".to_owned(), "a".to_owned()));
        assert_eq!(said.account_uid.as_deref(), Some("u1"));
        assert_eq!(said.audiences, ["https://kubernetes.default.svc"]);
        assert_eq!(said.secret, Some(("s".to_owned(), "u2".to_owned())));
        for missing in ["iat", "exp", "sub"] {
            let mut less = claims.clone();
            less.as_object_mut().unwrap().remove(missing);
            assert_eq!(bound(&token(&less)), None, "{missing}");
        }
        assert_eq!(bound("opaque"), None);
    }
}
