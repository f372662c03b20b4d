//! Opens tunnels through a proxy to addresses that were judged before. The address is what is asked for, not the name:
//! the proxy must not resolve what we have judged. Its credentials appear nowhere.

use std::fmt;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;
use zeroize::Zeroizing;

use super::DialError;

/// Most bytes of the head of a proxy's answer.
const HEAD: usize = 8 << 10;

/// An HTTP proxy.
#[derive(Clone)]
pub struct Proxy {
    host: String,
    port: u16,
    authorization: Option<SecretString>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Proxy {
    /// Reads `http://[user:password@]host:port`. The error is a sentence, and does not quote the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write the proxy as http://host:port or http://user:password@host:port".to_owned();
        let url = Url::parse(text).map_err(|_| wrong())?;
        let plain =
            url.path().trim_matches('/').is_empty() && url.query().is_none() && url.fragment().is_none();
        let (Some(host), Some(port), "http", true) =
            (url.host_str(), url.port_or_known_default(), url.scheme(), plain)
        else {
            return Err(wrong());
        };
        let authorization = if url.username().is_empty() && url.password().is_none() {
            None
        } else {
            let mut pair = Zeroizing::new(decoded(url.username()).ok_or_else(wrong)?);
            pair.push(b':');
            pair.extend_from_slice(&Zeroizing::new(
                decoded(url.password().unwrap_or_default()).ok_or_else(wrong)?,
            ));
            Some(SecretString::from(STANDARD.encode(pair.as_slice())))
        };
        Ok(Self { host: host.to_owned(), port, authorization })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Asks the proxy, to which `stream` leads, for a tunnel to an address.
    pub(super) async fn tunnel(
        &self,
        stream: &mut TcpStream,
        host: &str,
        to: SocketAddr,
    ) -> Result<(), DialError> {
        let mut request = Zeroizing::new(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n"));
        if let Some(authorization) = &self.authorization {
            request.push_str("Proxy-Authorization: Basic ");
            request.push_str(authorization.expose_secret());
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        let broken = |error: std::io::Error| {
            DialError::Connect(format!("proxy {self} ended the connection to {host} ({to}): {error}"))
        };
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut head = Vec::new();
        // Byte by byte: what follows the head belongs to the tunnel.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= HEAD {
                return Err(DialError::Connect(format!(
                    "proxy {self} answers with more than {HEAD} bytes of headers"
                )));
            }
            head.push(stream.read_u8().await.map_err(broken)?);
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let status = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix("HTTP/1."));
        let status = status.and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse::<u16>().ok());
        match status {
            Some(200..=299) => Ok(()),
            Some(407) => Err(DialError::Refused(format!(
                "proxy {self} does not accept the operator (407): put valid credentials into --proxy"
            ))),
            Some(code) => Err(DialError::Connect(format!(
                "proxy {self} refuses a connection to {host} ({to}) with {code}"
            ))),
            None => Err(DialError::Connect(format!("what answers at {self} is no HTTP proxy"))),
        }
    }
}

/// The bytes that a percent-encoded text stands for.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;

    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::remote::dialer::{Dialer, DialerSettings, Policy};
    use crate::remote::testing::Names;

    #[test]
    fn a_proxy_is_a_host_with_or_without_credentials_that_are_never_shown() {
        let proxy = Proxy::parse("http://ann:hunter2%40@proxy.example:3128").unwrap();
        assert_eq!(
            (proxy.to_string(), format!("{proxy:?}")),
            ("proxy.example:3128".into(), "proxy.example:3128".into())
        );
        assert_eq!(proxy.authorization.unwrap().expose_secret(), STANDARD.encode("ann:hunter2@"));
        assert_eq!(Proxy::parse("http://proxy.example/").unwrap().port(), 80);
        for wrong in
            ["proxy:3128", "https://p.example", "socks5://p", "http://u:hunter2@p/x", "http://u:hunter2@", ""]
        {
            let error = Proxy::parse(wrong).unwrap_err();
            assert!(error.contains("http://host:port") && !error.contains("hunter2"), "{wrong}: {error}");
        }
    }

    /// A proxy that answers once and says what it was asked; behind it the far side greets.
    async fn proxy(answer: &'static str) -> (u16, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        (port, asked)
    }

    fn dialer(proxy: &str) -> Arc<Dialer> {
        let names = Names::default();
        let address = |text: &str| vec![text.parse::<IpAddr>().unwrap()];
        names.known.lock().insert("proxy.example".to_owned(), address("127.0.0.1"));
        names.known.lock().insert("charts.example.com".to_owned(), address("93.184.216.34"));
        let settings =
            DialerSettings { proxy: Some(Proxy::parse(proxy).unwrap()), ..DialerSettings::default() };
        Dialer::new(settings, Arc::new(names))
    }

    #[tokio::test]
    async fn a_public_address_is_reached_through_the_proxy_by_the_address_that_was_judged() {
        let (port, asked) = proxy("HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\nhello").await;
        let dialer = dialer(&format!("http://ann:hunter2@proxy.example:{port}"));
        let mut dialled = dialer.dial("charts.example.com", 443, Policy::Tenant).await.unwrap();
        let mut hello = [0; 5];
        dialled.stream.read_exact(&mut hello).await.unwrap();
        assert_eq!(&hello, b"hello", "nothing of the tunnel is lost");
        let asked = asked.await.unwrap();
        assert!(
            asked.starts_with("CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\n"),
            "{asked}"
        );
        let login = STANDARD.encode("ann:hunter2");
        assert!(asked.contains(&format!("Proxy-Authorization: Basic {login}\r\n")), "{asked}");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_named_without_its_credentials() {
        for (answer, words) in [
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "(407)"),
            ("HTTP/1.1 403 Forbidden\r\n\r\n", "with 403"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "no HTTP proxy"),
            ("", "ended the connection"),
        ] {
            let (port, _asked) = proxy(answer).await;
            let dialer = dialer(&format!("http://ann:hunter2@proxy.example:{port}"));
            let error =
                dialer.dial("charts.example.com", 443, Policy::Tenant).await.err().unwrap().to_string();
            assert!(
                error.contains(words) && error.contains("proxy.example") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn addresses_on_this_side_are_dialled_directly_and_judged_as_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let dialer = dialer("http://proxy.example:9");
        dialer.dial("127.0.0.1", port, Policy::TenantListed).await.unwrap();
        let error = dialer.dial("127.0.0.1", port, Policy::Tenant).await.err().unwrap();
        assert_eq!(error.reason(), "AddressNotAllowed");
    }
}
