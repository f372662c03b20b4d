//! Asks Flux on a cluster why it does not apply a folder of the branch.

use emco_engine::health::agent::{self, GROUP, KIND, VERSION};

use super::edge::{Edge, Session};
use super::errors::{Retry, Trouble};
use crate::api::{Method, Request};

/// The refusal of one folder, by the Kustomization that the branch has for it. `None` where there is none, and where it cannot be read: then
/// the row goes on waiting.
pub async fn refusal(edge: &Edge, session: &Session, namespace: &str, name: &str) -> Option<Trouble> {
    let kind = session.apis.find(GROUP, VERSION, KIND)?;
    let path = kind.path(namespace, Some(name));
    let object = session.send(edge, Request::new(Method::Get, &path)).await.ok()?;
    let words = agent::refusal(&object)?;
    Some(Trouble::new("AgentFailed", &words, Retry::Slowly))
}
