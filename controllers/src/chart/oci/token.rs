//! Asks a registry's token realm for a token to pull one repository.

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::super::ChartError;
use super::super::http::{Client, Question};
use crate::remote::dialer::shown;
use crate::remote::wire::cut;

/// Largest answer of a realm; tokens that list many rights are some KiB.
const BYTES: usize = 256 << 10;

#[derive(Deserialize)]
struct Answer {
    token: Option<SecretString>,
    access_token: Option<SecretString>,
}

/// Asks the realm for the right to pull, and for no other: what scope the registry proposes does not matter. The login of the
/// repository goes to a realm of the same origin; another host gets what the Secret has under that host's own name, if
/// anything.
pub async fn fetch(
    client: &Client<'_>,
    repository: &str,
    realm: &str,
    service: Option<&str>,
) -> Result<HeaderValue, ChartError> {
    let refused = |message: String| ChartError::new("ChartSourceNotAllowed", &message);
    let mut url = Url::parse(realm).map_err(|_| {
        let realm = cut(realm, 200);
        refused(format!("{} wants a token of {realm:?}, which is not a URL", shown(client.home)))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(format!("the token realm {} carries a user name or password", shown(&url))));
    }
    url.set_fragment(None);
    {
        let mut pairs = url.query_pairs_mut();
        if let Some(service) = service {
            pairs.append_pair("service", service);
        }
        pairs.append_pair("scope", &format!("repository:{repository}:pull"));
    }
    let login = client.login_for(&url);
    let question = Question {
        authorization: login.map(|value| (url.origin(), value)),
        beside_home: true,
        ..Question::default()
    };
    let answered =
        client.within(&url, async { client.ask(&url, &question).await?.body(BYTES, client.limits).await });
    let bytes = answered.await.map_err(|error| explained(client, &url, &question, error))?;
    let strange = || {
        let message = format!("the token realm {} gives no token", shown(&url));
        ChartError::new("ChartUnauthorized", &message)
    };
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|_| strange())?;
    let token = answer.token.or(answer.access_token).ok_or_else(strange)?;
    let text = zeroize::Zeroizing::new(format!("Bearer {}", token.expose_secret()));
    let mut value = HeaderValue::from_str(&text).map_err(|_| strange())?;
    value.set_sensitive(true);
    Ok(value)
}

/// A refusal of the realm, with what the user can do about it.
fn explained(client: &Client<'_>, url: &Url, question: &Question, error: ChartError) -> ChartError {
    let (realm, host) = (shown(url), url.host_str().unwrap_or_default());
    match error.reason() {
        "ChartSourceNotAllowed" => ChartError::new(
            "ChartSourceNotAllowed",
            &format!("the registry wants a token of the realm {realm}: {error}"),
        ),
        "ChartUnauthorized" if question.authorization.is_none() && client.credentials.is_some() => {
            ChartError::new(
                "ChartUnauthorized",
                &format!(
                    "the registry wants a token of {realm}, which is another origin and is not given the login of the registry: add a login for {host} to the Secret (type kubernetes.io/dockerconfigjson)"
                ),
            )
        }
        "ChartUnauthorized" => ChartError::new(
            "ChartUnauthorized",
            &format!(
                "the token realm {realm} refuses: put valid credentials into the Secret that secretRef names"
            ),
        ),
        _ => error,
    }
}
