//! Reads what a deployment's page shows besides its tree: the plan that waits, its history, and whether the user may decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::rights;
use super::view::Deployment;
use crate::cli::diff::past;
use crate::cli::history::{Entry, entries};
use crate::cli::hub::Hub;
use crate::cli::plan::read::{self, App};

/// Time that an answer holds while the deployment does not change.
const HOLDS: Duration = Duration::from_secs(4);
/// Answers that are kept.
const KEPT: usize = 64;

/// Things read from the hub.
#[derive(Debug)]
pub struct More {
    /// Changes of the plan, by app.
    pub apps: Vec<App>,
    /// Notes on changes that are not shown.
    pub notes: Vec<String>,
    /// Revisions, the newest first, or why they are not shown.
    pub history: Result<Vec<Entry>, String>,
    /// Reason why the user may not approve or reject; absent where they may.
    pub may_not: Option<String>,
}

/// An answer of a state of a deployment.
struct Answer {
    version: String,
    at: Instant,
    more: Arc<More>,
}

/// Answers by namespace and name.
#[derive(Default)]
pub struct Looks {
    answers: Mutex<BTreeMap<(String, String), Answer>>,
}

impl Looks {
    /// Reads it, or takes what was read a moment ago.
    pub async fn at(&self, hub: &Hub, deployment: &Deployment) -> Arc<More> {
        let key = (deployment.group.namespace.clone(), deployment.group.name.clone());
        let version = deployment.version();
        if let Some(answer) = self.answers.lock().get(&key)
            && answer.version == version
            && answer.at.elapsed() < HOLDS
        {
            return Arc::clone(&answer.more);
        }
        let more = Arc::new(Box::pin(read(hub, deployment)).await);
        let answer = Answer { version, at: Instant::now(), more: Arc::clone(&more) };
        let mut answers = self.answers.lock();
        if answers.len() >= KEPT {
            answers.clear();
        }
        answers.insert(key, answer);
        drop(answers);
        more
    }

    /// Forgets what was read of one: something was decided.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.answers.lock().remove(&(namespace.to_owned(), name.to_owned()));
    }
}

async fn read(hub: &Hub, deployment: &Deployment) -> More {
    let (namespace, name) = (&deployment.group.namespace, &deployment.group.name);
    let (plan, history, may_not) = tokio::join!(
        plan(hub, deployment),
        past::contexts(hub, namespace, name),
        rights::lacking(hub, "create", "deploymentapprovals", Some(namespace)),
    );
    let (apps, notes) = plan;
    More {
        apps,
        notes,
        history: match history {
            Ok(contexts) => Ok(entries(contexts, &deployment.object)),
            Err(error) => Err(format!("{error:#}")),
        },
        may_not: may_not.unwrap_or_else(|error| Some(format!("{error:#}"))),
    }
}

async fn plan(hub: &Hub, deployment: &Deployment) -> (Vec<App>, Vec<String>) {
    let pending = deployment.object.status.as_ref().and_then(|status| status.pending.as_ref());
    let Some(details) = pending.and_then(|pending| pending.details.as_ref()) else {
        return (Vec::new(), Vec::new());
    };
    // The page is made anew once they are written.
    match read::details(hub, &deployment.group.namespace, details, Duration::ZERO).await {
        Ok(Ok(found)) => read::joined(found, None),
        Ok(Err(why)) => (Vec::new(), vec![why]),
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    }
}
