//! Hands questions that members ask about deployments to who can answer them: the command line's own code, in the operator. Bounds what the
//! hub has to store of the answers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use emco_crds::deployment_intent_group::view::Question;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// Bytes of answers within a [`MINUTE`]: of one namespace, and of all. The hub's etcd keeps each for minutes, also where it was deleted.
const MOST_OF_ONE: usize = 8 << 20;
const MOST: usize = 64 << 20;
/// An answer counts for so many at least: it is written, however short it is.
const LEAST: usize = 64 << 10;
const MINUTE: Duration = Duration::from_mins(1);

/// A question, and the deployment that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Namespace of both on the hub.
    pub namespace: String,
    /// Name of the deployment.
    pub deployment: String,
    /// The question.
    pub question: Question,
}

/// Answers questions.
pub trait Answers: Send + Sync + 'static {
    /// The answer, or a sentence that says why there is none.
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, String>>;
}

/// Of a process that works on no clusters.
pub struct NoAnswers;

impl Answers for NoAnswers {
    fn answer(&self, _: Asked) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(futures::future::ready(Err("this process answers no questions".to_owned())))
    }
}

/// The answers of the last minute that this process gave.
#[derive(Default)]
pub struct AnswerBudget(Mutex<Given>);

#[derive(Default)]
struct Given {
    /// Time, namespace and bytes of each.
    answers: VecDeque<(Instant, String, usize)>,
    /// Bytes by namespace.
    of: BTreeMap<String, usize>,
    all: usize,
}

impl AnswerBudget {
    /// True where there is room for another answer of a namespace.
    pub fn has_room(&self, namespace: &str) -> bool {
        let mut given = self.0.lock();
        given.forget_old();
        given.all < MOST && given.of.get(namespace).is_none_or(|bytes| *bytes < MOST_OF_ONE)
    }

    /// Counts an answer of a namespace.
    pub fn add(&self, namespace: &str, bytes: usize) {
        let bytes = bytes.max(LEAST);
        let mut given = self.0.lock();
        given.answers.push_back((Instant::now(), namespace.to_owned(), bytes));
        given.all += bytes;
        *given.of.entry(namespace.to_owned()).or_default() += bytes;
    }
}

impl Given {
    fn forget_old(&mut self) {
        while self.answers.front().is_some_and(|(at, ..)| at.elapsed() >= MINUTE) {
            let Some((_, namespace, bytes)) = self.answers.pop_front() else { return };
            self.all = self.all.saturating_sub(bytes);
            let left = self.of.remove(&namespace).unwrap_or_default().saturating_sub(bytes);
            if left > 0 {
                self.of.insert(namespace, left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_room_for_so_many_answers_in_a_minute() {
        let budget = AnswerBudget::default();
        for _ in 0..MOST_OF_ONE / LEAST {
            assert!(budget.has_room("shop"));
            budget.add("shop", 100);
        }
        assert!(!budget.has_room("shop") && budget.has_room("other"));
        tokio::time::advance(MINUTE).await;
        assert!(budget.has_room("shop"));
        let given = budget.0.lock();
        assert_eq!((given.answers.len(), given.of.len(), given.all), (0, 0, 0), "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn all_namespaces_together_have_room_for_so_much() {
        let budget = AnswerBudget::default();
        for number in 0..MOST / MOST_OF_ONE {
            budget.add(&format!("shop-{number}"), MOST_OF_ONE);
        }
        assert!(!budget.has_room("other"));
        tokio::time::advance(MINUTE).await;
        assert!(budget.has_room("other"));
    }
}
