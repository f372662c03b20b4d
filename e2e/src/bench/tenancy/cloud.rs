//! Makes logical clouds of level Standard with a quota and the default permissions, one after the other, and removes them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{LogicalCloud, Project};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{self, is};
use emco_e2e::wait::{wait_for_some, wait_until_gone};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher::Config;
use serde_json::json;

/// Project and its namespace on the hub.
pub const PROJECT: &str = "tenancy";
/// What a logical cloud has on each cluster, as kubectl names the kinds.
pub const KINDS: &str = "namespaces,resourcequotas,rolebindings,serviceaccounts";
const QUOTA: &str = "size";
/// For a logical cloud to be ready, or gone.
const PATIENCE: Duration = Duration::from_mins(3);

/// Where logical clouds are made.
pub struct Clouds {
    api: Api<LogicalCloud>,
    /// That each of them has.
    clusters: usize,
}

/// A logical cloud that is ready.
pub struct Made {
    pub name: String,
    /// When its creation was asked for.
    pub begun: Instant,
    /// From then until Ready was seen.
    pub took: Duration,
}

impl Clouds {
    /// Makes the project, without a logical cloud.
    pub async fn of(bed: &Bed, clusters: usize) -> Result<Self> {
        bed.hub()
            .kubectl()
            .apply(&format!(
                "
apiVersion: v1
kind: Namespace
metadata: {{name: {PROJECT}, labels: {{emco.io/project: {PROJECT}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {PROJECT}}}
spec: {{}}
"
            ))
            .await?;
        let projects: Api<Project> = Api::all(bed.hub().client().await?);
        operator::wait_in(projects, PROJECT, |project: &Project| {
            is(project.status.as_ref(), types::READY, "True")
        })
        .await?;
        Ok(Self { api: bed.hub().api(PROJECT).await?, clusters })
    }

    /// Makes one, and waits until it is ready on all clusters.
    pub async fn make(&self, number: usize) -> Result<Made> {
        let name = format!("cloud-{number}");
        let cloud = definition(&name)?;
        let begun = Instant::now();
        self.api.create(&PostParams::default(), &cloud).await?;
        let config = Config::default().fields(&format!("metadata.name={name}"));
        let what = format!("LogicalCloud {name} to be ready");
        let ready = wait_for_some(self.api.clone(), config, PATIENCE, &what, |clouds| {
            let cloud = clouds.values().next().ok_or("it does not exist")?;
            is_ready(cloud).map(|()| cloud.clone())
        })
        .await?;
        let took = begun.elapsed();
        is_everywhere(&ready, self.clusters)?;
        Ok(Made { name, begun, took })
    }

    /// Deletes it, and waits until it is gone from the hub: how long that took.
    pub async fn remove(&self, made: &Made) -> Result<Duration> {
        let begun = Instant::now();
        self.api.delete(&made.name, &DeleteParams::default()).await?;
        wait_until_gone(self.api.clone(), &made.name, PATIENCE).await?;
        Ok(begun.elapsed())
    }
}

impl Made {
    /// Its namespace on the clusters.
    pub fn namespace(&self) -> String {
        namespace(&self.name)
    }

    /// What it has on each cluster, as `KIND/NAMESPACE/NAME` or `KIND/NAME`, sorted.
    pub fn objects(&self) -> Vec<String> {
        let (name, namespace) = (&self.name, self.namespace());
        vec![
            format!("Namespace/{namespace}"),
            format!("ResourceQuota/{namespace}/emco-{QUOTA}"),
            format!("RoleBinding/{namespace}/emco-{name}"),
            format!("RoleBinding/{namespace}/emco:hub"),
            format!("ServiceAccount/{namespace}/emco-{name}"),
        ]
    }
}

fn namespace(name: &str) -> String {
    format!("{name}-there")
}

fn definition(name: &str) -> Result<LogicalCloud> {
    let quota = json!({"name": QUOTA, "hard": {"pods": "20", "requests.cpu": "4", "requests.memory": "8Gi"}});
    let spec = json!({"level": "Standard", "namespace": namespace(name), "quotas": [quota]});
    let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud",
        "metadata": {"name": name, "namespace": PROJECT}, "spec": spec});
    serde_json::from_value(object).context("a logical cloud of our own")
}

/// Whether it says of its present definition that it is ready.
fn is_ready(cloud: &LogicalCloud) -> Result<(), String> {
    let seen = cloud.status.as_ref().and_then(|status| status.observed_generation);
    if seen.is_none() || seen != cloud.metadata.generation {
        return Err("its definition was not looked at yet".to_owned());
    }
    is(cloud.status.as_ref(), types::READY, "True")
}

/// Ready on fewer clusters would be measured as fast.
fn is_everywhere(cloud: &LogicalCloud, clusters: usize) -> Result<()> {
    let counted = cloud.status.as_ref().and_then(|status| status.clusters.clone()).unwrap_or_default();
    let wanted = i64::try_from(clusters)?;
    ensure!(
        (counted.ready, counted.total) == (wanted, wanted),
        "LogicalCloud {} is ready on {} of {} clusters instead of {wanted} of {wanted}",
        cloud.metadata.name.as_deref().unwrap_or_default(),
        counted.ready,
        counted.total
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(observed: i64, ready: &str, counted: (i64, i64)) -> LogicalCloud {
        let mut cloud = definition("one").unwrap();
        cloud.metadata.generation = Some(2);
        let condition = json!({"type": "Ready", "status": ready, "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-11-27T00:00:00Z"});
        let status = json!({"observedGeneration": observed, "conditions": [condition],
            "clusters": {"ready": counted.0, "total": counted.1, "failed": 0, "unreachable": 0, "notGranted": 0}});
        cloud.status = Some(serde_json::from_value(status).unwrap());
        cloud
    }

    #[test]
    fn a_logical_cloud_is_ready_when_its_present_definition_is() {
        assert_eq!(is_ready(&cloud(2, "True", (8, 8))), Ok(()));
        assert!(is_ready(&cloud(1, "True", (8, 8))).is_err());
        assert!(is_ready(&cloud(2, "False", (8, 8))).is_err());
        assert!(is_ready(&definition("one").unwrap()).is_err());
    }

    #[test]
    fn ready_on_fewer_clusters_than_there_are_is_an_error() {
        is_everywhere(&cloud(2, "True", (8, 8)), 8).unwrap();
        let fewer = is_everywhere(&cloud(2, "True", (7, 7)), 8).unwrap_err();
        assert_eq!(fewer.to_string(), "LogicalCloud one is ready on 7 of 7 clusters instead of 8 of 8");
        assert!(is_everywhere(&definition("one").unwrap(), 8).is_err());
    }
}
