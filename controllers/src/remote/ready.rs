//! Decides whether discovery counts: an API server that starts answers before it knows all of its kinds.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::discovery::{ApiLists, Discovered};
use super::transport::Edge;
use crate::api::{ApiError, ApiResult};

/// Between two readings of a server that does not say whether it is ready.
const APART: Duration = Duration::from_secs(2);

/// What is known of what one server serves.
#[derive(Default)]
pub struct Served {
    /// The list that counts.
    pub discovered: Option<Discovered>,
    /// The server was ready when the list was read, on this connection.
    proven: bool,
    /// Since when the server does not show all that the list has.
    vanished: Option<Instant>,
}

/// What a server says of itself.
enum Ready {
    Yes,
    /// With its answer.
    No(u16),
    /// It does not say, or not to these credentials.
    Untold,
}

impl Served {
    /// The connection was lost: what answers next may be a server that starts.
    pub const fn lost(&mut self) {
        self.proven = false;
    }

    /// Whether the server was ready since the connection was made.
    pub const fn is_proven(&self) -> bool {
        self.proven
    }

    /// Another cluster answers.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Reads discovery. What vanished stays in the list for the time `keep`. True when the list is final; otherwise discovery is to be read again soon.
    ///
    /// # Errors
    /// Discovery cannot be read, or the server is not ready and nothing is known of it yet.
    pub async fn read(&mut self, edge: &Edge, lists: &ApiLists, keep: Duration) -> ApiResult<bool> {
        let mut fresh = Discovered::read(edge, self.discovered.as_ref(), lists).await?;
        let lacks = |fresh: &Discovered| self.discovered.as_ref().is_some_and(|known| fresh.lacks(known));
        if self.proven && !lacks(&fresh) {
            self.vanished = None;
            self.discovered = Some(fresh);
            return Ok(true);
        }
        match ready(edge).await? {
            Ready::Yes => {}
            Ready::No(_) if self.discovered.is_some() => return Ok(false),
            Ready::No(code) => {
                let message = format!(
                    "it is not ready (/readyz answers {code}), and may not know all of its kinds yet"
                );
                return Err(ApiError::Status {
                    code: 503,
                    reason: "NotReady".to_owned(),
                    message,
                    retry_after: None,
                    causes: Vec::new(),
                });
            }
            Ready::Untold => {
                sleep(APART).await;
                let again = Discovered::read(edge, None, lists).await?;
                // What either reading shows is served.
                fresh = if again.lacks(&fresh) { again.with(&fresh, lists) } else { again };
            }
        }
        self.proven = true;
        let known = self.discovered.take().filter(|known| fresh.lacks(known));
        let (list, done) = match known {
            Some(known) if self.vanished.get_or_insert_with(Instant::now).elapsed() < keep => {
                (fresh.with(&known, lists), false)
            }
            _ => {
                self.vanished = None;
                (fresh, true)
            }
        };
        self.discovered = Some(list);
        Ok(done)
    }
}

async fn ready(edge: &Edge) -> ApiResult<Ready> {
    let answer = edge.get("/readyz", "text/plain", None).await?;
    Ok(match answer.status {
        200 => Ready::Yes,
        500.. => Ready::No(answer.status),
        _ => Ready::Untold,
    })
}
