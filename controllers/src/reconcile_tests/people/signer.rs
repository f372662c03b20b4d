//! A signer for clusters in memory: it acts on requests for certificates when they are looked at, as it is told to.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::apis::ApiResource;
use parking_lot::Mutex;
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use serde_json::{Value, json};

use super::super::life::lost;
use super::super::world::TestClock;
use crate::api::world::Clock as _;
use crate::api::{ApiError, Method};
use crate::memory::{Fault, MemoryServer};

const REQUESTS: &str = "certificatesigningrequests";

/// What a cluster does with requests for certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// It signs them.
    Well,
    /// It has no signer.
    Nothing,
    /// Somebody denies them.
    Denied,
    /// It signs another name.
    ForSomebodyElse,
    /// It signs another key.
    AnotherKey,
    /// Its signer fails.
    Failing,
    /// The credentials may not ask.
    Forbidden,
    /// Approvals are not answered.
    Silent,
    /// Somebody puts another request in the place of the one that was made.
    Replaced,
}

pub type Mode = Arc<Mutex<Signs>>;

fn certificate(request: &Value, clock: &TestClock, mode: Signs) -> String {
    let pem = STANDARD.decode(request["spec"]["request"].as_str().unwrap()).unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
    let mut asked = CertificateSigningRequestParams::from_pem(&String::from_utf8(pem).unwrap()).unwrap();
    let now = Duration::from_millis(u64::try_from(clock.now_ms()).unwrap());
    let seconds = request["spec"]["expirationSeconds"].as_u64().unwrap();
    // As Kubernetes' own signer does.
    asked.params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(Duration::from_mins(5));
    asked.params.not_after = date_time_ymd(1970, 1, 1) + (now + Duration::from_secs(seconds));
    asked.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if mode == Signs::ForSomebodyElse {
        asked.params.distinguished_name.remove(DnType::CommonName);
        asked.params.distinguished_name.push(DnType::CommonName, "emco:team-b:default:eve");
    }
    if mode == Signs::AnotherKey {
        return asked.params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().pem();
    }
    asked.signed_by(&issuer).unwrap().pem()
}

fn forbidden() -> ApiError {
    ApiError::Status {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "certificatesigningrequests.certificates.k8s.io is forbidden: User \"emco\" cannot create resource \
                  \"certificatesigningrequests\" in API group \"certificates.k8s.io\" at the cluster scope"
            .to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}

/// Has a cluster act on requests when they are looked at.
pub fn signer(edge: &MemoryServer, clock: &TestClock, mode: &Mode, made: &Arc<Mutex<usize>>) {
    edge.register(ApiResource {
        group: "certificates.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CertificateSigningRequest".to_owned(),
        plural: REQUESTS.to_owned(),
        namespaced: false,
        listable: true,
        watchable: true,
    });
    let (server, clock, mode, made) = (edge.clone(), clock.clone(), Arc::clone(mode), Arc::clone(made));
    edge.faults(Some(Arc::new(move |request, _| {
        let path = request.path.to_string();
        if !path.contains(REQUESTS) {
            return None;
        }
        let mode = *mode.lock();
        match request.method {
            Method::Post => {
                *made.lock() += 1;
                (mode == Signs::Forbidden).then(|| Fault::Refuse(forbidden()))
            }
            Method::Put if mode == Signs::Silent => Some(Fault::Refuse(lost())),
            Method::Put if mode == Signs::Replaced => {
                let path = path.trim_end_matches("/approval");
                let mut object = server.object(path)?;
                object["metadata"] = json!({"name": object["metadata"]["name"], "labels": object["metadata"]["labels"]});
                object["spec"]["request"] = json!("ZXZl");
                server.remove(path);
                server.put("eve", &object);
                None
            }
            Method::Put if mode == Signs::Denied => {
                let denied = json!({"conditions": [{"type": "Denied", "status": "True", "message": "not on our cluster"}]});
                server.set_status(path.trim_end_matches("/approval"), &denied).unwrap();
                None
            }
            Method::Get => {
                let object = server.object(&path)?;
                let conditions = object["status"]["conditions"].clone();
                let approved = conditions.as_array()?.iter().any(|one| one["type"] == "Approved");
                let done = object["status"]["certificate"].is_string();
                if !approved || done || mode == Signs::Nothing {
                    return None;
                }
                let status = if mode == Signs::Failing {
                    json!({"conditions": [{"type": "Approved", "status": "True"},
                        {"type": "Failed", "status": "True", "message": "no such usage"}]})
                } else {
                    json!({"conditions": conditions, "certificate": STANDARD.encode(certificate(&object, &clock, mode))})
                };
                server.set_status(&path, &status).unwrap();
                None
            }
            _ => None,
        }
    })));
}
