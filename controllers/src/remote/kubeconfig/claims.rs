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
}
