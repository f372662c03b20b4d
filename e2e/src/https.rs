//! Serves a router on loopback, with a certificate of an authority of its own where asked for.

pub mod loopback;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::bed::Authority;

/// A server.
pub struct Server {
    address: SocketAddr,
    ca: Option<String>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts it on a free port without TLS.
    pub async fn plain(router: Router) -> Result<Self> {
        let (listener, address) = listen().await?;
        let task = tokio::spawn(async move { told(axum::serve(listener, router).await) });
        Ok(Self { address, ca: None, task })
    }

    /// Starts it on a free port. Its certificate is for loopback and for `names`, which may be addresses.
    pub async fn secure(router: Router, names: &[&str]) -> Result<Self> {
        let (ca, acceptor) = certificate(names)?;
        let (listener, address) = listen().await?;
        let task = tokio::spawn(async move { told(axum::serve(Tls { listener, acceptor }, router).await) });
        Ok(Self { address, ca: Some(ca), task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.ca.is_some() { "https" } else { "http" }, self.address)
    }

    /// The authority of its certificate, in PEM; empty where it has none.
    pub fn ca(&self) -> &str {
        self.ca.as_deref().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen() -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on loopback")?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn told(ended: std::io::Result<()>) {
    if let Err(error) = ended {
        eprintln!("a server on loopback ended: {error}");
    }
}

/// An authority in PEM, and a server of its.
pub(crate) fn certificate(names: &[&str]) -> Result<(String, TlsAcceptor)> {
    let (ca, config) = configuration(names)?;
    Ok((ca, TlsAcceptor::from(Arc::new(config))))
}

/// An authority in PEM, and how a server of its answers, to be changed.
pub(crate) fn configuration(names: &[&str]) -> Result<(String, rustls::ServerConfig)> {
    let authority = Authority::new("charts")?;
    let pair = authority.server_for(names)?;
    let certificate = CertificateDer::from_pem_slice(pair.cert.as_bytes()).context("no certificate")?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).context("no key")?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("no version of TLS")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the certificate cannot be used")?;
    Ok((authority.ca.cert, config))
}

/// Connections after their handshake.
pub(crate) struct Tls {
    pub listener: TcpListener,
    pub acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
            // Whoever does not trust the certificate hangs up; the next one may.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
