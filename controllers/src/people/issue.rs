//! Has one cluster issue the credential of a person: a certificate, or a token where it signs none.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::logical_cloud::CredentialType;
use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::people::{self, Endpoint, Kind, Proof, Wanted};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Issued, People, Refusal, request, token};
use crate::api::world::World;
use crate::api::{ApiError, ApiResult, ApiServer, ApiServerExt, Request};
use crate::remote::kubeconfig;
use crate::remote::wire::cut;

/// One request, whatever the connection allows.
const REQUEST: Duration = Duration::from_secs(20);
/// How long a signature is waited for: at the first try, and at the next ones. Signers that are there take less than a second.
const PATIENCE: [Duration; 3] = [Duration::from_secs(15), Duration::from_mins(1), Duration::from_mins(5)];
/// Longest message.
const LONGEST: usize = 256;

/// What is to be issued.
#[derive(Clone)]
pub(crate) struct Order {
    /// By which cluster.
    pub cluster: ClusterId,
    /// Hash of the logical cloud, which marks what is made there.
    pub owner: String,
    /// What is wanted.
    pub wanted: Wanted,
    /// Kind of the credential that is stored.
    pub before: Option<Kind>,
    /// Tries that failed in a row.
    pub failures: u32,
    /// Namespace and name of the Secret that the cluster is registered with, and the key that is named.
    pub registered: (String, String, Option<String>),
}

impl Order {
    /// Name of the request on the cluster.
    pub fn request_name(&self) -> String {
        format!("emco-user-{}", self.owner)
    }

    /// How long it is asked for.
    pub fn seconds(&self) -> i64 {
        i64::try_from(self.wanted.duration.as_secs()).unwrap_or(i64::MAX).min(i64::from(i32::MAX))
    }
}

/// The cluster, as one order asks it.
pub(super) struct Asked<'a> {
    server: Arc<dyn ApiServer>,
    world: &'a World,
    people: &'a People,
    namespace: &'a str,
}

impl Asked<'_> {
    /// Sends a request when there is a place.
    pub async fn send(&self, request: Request) -> ApiResult<Value> {
        let _place = self.people.place(self.namespace).await;
        timeout(REQUEST, self.server.send(request)).await.unwrap_or_else(|_| {
            let message = format!("no answer within {} s", REQUEST.as_secs());
            Err(ApiError::Unreachable { reason: "Timeout", message })
        })
    }

    pub fn now(&self) -> Timestamp {
        now(self.world)
    }
}

fn now(world: &World) -> Timestamp {
    Timestamp::from_second(world.clock.now_ms() / 1000).unwrap_or_default()
}

/// Why nothing was issued.
#[derive(Debug)]
pub(super) struct Refused {
    reason: Option<Reason>,
    message: String,
    pause: Duration,
}

impl Refused {
    pub fn of(reason: Reason, message: &str) -> Self {
        let pause = match reason {
            // Somebody said no: asking again and again is no way to change that.
            Reason::CSRDenied | Reason::CredentialRefused => Duration::from_mins(5),
            _ => Duration::from_mins(1),
        };
        Self { reason: Some(reason), message: cut(message, LONGEST), pause }
    }

    /// It is a matter of moments, and nobody's business.
    pub fn soon(message: String) -> Self {
        Self { reason: None, message, pause: Duration::from_secs(5) }
    }

    /// Nobody wants it any more.
    pub fn over() -> Self {
        Self::soon("nobody wants it any more".to_owned())
    }

    /// What an API server's refusal means.
    pub fn by(verb: &str, resource: &str, error: &ApiError) -> Self {
        let words = error.to_string();
        let code = error.code();
        match code {
            // The row of the cluster says that it does not answer.
            0 if matches!(error, ApiError::Unreachable { .. }) => {
                Self { pause: Duration::from_secs(10), ..Self::soon(words) }
            }
            0 => Self::of(Reason::ServerError, &format!("{verb} {resource}: {words}")),
            401 | 403 => Self::of(
                Reason::Forbidden,
                &format!(
                    "the Cluster's credentials may not {verb} {resource} there: grant what `user` needs (clusters.md, What credentials \
                     need): {words}"
                ),
            ),
            404 => Self::soon(words),
            _ => Self::of(Reason::ServerError, &format!("{verb} {resource}: {code}: {words}")),
        }
    }

