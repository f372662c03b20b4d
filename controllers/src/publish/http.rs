//! Reaches a repository over HTTP, through the dialer. What the server can do is asked once, so that a look at a branch at rest is one
//! request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use emco_engine::git::object::{Id, Kind};
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use super::remote::{Fault, Push, Pushed, Remote, Snapshot, Tip};
use crate::chart::public_roots;
use crate::git::GitLimits;
use crate::git::pack::{Pack, PackError};
use crate::git::receive::{self, Outcome};
use crate::git::upload::{self, Ability, Unusable, What};
use crate::remote::dialer::{Dialer, Policy, shown};
use crate::remote::kubeconfig::provider;

/// Until the whole answer is there.
const ANSWER: Duration = Duration::from_mins(1);
/// Largest answer but for objects.
const ANSWER_BYTES: usize = 4 << 20;
const AGENT: &str = concat!("git/emco-operator-", env!("CARGO_PKG_VERSION"));

/// What a login's Secret has.
#[derive(Clone, Default)]
pub struct Login {
    authorization: Option<SecretString>,
    ca: Option<Vec<u8>>,
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        let text = |login: &Self| login.authorization.as_ref().map(|text| text.expose_secret().to_owned());
        self.ca == other.ca && text(self) == text(other)
    }
}

impl Login {
    /// Reads the data of a Secret: `username` and `password`, or `bearerToken`; `ca.crt`. The error is a reason and a sentence.
    pub fn read<V: AsRef<[u8]>>(data: &BTreeMap<String, V>) -> Result<Self, (&'static str, String)> {
        let text = |key: &str| {
            let bytes = data.get(key).map(AsRef::as_ref);
            bytes.map(|bytes| String::from_utf8_lossy(bytes).trim_end_matches(['\r', '\n']).to_owned())
        };
        let lacks = |message: &str| ("SecretKeyNotFound", message.to_owned());
        let authorization = match (text("bearerToken"), text("username"), text("password")) {
            (Some(token), _, _) => Some(format!("Bearer {token}")),
            (None, Some(user), Some(password)) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            (None, None, None) => None,
            (None, Some(_), None) => return Err(lacks("the Secret has username without password")),
            (None, None, Some(_)) => return Err(lacks("the Secret has password without username")),
        };
        let ca = data.get("ca.crt").map(|bytes| bytes.as_ref().to_vec());
        if authorization.is_none() && ca.is_none() {
            return Err(lacks("the Secret has none of username and password, bearerToken, ca.crt"));
        }
        Ok(Self { authorization: authorization.map(SecretString::from), ca })
    }
}

/// A branch of a repository over HTTP.
pub struct HttpRemote {
    dialer: Arc<Dialer>,
    base: Url,
    branch: String,
    login: Login,
    limits: GitLimits,
    /// What the server can do, once it said so.
    ability: Mutex<Option<Ability>>,
    /// How the server takes pushes, once it said so.
    pushes: Mutex<Option<receive::Ability>>,
}

/// One request.
struct Question {
    url: Url,
    /// With its type.
    body: Option<(&'static str, Bytes)>,
    version: bool,
    most: usize,
}

struct Answer {
    status: u16,
    kind: String,
    body: Bytes,
}

impl HttpRemote {
    /// The branch of a repository; `url` as people write it.
    pub fn new(dialer: Arc<Dialer>, url: &str, branch: &str, login: Login) -> Result<Self, Fault> {
        let wrong = || Fault::new("NotGit", "spec.url is not an http(s) address: write https://host/path");
        let mut base = Url::parse(url).map_err(|_| wrong())?;
        if !matches!(base.scheme(), "https" | "http") || base.host_str().is_none() {
            return Err(wrong());
        }
        let path = format!("{}/", base.path().trim_end_matches('/'));
        base.set_path(&path);
        let (branch, limits) = (branch.to_owned(), GitLimits::default());
        Ok(Self { dialer, base, branch, login, limits, ability: Mutex::new(None), pushes: Mutex::new(None) })
    }

    fn place(&self) -> String {
        shown(&self.base).trim_end_matches('/').to_owned()
    }

    fn url(&self, path: &str, service: Option<&str>) -> Result<Url, Fault> {
        let strange = |_| Fault::new("NotGit", format!("{} has no {path}", self.place()));
        let mut url = self.base.join(path).map_err(strange)?;
        url.set_query(service.map(|service| format!("service={service}")).as_deref());
        Ok(url)
    }

