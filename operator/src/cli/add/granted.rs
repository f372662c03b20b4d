//! Waits for rights that were just granted.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// API servers learn of roles and bindings by a watch, so a right may hold some moments after it was granted; this is the longest wait.
const LATEST: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);

/// Why a question was not answered as wished.
pub(super) enum Refused {
    /// The right is not there, or not there yet.
    Forbidden(anyhow::Error),
    /// No time helps.
    Otherwise(anyhow::Error),
}

/// Asks until it is allowed. What stays forbidden is an error in the words of the last answer.
pub(super) async fn until_granted(ask: impl AsyncFn() -> Result<(), Refused>) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(()) => return Ok(()),
            Err(Refused::Forbidden(_)) if begun.elapsed() < LATEST => sleep(PAUSE).await,
            Err(Refused::Forbidden(error) | Refused::Otherwise(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::anyhow;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_right_that_holds_a_moment_later_is_waited_for() {
        let begun = Instant::now();
        let ask = async || {
            let words = anyhow!("RBAC: clusterrole \"emco-hub\" not found");
            if begun.elapsed() < Duration::from_secs(3) { Err(Refused::Forbidden(words)) } else { Ok(()) }
        };
        until_granted(ask).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn what_stays_forbidden_is_told_in_the_last_words() {
        let asked = Cell::new(0);
        let ask = async || {
            asked.set(asked.get() + 1);
            Err(Refused::Forbidden(anyhow!("answer {}", asked.get())))
        };
        let begun = Instant::now();
        let error = until_granted(ask).await.unwrap_err();
        assert_eq!(error.to_string(), format!("answer {}", asked.get()));
        assert!(begun.elapsed() >= LATEST && begun.elapsed() < LATEST + Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_are_told_at_once() {
        let begun = Instant::now();
        let error = until_granted(async || Err(Refused::Otherwise(anyhow!("another cluster")))).await;
        assert_eq!(error.unwrap_err().to_string(), "another cluster");
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
