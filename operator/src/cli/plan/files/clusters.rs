//! Says of clusters what the hub recorded, and asks as many as needed what they serve: the hub keeps only the digest of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_controllers::api::ApiServer;
use emco_controllers::api::world::Edges;
use emco_controllers::object::context::Connector;
use emco_controllers::reconcile::context::Context;
use emco_controllers::remote::{Admission, Connections, DetailedNodes, Observation, State, Target, served};
use emco_controllers::tenancy::facts;
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned as _};
use emco_engine::apis::ApiList;
use emco_engine::hardware::Read;
use emco_engine::identity::ClusterId;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use parking_lot::Mutex;

use crate::cli::diff::edge;
use crate::cli::hub::Hub;

/// Different lists that are asked for: each is a connection to a cluster.
const MOST_LISTS: usize = 32;
/// Clusters that are asked for one list, until one answers.
const MOST_ASKED: usize = 3;
/// For one cluster.
const LIMIT: Duration = Duration::from_secs(20);
/// Why nothing is done on a cluster that answers.
const NOT_ADMITTED: [&str; 4] = ["ClusterReplaced", "SameClusterTwice", "ClaimedByAnotherHub", "HubRestored"];

/// One registered cluster.
struct Known {
    cluster: Arc<Cluster>,
    observation: Arc<Observation>,
}

impl Known {
    fn new(cluster: Arc<Cluster>) -> Self {
        let observation = Arc::new(observed(&cluster));
        Self { cluster, observation }
    }

    /// Digest of what it serves, as the operator saw it; `None` before the first contact.
    fn digest(&self) -> Option<&str> {
        self.cluster.status.as_ref()?.api_groups_digest.as_deref()
    }
}

/// What the hub's status says of a cluster, as the operator's connection would.
fn observed(cluster: &Cluster) -> Observation {
    let condition = |type_| cluster.status.as_ref().and_then(|status| status.condition(type_));
    let state = match condition(types::REACHABLE) {
        None => State::Connecting,
        Some(reachable) if reachable.status == "True" => State::Connected,
        Some(_) => State::Failed { reason: "Unreachable", message: String::new() },
    };
    let ready = condition(types::READY).filter(|ready| ready.status == "False");
    let refused = ready.and_then(|ready| {
        let reason = NOT_ADMITTED.into_iter().find(|reason| *reason == ready.reason)?;
        Some(Admission::Refused { reason, message: ready.message.clone() })
    });
    Observation { state, admission: refused.unwrap_or_default(), ..Observation::default() }
}

/// All registered clusters.
#[derive(Default)]
pub struct Recorded(Mutex<BTreeMap<ClusterId, Known>>);

impl Recorded {
    /// Takes in the Clusters of the hub.
    pub fn record(&self, ctx: &Context) {
        let all = ctx.stores.clusters.sorted().into_iter();
        *self.0.lock() =
            all.filter_map(|cluster| Some((facts::id(ctx, &cluster)?, Known::new(cluster)))).collect();
    }

    /// Finds out what clusters serve, as far as the operator knows it. Whether there is something new; the error says why a plan with
    /// these clusters would be another one than the operator's.
    pub async fn learn(&self, hub: &Hub, clusters: &BTreeSet<ClusterId>) -> anyhow::Result<bool> {
        let mut wanted: BTreeMap<String, Vec<ClusterId>> = BTreeMap::new();
        {
            let all = self.0.lock();
            for id in clusters {
                let Some(known) = all.get(id).filter(|known| known.observation.apis.is_none()) else {
                    continue;
                };
                // The operator waits for the first contact, too.
                let Some(digest) = known.digest() else { continue };
                if !known.observation.connected() {
                    bail!(
                        "{id} does not answer, and what it serves is in the operator's memory alone: what it would get is known when it is back"
                    );
                }
                wanted.entry(digest.to_owned()).or_default().push(id.clone());
            }
        }
        if wanted.len() > MOST_LISTS {
            bail!(
                "{} clusters that serve different kinds would have to be asked, and at most {MOST_LISTS} are",
                wanted.len()
            );
        }
        let none = wanted.is_empty();
        let asked = wanted.into_iter().map(|(digest, ids)| async move {
            let list = self.ask(hub, &digest, &ids).await?;
            self.serve(&digest, &list);
            anyhow::Ok(())
        });
        let asked: Vec<_> = futures::stream::iter(asked).buffered(4).collect().await;
        asked.into_iter().collect::<anyhow::Result<()>>()?;
        Ok(!none)
    }