    /// The body of an answer that says 200. `writes`: it was asked to let us write.
    async fn ask(&self, question: Question, writes: bool) -> Result<Answer, Fault> {
        let place = self.place();
        let late = |_| Fault::new("Timeout", format!("{place} did not answer completely within {ANSWER:?}"));
        let answer = timeout(ANSWER, Box::pin(self.once(question))).await.map_err(late)??;
        let (reason, what) = match answer.status {
            200 => return Ok(answer),
            401 | 403 if writes => ("Forbidden", "the login may not push: give it the right to write"),
            401 | 403 => ("Unauthorized", "put a valid login into the Secret that secretRef names"),
            404 | 410 => ("RepositoryNotFound", "it is not there, or not for this login"),
            301 | 302 | 303 | 307 | 308 => ("NotGit", "it redirects: name the address that it leads to"),
            413 => ("RepositoryTooLarge", "it takes no pushes of this size"),
            _ => ("ServerError", "it cannot answer now"),
        };
        *self.ability.lock() = None;
        *self.pushes.lock() = None;
        Err(Fault::new(reason, format!("{place} answers {}: {what}", answer.status)))
    }

    async fn once(&self, question: Question) -> Result<Answer, Fault> {
        let place = self.place();
        let url = &question.url;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(Fault::new("NotGit", format!("{place} names no host")));
        };
        let dialled = self.dialer.dial(host, port, Policy::Admin).await;
        let dialled = dialled.map_err(|error| Fault::new(error.reason(), error.to_string()))?;
        if url.scheme() == "http" {
            return self.send(dialled.stream, &question).await;
        }
        let config = tls(self.login.ca.as_deref())?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name)
            .map_err(|_| Fault::new("TLSFailed", format!("{place} names no usable host")))?;
        let stream = TlsConnector::from(config).connect(name, dialled.stream).await.map_err(|error| {
            Fault::new("TLSFailed", format!("the TLS handshake with {place} failed: {error}"))
        })?;
        drop(dialled.slot);
        self.send(stream, &question).await
    }

    async fn send<S>(&self, stream: S, question: &Question) -> Result<Answer, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let place = self.place();
        let broken =
            || Fault::new("ConnectionRefused", format!("{place} closed the connection before it answered"));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|_| broken())?;
        tokio::spawn(async move {
            // Ends when the answer was read or dropped; its error is the answer's.
            let _ = connection.await;
        });
        let response = sender.send_request(self.request(question)?).await.map_err(|_| broken())?;
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), question.most).collect().await;
        let body = body.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                let most = question.most;
                return Fault::new("RepositoryTooLarge", format!("{place} answers more than {most} bytes"));
            }
            Fault::new(
                "ConnectionRefused",
                format!("{place} closed the connection in the middle of an answer"),
            )
        })?;
        Ok(Answer { status, kind, body: body.to_bytes() })
    }

    fn request(&self, question: &Question) -> Result<http::Request<Full<Bytes>>, Fault> {
        let url = &question.url;
        let path =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let (verb, body) = match &question.body {
            None => (http::Method::GET, Bytes::new()),
            Some((_, body)) => (http::Method::POST, body.clone()),
        };
        let cannot = |_| Fault::new("NotGit", format!("{} cannot be requested", self.place()));
        let mut request = http::Request::builder()
            .method(verb)
            .uri(path)
            .header(HOST, url.authority())
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Full::new(body))
            .map_err(cannot)?;
        let headers = request.headers_mut();
        if let Some((kind, _)) = &question.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if question.version {
            let (name, value) = upload::VERSION;
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(login) = &self.login.authorization {
            let mut value = HeaderValue::from_str(login.expose_secret()).map_err(|_| {
                Fault::new("Unauthorized", "the Secret's login has characters that no request can carry")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    fn unusable(&self, why: Unusable) -> Fault {
        let place = self.place();
        // Another repository may stand there now: what it can do is asked again.
        *self.ability.lock() = None;
        *self.pushes.lock() = None;
        match why {
            Unusable::OldProtocol => Fault::new(
                "NotGit",
                format!(
                    "{place} does not speak version 2 of Git's protocol: serve it with Git 2.18 or later"
                ),
            ),
            Unusable::UnknownFormat => {
                Fault::new("NotGit", format!("{place} names its objects in an unknown way"))
            }
            Unusable::Refused => {
                Fault::new("ServerError", format!("{place} does not give what its branch has"))
            }
            Unusable::CutOff => {
                Fault::new("ServerError", format!("{place} does not finish an answer of Git's protocol"))
            }
        }
    }

    async fn ability(&self) -> Result<Ability, Fault> {
        if let Some(known) = *self.ability.lock() {
            return Ok(known);
        }
        let url = self.url("info/refs", Some("git-upload-pack"))?;
        let question = Question { url, body: None, version: true, most: ANSWER_BYTES };
        let answer = self.ask(question, false).await?;
        if answer.kind != upload::ADVERTISEMENT {
            let text = format!(
                "{} is no Git repository over HTTP: name the address that git clone takes",
                self.place()
            );
            return Err(Fault::new("NotGit", text));
        }
        let ability = Ability::read(&answer.body).map_err(|why| self.unusable(why))?;
        *self.ability.lock() = Some(ability);
        Ok(ability)
    }

    async fn pushes(&self) -> Result<receive::Ability, Fault> {
        if let Some(known) = *self.pushes.lock() {
            return Ok(known);
        }
        let url = self.url("info/refs", Some("git-receive-pack"))?;
        let question = Question { url, body: None, version: false, most: ANSWER_BYTES };
        let answer = self.ask(question, true).await?;
        if answer.kind != receive::ADVERTISEMENT {
            let text = format!("{} takes no pushes over HTTP", self.place());
            return Err(Fault::new("Forbidden", text));
        }
        let ability = receive::Ability::read(&answer.body).map_err(|why| self.unusable(why))?;
        *self.pushes.lock() = Some(ability);
        Ok(ability)
    }

    async fn post(&self, message: Vec<u8>, most: usize) -> Result<Bytes, Fault> {
        let url = self.url("git-upload-pack", None)?;
        let body = Some((upload::REQUEST, message.into()));
        Ok(self.ask(Question { url, body, version: true, most }, false).await?.body)
    }

    async fn references(&self, ability: Ability, prefix: &str) -> Result<Vec<upload::Reference>, Fault> {
        let answer = self.post(ability.list_references(prefix), ANSWER_BYTES).await?;
        upload::references(&answer, ability.format).map_err(|why| self.unusable(why))
    }

    async fn fetch(&self, wanted: Id, what: What) -> Result<Pack, Fault> {
        let ability = self.ability().await?;
        let most = self.limits.pack_bytes;
        let answer = self.post(ability.fetch(&[wanted], what), most + most / 1000 + (64 << 10)).await?;
        let bytes = upload::pack(&answer).map_err(|why| self.unusable(why))?;
        let (limits, format) = (self.limits.clone(), ability.format);
        let read = tokio::task::spawn_blocking(move || Pack::read(bytes, format, &limits)).await;
        let read =
            read.map_err(|_| Fault::new("ServerError", "reading what the server sent was given up"))?;
        read.map_err(|error| self.damaged(error))
    }

    fn damaged(&self, error: PackError) -> Fault {
        let place = self.place();
        match error {
            PackError::Broken | PackError::Base => {
                Fault::new("ServerError", format!("{place}: the server's objects are cut off or damaged"))
            }
            PackError::Objects(_) | PackError::Work(_) | PackError::Object(_) => Fault::new(
                "RepositoryTooLarge",
                format!("{place}: the branch has more than can be read: use a repository of its own"),
            ),
        }
    }
}

#[async_trait]
impl Remote for HttpRemote {
    async fn tip(&self) -> Result<Tip, Fault> {
        let ability = self.ability().await?;
        let name = format!("refs/heads/{}", self.branch);
        let format = ability.format;
        let found = self.references(ability, &name).await?;
        if let Some(found) = found.iter().find(|found| found.name == name) {
            return Ok(Tip { format, commit: Some(found.id), empty: false });
        }
        let empty = self.references(ability, "refs/heads/").await?.is_empty();
        Ok(Tip { format, commit: None, empty })
    }

    async fn snapshot(&self, commit: Id) -> Result<Snapshot, Fault> {
        let pack = self.fetch(commit, What::Snapshot).await?;
        let content = match pack.get(commit).map_err(|error| self.damaged(error))? {
            Some((Kind::Commit, content)) => content.to_vec(),
            _ => return Err(self.unusable(Unusable::Refused)),
        };
        let trees = pack.trees().map_err(|error| self.damaged(error))?;
        Ok(Snapshot { commit: content, trees })
    }

    async fn blob(&self, id: Id) -> Result<Vec<u8>, Fault> {
        let pack = self.fetch(id, What::Objects).await?;
        match pack.get(id).map_err(|error| self.damaged(error))? {
            Some((Kind::Blob, content)) => Ok(content.to_vec()),
            _ => Err(self.unusable(Unusable::Refused)),
        }
    }

    async fn push(&self, push: &Push) -> Result<Pushed, Fault> {
        let ability = self.pushes().await?;
        let Push { format, old, new, pack } = push;
        let message = ability.push(&self.branch, *old, *new, pack, *format);
        let url = self.url("git-receive-pack", None)?;
        let body = Some((receive::REQUEST, message.into()));
        let answer = self.ask(Question { url, body, version: false, most: ANSWER_BYTES }, true).await?;
        match ability.outcome(&answer.body, &self.branch).map_err(|why| self.unusable(why))? {
            Outcome::Done => Ok(Pushed::Done),
            Outcome::Refused(words) => Ok(Pushed::Refused(words)),
        }
    }
}

/// Public authorities, the administrator's, and the login's own.
fn tls(ca: Option<&[u8]>) -> Result<Arc<ClientConfig>, Fault> {
    let wrong = |what: &str| Fault::new("TLSFailed", format!("the Secret's key ca.crt {what}"));
    let mut roots = public_roots();
    for certificate in ca.into_iter().flat_map(|pem| CertificateDer::pem_slice_iter(pem).take(64)) {
        let certificate = certificate.map_err(|_| wrong("is not PEM"))?;
        roots.add(certificate).map_err(|_| wrong("holds a certificate that does not parse"))?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::new("TLSFailed", error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
