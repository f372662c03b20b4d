//! Serves handlers on loopback for tests, with addresses, CAs and kubeconfigs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::kubeconfig::provider;
use crate::api::world::{Clock, Random};
use crate::remote::dialer::{Dialer, DialerSettings, Resolve};

/// Names with fixed addresses; each question is counted.
#[derive(Default)]
pub struct Names {
    pub known: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    pub asked: AtomicUsize,
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.known.lock().get(host).cloned().ok_or_else(|| "no such name".to_owned())
    }
}

/// A dialer for which `localhost` is this machine and admins may name loopback.
pub fn dialer() -> Arc<Dialer> {
    let names = Names::default();
    names.known.lock().insert("localhost".to_owned(), vec!["127.0.0.1".parse().unwrap()]);
    let settings = DialerSettings {
        allow_edge_addresses: vec!["127.0.0.0/8".parse().unwrap()],
        connect_timeout: Duration::from_secs(2),
        ..DialerSettings::default()
    };
    Dialer::new(settings, Arc::new(names))
}

/// A clock that counts calls, and randomness in the middle.
#[derive(Default)]
pub struct Steady(AtomicI64);

impl Clock for Steady {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

impl Random for Steady {
    fn next(&self) -> u64 {
        u64::MAX / 2
    }
    fn secret(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A CA of a test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(vec!["test-ca".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key, in PEM.
    pub fn issue(&self, names: &[&str], adjust: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let (certificate, key) = self.issue_der(names, adjust);
        (certificate.pem(), key.serialize_pem())
    }

    fn issue_der(
        &self,
        names: &[&str],
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> (rcgen::Certificate, KeyPair) {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }
}

/// One answer.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
    /// After the body the answer stays open.
    pub open: bool,
    /// No answer at all.
    pub silent: bool,
}

impl Reply {
    pub fn text(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self { status, headers, body: body.into(), open: false, silent: false }
    }

    pub fn json(status: u16, value: &Value) -> Self {
        Self::text(status, "application/json", value.to_string())
    }

    pub fn error(code: u16, reason: &str, message: &str) -> Self {
        Self::json(
            code,
            &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
        )
    }

    pub fn silence() -> Self {
        Self { silent: true, ..Self::text(200, "", "") }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub type Handler = Arc<dyn Fn(&http::Request<Bytes>) -> Reply + Send + Sync>;

/// How a server is set up.
pub struct Setup<'a> {
    /// `None`: plain HTTP.
    pub authority: Option<&'a Authority>,
    pub alpn: &'static [&'static str],
    pub names: &'static [&'static str],
}

/// What an API server allows.
const STREAMS: u32 = 100;

/// A server that ends with its value.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
    tasks: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Server {
    /// Ends all connections; new ones are accepted.
    pub fn cut(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }

    pub async fn start(setup: Setup<'_>, handler: Handler) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), setup, handler).await
    }

    pub async fn start_at(address: SocketAddr, setup: Setup<'_>, handler: Handler) -> Self {
        Self::start_with(address, setup, STREAMS, handler).await
    }

    /// One that serves few HTTP/2 streams at a time on each connection.
    pub async fn start_narrow(setup: Setup<'_>, streams: u32, handler: Handler) -> Self {
        Self::start_with("127.0.0.1:0".parse().unwrap(), setup, streams, handler).await
    }

    async fn start_with(address: SocketAddr, setup: Setup<'_>, streams: u32, handler: Handler) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = setup.authority.map(|authority| {
            let (certificate, key) = authority.issue_der(setup.names, |_| {});
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let mut config = ServerConfig::builder_with_provider(provider())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key)
                .unwrap();
            config.alpn_protocols = setup.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        });
        let connections = Arc::new(AtomicU64::new(0));
        let tasks = Arc::new(Mutex::new(Vec::new()));
        let (count, running) = (Arc::clone(&connections), Arc::clone(&tasks));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
                running.lock().push(tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, None, handler).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                            serve(stream, h2.then_some(streams), handler).await;
                        }
                    }
                }));
            }
        });
        Self { address, connections, tasks, accepting }
    }
}

async fn serve<S>(stream: S, h2: Option<u32>, handler: Handler)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let reply = handler(&http::Request::from_parts(head, body));
            if reply.silent {
                std::future::pending::<()>().await;
            }
            let mut response = http::Response::builder().status(reply.status);
            for (name, value) in &reply.headers {
                response = response.header(*name, value);
            }
            let body = if reply.open {
                let first =
                    futures::stream::once(async move { Ok::<_, hyper::Error>(Frame::data(reply.body)) });
                StreamBody::new(first.chain(futures::stream::pending())).boxed_unsync()
            } else {
                Full::new(reply.body).map_err(|never| match never {}).boxed_unsync()
            };
            Ok::<_, hyper::Error>(response.body(body).unwrap())
        }
    });
    let io = TokioIo::new(stream);
    if let Some(streams) = h2 {
        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(streams)
            .serve_connection(io, service)
            .await;
    } else {
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
    }
}

/// A kubeconfig with a token.
pub fn kubeconfig(server: &str, authority: &str, token: &str) -> Vec<u8> {
    serde_json::to_vec(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u"}}],
    }))
    .unwrap()
}