    /// Whether the cluster signs no certificates, as far as can be told.
    fn is_unsigned(&self) -> bool {
        matches!(self.reason, Some(Reason::CSRNotSigned | Reason::Forbidden))
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let Refused { reason, message, pause } = refused;
        let longest = match reason {
            // It may pass by itself, and nobody tells when.
            None => Duration::from_mins(1),
            // A right that is granted takes effect by itself, too.
            Some(Reason::Forbidden) => Duration::from_mins(5),
            Some(_) => Duration::from_mins(30),
        };
        Self { reason: reason.map(Reason::as_str), message, pause, longest }
    }
}

/// Has it issued. The connection is the one there is; without one it is tried when the cluster answers again.
pub(crate) async fn issue(
    world: &World,
    people: &People,
    namespace: &str,
    order: &Order,
    stop: &CancellationToken,
) -> Result<Issued, Refusal> {
    make(world, people, namespace, order, stop).await.map_err(Refusal::from)
}

async fn make(
    world: &World,
    people: &People,
    namespace: &str,
    order: &Order,
    stop: &CancellationToken,
) -> Result<Issued, Refused> {
    let away = || Refused::soon("the cluster is not connected".to_owned());
    let server = world.edges.get(&order.cluster).ok_or_else(away)?;
    let asked = Asked { server, world, people, namespace };
    let endpoint = endpoint(world, order).await?;
    let patience = |failures: u32| {
        let at = usize::try_from(failures).unwrap_or(usize::MAX).min(PATIENCE.len() - 1);
        PATIENCE.get(at).copied().unwrap_or_default()
    };
    let first = patience(0);
    let made = match (order.wanted.type_, order.before) {
        // What the cluster is known not to sign is not asked for again while the logical cloud wants the same.
        (CredentialType::ServiceAccountToken, _) | (CredentialType::Auto, Some(Kind::Token)) => None,
        (CredentialType::ClientCertificate, _) => {
            Some(request::certificate(&asked, order, patience(order.failures), stop).await?)
        }
        (CredentialType::Auto, _) => match request::certificate(&asked, order, first, stop).await {
            Ok(made) => Some(made),
            Err(refused) if refused.is_unsigned() => None,
            Err(refused) => return Err(refused),
        },
    };
    let issued = asked.now();
    let write = |proof: &Proof<'_>, expires: Timestamp| {
        let text = people::write(&order.cluster, &endpoint, &order.wanted.person, proof, (issued, expires))?;
        // What cannot be read again would be issued again and again.
        people::read(&text)?;
        Some(Issued { text: text.into() })
    };
    let written = if let Some((key, certificate)) = made {
        let text = STANDARD.encode(&certificate.text);
        write(&Proof::Certificate { certificate: &text, key: &key.text() }, certificate.expires)
    } else {
        let (token, expires) = token::token(&asked, order).await?;
        write(&Proof::Token(&token), expires)
    };
    written
        .ok_or_else(|| Refused::of(Reason::ServerError, "a kubeconfig of what was issued cannot be written"))
}

/// How the cluster is reached, from what it is registered with.
async fn endpoint(world: &World, order: &Order) -> Result<Endpoint, Refused> {
    let (namespace, name, key) = &order.registered;
    let unread =
        |error: ApiError| Refused::soon(format!("Secret {namespace}/{name} cannot be read: {error}"));
    let found = world.hub.get_opt(ApiPath::core(namespace, "secrets").then(name)).await.map_err(unread)?;
    // What does not parse would be quoted.
    let secret: Option<Secret> = found.and_then(|found| serde_json::from_value(found).ok());
    let secret =
        secret.ok_or_else(|| Refused::soon(format!("Secret {namespace}/{name} is no kubeconfig's")))?;
    let data = secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
    kubeconfig::endpoint_of_secret(secret.metadata.labels.as_ref(), &data, key.as_deref())
        // The Cluster says it.
        .map_err(|error| Refused::soon(error.message))
}
