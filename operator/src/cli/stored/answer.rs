//! Answers questions of members, in the operator: with the code of the command line, which asks clusters as the deployment's account.
//!
//! Clusters decide what that account may read. What they do not decide is kept here: everything is of the deployment whose name the
//! question has, in the question's own namespace, and values of Secrets are in no answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::api::views::{Answers, Asked};
use emco_controllers::remote::Pool;
use emco_crds::Level;
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::cloud;
use emco_engine::identity::ClusterId;
use futures::future::BoxFuture;
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::lend::PoolLender;
use crate::cli::args::deployments::PartArgs;
use crate::cli::diff::{self, past};
use crate::cli::hub::{Hub, Lender};
use crate::cli::on_edge::place::{self, Placed};
use crate::cli::on_edge::{events, through};
use crate::cli::{explain, manifests, objects};

/// Clusters that are asked for one answer.
const MOST_CLUSTERS: usize = 64;
/// For all of them.
const PATIENCE: Duration = Duration::from_secs(70);

/// Answers with what the operator may read, and with its connections.
pub struct Operator {
    client: Client,
    namespace: String,
    pool: Arc<Pool>,
}

impl Operator {
    /// `client` is the operator's, of the hub; `namespace` its own.
    pub const fn new(client: Client, namespace: String, pool: Arc<Pool>) -> Self {
        Self { client, namespace, pool }
    }
}

impl Answers for Operator {
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, String>> {
        let (client, namespace, pool) = (self.client.clone(), self.namespace.clone(), Arc::clone(&self.pool));
        Box::pin(async move {
            let runtime = Handle::current();
            // The command line's code is written for one thread.
            let work = move || {
                let answer = Box::pin(answer(client, namespace, pool, asked));
                // Within: a thread is not ended from outside.
                runtime.block_on(async { timeout(PATIENCE, answer).await })
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(answer)) => answer.map_err(|error| format!("{error:#}")),
                Ok(Err(_)) => Err(format!(
                    "the clusters do not answer within {} s: ask about fewer, with --cluster",
                    PATIENCE.as_secs()
                )),
                Err(_) => Err("the answer was not worked out: ask again".to_owned()),
            }
        })
    }
}

async fn answer(
    client: Client,
    operator_namespace: String,
    pool: Arc<Pool>,
    asked: Asked,
) -> anyhow::Result<Value> {
    let Asked { namespace, deployment, question } = asked;
    let on_hub = (namespace.clone(), deployment);
    let url = "that the operator reaches".to_owned();
    let mut hub = Hub { client, namespace, operator_namespace, url, lender: None };
    let lender = Arc::new(PoolLender { pool, account: account(&hub, &on_hub).await? });
    hub.lender = Some(Arc::clone(&lender) as Arc<dyn Lender>);
    match (said(&hub, &lender, &on_hub, &question).await, &lender.account) {
        (Ok(mut said), Some(account)) => {
            cure_each(&mut said, account);
            Ok(said)
        }
        (Err(error), Some(account)) => Err(anyhow!(cured(&format!("{error:#}"), account))),
        (said, None) => said,
    }
}

/// The account that the deployment is applied as. A deployment of which nothing is stored has none, and nothing on any cluster.
async fn account(hub: &Hub, (namespace, name): &(String, String)) -> anyhow::Result<Option<String>> {
    let contexts = past::contexts(hub, namespace, name).await?;
    let newest = contexts.into_iter().max_by_key(|context| context.spec.revision);
    let spec = newest.with_context(|| format!("{namespace}/{name} has no revision yet"))?.spec;
    match (spec.level, spec.namespace, spec.logical_cloud) {
        (Some(Level::Admin), ..) => Ok(None),
        (Some(_), Some(there), Some(cloud)) => Ok(Some(cloud::account(&there, &cloud))),
        _ => bail!("revision {} of {namespace}/{name} does not say what it is applied as", spec.revision),
    }
}

