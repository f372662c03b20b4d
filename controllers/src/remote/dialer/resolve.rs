//! Resolves names to addresses.

use std::net::IpAddr;

use async_trait::async_trait;
use hickory_resolver::TokioResolver;

/// Answers taken of one name.
const ANSWERS: usize = 16;

/// Resolves names.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name, or a sentence why there are none.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String>;
}

/// Asks the servers of `/etc/resolv.conf` and `/etc/hosts`, without the C library.
pub struct SystemResolver(TokioResolver);

impl SystemResolver {
    /// Reads the system's configuration.
    pub fn new() -> Result<Self, String> {
        let builder = TokioResolver::builder_tokio().map_err(|error| {
            format!("the system's resolver configuration (/etc/resolv.conf) cannot be read: {error}")
        })?;
        Ok(Self(builder.build()))
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let found = self.0.lookup_ip(host).await.map_err(|error| {
            if error.is_nx_domain() { "no such name".to_owned() } else { error.to_string() }
        })?;
        Ok(found.iter().take(ANSWERS).collect())
    }
}
