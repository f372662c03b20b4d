//! Runs work on charts on threads of low priority, one of a project at a time: what tenants send leaves processors to everything
//! else.

use std::sync::Arc;
use std::thread;

use super::ChartError;
use crate::api::priority;
use crate::api::turns::{Place, Turns};

/// Work on charts of one project, in turn with that of all others.
#[derive(Clone)]
pub struct Worker {
    turns: Arc<Turns>,
    project: Arc<str>,
}

impl Worker {
    pub fn new(turns: &Arc<Turns>, project: &str) -> Self {
        Self { turns: Arc::clone(turns), project: Arc::from(project) }
    }

    /// Waits for the project's place.
    pub async fn place(&self) -> Place {
        self.turns.take(&self.project).await
    }

    /// Runs work when it is the project's turn.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ChartError> {
        run_at(self.place().await, work).await
    }
}

/// Runs work to its end, even when nobody waits for it any more; until then it has its place.
pub async fn run_at<T: Send + 'static>(
    place: Place,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ChartError> {
    run(place, work).await
}

async fn run<T: Send + 'static>(
    place: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ChartError> {
    let begin = move || {
        priority::lower();
        work()
    };
    // A thread of its own, for one of the pool could not be raised again. It gives nothing back itself: where the processors are busy, it would
    // stand still in the middle of that, with a lock that others wait for.
    let wait = move || {
        let begun = thread::Builder::new().name("chart".to_owned()).spawn(begin);
        let done = begun.ok().and_then(|thread| thread.join().ok());
        drop(place);
        done
    };
    let done = tokio::task::spawn_blocking(wait).await.ok().flatten();
    done.ok_or_else(|| ChartError::new("SourceUnreachable", "work on the chart was ended: it is tried again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_on_charts_leaves_the_processor_to_others() {
        assert!(run((), priority::is_low).await.unwrap());
        assert!(!priority::is_low(), "this thread stays as it is");
    }

    /// Notes on a thread of which priority it is given back.
    struct Given(std::sync::mpsc::Sender<bool>);

    impl Drop for Given {
        fn drop(&mut self) {
            self.0.send(priority::is_low()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_place_is_given_back_by_a_thread_that_is_not_slow() {
        let (given, low) = std::sync::mpsc::channel();
        assert!(run(Given(given.clone()), priority::is_low).await.unwrap());
        assert!(!low.recv().unwrap(), "others wait for the lock that it takes");
        assert!(run(Given(given), || panic!("as if by a defect")).await.is_err());
        assert!(!low.recv().unwrap());
    }

    #[tokio::test]
    async fn a_project_works_on_one_chart_at_a_time() {
        let turns = Turns::new(2);
        let (loud, quiet) = (Worker::new(&turns, "loud"), Worker::new(&turns, "quiet"));
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let work = move || begun.send(()).is_ok() && wait.recv().is_ok();
        let first = tokio::spawn({
            let loud = loud.clone();
            async move { loud.run(work).await }
        });
        begins.await.unwrap();
        let mut second = std::pin::pin!(loud.run(|| ()));
        assert!(futures::poll!(&mut second).is_pending());
        quiet.run(|| ()).await.expect("another project has a place of its own");
        assert!(futures::poll!(&mut second).is_pending(), "the first one works still");
        end.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        second.await.unwrap();
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        assert!(run((), || panic!("as if by a defect")).await.is_err());
    }
}
