//! Digests the inputs of a deployment from what people wrote alone: without clusters, and without what is in its charts.
//!
//! It is the same digest that the operator works out, because the same code does it: the charts are stood in for by an empty one, of
//! which nothing is in the digest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::conditions::types::RESOLVED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{
    CompositeApp, CompositeProfile, DeploymentIntentGroup, GenericActionIntent, HardwareIntent,
    TrafficGroupIntent,
};
use emco_helm::{Chart, Compiled, Limits};
use serde_json::json;

use crate::cloud::CloudFacts;
use crate::plan;
use crate::refusal::Refusal;
use crate::role::Reach;
use crate::snapshot::{ChartFacts, Installation, Snapshot, Source, SourceKey};

/// What people wrote.
pub struct Written {
    /// The deployment.
    pub dig: Arc<DeploymentIntentGroup>,
    /// `None`: there is none of that name.
    pub composite_app: Option<Arc<CompositeApp>>,
    /// `None` where the deployment names none, or there is none of that name.
    pub profile: Option<Arc<CompositeProfile>>,
    /// Generic actions that it lists, by name; those that there are not are absent.
    pub intents: BTreeMap<String, Arc<GenericActionIntent>>,
    /// The same of those that say what is needed of nodes.
    pub hardware: BTreeMap<String, Arc<HardwareIntent>>,
    /// The same of traffic.
    pub traffic: BTreeMap<String, Arc<TrafficGroupIntent>>,
    /// Level of its logical cloud, and the namespace on clusters.
    pub cloud: (String, String),
    /// Digests of chart archives (`sha256:...`), by app.
    pub charts: BTreeMap<String, String>,
    /// What `valuesFrom`, profile files and intents found. A Secret has no place here: its digest has a key that only the operator has.
    pub sources: BTreeMap<SourceKey, Source>,
}

/// `sha256:...`; or why the operator would refuse it.
pub fn inputs_digest(written: Written) -> Result<String, Box<Refusal>> {
    let Written {
        dig,
        composite_app,
        profile,
        intents,
        hardware,
        traffic,
        cloud: (level, namespace),
        charts,
        sources,
    } = written;
    let name = dig.spec.logical_cloud_ref.name.clone();
    let charts: BTreeMap<String, ChartFacts> = charts
        .into_iter()
        .map(|(app, digest)| {
            let compiled = stand_in(profile.as_deref(), &app)?;
            Ok((app, ChartFacts { digest, compiled }))
        })
        .collect::<Result<_, Box<Refusal>>>()?;
    plan::inputs_digest(&Snapshot {
        installation: Arc::new(Installation { id: String::new(), digest_key: [0; 32], random_key: [0; 32] }),
        project: String::new(),
        objects_per_app: None,
        dig,
        composite_app,
        profile,
        intents,
        hardware,
        traffic,
        cloud: Some(CloudFacts {
            name,
            level,
            namespace,
            reach: Reach::default(),
            derived: None,
            isolation: emco_crds::logical_cloud::Isolation::None,
            clusters: BTreeSet::new(),
        }),
        clusters: BTreeMap::new(),
        charts,
        sources,
        running: None,
        waiting: None,
        installed: BTreeSet::new(),
        leaving: BTreeMap::new(),
        now: 0,
    })
}

/// A chart without templates, which has the dependencies that the profile puts files into.
fn stand_in(profile: Option<&CompositeProfile>, app: &str) -> Result<Arc<Compiled>, Box<Refusal>> {
    let entry = profile.and_then(|profile| profile.spec.apps.iter().find(|entry| entry.app == app));
    let mut folders = BTreeSet::from([(String::new(), "chart")]);
    for file in entry.iter().flat_map(|entry| &entry.files) {
        let (mut folder, mut rest) = (String::new(), file.path.as_str());
        while let Some((name, below)) = rest.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
            folder.push_str(&format!("charts/{name}/"));
            folders.insert((folder.clone(), name));
            rest = below;
        }
    }
    let chart = |(folder, name): &(String, &str)| {
        let text = json!({"apiVersion": "v2", "name": name, "version": "0.0.0"}).to_string();
        (format!("{folder}Chart.yaml"), text.into_bytes())
    };
    let chart = Chart::from_files(folders.iter().map(chart).collect(), &Limits::default());
    let refused = |why: String| {
        let message = format!(
            "app {app}: the files that its profile adds (spec.apps[].files) fit into no chart: {why}"
        );
        Refusal::new(RESOLVED, Reason::TemplateError, message)
    };
    let compiled = Compiled::new(chart.map_err(|error| refused(error.to_string()))?);
    compiled.map(Arc::new).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_profile_may_be_put_into_dependencies() {
        let read = |value| serde_json::from_value::<CompositeProfile>(value).unwrap();
        let file = |path: &str| json!({"path": path, "configMapKeyRef": {"name": "files", "key": "text"}});
        let files =
            ["charts/db/templates/a.yaml", "charts/db/charts/log/values.yaml", "values.yaml"].map(file);
        let profile = read(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "CompositeProfile", "metadata": {"name": "p"},
            "spec": {"apps": [{"app": "web", "files": files}]},
        }));
        let chart = stand_in(Some(&profile), "web").unwrap();
        let files = files.each_ref().map(|file| (file["path"].as_str().unwrap(), "a: 1".as_bytes()));
        chart.chart().with_files(files, &Limits::default()).unwrap();
        let other = stand_in(Some(&profile), "other").unwrap();
        assert!(other.chart().with_files(files, &Limits::default()).is_err());
    }
}