    /// A Cluster of the hub, and whether it answers as the hub says.
    pub fn of(&self, id: &ClusterId) -> Option<(Arc<Cluster>, bool)> {
        let all = self.0.lock();
        let known = all.get(id)?;
        Some((Arc::clone(&known.cluster), known.observation.connected()))
    }

    /// Takes in what the nodes of a cluster have.
    pub fn note_nodes(&self, id: &ClusterId, nodes: Read<DetailedNodes>) {
        if let Some(known) = self.0.lock().get_mut(id) {
            Arc::make_mut(&mut known.observation).nodes = nodes;
        }
    }

    /// The list of this digest, from the first of some clusters that gives it.
    async fn ask(&self, hub: &Hub, digest: &str, ids: &[ClusterId]) -> anyhow::Result<Arc<ApiList>> {
        let mut why = anyhow!("no cluster could be asked what it serves");
        for id in ids.iter().take(MOST_ASKED) {
            let Some(cluster) = self.0.lock().get(id).map(|known| Arc::clone(&known.cluster)) else {
                continue;
            };
            let found = tokio::time::timeout(LIMIT, asked(hub, id, &cluster)).await;
            let found =
                found.unwrap_or_else(|_| Err(anyhow!("it did not answer within {} s", LIMIT.as_secs())));
            match found {
                Ok((list, of)) if of == digest => return Ok(list),
                Ok(_) => {
                    why = anyhow!(
                        "{id} serves other kinds than the operator saw last: have it look now (kubectl emco reconcile cluster {id}), and plan again"
                    );
                }
                Err(error) => {
                    why = error
                        .context(format!("{id} cannot be asked what it serves, which charts may ask for"));
                }
            }
        }
        Err(why)
    }

    /// All clusters that serve what this digest is of.
    fn serve(&self, digest: &str, list: &Arc<ApiList>) {
        for known in self.0.lock().values_mut() {
            if known.digest() == Some(digest) && known.observation.connected() {
                Arc::make_mut(&mut known.observation).apis = Some(Arc::clone(list));
            }
        }
    }
}

async fn asked(hub: &Hub, id: &ClusterId, cluster: &Cluster) -> anyhow::Result<(Arc<ApiList>, String)> {
    let uid = cluster.status.as_ref().and_then(|status| status.uid.as_deref());
    let (client, _) = edge::open(hub, cluster, uid).await?;
    Ok(served(client, id.as_str()).await?)
}

impl Edges for Recorded {
    fn get(&self, _: &ClusterId) -> Option<Arc<dyn ApiServer>> {
        None
    }
}

impl Connections for Recorded {
    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>> {
        self.0.lock().get(cluster).map(|known| Arc::clone(&known.observation))
    }

    fn seen_as(&self, uid: &str) -> Vec<ClusterId> {
        let known = self.0.lock();
        let those = known.iter().filter(|(_, known)| known.observation.uid.as_deref() == Some(uid));
        those.map(|(id, _)| id.clone()).collect()
    }

    fn changes(&self) -> BoxStream<'static, ClusterId> {
        futures::stream::pending().boxed()
    }

    fn refresh_apis(&self, _: &ClusterId) {}
}

impl Connector for Recorded {
    fn set_target(&self, _: ClusterId, _: Target) {}

    fn forget(&self, _: &ClusterId) {}

    fn probe_now(&self, _: &ClusterId) {}

    fn admit(&self, _: &ClusterId, _: &str, _: Admission) {}
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(conditions: &Value) -> Cluster {
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "berlin", "namespace": "acme"},
            "spec": {"access": {}}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-25T00:00:00Z"})
    }

    #[test]
    fn a_cluster_is_as_its_status_says() {
        assert_eq!(observed(&cluster(&json!([]))).state, State::Connecting);
        let fine = observed(&cluster(&json!([
            condition("Reachable", "True", "Reachable"),
            condition("Ready", "True", "Reachable")
        ])));
        assert!(fine.connected());
        assert_eq!(fine.admission, Admission::Admitted);
        let away = observed(&cluster(&json!([
            condition("Reachable", "False", "Timeout"),
            condition("Ready", "False", "Timeout")
        ])));
        assert!(!away.connected());
        let other = observed(&cluster(&json!([
            condition("Reachable", "True", "Reachable"),
            condition("Ready", "False", "ClusterReplaced")
        ])));
        assert!(
            other.connected()
                && matches!(other.admission, Admission::Refused { reason: "ClusterReplaced", .. })
        );
    }
}
