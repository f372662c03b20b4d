//! Has a cluster sign a certificate: a `CertificateSigningRequest` is made, approved, waited for and removed again.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::names::label;
use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_engine::path::ApiPath;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::certificate::{Certificate, Key};
use super::issue::{Asked, Order, Refused};
use crate::api::{ApiError, Content, Method, Request};
use crate::remote::wire::cut;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// The signer of client certificates for the API server itself.
pub(super) const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Pauses between two looks: the first and the longest.
const LOOK: Duration = Duration::from_millis(500);
const LOOKS: Duration = Duration::from_secs(5);

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The message of a condition of a request, where it has it.
fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|one| text(one, "/type") == type_)?;
    Some(text(found, "/message"))
}

/// Has the cluster sign a certificate of a new key.
pub(super) async fn certificate(
    asked: &Asked<'_>,
    order: &Order,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<(Key, Certificate), Refused> {
    let unmade = || Refused::of(Reason::ServerError, "the operator cannot make a key");
    let key = Key::new().ok_or_else(unmade)?;
    let request = STANDARD.encode(key.request(&order.wanted.person).ok_or_else(unmade)?);
    let made = create(asked, order, &request).await?;
    let signed = signed(asked, &made, &request, patience, stop).await;
    // Whatever became of it, nobody needs it any more. What stays after a failure, the cluster collects.
    if let Err(error) = remove(asked, &made).await {
        tracing::debug!(cluster = %order.cluster, %error, "a CertificateSigningRequest stays until the cluster collects it");
    }
    let certificate = key
        .judge(&signed?, &order.wanted.person, asked.now())
        .map_err(|words| Refused::of(Reason::CredentialRefused, words))?;
    Ok((key, certificate))
}

/// Makes the request, in the place of one that an earlier process left.
async fn create(asked: &Asked<'_>, order: &Order, request: &str) -> Result<Value, Refused> {
    let name = order.request_name();
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": {(label::CREDENTIAL): order.owner}},
        "spec": {
            "request": request,
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": order.seconds(),
        },
    });
    let post = || Request::new(Method::Post, REQUESTS).body(Content::Json, &object);
    match asked.send(post()).await {
        Err(error) if error.already_exists() => {}
        other => return other.map_err(|error| refused("create", &error)),
    }
    match asked.send(Request::new(Method::Get, ApiPath::new(REQUESTS).then(&name))).await {
        Err(error) if error.lacks(&name) => {}
        Err(error) => return Err(refused("get", &error)),
        Ok(there) => {
            let ours = there.pointer("/metadata/labels").and_then(|labels| labels.get(label::CREDENTIAL));
            if ours.and_then(Value::as_str) != Some(&order.owner) {
                let words = format!(
                    "CertificateSigningRequest {name} exists and is somebody else's: delete it on the cluster"
                );
                return Err(Refused::of(Reason::Conflict, &words));
            }
            remove(asked, &there).await.map_err(|error| refused("delete", &error))?;
        }
    }
    asked.send(post()).await.map_err(|error| refused("create", &error))
}

/// Removes the very request.
async fn remove(asked: &Asked<'_>, object: &Value) -> Result<(), ApiError> {
    let (name, uid) = (text(object, "/metadata/name"), text(object, "/metadata/uid"));
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
    let path = ApiPath::new(REQUESTS).then(name);
    match asked.send(Request::new(Method::Delete, path).body(Content::Json, &options)).await {
        Err(error) if !error.lacks(name) => Err(error),
        _ => Ok(()),
    }
}

/// Whether it is the very request that was made, and asks for what it was made for: no other one is ever approved.
fn is_ours(object: &Value, made: &Value, request: &str) -> bool {
    let same = |pointer: &str| text(object, pointer) == text(made, pointer);
    same("/metadata/name")
        && same("/metadata/uid")
        && text(object, "/spec/request") == request
        && text(object, "/spec/signerName") == SIGNER
}

/// Approves the request and waits for the certificate.
async fn signed(
    asked: &Asked<'_>,
    made: &Value,
    request: &str,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Vec<u8>, Refused> {
    let another = || {
        Refused::of(Reason::CredentialRefused, "the request for a certificate was replaced by another one")
    };
    if !is_ours(made, made, request) {
        return Err(another());
    }
    let name = text(made, "/metadata/name");
    let path = ApiPath::new(REQUESTS).then(name);
    let mut approved = approve(asked, made, asked.now()).await;
    let (until, mut pause) = (Instant::now() + patience, LOOK);
    loop {
        // Who denied it was before: that is told, and not that it cannot be approved any more.
        if let Err(error) = &approved
            && !matches!(error, ApiError::Status { code: 409 | 422, .. })
        {
            return Err(refused("approve", error));
        }
        let object = match asked.send(Request::new(Method::Get, &path)).await {
            Err(error) if error.lacks(name) => {
                return Err(unsigned("somebody removed the request before it was signed"));
            }
            other => other.map_err(|error| refused("get", &error))?,
        };
        if !is_ours(&object, made, request) {
            return Err(another());
        }
        if let Some(certificate) = certificate_of(&object) {
            return Ok(certificate);
        }
        if let Some(words) = condition(&object, "Denied") {
            let words = format!("somebody denied the request for a certificate: {}", said(words));
            return Err(Refused::of(Reason::CSRDenied, &words));
        }
        if let Some(words) = condition(&object, "Failed") {
            return Err(unsigned(&format!("the cluster's signer failed: {}", said(words))));
        }
        if condition(&object, "Approved").is_none() {
            approved = approve(asked, &object, asked.now()).await;
        }
        if Instant::now() >= until {
            let words = format!(
                "the cluster did not sign within {} s: it has no signer {SIGNER}; set credentials.type to Auto or ServiceAccountToken",
                patience.as_secs()
            );
            return Err(unsigned(&words));
        }
        tokio::select! {
            () = stop.cancelled() => return Err(Refused::over()),
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(LOOKS);
    }
}

/// Says that the operator approves of a request, as it was read.
async fn approve(asked: &Asked<'_>, object: &Value, now: Timestamp) -> Result<(), ApiError> {
    let mut body = object.clone();
    let condition = json!({
        "type": "Approved", "status": "True", "reason": "EMCOLogicalCloud",
        "message": "a logical cloud of EMCO gives a person credentials of its own",
        "lastUpdateTime": format!("{now:.0}"),
    });
    if let Some(body) = body.as_object_mut() {
        body.insert("status".to_owned(), json!({"conditions": [condition]}));
    }
    let path = ApiPath::new(REQUESTS).then(text(object, "/metadata/name")).then("approval");
    asked.send(Request::new(Method::Put, path).body(Content::Json, &body)).await.map(drop)
}

fn certificate_of(object: &Value) -> Option<Vec<u8>> {
    let encoded =
        object.pointer("/status/certificate").and_then(Value::as_str).filter(|text| !text.is_empty())?;
    // What is no Base64 is no certificate either, and is told as such.
    Some(STANDARD.decode(encoded).unwrap_or_default())
}

fn said(words: &str) -> String {
    if words.is_empty() { "no reason is given".to_owned() } else { cut(words, 120) }
}

fn unsigned(words: &str) -> Refused {
    Refused::of(Reason::CSRNotSigned, words)
}

fn refused(verb: &str, error: &ApiError) -> Refused {
    // A cluster without this API signs nothing.
    if error.is_not_found() && verb == "create" {
        return unsigned(
            "the cluster has no CertificateSigningRequests; set credentials.type to Auto or ServiceAccountToken",
        );
    }
    Refused::by(verb, "certificatesigningrequests", error)
}
