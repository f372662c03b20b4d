//! Reserves ports of 127.0.0.1 that stay ours between the programs that listen on them.
//!
//! A port that the kernel only named may be somebody else's before our program listens. So a socket of ours stays bound to
//! it, never listening, and the programs bind beside it (`SO_REUSEPORT`).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// A reserved port.
pub(super) struct Port {
    pub number: u16,
    _socket: OwnedFd,
}

impl Port {
    pub fn reserve() -> Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .context("cannot make a socket")?;
        sockopt::set_socket_reuseport(&socket, true).context("cannot share a port")?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
        let address = getsockname(&socket).context("a socket without an address")?;
        match SocketAddr::try_from(address) {
            Ok(SocketAddr::V4(address)) => Ok(Self { number: address.port(), _socket: socket }),
            _ => bail!("a socket on 127.0.0.1 has an address of another kind"),
        }
    }
}
