//! Hands questions that members ask about deployments to who can answer them: the command line's own code, in the operator.

use emco_crds::deployment_intent_group::view::Question;
use futures::future::BoxFuture;
use serde_json::Value;

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
