//! Connects with credentials by TLS and speaks HTTP on that, or says why not.

use std::error::Error as _;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::wire::unreachable;
use super::{Credentials, EdgeSettings};
use crate::api::{ApiError, ApiResult};
use crate::remote::dialer::{Dialer, Policy};

/// What a watch may send before somebody reads it; all of them together must not use up the connection's window, or
/// ordinary requests would wait for slow readers.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 32 << 20;
/// Largest block of answer headers.
const HEADER_BYTES: u32 = 64 << 10;

/// A connection just made.
pub enum Fresh {
    H2(http2::SendRequest<Full<Bytes>>),
    H1(http1::SendRequest<Full<Bytes>>),
}

/// `host:port` with brackets around IPv6 addresses.
pub fn authority(credentials: &Credentials) -> String {
    let Credentials { host, port, .. } = credentials;
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Dials, shakes hands, and starts the task that drives the connection.
pub async fn connect(
    credentials: &Credentials,
    dialer: &Dialer,
    settings: &EdgeSettings,
    lost: &Arc<Notify>,
) -> ApiResult<Fresh> {
    let stream = secured(credentials, dialer, settings, Arc::clone(&credentials.tls)).await?;
    let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    let failed = |_| closed(credentials);
    if h2 {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(settings.ping)
            .keep_alive_timeout(settings.ping)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(failed)?;
        let lost = Arc::clone(lost);
        tokio::spawn(async move {
            // Its users see the error themselves; here it only matters that it ended.
            let _ = connection.await;
            lost.notify_one();
        });
        return Ok(Fresh::H2(sender));
    }
    let (sender, connection) =
        http1::Builder::new().max_buf_size(HEADER_BYTES as usize).handshake(io).await.map_err(failed)?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(Fresh::H1(sender))
}

/// Dials and shakes hands.
async fn secured(
    credentials: &Credentials,
    dialer: &Dialer,
    settings: &EdgeSettings,
    tls: Arc<ClientConfig>,
) -> ApiResult<TlsStream<TcpStream>> {
    let server = format!("the API server {}", authority(credentials));
    let dialled = dialer
        .dial(&credentials.host, credentials.port, Policy::Admin)
        .await
        .map_err(|error| unreachable(error.reason(), &error.to_string()))?;
    let handshake = TlsConnector::from(tls).connect(credentials.server_name.clone(), dialled.stream);
    match timeout(settings.answer_begins, handshake).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unreachable("TLSFailed", &explain(&server, &error))),
        Err(_) => {
            let limit = settings.answer_begins;
            Err(unreachable(
                "Timeout",
                &format!("{server} did not finish the TLS handshake within {limit:?}"),
            ))
        }
    }
}

fn closed(credentials: &Credentials) -> ApiError {
    let server = authority(credentials);
    unreachable(
        "ConnectionLost",
        &format!("the API server {server} closed the connection before any request"),
    )
}

/// A connection of HTTP/1.1 for one request, after which it speaks another protocol.
pub async fn upgradable(
    credentials: &Credentials,
    dialer: &Dialer,
    settings: &EdgeSettings,
) -> ApiResult<http1::SendRequest<Full<Bytes>>> {
    let mut tls = ClientConfig::clone(&credentials.tls);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = secured(credentials, dialer, settings, Arc::new(tls)).await?;
    let handshake = http1::Builder::new().max_buf_size(HEADER_BYTES as usize).handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|_| closed(credentials))?;
    tokio::spawn(async move {
        // Its user sees the error itself.
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

/// A handshake that failed, in words. Rustls' own words name no cure.
fn explain(server: &str, error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match tls {
        Some(TlsError::InvalidCertificate(certificate)) => certificate_words(server, certificate),
        Some(TlsError::AlertReceived(alert)) => alert_words(server, *alert),
        Some(TlsError::InvalidMessage(_)) => format!("{server} does not speak TLS: is the port right?"),
        Some(other) => format!("the TLS handshake with {server} failed: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            format!("{server} closed the connection during the TLS handshake")
        }
        None => format!("the TLS handshake with {server} failed: {error}"),
    }
}

fn certificate_words(server: &str, certificate: &CertificateError) -> String {
    match certificate {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!(
                "{server} has a certificate that the kubeconfig's certificate-authority-data did not sign"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{server} has an expired certificate: renew it on the cluster")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{server} has a certificate that is not valid yet: check both clocks")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "{server} has a certificate for other names: use one of those names as server, or set tls-server-name"
        ),
        other => format!("{server} has a certificate that is not accepted: {other}"),
    }
}

fn alert_words(server: &str, alert: AlertDescription) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired
        | A::BadCertificate
        | A::UnknownCA
        | A::CertificateExpired
        | A::CertificateRevoked
        | A::CertificateUnknown
        | A::UnsupportedCertificate
        | A::AccessDenied
        | A::DecryptError => {
            format!(
                "{server} does not accept the client certificate ({alert:?}): issue a new one in the kubeconfig"
            )
        }
        other => format!("{server} ended the TLS handshake ({other:?})"),
    }
}

/// A request that failed on a connection, in words. With TLS 1.3 a refused client certificate shows only here.
pub fn lost(server: &str, error: &hyper::Error) -> ApiError {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(TlsError::AlertReceived(alert)) = inner
            .downcast_ref::<std::io::Error>()
            .and_then(|io| io.get_ref())
            .and_then(|inner| inner.downcast_ref::<TlsError>())
        {
            return unreachable("TLSFailed", &alert_words(server, *alert));
        }
        source = inner.source();
    }
    unreachable("ConnectionLost", &format!("{server} closed the connection before answering"))
}
