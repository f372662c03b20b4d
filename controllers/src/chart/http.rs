//! A URL of a tenant comes in, the bytes behind it go out: through the dialer, each redirect judged anew, credentials for
//! their own origin alone, nothing of a refusal's body quoted.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderValue, LOCATION, USER_AGENT};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};
use secrecy::ExposeSecret;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use super::{ChartCredentials, ChartError, ChartLimits};
use crate::api::ApiError;
use crate::dialer::{DialError, Dialer, check_source, shown};
use crate::remote::kubeconfig::provider;
use crate::remote::wire::{self, ReadLimits};

const AGENT: &str = concat!("emco-operator/", env!("CARGO_PKG_VERSION"));

/// Fetches for one chart.
pub struct Client<'a> {
    pub dialer: &'a Dialer,
    pub limits: &'a ChartLimits,
    /// The project's chartSources.
    pub sources: Option<&'a [String]>,
    pub credentials: Option<&'a ChartCredentials>,
    /// Where credentials may go.
    pub home: &'a Url,
}

fn unreachable(message: &str) -> ChartError {
    ChartError::new("SourceUnreachable", message)
}

fn refused(message: &str) -> ChartError {
    ChartError::new("ChartSourceNotAllowed", message)
}

impl Client<'_> {
    /// The body of a successful GET, of at most `bytes`.
    pub async fn get(&self, url: &Url, bytes: usize) -> Result<Bytes, ChartError> {
        let limit = self.limits.time;
        match timeout(limit, Box::pin(self.follow(url.clone(), bytes))).await {
            Ok(done) => done,
            Err(_) => Err(unreachable(&format!("{} did not answer completely within {limit:?}", shown(url)))),
        }
    }

    async fn follow(&self, mut url: Url, bytes: usize) -> Result<Bytes, ChartError> {
        for _ in 0..=self.limits.redirects {
            let response = self.once(&url).await?;
            let status = response.status().as_u16();
            match status {
                200 => return self.body(&url, response, bytes).await,
                301 | 302 | 303 | 307 | 308 => url = redirected(&url, &response)?,
                401 | 403 => {
                    return Err(ChartError::new(
                        "ChartUnauthorized",
                        &format!(
                            "{} answers {status}: put valid credentials into the Secret that secretRef names",
                            shown(&url)
                        ),
                    ));
                }
                404 | 410 => {
                    return Err(ChartError::new(
                        "ChartNotFound",
                        &format!("{} answers {status}: it is not there", shown(&url)),
                    ));
                }
                _ => return Err(unreachable(&format!("{} answers {status}", shown(&url)))),
            }
        }
        Err(unreachable(&format!("{} redirects more than {} times", shown(&url), self.limits.redirects)))
    }

    async fn body(
        &self,
        url: &Url,
        response: http::Response<Incoming>,
        bytes: usize,
    ) -> Result<Bytes, ChartError> {
        let limits = ReadLimits { bytes, time: self.limits.time };
        wire::collect(&shown(url), response.into_body(), limits).await.map_err(|error| match error {
            ApiError::Protocol(message) => ChartError::new("ChartTooLarge", &message),
            other => unreachable(&other.to_string()),
        })
    }

    async fn once(&self, url: &Url) -> Result<http::Response<Incoming>, ChartError> {
        let listing = check_source(url, self.sources).map_err(|message| refused(&message))?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(refused(&format!("{} names no host", shown(url))));
        };
        let dialled = self.dialer.dial(host, port, listing.policy()).await.map_err(|error| match error {
            DialError::Refused(message) => refused(&message),
            other => unreachable(&other.to_string()),
        })?;
        let home = url.origin() == self.home.origin();
        let stream = dialled.stream;
        let waiting = Box::pin(async {
            if url.scheme() == "https" {
                let stream = self.shake_hands(url, host, stream, home).await?;
                self.ask(url, stream, home).await
            } else {
                self.ask(url, stream, home).await
            }
        });
        let limit = self.limits.answer_begins;
        match timeout(limit, waiting).await {
            Ok(done) => done,
            Err(_) => Err(unreachable(&format!("{} did not answer within {limit:?}", shown(url)))),
        }
    }

    async fn shake_hands(
        &self,
        url: &Url,
        host: &str,
        stream: TcpStream,
        home: bool,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ChartError> {
        let config = match self.credentials {
            None => public()?,
            Some(credentials) => own(credentials, home)?,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)
            .map_err(|_| refused(&format!("{} names no usable host", shown(url))))?;
        TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
            let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
            let why = match tls {
                Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                    "its certificate is signed by no public CA: put the CA into the Secret's key ca.crt"
                        .to_owned()
                }
                Some(other) => other.to_string(),
                None => error.to_string(),
            };
            unreachable(&format!("the TLS handshake with {} failed: {why}", shown(url)))
        })
    }

    async fn ask<S>(&self, url: &Url, stream: S, home: bool) -> Result<http::Response<Incoming>, ChartError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let broken = || unreachable(&format!("{} closed the connection before answering", shown(url)));
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(64 << 10)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| broken())?;
        tokio::spawn(async move {
            // Ends when the answer was read or dropped; its error is the answer's.
            let _ = connection.await;
        });
        let authority = url.authority();
        let path =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let mut request = http::Request::get(path)
            .header(HOST, authority)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(|_| refused(&format!("{} cannot be requested", shown(url))))?;
        if let Some(value) = self.credentials.filter(|_| home).and_then(basic) {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        sender.send_request(request).await.map_err(|_| broken())
    }
}

fn redirected(url: &Url, response: &http::Response<Incoming>) -> Result<Url, ChartError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    location
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| unreachable(&format!("{} redirects to nowhere", shown(url))))
}

fn basic(credentials: &ChartCredentials) -> Option<HeaderValue> {
    let (user, password) = (credentials.username.as_deref()?, credentials.password.as_ref()?);
    let pair = zeroize::Zeroizing::new(format!("{user}:{}", password.expose_secret()));
    let text = zeroize::Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Public CAs alone, no client certificate: made once, for it costs a thousand times a lookup.
fn public() -> Result<Arc<ClientConfig>, ChartError> {
    static PUBLIC: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(made) = PUBLIC.get() {
        return Ok(Arc::clone(made));
    }
    let made = own(&ChartCredentials::default(), false)?;
    Ok(Arc::clone(PUBLIC.get_or_init(|| made)))
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// Public CAs and the tenant's own; the client certificate goes to its own origin alone.
fn own(credentials: &ChartCredentials, home: bool) -> Result<Arc<ClientConfig>, ChartError> {
    let wrong = |key: &str, what: &str| {
        ChartError::new("ChartUnauthorized", &format!("the Secret's key {key} {what}"))
    };
    let mut roots = public_roots();
    if let Some(pem) = &credentials.ca_crt {
        let mut any = false;
        for certificate in CertificateDer::pem_slice_iter(pem).take(64) {
            let certificate = certificate.map_err(|_| wrong("ca.crt", "is not PEM"))?;
            roots.add(certificate).map_err(|_| wrong("ca.crt", "holds a certificate that does not parse"))?;
            any = true;
        }
        if !any {
            return Err(wrong("ca.crt", "holds no certificate in PEM"));
        }
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unreachable(&error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match (&credentials.tls_crt, &credentials.tls_key) {
        (Some(chain), Some(key)) if home => {
            let chain = CertificateDer::pem_slice_iter(chain)
                .take(16)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| wrong("tls.crt", "is not PEM"))?;
            let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
                .map_err(|_| wrong("tls.key", "holds no private key in PEM"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|_| wrong("tls.key", "is not the key of tls.crt"))?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
