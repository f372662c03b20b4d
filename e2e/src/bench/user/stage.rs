//! A hub, two full edges behind lines that can be cut, and a deployment of 20 objects on both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, CompositeApp, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::{Audit, Bed, BedSpec, NodeSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator, is, settled};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::chart;

pub const EDGES: [&str; 2] = ["berlin", "oslo"];
pub const PROVIDER: &str = "acme";
/// Project, its namespace and its deployment.
pub const NAME: &str = "shop";
pub const EVERYWHERE: &str = "placement: {allOf: [{selector: {}}]}";
const OBJECTS: i64 = 20;

/// Everything that is measured on.
pub struct Stage {
    pub bed: Bed,
    pub operator: Operator,
    pub program: PathBuf,
    digs: Api<DeploymentIntentGroup>,
}

impl Stage {
    /// A bed whose deployment runs.
    pub async fn start(program: &Path) -> Result<Self> {
        let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
        let edge = |name: &str| {
            let nodes = (1..=2).map(|number| NodeSpec::new(&format!("{name}-{number}")));
            PlaneSpec::edge(name).nodes(nodes.collect()).proxied().audit(Audit::Writes)
        };
        let spec = EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name)));
        let bed = Bed::start(spec).await?;
        let operator = Operator::start(&bed, program).await?;
        operator::unless_ended(operator.process(), Box::pin(prepare(&bed))).await?;
        let digs = bed.hub().api(NAME).await?;
        Ok(Self { bed, operator, program: program.to_owned(), digs })
    }

    /// A process that did nothing yet, with everything as it should be.
    pub async fn afresh(&mut self) -> Result<()> {
        self.operator.restart(&self.bed).await?;
        for edge in EDGES {
            self.reachable(edge, "True").await?;
        }
        let seen = self.edit(&json!({"version": "begin"})).await?;
        self.applied(seen).await
    }

    /// Changes values of the deployment; its new generation.
    pub async fn edit(&self, values: &Value) -> Result<i64> {
        let patch = json!({"spec": {"overrideValues": [{"app": chart::WEB, "values": values}]}});
        let changed = self.digs.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(changed.metadata.generation.unwrap_or_default())
    }

    /// Waits for what the deployment says of this generation.
    pub async fn says<T>(
        &self,
        generation: i64,
        mut check: impl FnMut(&DeploymentIntentGroup) -> Result<T, String>,
    ) -> Result<T> {
        operator::wait(&self.bed, NAME, NAME, |dig: &DeploymentIntentGroup| {
            let seen = dig.status.as_ref().and_then(|status| status.observed_generation);
            if seen != Some(generation) {
                return Err(format!("generation {generation} was not looked at yet, {seen:?} was"));
            }
            check(dig)
        })
        .await
    }

    /// Waits until a generation runs, its Pods ready, and nothing is under way.
    pub async fn applied(&self, generation: i64) -> Result<()> {
        self.says(generation, settled).await
    }

    /// Waits until a Cluster is reachable (`True`) or not.
    pub async fn reachable(&self, edge: &str, wanted: &str) -> Result<()> {
        operator::wait::<Cluster, _>(&self.bed, PROVIDER, edge, |cluster| {
            is(cluster.status.as_ref(), types::READY, wanted)
        })
        .await
    }

    /// What was said to be ready is: an edge has this version, and its Pods are there.
    pub async fn check(&self, version: &str) -> Result<()> {
        for edge in EDGES {
            let found = self.bed.edge(edge).api::<Deployment>(NAME).await?.get("shop-web").await?;
            let annotations = found.spec.and_then(|spec| spec.template.metadata?.annotations);
            let has = annotations.unwrap_or_default().remove("version").unwrap_or_default();
            ensure!(has == version, "{edge} has version {has} of {version} when the hub says it is ready");
            let status = found.status.unwrap_or_default();
            ensure!(
                status.observed_generation == found.metadata.generation && status.updated_replicas == Some(2),
                "the Pods of version {version} are not on {edge} when the hub says they are ready: {status:?}"
            );
        }
        Ok(())
    }

    /// Ends it all.
    pub async fn end(self) -> Result<()> {
        drop(self.operator);
        self.bed.end().await
    }
}

/// Seconds since a moment.
pub fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

/// A moment between two measurements, so that the work of one does not delay the next.
pub const PAUSE: Duration = Duration::from_millis(500);

async fn prepare(bed: &Bed) -> Result<()> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    operator::project(bed, NAME).await?;
    operator::wait::<LogicalCloud, _>(bed, NAME, "default", |cloud| {
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await?;
    let web = chart::web()?;
    operator::chart_map(bed, NAME, "charts", &[web.clone(), chart::large()?]).await?;
    bed.hub().kubectl().apply(&operator::deployment(NAME, NAME, &[web], EVERYWHERE)).await?;
    operator::wait::<CompositeApp, _>(bed, NAME, NAME, |app| is(app.status.as_ref(), types::READY, "True"))
        .await?;
    let dig = operator::deployed(bed, NAME, NAME, 1).await?;
    let ready = dig.status.as_ref().and_then(|status| status.summary.as_ref()?.resources.clone());
    let wanted = format!("{0}/{0}", OBJECTS * i64::try_from(EDGES.len())?);
    ensure!(ready.as_deref() == Some(wanted.as_str()), "{ready:?} objects are ready instead of {wanted}");
    Ok(())
}
