//! Marks on a cluster how far the hub's store had come when work on it was done. A hub that was restored from an older
//! backup finds a mark of the future there, and does nothing before somebody says so.
//!
//! The mark is written a moment after work began, not more often than every few seconds, and never at rest.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::edge::Edge;
use crate::remote::{Admission, Claim, claim};

/// Work has this long to itself: most of it has ended by then.
const ASIDE: Duration = Duration::from_millis(150);
/// After a mark, work that begins within this time goes without.
const PAUSE: Duration = Duration::from_secs(10);
/// After a mark that could not be written.
const AGAIN: Duration = Duration::from_secs(30);

/// Keeps the mark of one cluster until stopped. What begins from now on is seen.
pub fn run(edge: Arc<Edge>, stop: CancellationToken) -> impl Future<Output = ()> + Send {
    let worked = edge.worked();
    async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep(&edge, worked) => {}
        }
    }
}

async fn keep(edge: &Edge, mut worked: watch::Receiver<u64>) {
    let mut link = edge.link();
    while worked.changed().await.is_ok() {
        // A cluster that is not claimed, or not admitted, has no place for a mark.
        let seen = loop {
            let seen = link.borrow_and_update().as_ref().and_then(|link| match &link.claim {
                Claim::Held { seen, .. } if link.admission == Admission::Admitted => Some(*seen),
                _ => None,
            });
            match seen {
                Some(seen) => break seen,
                None if link.changed().await.is_err() => return,
                None => {}
            }
        };
        sleep(ASIDE).await;
        let begun = *worked.borrow_and_update();
        let Some(server) = edge.server().filter(|_| begun > seen && !edge.is_on_git()) else { continue };
        let pause = match edge.send(&server, claim::note(begun)).await {
            Ok(object) => {
                edge.marked(claim::written_at(&object));
                PAUSE
            }
            Err(error) => {
                tracing::debug!(cluster = %edge.id, %error, "the mark of this hub could not be written");
                AGAIN
            }
        };
        sleep(pause).await;
        worked.borrow_and_update();
    }
}
