//! Reads what a deployment's page shows besides its tree: the plan that waits, its history, and whether the user may decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

use super::rights;
use super::view::Deployment;
use crate::cli::diff::past;
use crate::cli::history::{Entry, entries};
use crate::cli::hub::Hub;
use crate::cli::plan::read::{self, App};

/// Time that an answer holds while the deployment does not change.
const HOLDS: Duration = Duration::from_secs(4);
/// Longest wait for the hub: a page that waits for it says nothing, not even that the hub is silent.
const PATIENCE: Duration = Duration::from_secs(3);
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
        let more = timeout(PATIENCE, Box::pin(read(hub, deployment))).await;
        let more = Arc::new(more.unwrap_or_else(|_| silence()));
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

/// What is known where the hub does not answer: nobody decides on that.
fn silence() -> More {
    let why = "the hub did not answer".to_owned();
    More { apps: Vec::new(), notes: vec![why.clone()], history: Err(why.clone()), may_not: Some(why) }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use axum::body::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use kube::Client;
    use kube::client::Body;

    use super::*;
    use crate::cli::dashboard::view::deployments;
    use crate::cli::status::tree::tests::{alive, group, shard};

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_is_silent_keeps_no_page_waiting() {
        let service =
            tower::service_fn(|_: Request<Body>| pending::<Result<Response<Full<Bytes>>, Infallible>>());
        let hub = Hub {
            client: Client::new(service, "shop"),
            namespace: "shop".to_owned(),
            operator_namespace: "emco-system".to_owned(),
            url: "https://hub/".to_owned(),
            lender: None,
        };
        let all = deployments(std::iter::once(&group()), std::iter::once(&shard()), &alive(), &[]);
        let more = Looks::default().at(&hub, &all[0]).await;
        assert_eq!(more.may_not.as_deref(), Some("the hub did not answer"));
        assert!(more.history.is_err());
    }
}
