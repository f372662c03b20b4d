//! Fetches the bytes behind a URL of a tenant: through the dialer, each redirect judged anew, credentials for their own
//! origin alone, nothing of a refusal's body quoted, nothing read that is announced as too large.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT,
};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use super::low_priority::Worker;
use super::{ChartCredentials, ChartError, ChartLimits, speed};
use crate::remote::dialer::{DialError, Dialer, check_source, shown};
use crate::remote::kubeconfig::provider;

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
    /// For what takes the processor.
    pub worker: &'a Worker,
}

/// What is asked of a URL.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What is wanted; anything if empty.
    pub accept: &'static str,
    /// `Authorization`, with the one origin that gets it.
    pub authorization: Option<(url::Origin, HeaderValue)>,
    /// Any address of home's own origin is judged as home itself is.
    pub beside_home: bool,
    /// One more header.
    pub extra: Option<(&'static str, &'static str)>,
    /// With its type; makes the request a POST, which follows no redirect.
    pub body: Option<(&'static str, Bytes)>,
}

/// The head of an answer, whose body was not read yet.
pub struct Answer {
    /// Where it came from, after all redirects.
    pub url: Url,
    response: http::Response<Incoming>,
    /// The server has to work before it can send, as a Git server that packs has.
    works: bool,
}

fn unreachable(message: &str) -> ChartError {
    ChartError::new("SourceUnreachable", message)
}

fn refused(message: &str) -> ChartError {
    ChartError::new("ChartSourceNotAllowed", message)
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The body of an answer that says 200, of at most `bytes`; what else it says is an error.
    pub async fn body(self, bytes: usize, limits: &ChartLimits) -> Result<Bytes, ChartError> {
        let (status, shown) = (self.status(), shown(&self.url));
        match status {
            200 => {}
            401 | 403 => {
                return Err(ChartError::new(
                    "ChartUnauthorized",
                    &format!(
                        "{shown} answers {status}: put valid credentials into the Secret that secretRef names"
                    ),
                ));
            }
            404 | 410 => {
                return Err(ChartError::new(
                    "ChartNotFound",
                    &format!("{shown} answers {status}: it is not there"),
                ));
            }
            _ => return Err(unreachable(&format!("{shown} answers {status}"))),
        }
        let body = self.response.into_body();
        let announced = body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > bytes) {
            return Err(ChartError::new(
                "ChartTooLarge",
                &format!("{shown} announces {announced} bytes, and at most {bytes} are read"),
            ));
        }
        speed::read(&shown, body, bytes, limits, self.works).await
    }
}

