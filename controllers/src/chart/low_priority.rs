//! Runs work on charts on threads of low priority: what tenants send leaves the processor to everything else.

use std::thread;

use super::ChartError;
use crate::runtime::priority;

/// Runs it to its end, even when nobody waits for it any more.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ChartError> {
    let begin = move || {
        priority::lower();
        work()
    };
    // A thread of its own, for one of the pool could not be raised again.
    let wait = || thread::Builder::new().name("chart".to_owned()).spawn(begin).ok()?.join().ok();
    let done = tokio::task::spawn_blocking(wait).await.ok().flatten();
    done.ok_or_else(|| ChartError::new("SourceUnreachable", "work on the chart was ended: it is tried again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_on_charts_leaves_the_processor_to_others() {
        let niceness = || rustix::process::getpriority_process(None).ok();
        let before = niceness();
        assert_eq!(run(niceness).await.unwrap(), before.max(Some(priority::NICENESS)));
        assert_eq!(niceness(), before, "this thread stays as it is");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert!(run(|| panic!("as if by a defect")).await.is_err());
    }
}
