//! Opens every connection that leaves the operator, to addresses that a policy allows. Everything that leaves the
//! operator (charts, edges) leaves here: the name is resolved once, its addresses are judged, and exactly the judged
//! address is dialled, so that a name cannot answer differently between the check and the connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use address::{Class, literal};
pub use hub::HubHosts;
pub use no_proxy::NoProxy;
pub use origin::{Listing, check_source, shown};
pub use proxy::Proxy;
pub use resolve::{Resolve, SystemResolver};

mod address;
mod hub;
mod no_proxy;
mod origin;
mod proxy;
mod resolve;

use hub::Seen;

use crate::api::turns::{Place, Turns};

/// Addresses tried of one name.
const ADDRESSES_TRIED: usize = 4;

/// Who named the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A tenant: public addresses alone.
    Tenant,
    /// A tenant, at an origin that an admin listed: every address that can be dialled.
    TenantListed,
    /// An admin: private addresses too; loopback, link-local and the hub's own need `--allow-edge-address`.
    Admin,
}

/// Why nothing was dialled.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("{0}")]
    Dns(String),
    /// The policy refuses every address of the name.
    #[error("{0}")]
    Refused(String),
    /// No answer in time.
    #[error("{0}")]
    Timeout(String),
    /// The other side refused, or the network did.
    #[error("{0}")]
    Connect(String),
}

impl DialError {
    /// Stable reason, as conditions carry it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Dns(_) => "DNSFailed",
            Self::Refused(_) => "AddressNotAllowed",
            Self::Timeout(_) => "Timeout",
            Self::Connect(_) => "ConnectionRefused",
        }
    }
}

/// What the dialer is made with.
#[derive(Clone, Debug)]
pub struct DialerSettings {
    /// Ranges that admins may name although they are loopback, link-local or the hub's.
    pub allow_edge_addresses: Vec<IpNet>,
    /// The hub's own hosts: its API server as the operator reaches it.
    pub hub: HubHosts,
    /// The way to public addresses; all others are on this side of it.
    pub proxy: Option<Proxy>,
    /// Public hosts that are dialled without it.
    pub no_proxy: NoProxy,
    /// Connections being made at once.
    pub max_connects: usize,
    /// Bound on resolving, and on connecting to one address.
    pub connect_timeout: Duration,
}

