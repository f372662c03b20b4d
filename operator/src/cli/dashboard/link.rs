//! Makes the link that lets a browser in, and judges whether a request used it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

/// Bytes of the secret: nobody guesses 256 bits.
const BYTES: usize = 32;
/// Header in which browsers say what site a request comes from; no page can set it.
const SITE: &str = "sec-fetch-site";

/// Address of the pages, with the secret that it begins with.
pub struct Link {
    host: String,
    secret: String,
}

/// A request that was let in.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// To the page with this path, without the leading slash.
    In(String),
    /// To the first page, without the slash that makes its links work.
    Slash,
}

/// Reason to turn a request away.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub said: &'static str,
}

impl Link {
    /// A new secret for a port of 127.0.0.1.
    pub fn new(port: u16) -> anyhow::Result<Self> {
        let mut bytes = [0_u8; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            let (_, rest) = bytes.split_at_mut(filled);
            filled += getrandom(rest, GetRandomFlags::empty())
                .map_err(|error| anyhow::anyhow!("the system gives no random bits: {error}"))?;
        }
        Ok(Self::of(port, URL_SAFE_NO_PAD.encode(bytes)))
    }

    fn of(port: u16, secret: String) -> Self {
        Self { host: format!("127.0.0.1:{port}"), secret }
    }

    /// The address to open. Whoever has it may do what the user may.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.host, self.secret)
    }

    /// The path of the first page.
    pub fn root(&self) -> String {
        format!("/{}/", self.secret)
    }

    /// Lets a request in, or says why not.
    pub fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Way, Refused> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let named = hosts.next().is_some_and(|host| host.as_bytes() == self.host.as_bytes());
        let only = hosts.next().is_none();
        let authority = uri.authority().is_none_or(|authority| authority.as_str() == self.host);
        // A name that resolves to this machine is a way in for the pages of others.
        if !(named && only && authority) {
            return Err(Refused { status: StatusCode::MISDIRECTED_REQUEST, said: "another host" });
        }
        let path = uri.path().strip_prefix('/').unwrap_or_default();
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        if !same(first, &self.secret) {
            return Err(Refused { status: StatusCode::NOT_FOUND, said: "not found" });
        }
        if method == Method::POST && !self.is_own(headers) {
            return Err(Refused {
                status: StatusCode::FORBIDDEN,
                said: "the request comes from another site",
            });
        }
        if !matches!(*method, Method::GET | Method::HEAD | Method::POST) {
            return Err(Refused {
                status: StatusCode::METHOD_NOT_ALLOWED,
                said: "the method is not allowed",
            });
        }
        Ok(rest.map_or(Way::Slash, |rest| Way::In(rest.to_owned())))
    }

    /// True for a form of these pages. A browser that sends no referrer calls the origin of a form null.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let all =
            |name: &str| headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect::<Vec<_>>();
        let origin = format!("http://{}", self.host);
        all(SITE) == [b"same-origin".as_slice()]
            && all("origin").iter().all(|one| *one == b"null" || *one == origin.as_bytes())
    }
}

/// Compares two texts by their digests: the time that takes says nothing of the place where they differ.
fn same(one: &str, other: &str) -> bool {
    Sha256::digest(one.as_bytes()) == Sha256::digest(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link::of(8123, "s3cret".to_owned())
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn get(uri: &'static str, pairs: &[(&'static str, &'static str)]) -> Result<Way, u16> {
        link().admit(&Method::GET, &Uri::from_static(uri), &headers(pairs)).map_err(|no| no.status.as_u16())
    }

    fn post(pairs: &[(&'static str, &'static str)]) -> Result<Way, u16> {
        let uri = Uri::from_static("/s3cret/deployments/shop/till");
        link().admit(&Method::POST, &uri, &headers(pairs)).map_err(|no| no.status.as_u16())
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8123");

    #[test]
    fn a_secret_has_256_bits_and_is_never_the_same() {
        let (one, other) = (Link::new(1).unwrap(), Link::new(1).unwrap());
        assert_eq!(URL_SAFE_NO_PAD.decode(&one.secret).unwrap().len(), BYTES);
        assert_ne!(one.secret, other.secret);
        assert_eq!(one.address(), format!("http://127.0.0.1:1/{}/", one.secret));
    }

    #[test]
    fn the_link_alone_lets_in() {
        assert_eq!(get("/s3cret/", &[HOST]), Ok(Way::In(String::new())));
        assert_eq!(get("/s3cret/clusters?page=2", &[HOST]), Ok(Way::In("clusters".to_owned())));
        assert_eq!(get("/s3cret", &[HOST]), Ok(Way::Slash));
        for wrong in
            ["/", "//", "/s3cre", "/s3crets/", "/S3cret/", "/x/s3cret/", "/s3cret%2f", "/favicon.ico"]
        {
            assert_eq!(get(wrong, &[HOST]), Err(404), "{wrong}");
        }
    }

    #[test]
    fn another_host_is_refused_whatever_it_knows() {
        let others = [
            ("host", "localhost:8123"),
            ("host", "evil.example"),
            ("host", "127.0.0.1"),
            ("host", "127.0.0.1:81"),
        ];
        for other in others {
            assert_eq!(get("/s3cret/", &[other]), Err(421), "{other:?}");
            assert_eq!(get("/s3cret/", &[HOST, other]), Err(421), "{other:?}");
        }
        assert_eq!(get("/s3cret/", &[]), Err(421));
        assert_eq!(get("http://evil.example/s3cret/", &[HOST]), Err(421));
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        let own = ("sec-fetch-site", "same-origin");
        assert!(post(&[HOST, own]).is_ok());
        assert!(post(&[HOST, own, ("origin", "null")]).is_ok());
        assert!(post(&[HOST, own, ("origin", "http://127.0.0.1:8123")]).is_ok());
        assert_eq!(post(&[HOST]), Err(403));
        for site in ["same-site", "cross-site", "none", "same-origin, cross-site"] {
            assert_eq!(post(&[HOST, ("sec-fetch-site", site)]), Err(403), "{site}");
        }
        assert_eq!(post(&[HOST, own, ("sec-fetch-site", "cross-site")]), Err(403));
        for origin in ["http://127.0.0.1:9", "https://127.0.0.1:8123", "http://evil.example"] {
            assert_eq!(post(&[HOST, own, ("origin", origin)]), Err(403), "{origin}");
        }
    }

    #[test]
    fn other_methods_are_refused() {
        let uri = Uri::from_static("/s3cret/");
        for method in [Method::PUT, Method::DELETE, Method::OPTIONS, Method::CONNECT] {
            let status = link().admit(&method, &uri, &headers(&[HOST])).unwrap_err().status;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        }
    }
}
