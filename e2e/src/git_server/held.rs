//! Holds a request of a repository's client until a test lets it go: meanwhile the client can be killed.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

/// Which request is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The next push, before the repository has it.
    Push,
    /// The next push, when the repository has it and nobody was told.
    Pushed,
    /// The request that comes after so many others, before it is worked on.
    Request(usize),
}

/// A request that is held, or will be. It is let go when this is dropped.
pub struct Held {
    arrived: oneshot::Receiver<()>,
    _go: oneshot::Sender<()>,
}

impl Held {
    /// Waits until it came.
    pub async fn arrived(&mut self) {
        // Whoever replaced it with another one waits for that.
        if (&mut self.arrived).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Request,
    Push,
    Pushed,
}

/// The one request that is to be held.
#[derive(Default)]
pub(super) struct Holds(Mutex<Option<Hold>>);

struct Hold {
    at: At,
    arrived: oneshot::Sender<()>,
    go: oneshot::Receiver<()>,
}

impl Holds {
    pub(super) fn hold(&self, at: At) -> Held {
        let ((arrived, told), (go, wait)) = (oneshot::channel(), oneshot::channel());
        let hold = Hold { at, arrived, go: wait };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        Held { arrived: told, _go: go }
    }

    /// Returns at once, unless this is the request that is to be held.
    pub(super) async fn pass(&self, stage: Stage) {
        let Some(hold) = self.take(stage) else { return };
        // A test that does not listen any more wants nothing held.
        if hold.arrived.send(()).is_ok() {
            let _ = hold.go.await;
        }
    }

    fn take(&self, stage: Stage) -> Option<Hold> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hold = next.as_mut()?;
        let is_it = match (hold.at, stage) {
            (At::Push, Stage::Push) | (At::Pushed, Stage::Pushed) | (At::Request(0), Stage::Request) => true,
            (At::Request(left), Stage::Request) => {
                hold.at = At::Request(left - 1);
                false
            }
            _ => false,
        };
        if is_it { next.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_request_after_so_many_others_is_held_until_it_is_let_go() {
        let holds = Holds::default();
        let mut held = holds.hold(At::Request(1));
        holds.pass(Stage::Request).await;
        holds.pass(Stage::Push).await;
        let passing = holds.pass(Stage::Request);
        tokio::pin!(passing);
        tokio::select! {
            () = &mut passing => panic!("it was not held"),
            () = held.arrived() => {}
        }
        drop(held);
        passing.await;
        holds.pass(Stage::Request).await;
    }
}
