//! Runs a token realm on loopback that a registry trusts, and records what was asked of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, KeyPair, SigningKey as _};
use serde_json::json;

use crate::https::Server;

/// A token realm. It ends when it is dropped.
pub struct Tokens {
    server: Server,
    state: Arc<Realm>,
    authority: String,
}

struct Realm {
    /// `Basic ...`
    login: String,
    key: KeyPair,
    /// The certificate of the key, as tokens carry it.
    chain: String,
    asked: Mutex<Vec<String>>,
}

impl Tokens {
    /// Starts it on a free port, with a certificate of its own authority, for whoever has the login.
    pub async fn start(login: (&str, &str)) -> Result<Self> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).context("cannot make a key")?;
        let params = CertificateParams::new(vec!["tokens".to_owned()]).context("no name")?;
        let certificate = params.self_signed(&key).context("cannot sign a certificate")?;
        let state = Arc::new(Realm {
            login: format!("Basic {}", STANDARD.encode(format!("{}:{}", login.0, login.1))),
            key,
            chain: STANDARD.encode(certificate.der()),
            asked: Mutex::default(),
        });
        let router = Router::new().route("/token", get(token)).with_state(Arc::clone(&state));
        let server = Server::secure(router, &[]).await?;
        Ok(Self { server, state, authority: certificate.pem() })
    }

    /// Where tokens are made.
    pub fn realm(&self) -> String {
        format!("{}/token", self.server.url())
    }

    /// Its host and port.
    pub fn host(&self) -> String {
        self.server.address().to_string()
    }

    /// What signs the tokens, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The authority of its server's certificate, in PEM.
    pub fn ca(&self) -> &str {
        self.server.ca()
    }

    /// What was asked since the last call: `scopes authorization`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Answer = Result<String, (StatusCode, String)>;

async fn token(State(realm): State<Arc<Realm>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Answer {
    let query = query.unwrap_or_default().replace("%3A", ":").replace("%2F", "/").replace("%2C", ",");
    let scopes: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("scope=")).collect();
    let given = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("-");
    let line = format!("{} {given}", scopes.join("+"));
    realm.asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    if given != realm.login {
        return Err((StatusCode::UNAUTHORIZED, "who are you?\n".to_owned()));
    }
    realm.sign(&scopes).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

impl Realm {
    fn sign(&self, scopes: &[&str]) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?.as_secs();
        let access: Vec<_> = scopes
            .iter()
            .filter_map(|scope| {
                let mut parts = scope.splitn(3, ':');
                let (kind, name, actions) = (parts.next()?, parts.next()?, parts.next()?);
                Some(json!({"type": kind, "name": name, "actions": actions.split(',').collect::<Vec<_>>()}))
            })
            .collect();
        let head = json!({"typ": "JWT", "alg": "EdDSA", "x5c": [self.chain]});
        let claims = json!({
            "iss": "tokens", "sub": "ann", "aud": "registry", "jti": now.to_string(),
            "iat": now, "nbf": now - 10, "exp": now + 300, "access": access,
        });
        let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&head), encode(&claims));
        let signature = self.key.sign(text.as_bytes()).context("cannot sign")?;
        let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(json!({"token": token, "expires_in": 300}).to_string())
    }
}
