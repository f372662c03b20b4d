//! Makes a rustls configuration that trusts exactly one CA, from PEM.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::{KubeconfigError, Life, invalid};

/// TLS sessions kept per edge for resumption; rustls' own 256 would cost memory times the number of edges.
const SESSIONS: usize = 4;
/// CA certificates read of one file.
const AUTHORITIES: usize = 64;

/// The cryptography of every connection that this crate makes.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Arc::clone(&PROVIDER)
}

/// A client certificate with its key.
pub struct Client {
    /// The chain, leaf first.
    pub certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Client {
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, KubeconfigError> {
        let certificates = certificates("client-certificate-data", certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            invalid("client-key-data holds no private key in PEM (PKCS#8, PKCS#1 or SEC1, not encrypted)")
        })?;
        let old = certificates
            .first()
            .and_then(|leaf| {
                X509Certificate::from_der(leaf).ok().map(|(_, leaf)| leaf.version() != X509Version::V3)
            })
            .unwrap_or(false);
        if old {
            return Err(invalid(
                "client-certificate-data is an X.509 certificate older than version 3: issue it anew with extensions (openssl x509 -req -extfile)",
            ));
        }
        Ok(Self { certificates, key })
    }
}

/// From when to when the first certificate of a chain holds.
pub fn certificate_life(chain: &[CertificateDer<'_>]) -> Option<Life> {
    let (_, leaf) = X509Certificate::from_der(chain.first()?).ok()?;
    let [begins, ends] = [leaf.validity().not_before, leaf.validity().not_after]
        .map(|time| Timestamp::from_second(time.timestamp()).ok());
    Some(Life::new(begins, ends?))
}

pub fn certificates(field: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).take(AUTHORITIES).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(invalid(&format!("{field} holds no certificate in PEM"))),
    }
}

/// A chain as PEM, as OpenSSL writes it.
pub fn pem_of(chain: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in chain {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = STANDARD.encode(certificate);
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(64));
            text.push_str(&rest);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// A configuration that trusts the given CA and nobody else.
pub fn config(authority: &[u8], client: Option<&Client>) -> Result<Arc<ClientConfig>, KubeconfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("certificate-authority-data", authority)? {
        roots
            .add(certificate)
            .map_err(|_| invalid("certificate-authority-data holds a certificate that does not parse"))?;
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|_| invalid("the operator's TLS library offers no protocol version"))?
        .with_root_certificates(roots);
    let mut config = match client {
        Some(client) => builder
            .with_client_auth_cert(client.certificates.clone(), client.key.clone_key())
            .map_err(|_| invalid("client-key-data is not the key of client-certificate-data"))?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}