impl Default for DialerSettings {
    fn default() -> Self {
        Self {
            allow_edge_addresses: Vec::new(),
            hub: HubHosts::default(),
            proxy: None,
            no_proxy: NoProxy::default(),
            max_connects: 64,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// The one way out.
#[derive(Clone)]
pub struct Dialer {
    settings: Arc<DialerSettings>,
    resolver: Arc<dyn Resolve>,
    connects: Arc<Turns>,
    /// On whose account connections are made.
    share: Arc<str>,
    /// Addresses that the hub's names were seen to have.
    hub_seen: Arc<Seen>,
}

/// A connection and the right to go on making it: the TLS handshake counts as connecting too, so keep `slot` until then.
pub struct Dialled {
    /// The connection.
    pub stream: TcpStream,
    /// Held while connecting.
    pub slot: Place,
}

impl Dialer {
    /// A dialer that resolves with `resolver`.
    pub fn new(settings: DialerSettings, resolver: Arc<dyn Resolve>) -> Arc<Self> {
        let connects = Turns::new(settings.max_connects);
        let settings = Arc::new(settings);
        Arc::new(Self { settings, resolver, connects, share: Arc::from(""), hub_seen: Arc::default() })
    }

    /// The same dialer on the account of one share: while connections wait, shares take turns, and none has all places.
    #[must_use]
    pub fn of(self: Arc<Self>, share: &str) -> Arc<Self> {
        let mut own = Arc::unwrap_or_clone(self);
        own.share = Arc::from(share);
        Arc::new(own)
    }

    /// Resolves, judges, connects. Waits for its turn first, which does not count as the connection's time.
    ///
    /// # Errors
    /// No address of the name may be dialled, or none answers.
    pub async fn dial(&self, host: &str, port: u16, policy: Policy) -> Result<Dialled, DialError> {
        let slot = self.connects.take(&self.share).await;
        let allowed = self.addresses(host, policy).await?;
        let mut last = DialError::Dns(format!("{host} has no address"));
        for address in allowed.into_iter().take(ADDRESSES_TRIED) {
            match self.connect(host, SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(Dialled { stream, slot }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect(&self, host: &str, address: SocketAddr) -> Result<TcpStream, DialError> {
        let limit = self.settings.connect_timeout;
        let late =
            || DialError::Timeout(format!("{host} ({address}) did not accept a connection within {limit:?}"));
        match self.proxy_for(host, address.ip()) {
            None => timeout(limit, open(host, address)).await.map_err(|_| late())?,
            Some(proxy) => timeout(limit, self.through(proxy, host, address)).await.map_err(|_| late())?,
        }
    }

    /// The proxy, where one is set and neither the kind of the address nor an entry of `no_proxy` is against it.
    fn proxy_for(&self, host: &str, address: IpAddr) -> Option<&Proxy> {
        let proxy = self.settings.proxy.as_ref()?;
        let outside = self.class(address::embedded(address)) == Class::Public;
        (outside && !self.settings.no_proxy.has(host, address)).then_some(proxy)
    }

    /// A connection through the proxy, whose own address an admin named.
    async fn through(&self, proxy: &Proxy, host: &str, to: SocketAddr) -> Result<TcpStream, DialError> {
        let mut last = DialError::Dns(format!("the proxy {} has no address", proxy.host()));
        for address in self.resolve(proxy.host()).await?.into_iter().take(ADDRESSES_TRIED) {
            match open(proxy.host(), SocketAddr::new(address, proxy.port())).await {
                Ok(mut stream) => return proxy.tunnel(&mut stream, host, to).await.map(|()| stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The addresses of a host that the policy allows, in the resolver's order.
    pub async fn addresses(&self, host: &str, policy: Policy) -> Result<Vec<IpAddr>, DialError> {
        let (all, ()) = tokio::join!(self.resolve(host), self.resolve_hub());
        let of_hub = self.settings.hub.named(host);
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in all? {
            match self.judge(address, of_hub, policy) {
                Ok(()) => allowed.push(address),
                Err(class) => refused = Some((address, class)),
            }
        }
        match (allowed.is_empty(), refused) {
            (false, _) => Ok(allowed),
            (true, None) => Err(DialError::Dns(format!("{host} has no address"))),
            (true, Some((address, class))) => Err(refusal(host, address, class, policy)),
        }
    }

    /// Addresses of a name; an address is its own.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DialError> {
        if let Some(address) = literal(host) {
            return Ok(vec![address]);
        }
        let limit = self.settings.connect_timeout;
        match timeout(limit, self.resolver.resolve(host)).await {
            Ok(Ok(all)) => Ok(all),
            Ok(Err(why)) => Err(DialError::Dns(format!("{host} does not resolve: {why}"))),
            Err(_) => Err(DialError::Dns(format!("{host} does not resolve: no answer within {limit:?}"))),
        }
    }

    /// Looks up where the hub is now. Without an answer it is where it was.
    async fn resolve_hub(&self) {
        let names = self.settings.hub.names.iter();
        for found in join_all(names.map(|name| self.resolve(name))).await {
            match found {
                Ok(addresses) => self.hub_seen.add(addresses.into_iter().map(address::embedded)),
                Err(error) => tracing::debug!(%error, "where the hub is cannot be looked up"),
            }
        }
    }

    fn class(&self, address: IpAddr) -> Class {
        match address::class(address) {
            Class::Nowhere => Class::Nowhere,
            _ if within(&self.settings.hub.addresses, address) || self.hub_seen.has(address) => Class::Hub,
            class => class,
        }
    }

    /// `of_hub`: the name that led here is the hub's.
    fn judge(&self, address: IpAddr, of_hub: bool, policy: Policy) -> Result<(), Class> {
        let address = address::embedded(address);
        let class = match self.class(address) {
            Class::Nowhere => Class::Nowhere,
            _ if of_hub => Class::Hub,
            class => class,
        };
        let allowed = match policy {
            _ if class == Class::Nowhere => false,
            Policy::TenantListed => true,
            Policy::Tenant => class == Class::Public,
            Policy::Admin => {
                matches!(class, Class::Public | Class::Private)
                    || within(&self.settings.allow_edge_addresses, address)
            }
        };
        if allowed { Ok(()) } else { Err(class) }
    }
}

fn within(ranges: &[IpNet], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

async fn open(host: &str, address: SocketAddr) -> Result<TcpStream, DialError> {
    let stream = TcpStream::connect(address).await.map_err(|error| connect_error(host, address, &error))?;
    // Small requests must not wait for each other's acknowledgement; without the option they still arrive.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn refusal(host: &str, address: IpAddr, class: Class, policy: Policy) -> DialError {
    let cure = match (policy, class) {
        (_, Class::Nowhere) => "name an address of one machine".to_owned(),
        (Policy::Admin, _) => {
            format!(
                "if that is meant, start the operator with --allow-edge-address {address}/{}",
                if address.is_ipv4() { 32 } else { 128 }
            )
        }
        _ => {
            "if that is meant, an admin lists the origin in the project's chartSources, for example https://charts.example.com/"
                .to_owned()
        }
    };
    let both =
        if host == address.to_string() { format!("{host} is") } else { format!("{host} is {address},") };
    DialError::Refused(format!("{both} {class}, which is not dialled: {cure}"))
}

fn connect_error(host: &str, address: SocketAddr, error: &std::io::Error) -> DialError {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            DialError::Connect(format!("{host} ({address}) refuses connections: nothing listens there"))
        }
        ErrorKind::TimedOut => DialError::Timeout(format!("{host} ({address}) did not answer")),
        _ => DialError::Connect(format!("{host} ({address}) cannot be reached: {error}")),
    }
}

#[cfg(test)]
mod tests;
