//! Recognises the hub's own names and addresses.

use std::collections::VecDeque;
use std::net::IpAddr;

use ipnet::IpNet;
use parking_lot::Mutex;

use super::literal;

/// Addresses of the hub's names that are remembered. A name may answer with a few of many addresses each time.
const REMEMBERED: usize = 64;

/// Where the hub is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubHosts {
    /// By address.
    pub addresses: Vec<IpNet>,
    /// By name: what a name leads to may change while the operator runs, so names are looked up when others are judged.
    pub names: Vec<String>,
}

impl HubHosts {
    /// Sorts hosts, such as `10.0.0.1`, `[fd00::1]` or `api.hub.example.com`.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for host in hosts.into_iter().filter(|host| !host.is_empty()) {
            match literal(host) {
                Some(address) => all.addresses.push(address.into()),
                None if all.named(host) => {}
                None => all.names.push(plain(host).to_owned()),
            }
        }
        all
    }

    /// Whether this is one of its names.
    pub fn named(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(plain(host)))
    }
}

/// A name may end with a dot and is the same.
fn plain(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Addresses that the hub's names had; the latest are first.
#[derive(Default)]
pub(super) struct Seen(Mutex<VecDeque<IpAddr>>);

impl Seen {
    pub(super) fn add(&self, addresses: impl Iterator<Item = IpAddr>) {
        let mut seen = self.0.lock();
        for address in addresses {
            seen.retain(|known| *known != address);
            seen.push_front(address);
        }
        seen.truncate(REMEMBERED);
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.0.lock().contains(&address)
    }
}
