//! Runs the operator's reconcilers on a hub in this process, with clusters that are known and never asked anything.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use emco_controllers::api::world::system::{SystemClock, SystemRandom};
use emco_controllers::api::world::{Edges, World};
use emco_controllers::api::{ApiServer, ApiServerExt as _};
use emco_controllers::chart::{ChartLimits, ChartStore};
use emco_controllers::driver::hub::HubApi;
use emco_controllers::driver::installation;
use emco_controllers::object::context::{Connector, HubContext};
use emco_controllers::reconcile::composite_app;
use emco_controllers::reconcile::context::Context;
use emco_controllers::remote::dialer::{Dialer, DialerSettings, SystemResolver};
use emco_controllers::remote::{Admission, Connections, Observation, State, Target};
use emco_controllers::store::Revisions;
use emco_controllers::stores::{Feed, Writers, stores};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::identity::ClusterId;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fleet;

const NAMESPACE: &str = "emco-system";

/// Clusters that answered once.
struct Known(BTreeMap<ClusterId, Arc<Observation>>);

impl Edges for Known {
    fn get(&self, _: &ClusterId) -> Option<Arc<dyn ApiServer>> {
        None
    }
}

impl Connections for Known {
    fn observation(&self, cluster: &ClusterId) -> Option<Arc<Observation>> {
        self.0.get(cluster).cloned()
    }
    fn seen_as(&self, uid: &str) -> Vec<ClusterId> {
        let those = self.0.iter().filter(|(_, seen)| seen.uid.as_deref() == Some(uid));
        those.map(|(id, _)| id.clone()).collect()
    }
    fn changes(&self) -> BoxStream<'static, ClusterId> {
        futures::stream::pending().boxed()
    }
    fn refresh_apis(&self, _: &ClusterId) {}
}

impl Connector for Known {
    fn set_target(&self, _: ClusterId, _: Target) {}
    fn forget(&self, _: &ClusterId) {}
    fn probe_now(&self, _: &ClusterId) {}
    fn admit(&self, _: &ClusterId, _: &str, _: Admission) {}
}

fn observed(number: usize, apis: &Arc<ApiList>) -> Arc<Observation> {
    Arc::new(Observation {
        state: State::Connected,
        uid: Some(format!("00000000-0000-0000-0000-{number:012}")),
        version: Some("v1.36.3".to_owned()),
        apis: Some(Arc::clone(apis)),
        admission: Admission::Admitted,
        ..Observation::default()
    })
}

fn apis() -> Arc<ApiList> {
    let kinds = [
        ("", "v1", "Namespace", "namespaces", false),
        ("", "v1", "Secret", "secrets", true),
        ("apps", "v1", "Deployment", "deployments", true),
    ];
    let resources = kinds
        .into_iter()
        .map(|(group, version, kind, plural, namespaced)| ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced,
            listable: true,
            watchable: true,
        })
        .collect();
    Arc::new(ApiList { resources })
}

pub struct Process {
    pub ctx: Context,
    hub: Arc<dyn ApiServer>,
    writers: Writers,
    _charts: tempfile::TempDir,
}

impl Process {
    pub async fn start(bed: &Bed, clusters: usize) -> Result<Self> {
        let hub: Arc<dyn ApiServer> = Arc::new(HubApi::new(bed.hub().client().await?));
        let (random, charts) = (Arc::new(SystemRandom::new()), tempfile::tempdir()?);
        let installation = installation::load(hub.as_ref(), NAMESPACE, random.as_ref()).await?;
        let apis = apis();
        let known = |n: usize| (ClusterId::new(fleet::PROVIDER, &fleet::cluster(n)), observed(n, &apis));
        let known = Arc::new(Known((0..clusters).map(known).collect()));
        let resolver = Arc::new(SystemResolver::new().map_err(anyhow::Error::msg)?);
        let dialer = Dialer::new(DialerSettings::default(), resolver);
        let charts_store = ChartStore::new(charts.path().join("charts"), dialer, ChartLimits::default());
        let (stores, writers) = stores();
        let charts_store =
            charts_store.map_err(|error| anyhow!("the cache of charts cannot be used: {error}"))?;
        let world =
            World { hub: Arc::clone(&hub), edges: known.clone(), clock: Arc::new(SystemClock), random };
        let keys = Arc::new(installation);
        let reached = HubContext { epoch: 1, ..HubContext::new(world, stores, known, keys, NAMESPACE) };
        let ctx = Context::new(reached, Revisions::default(), charts_store, Arc::default());
        Ok(Self { ctx, hub, writers, _charts: charts })
    }

    /// Reads what the watches would have shown.
    pub async fn see(&mut self) -> Result<()> {
        let hub = Arc::clone(&self.hub);
        list(hub.as_ref(), &mut self.writers.providers, "/apis/emco.io/v1alpha1/clusterproviders").await?;
        list(hub.as_ref(), &mut self.writers.clusters, "/apis/emco.io/v1alpha1/clusters").await?;
        list(hub.as_ref(), &mut self.writers.projects, "/apis/emco.io/v1alpha1/projects").await?;
        list(hub.as_ref(), &mut self.writers.clouds, "/apis/emco.io/v1alpha1/logicalclouds").await?;
        list(hub.as_ref(), &mut self.writers.apps, "/apis/emco.io/v1alpha1/compositeapps").await?;
        list(hub.as_ref(), &mut self.writers.contexts, "/apis/emco.io/v1alpha1/appcontexts").await?;
        list(hub.as_ref(), &mut self.writers.shards, "/apis/emco.io/v1alpha1/syncshards").await?;
        list(hub.as_ref(), &mut self.writers.digs, "/apis/emco.io/v1alpha1/deploymentintentgroups").await?;
        list(hub.as_ref(), &mut self.writers.namespaces, "/api/v1/namespaces").await
    }

    /// The chart is fetched, and its digest is in the app's status.
    pub async fn prepare(&mut self) -> Result<()> {
        for _ in 0..2 {
            self.see().await?;
            let done = composite_app::reconcile(&self.ctx, fleet::PROJECT, "shop").await;
            done.map_err(|error| anyhow!("the chart is not read: {error}"))?;
        }
        self.see().await
    }

    pub fn deployment(&self) -> Result<Arc<DeploymentIntentGroup>> {
        self.ctx.stores.digs.state().pop().context("there is no deployment")
    }
}

async fn list<K>(hub: &dyn ApiServer, writer: &mut Feed<K>, path: &'static str) -> Result<()>
where
    K: Lookup<DynamicType = ()> + Clone + Debug + DeserializeOwned + 'static,
{
    let mut answer = hub.get_opt(path).await?.with_context(|| format!("there is no {path}"))?;
    writer.apply_watcher_event(&Event::Init);
    if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
        for item in items {
            writer.apply_watcher_event(&Event::InitApply(serde_json::from_value(item)?));
        }
    }
    writer.apply_watcher_event(&Event::InitDone);
    Ok(())
}