async fn said(
    hub: &Hub,
    lender: &PoolLender,
    on_hub: &(String, String),
    question: &Question,
) -> anyhow::Result<Value> {
    let part = PartArgs { cluster: question.clusters.clone(), app: question.apps.clone() };
    match question.what {
        ViewOf::Explanation => value(&explain::of_revision(hub, on_hub, question.revision).await?),
        ViewOf::Manifests => value(&manifests::printed(hub, on_hub, &part, question.revision, false).await?),
        ViewOf::Objects => {
            few(hub, on_hub, question).await?;
            value(&objects::handed::handed(hub, on_hub, &part, question.live == Some(true)).await?)
        }
        ViewOf::Differences => {
            few(hub, on_hub, question).await?;
            value(&diff::compared(hub, on_hub, &question.clusters, question.revision).await?)
        }
        ViewOf::Events => match few(hub, on_hub, question).await? {
            Some((placed, clusters)) => value(&events::handed(hub, &placed, clusters).await),
            None => value(&Value::Array(Vec::new())),
        },
        ViewOf::Logs => {
            let (placed, id) = one(hub, on_hub, question).await?;
            value(&through::written(hub, &placed, &id, question).await?)
        }
        ViewOf::Exec => {
            let (placed, id) = one(hub, on_hub, question).await?;
            value(&through::ran(hub, lender, &placed, &id, question).await?)
        }
    }
}

fn value(answer: &impl Serialize) -> anyhow::Result<Value> {
    serde_json::to_value(answer).context("the answer cannot be written as JSON")
}

/// The deployment and the clusters that are meant, if there are any, and few enough.
async fn few(
    hub: &Hub,
    on_hub: &(String, String),
    question: &Question,
) -> anyhow::Result<Option<(Placed, Vec<ClusterId>)>> {
    let placed = place::if_any(hub, on_hub.0.clone(), on_hub.1.clone()).await?;
    let Some(placed) = placed else { return Ok(None) };
    let meant: Vec<ClusterId> = if question.revision.is_some() && !question.clusters.is_empty() {
        // An earlier revision had others, too.
        question.clusters.iter().filter_map(|named| ClusterId::parse(named)).collect()
    } else {
        events::selected(&placed, &question.clusters)?
    };
    if meant.len() > MOST_CLUSTERS {
        bail!(
            "{} is on {} clusters, and at most {MOST_CLUSTERS} are asked at a time: name some with --cluster",
            placed.said,
            meant.len()
        );
    }
    Ok(Some((placed, meant)))
}

/// The deployment and the one cluster that is meant.
async fn one(
    hub: &Hub,
    on_hub: &(String, String),
    question: &Question,
) -> anyhow::Result<(Placed, ClusterId)> {
    let placed = place::of(hub, on_hub.0.clone(), on_hub.1.clone()).await?;
    let named = match question.clusters.as_slice() {
        [] => None,
        [one] => Some(one.as_str()),
        several => bail!("{} clusters are named, and logs and commands are of one", several.len()),
    };
    let id = placed.one(named)?.0.clone();
    Ok((placed, id))
}

/// A text, and where the cluster refuses the account in it, the permission that would give the right.
fn cured(text: &str, account: &str) -> String {
    if !text.contains(" is forbidden: User ") {
        return text.to_owned();
    }
    format!(
        "{text}; a permission of the logical cloud, such as {{name: look, clusterRole: view}}, gives {account} rights there"
    )
}

/// The same of the errors of clusters within an answer.
fn cure_each(answer: &mut Value, account: &str) {
    match answer {
        Value::Array(items) => items.iter_mut().for_each(|item| cure_each(item, account)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "error" => *text = cured(text, account),
                    Value::Array(_) | Value::Object(_) if name != "manifest" => cure_each(value, account),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lacking_right_is_said_with_the_permission_that_gives_it() {
        let account = "system:serviceaccount:shop:emco-a";
        let words = format!("the cluster refuses: pods is forbidden: User \"{account}\" cannot list");
        let mut answer =
            json!([{"cluster": "acme/a", "error": words, "manifest": {"error": words}}, {"error": "no"}]);
        cure_each(&mut answer, account);
        let said = answer[0]["error"].as_str().unwrap();
        assert!(said.starts_with(&words) && said.contains("{name: look, clusterRole: view}"), "{said}");
        assert_eq!((&answer[0]["manifest"]["error"], &answer[1]["error"]), (&json!(words), &json!("no")));
    }
}