impl Client<'_> {
    /// The login for home.
    pub fn home_login(&self) -> Option<HeaderValue> {
        let credentials = self.credentials?;
        login(credentials.username.as_deref()?, credentials.password.as_ref()?)
    }

    /// The login for an address: home's for home's origin, else what the Secret has under the host's own name. A name alone does not
    /// say that its login may go there in the clear: for plain http it needs a port.
    pub fn login_for(&self, url: &Url) -> Option<HeaderValue> {
        if url.origin() == self.home.origin() {
            return self.home_login();
        }
        if url.scheme() != "https" && url.port().is_none() {
            return None;
        }
        let named = self.credentials?.logins.login(url).ok()?;
        login(&named.username, &named.password)
    }

    /// A question with the credentials for home.
    pub fn question(&self) -> Question {
        self.question_of(self.home)
    }

    /// A question with the credentials for an address.
    fn question_of(&self, url: &Url) -> Question {
        let login = self.login_for(url);
        Question { authorization: login.map(|value| (url.origin(), value)), ..Question::default() }
    }

    /// The body of a successful GET, of at most `bytes`.
    pub async fn get(&self, url: &Url, bytes: usize) -> Result<Bytes, ChartError> {
        let question = self.question_of(url);
        self.within(url, async { self.ask(url, &question).await?.body(bytes, self.limits).await }).await
    }

    /// What a request gives, unless it takes too long as a whole.
    pub async fn within<T>(
        &self,
        url: &Url,
        request: impl Future<Output = Result<T, ChartError>>,
    ) -> Result<T, ChartError> {
        let limit = self.limits.time;
        match timeout(limit, Box::pin(request)).await {
            Ok(done) => done,
            Err(_) => Err(unreachable(&format!("{} did not answer completely within {limit:?}", shown(url)))),
        }
    }

    /// The answer at the end of all redirects.
    pub async fn ask(&self, url: &Url, question: &Question) -> Result<Answer, ChartError> {
        let mut url = url.clone();
        for _ in 0..=self.limits.redirects {
            let response = self.once(&url, question).await?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(Answer { url, response, works: question.body.is_some() });
            }
            if question.body.is_some() {
                return Err(unreachable(&format!(
                    "{} redirects a request that must not be redirected: name the address it leads to",
                    shown(&url)
                )));
            }
            url = redirected(&url, &response)?;
        }
        Err(unreachable(&format!("{} redirects more than {} times", shown(&url), self.limits.redirects)))
    }

    async fn once(&self, url: &Url, question: &Question) -> Result<http::Response<Incoming>, ChartError> {
        let beside_home = question.beside_home && url.origin() == self.home.origin();
        let judged = if beside_home { self.home } else { url };
        let listing = check_source(judged, self.sources).map_err(|message| refused(&message))?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(refused(&format!("{} names no host", shown(url))));
        };
        let dialled = self.dialer.dial(host, port, listing.policy()).await.map_err(|error| match error {
            DialError::Refused(message) => refused(&message),
            other => unreachable(&other.to_string()),
        })?;
        let stream = dialled.stream;
        let waiting = Box::pin(async {
            if url.scheme() == "https" {
                let home = url.origin() == self.home.origin();
                let stream = self.shake_hands(url, host, stream, home).await?;
                send(url, stream, question).await
            } else {
                send(url, stream, question).await
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
}

async fn send<S>(url: &Url, stream: S, question: &Question) -> Result<http::Response<Incoming>, ChartError>
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
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let (verb, body) = match &question.body {
        None => (http::Method::GET, Bytes::new()),
        Some((_, body)) => (http::Method::POST, body.clone()),
    };
    let mut request = http::Request::builder()
        .method(verb)
        .uri(path)
        .header(HOST, url.authority())
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, if question.accept.is_empty() { "*/*" } else { question.accept })
        .header(CONNECTION, "close")
        .body(Full::new(body))
        .map_err(|_| refused(&format!("{} cannot be requested", shown(url))))?;
    let headers = request.headers_mut();
    if let Some((kind, _)) = &question.body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if let Some((name, value)) = question.extra {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Here and nowhere else credentials leave.
    if let Some((origin, value)) = &question.authorization
        && *origin == url.origin()
    {
        headers.insert(AUTHORIZATION, value.clone());
    }
    sender.send_request(request).await.map_err(|_| broken())
}

fn redirected(url: &Url, response: &http::Response<Incoming>) -> Result<Url, ChartError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    location
        .and_then(|location| url.join(location).ok())
        .ok_or_else(|| unreachable(&format!("{} redirects to nowhere", shown(url))))
}

/// A user and a password as `Authorization` has them.
fn login(user: &str, password: &SecretString) -> Option<HeaderValue> {
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

/// Authorities of the operator's administrator.
static TRUSTED: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();

/// Has sources of charts trusted by these authorities too, in PEM. To be called once, before anything is fetched.
pub fn trust(pem: &[u8]) -> Result<(), String> {
    let mut all = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("it is not PEM: {error}"))?;
        let parsed = RootCertStore::empty().add(certificate.clone());
        parsed.map_err(|error| format!("certificate {} cannot be used: {error}", all.len() + 1))?;
        all.push(certificate);
    }
    if all.is_empty() {
        return Err("it holds no certificate in PEM".to_owned());
    }
    TRUSTED.set(all).map_err(|_| "authorities are set already".to_owned())
}

/// Authorities that are trusted everywhere: public ones, and those of the operator's administrator.
pub fn public_roots() -> RootCertStore {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // All of them were found to parse.
    roots.add_parsable_certificates(TRUSTED.get().into_iter().flatten().cloned());
    roots
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
