//! Serves one request per connection, with bounds that nobody can use to keep others out: where there are too many
//! connections, the oldest of the address that has the most is closed.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Connections of one listener.
const CONNECTIONS: usize = 256;
/// Connections of one address.
const OF_ONE: usize = 128;
/// Until a request's head has come.
const HEAD: Duration = Duration::from_secs(5);
/// One connection. Scrapers come again.
const CONNECTION: Duration = Duration::from_secs(15);

/// Connections that are open, by address and in the order they came.
#[derive(Default)]
struct Open {
    next: u64,
    peers: BTreeMap<IpAddr, BTreeMap<u64, CancellationToken>>,
}

impl Open {
    /// Makes room and takes it.
    fn admit(&mut self, peer: IpAddr) -> (u64, CancellationToken) {
        if self.peers.get(&peer).map_or(0, BTreeMap::len) >= OF_ONE {
            self.close_oldest(peer);
        }
        while self.peers.values().map(BTreeMap::len).sum::<usize>() >= CONNECTIONS {
            let most = self.peers.iter().max_by_key(|(_, open)| open.len()).map(|(peer, _)| *peer);
            let Some(most) = most else { break };
            self.close_oldest(most);
        }
        self.next += 1;
        let closed = CancellationToken::new();
        self.peers.entry(peer).or_default().insert(self.next, closed.clone());
        (self.next, closed)
    }

    fn close_oldest(&mut self, peer: IpAddr) {
        let Some(open) = self.peers.get_mut(&peer) else { return };
        if let Some((_, closed)) = open.pop_first() {
            closed.cancel();
        }
        if open.is_empty() {
            self.peers.remove(&peer);
        }
    }

    fn left(&mut self, peer: IpAddr, number: u64) {
        let Some(open) = self.peers.get_mut(&peer) else { return };
        open.remove(&number);
        if open.is_empty() {
            self.peers.remove(&peer);
        }
    }
}

/// Serves until dropped.
pub async fn serve(listener: TcpListener, router: Router) {
    let open = Arc::new(Mutex::new(Open::default()));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, peer.ip()),
            Err(error) => {
                // Out of files, most likely; some will be closed.
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (number, closed) = open.lock().admit(peer);
        let service = TowerToHyperService::new(router.clone());
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A peer that goes away in the middle is no event.
            let _ = closed.run_until_cancelled(timeout(CONNECTION, connection)).await;
            open.lock().left(peer, number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn one_address_has_its_share_and_its_oldest_connection_goes_first() {
        let mut open = Open::default();
        let (_, first) = open.admit(peer(1));
        let others: Vec<_> = (1..OF_ONE).map(|_| open.admit(peer(1)).1).collect();
        assert!(!first.is_cancelled());
        open.admit(peer(1));
        assert!(first.is_cancelled() && others.iter().all(|other| !other.is_cancelled()));
    }

    #[test]
    fn many_addresses_make_room_for_one_more() {
        let mut open = Open::default();
        let (number, probe) = open.admit(peer(200));
        let crowd: Vec<_> = (0..400).map(|n| open.admit(peer(u8::try_from(n % 20).unwrap())).1).collect();
        assert!(!probe.is_cancelled(), "an address with one connection is not the one with the most");
        assert!(crowd.iter().filter(|one| !one.is_cancelled()).count() < CONNECTIONS);
        open.left(peer(200), number);
        assert!(!open.peers.contains_key(&peer(200)));
    }
}
