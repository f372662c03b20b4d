//! Accepts connections, a bounded number of them, so that no stranger on this machine keeps the user out.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Connections at a time.
const CONNECTIONS: usize = 64;
/// Longest time until the head of a request has come, and that a connection may rest.
const HEAD: Duration = Duration::from_secs(5);

/// True once a connection has shown the secret.
pub type Known = Arc<AtomicBool>;

/// Connections that are open, the oldest first.
#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, (Known, CancellationToken)>,
}

impl Open {
    /// Makes room for one more: the oldest stranger goes. `None` where there are none left.
    fn admit(&mut self) -> Option<(u64, Known, CancellationToken)> {
        if self.all.len() >= CONNECTIONS {
            let stranger = self.all.iter().find(|(_, (known, _))| !known.load(Ordering::Relaxed));
            let number = *stranger?.0;
            if let Some((_, closed)) = self.all.remove(&number) {
                closed.cancel();
            }
        }
        self.next += 1;
        let (known, closed) = (Known::default(), CancellationToken::new());
        self.all.insert(self.next, (Arc::clone(&known), closed.clone()));
        Some((self.next, known, closed))
    }

    fn left(&mut self, number: u64) {
        self.all.remove(&number);
    }
}

/// Serves until dropped. `answer` marks the connection as known once the secret was shown.
pub async fn serve<A, F>(listener: TcpListener, answer: A)
where
    A: Fn(Request<Incoming>, Known) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let open = Arc::new(Mutex::new(Open::default()));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files, most likely; some will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some((number, known, closed)) = open.lock().admit() else { continue };
        let (open, answer) = (Arc::clone(&open), answer.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answered = answer(request, Arc::clone(&known));
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // A peer that goes away in the middle is no event.
            let _ = closed.run_until_cancelled(connection).await;
            open.lock().left(number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_makes_room_and_nobody_who_is_known_does() {
        let mut open = Open::default();
        let (_, user, users) = open.admit().unwrap();
        user.store(true, Ordering::Relaxed);
        let strangers: Vec<_> = (0..200).map(|_| open.admit().unwrap().2).collect();
        assert!(!users.is_cancelled());
        let left = strangers.iter().filter(|one| !one.is_cancelled()).count();
        assert_eq!((left, open.all.len()), (CONNECTIONS - 1, CONNECTIONS));
        assert!(strangers.first().unwrap().is_cancelled() && !strangers.last().unwrap().is_cancelled());
    }

    #[test]
    fn no_more_than_64_are_open_where_all_are_known() {
        let mut open = Open::default();
        let mut first = None;
        for _ in 0..CONNECTIONS {
            let (number, known, _) = open.admit().unwrap();
            known.store(true, Ordering::Relaxed);
            first.get_or_insert(number);
        }
        assert!(open.admit().is_none());
        open.left(first.unwrap());
        assert!(open.admit().is_some());
    }
}
