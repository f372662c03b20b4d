//! Classifies IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of place an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reachable by everybody.
    Public,
    /// Of one organisation's network, or set aside for special use.
    Private,
    /// This machine.
    Loopback,
    /// This link: where clouds serve instance metadata.
    LinkLocal,
    /// The hub itself.
    Hub,
    /// Nothing that a connection can be made to: unspecified, multicast, broadcast.
    Nowhere,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Hub => "an address of the hub itself",
            Self::Nowhere => "an unspecified, multicast or broadcast address",
        })
    }
}

/// The address that a host of a URL is, where it is no name: `10.0.0.1`, `fd00::1` or `[fd00::1]`.
pub fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The IPv4 address that an IPv6 one stands for (mapped, compatible, NAT64, 6to4), else the address itself.
pub fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let joined = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => joined(g, h),
        (0, 0, 0, 0, 0, 0) if v6 != Ipv6Addr::LOCALHOST && v6 != Ipv6Addr::UNSPECIFIED => joined(g, h),
        (0x2002, high, low, ..) => joined(high, low),
        _ => address,
    }
}

/// The class of an address, before the hub's own addresses are looked at.
pub fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(v4) => class4(v4),
        IpAddr::V6(v6) => class6(v6),
    }
}

fn class4(address: Ipv4Addr) -> Class {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0 | 224..=239, ..) | (255, 255, 255) => Class::Nowhere,
        (127, ..) => Class::Loopback,
        (169, 254, _) => Class::LinkLocal,
        // 100.64/10 is carriers' and overlay networks' private space, 198.18/15 benchmarks', 240/4 reserved.
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18..=19, _) => {
            Class::Private
        }
        (192, 0, 0) | (240..=255, ..) => Class::Private,
        _ => Class::Public,
    }
}

fn class6(address: Ipv6Addr) -> Class {
    let [first, second, ..] = address.segments();
    if address.is_loopback() {
        return Class::Loopback;
    }
    if address.is_unspecified() || first & 0xff00 == 0xff00 {
        return Class::Nowhere;
    }
    match first {
        _ if first & 0xffc0 == 0xfe80 => Class::LinkLocal,
        // Unique local, the old site-local, local NAT64 translation, and the ranges for documentation and discarding.
        _ if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 => Class::Private,
        0x0064 | 0x0100 => Class::Private,
        0x2001 if second == 0x0db8 || second == 0 => Class::Private,
        _ => Class::Public,
    }
}
