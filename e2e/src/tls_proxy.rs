//! Puts a plane's API server behind a certificate that runs out when a test says so, as one that nobody renewed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::bed::{Authority, Plane};

/// What both sides speak: the bytes between them are passed on as they are.
const SPOKEN: &[u8] = b"h2";

/// A server in front of a plane's. Whoever connects is known by a token: client certificates end here.
pub struct TlsProxy {
    address: SocketAddr,
    authority: Mutex<Authority>,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    /// Raised to close all connections.
    closed: watch::Sender<u64>,
    task: JoinHandle<()>,
}

impl TlsProxy {
    /// Listens on loopback with a certificate that does not end before the test.
    pub async fn before(plane: &Plane) -> Result<Self> {
        let authority = Authority::new("expiring")?;
        let connector = connector(plane)?;
        let to: SocketAddr = plane.url().trim_start_matches("https://").parse().context("no address")?;
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let acceptor = Arc::new(Mutex::new(acceptor(&authority, later())?));
        let closed = watch::Sender::new(0);
        let task = tokio::spawn(accept(listener, Arc::clone(&acceptor), connector, to, closed.clone()));
        Ok(Self { address, authority: Mutex::new(authority), acceptor, closed, task })
    }

    /// Another certificate of the same authority, for connections from now on.
    pub fn renew(&self) -> Result<()> {
        self.shows(later())
    }

    /// The certificate has ended, for connections from now on; all others are closed, as by a load balancer that is restarted.
    pub fn expire(&self) -> Result<()> {
        self.shows(SystemTime::now() - Duration::from_mins(1))?;
        self.close();
        Ok(())
    }

    /// A certificate of another authority from now on; all connections are closed, as when a cluster's authority is rotated.
    pub fn rotate(&self) -> Result<()> {
        *self.authority.lock() = Authority::new("rotated")?;
        self.renew()?;
        self.close();
        Ok(())
    }

    /// Where it listens, as a URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Its authority, in PEM.
    pub fn ca(&self) -> String {
        self.authority.lock().ca.cert.clone()
    }

    /// Shows a certificate that ends then.
    fn shows(&self, end: SystemTime) -> Result<()> {
        *self.acceptor.lock() = acceptor(&self.authority.lock(), end)?;
        Ok(())
    }

    fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// After the end of the test.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_hours(1)
}

fn acceptor(authority: &Authority, end: SystemTime) -> Result<TlsAcceptor> {
    let end = end.duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let pair = authority.server_until(end)?;
    let certificate = CertificateDer::from_pem_slice(pair.cert.as_bytes()).context("no certificate")?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).context("no key")?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .context("no version of TLS")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("the certificate cannot be used")?;
    config.alpn_protocols = vec![SPOKEN.to_vec()];
    // A session that goes on would not look at the certificate again.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn connector(plane: &Plane) -> Result<TlsConnector> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(plane.ca().as_bytes()).context("no certificate")?)?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .context("no version of TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![SPOKEN.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

async fn accept(
    listener: TcpListener,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    connector: TlsConnector,
    to: SocketAddr,
    closed: watch::Sender<u64>,
) {
    while let Ok((client, _)) = listener.accept().await {
        let (acceptor, connector, mut closed) =
            (acceptor.lock().clone(), connector.clone(), closed.subscribe());
        tokio::spawn(async move {
            let passed = async {
                let mut client = acceptor.accept(client).await?;
                let server = TcpStream::connect(to).await?;
                let name = ServerName::IpAddress(to.ip().into());
                let mut server = connector.connect(name, server).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            };
            tokio::select! {
                // Whoever does not trust the certificate hangs up.
                _ = passed => {}
                _ = closed.changed() => {}
            }
        });
    }
}
