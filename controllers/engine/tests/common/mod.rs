//! Makes a snapshot for the planner of a case in YAML. Goldens and laws share it; charts are built in memory.
//!
//! (`mod.rs`, for Cargo would run `tests/common.rs` as a test.)

#![allow(dead_code)] // each test file uses a part

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::CompositeApp;
use emco_crds::cluster::PolicySupport;
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::cloud::CloudFacts;
use emco_engine::hardware::{self, Node, NodeFacts, Read, amounts};
use emco_engine::identity::ClusterId;
use emco_engine::plan::{self, Plan};
use emco_engine::refusal::Refusal;
use emco_engine::role::{Derived, Reach};
use emco_engine::snapshot::{
    ChartFacts, ClusterFacts, Installation, Running, Scheduling, Snapshot, Source, SourceKey,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Everything a case may say. What it leaves out is a project `team-a`, a cloud `edge` with all clusters, and nothing
/// that runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What the case shows, for readers.
    pub about: String,
    /// `spec` of the group.
    pub dig: Value,
    /// Name and files of each app's chart.
    pub charts: BTreeMap<String, BTreeMap<String, String>>,
    /// Apps whose charts' schemas are skipped.
    #[serde(default)]
    pub unchecked: BTreeSet<String>,
    /// `spec` of the profile.
    pub profile: Option<Value>,
    /// `spec` of each `GenericActionIntent`, by name.
    #[serde(default)]
    pub intents: BTreeMap<String, Value>,
    /// `spec` of each `HardwareIntent`, by name.
    #[serde(default)]
    pub hardware: BTreeMap<String, Value>,
    /// `spec` of each `TrafficGroupIntent`, by name.
    #[serde(default)]
    pub traffic: BTreeMap<String, Value>,
    /// Clusters by id.
    pub clusters: BTreeMap<String, ClusterCase>,
    /// `Kind/name/key` to text.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// Namespace on the clusters.
    pub namespace: Option<String>,
    /// Level of the logical cloud.
    pub level: Option<String>,
    /// `isolation` of the logical cloud.
    pub isolation: Option<Value>,
    /// The rights of its account follow what is deployed.
    #[serde(default)]
    pub derived: bool,
    /// Further namespaces that its permissions name.
    #[serde(default)]
    pub reaches: BTreeSet<String>,
    /// Most objects of an app on one cluster.
    pub objects_per_app: Option<usize>,
    /// Over the fields above, to make what ran before.
    pub before: Option<Value>,
    /// Nothing is found for these: `compositeApp`, `profile`, `cloud`, or an app's chart.
    #[serde(default)]
    pub missing: BTreeSet<String>,
    /// `status` of the composite app.
    pub app_status: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterCase {
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    pub scheduling: Option<String>,
    /// `v1.36.3` if absent; `never` for a cluster that was never contacted.
    pub version: Option<String>,
    #[serde(default)]
    pub unreachable: bool,
    /// `git`: it is written to through a branch.
    pub access: Option<String>,
    #[serde(default)]
    pub outside: bool,
    /// What its owner states: `Enforced` or `NotEnforced`.
    pub network_policy: Option<String>,
    /// Kinds it serves besides the usual ones, as `group/version/Kind` (namespaced) or `group/version/Kind!` (not).
    #[serde(default)]
    pub serves: Vec<String>,
    /// Its nodes by name, as the API server has them, with what their Pods request under `requested`; absent = nobody asks for them.
    pub nodes: Option<BTreeMap<String, Value>>,
    /// Its Pods may not be listed.
    #[serde(default)]
    pub pods_forbidden: bool,
    /// What other deployments were just given there.
    #[serde(default)]
    pub given: Vec<Value>,
}

impl Case {
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_yaml::from_str(text).map_err(|error| error.to_string())
    }

    /// The plan; where the case says what was `before`, that is planned first and runs, completely applied.
    pub fn plan(&self) -> Result<Plan, Box<Refusal>> {
        plan::plan(&self.snapshot(self.running()?))
    }

    /// What runs, if the case says so.
    pub fn running(&self) -> Result<Option<Running>, Box<Refusal>> {
        let Some(before) = &self.before else { return Ok(None) };
        let earlier = self.earlier(before);
        Ok(Some(earlier.run(&plan::plan(&earlier.snapshot(None))?)))
    }

    /// What a plan becomes once it runs.
    pub fn run(&self, plan: &Plan) -> Running {
        Running {
            revision: 1,
            plan_digest: plan.plan_digest.clone(),
            inputs_digest: plan.inputs_digest.clone(),
            composite_app: self.dig["compositeAppRef"]["name"].as_str().unwrap_or("shop").to_owned(),
            assignment: plan.assignment.clone(),
            sets: plan.sets.clone(),
            parts: BTreeMap::new(),
            waves: plan.waves.clone(),
        }
    }

    fn earlier(&self, before: &Value) -> Self {
        let mut case = self.clone();
        case.before = None;
        case.objects_per_app = None;
        for (field, value) in before.as_object().unwrap() {
            let text = serde_yaml::to_string(value).unwrap();
            match field.as_str() {
                "dig" => case.dig = value.clone(),
                "profile" => case.profile = Some(value.clone()),
                "clusters" => case.clusters = serde_yaml::from_str(&text).unwrap(),
                "intents" => case.intents = serde_yaml::from_str(&text).unwrap(),
                "hardware" => case.hardware = serde_yaml::from_str(&text).unwrap(),
                "traffic" => case.traffic = serde_yaml::from_str(&text).unwrap(),
                "charts" => case.charts = serde_yaml::from_str(&text).unwrap(),
                "sources" => case.sources = serde_yaml::from_str(&text).unwrap(),
                other => panic!("before.{other} is not known"),
            }
        }
        case
    }

    pub fn snapshot(&self, running: Option<Running>) -> Snapshot {
        let mut spec = self.dig.clone();
        let name = spec["compositeAppRef"]["name"].as_str().unwrap_or("shop").to_owned();
        spec["compositeAppRef"] = json!({"name": name});
        spec["logicalCloudRef"] = json!({"name": "edge"});
        if self.profile.is_some() || self.missing.contains("profile") {
            spec["compositeProfileRef"] = json!({"name": "prod"});
        }
        let apps: Vec<_> = self
            .charts
            .keys()
            .map(|app| {
                let mut chart = json!({"configMapRef": {"name": format!("{app}-chart")}});
                if self.unchecked.contains(app) {
                    chart["skipSchemaValidation"] = true.into();
                }
                json!({"name": app, "chart": chart})
            })
            .collect();
        let clusters: BTreeMap<_, _> = self.clusters.iter().map(|(id, case)| facts(id, case)).collect();
        let installed = running.iter().flat_map(|running| {
            let apps = running.assignment.iter();
            apps.flat_map(|(cluster, apps)| apps.keys().map(move |app| (cluster.clone(), app.clone())))
        });
        Snapshot {
            installation: Arc::new(Installation {
                id: "test".to_owned(),
                digest_key: [1; 32],
                random_key: [2; 32],
            }),
            project: "team-a".to_owned(),
            objects_per_app: self.objects_per_app,
            dig: Arc::new(object("DeploymentIntentGroup", "shop", spec)),
            composite_app: self.found("compositeApp").then(|| {
                let mut app: CompositeApp = object("CompositeApp", &name, json!({"apps": apps}));
                app.status = self.app_status.clone().map(|status| serde_json::from_value(status).unwrap());
                Arc::new(app)
            }),
            profile: self
                .profile
                .clone()
                .map(|profile| Arc::new(object("CompositeProfile", "prod", profile))),
            intents: intents("GenericActionIntent", &self.intents),
            hardware: intents("HardwareIntent", &self.hardware),
            traffic: intents("TrafficGroupIntent", &self.traffic),
            cloud: self.found("cloud").then(|| CloudFacts {
                name: "edge".to_owned(),
                level: self.level.clone().unwrap_or_else(|| "Admin".to_owned()),
                namespace: self.namespace.clone().unwrap_or_else(|| "shop".to_owned()),
                reach: Reach {
                    namespaces: self.reaches.clone(),
                    cluster: self.level.as_deref().is_none_or(|level| level == "Admin"),
                },
                derived: self.derived.then(|| Derived {
                    namespaces: [self.namespace.clone().unwrap_or_else(|| "shop".to_owned())].into(),
                    cluster: false,
                }),
                isolation: self
                    .isolation
                    .clone()
                    .map(|isolation| serde_json::from_value(isolation).unwrap())
                    .unwrap_or_default(),
                clusters: self
                    .clusters
                    .iter()
                    .filter(|(_, case)| !case.outside)
                    .map(|(id, _)| ClusterId::parse(id).unwrap())
                    .collect(),
            }),
            clusters,
            charts: self
                .charts
                .iter()
                .filter(|(app, _)| self.found(app))
                .map(|(app, files)| (app.clone(), chart(app, files)))
                .collect(),
            sources: self.sources.iter().map(|(key, text)| source(key, text)).collect(),
            installed: installed.collect(),
            leaving: BTreeMap::new(),
            running,
            waiting: None,
            now: 1_800_000_000,
        }
    }

    fn found(&self, what: &str) -> bool {
        !self.missing.contains(what)
    }
}

/// `ConfigMap/web-values/values.yaml`; the text `KEY MISSING` stands for an object without the key.
fn source(key: &str, text: &str) -> (SourceKey, Source) {
    let mut parts = key.splitn(3, '/').map(str::to_owned);
    let mut part = || parts.next().unwrap();
    let key = SourceKey { kind: part(), name: part(), key: part() };
    let found = if text == "KEY MISSING" { Source::KeyMissing } else { Source::Found(text.to_owned()) };
    (key, found)
}

/// Intents of one kind with these specs, by name.
fn intents<K: serde::de::DeserializeOwned>(
    kind: &str,
    specs: &BTreeMap<String, Value>,
) -> BTreeMap<String, Arc<K>> {
    specs.iter().map(|(name, spec)| (name.clone(), Arc::new(object(kind, name, spec.clone())))).collect()
}

#[allow(clippy::needless_pass_by_value)] // json! literals
pub fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value) -> K {
    serde_json::from_value(json!({
        "apiVersion": "emco.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": spec,
    }))
    .unwrap_or_else(|error| panic!("{kind} {name}: {error}"))
}

/// A chart of these files; `Chart.yaml` is made.
pub fn chart(name: &str, files: &BTreeMap<String, String>) -> ChartFacts {
    let mut all = vec![(
        "Chart.yaml".to_owned(),
        format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n").into_bytes(),
    )];
    for (path, text) in files {
        if path == "Chart.yaml" {
            all.clear();
        }
        all.push((path.clone(), text.clone().into_bytes()));
    }
    let digest = emco_engine::canonical::sha256("test\0", &json!(files));
    let chart = emco_helm::Chart::from_files(all, &emco_helm::Limits::default()).unwrap();
    ChartFacts { digest, compiled: Arc::new(emco_helm::Compiled::new(chart).unwrap()) }
}

fn facts(id: &str, case: &ClusterCase) -> (ClusterId, ClusterFacts) {
    let id = ClusterId::parse(id).unwrap();
    let known = case.version.as_deref() != Some("never");
    let version = case.version.clone().unwrap_or_else(|| "v1.36.3".to_owned());
    let scheduling = match case.scheduling.as_deref() {
        None | Some("Enabled") => Scheduling::Enabled,
        Some("Cordoned") => Scheduling::Cordoned,
        Some("Drained") => Scheduling::Drained,
        Some(other) => panic!("scheduling {other}"),
    };
    let facts = ClusterFacts {
        id: id.clone(),
        labels: case.labels.clone(),
        properties: case.properties.clone(),
        scheduling,
        reachable: !case.unreachable,
        by_git: case.access.as_deref() == Some("git"),
        uid: known.then(|| format!("uid-{id}")),
        kubernetes_version: known.then_some(version),
        apis: known.then(|| Arc::new(apis(&case.serves))),
        nodes: case.nodes.as_ref().map(|nodes| Arc::new(node_facts(nodes, case))),
        network_policy: case.network_policy.as_deref().map(policy_support),
    };
    (id, facts)
}

/// Nodes as a cluster has them: `{labels, allocatable, requested, closed}` each.
fn node_facts(nodes: &BTreeMap<String, Value>, case: &ClusterCase) -> NodeFacts {
    let read = |node: &Value| {
        Node::read(
            &json!({
                "metadata": {"labels": node["labels"]},
                "spec": {"unschedulable": node["closed"] == true},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": node["allocatable"]},
            }),
            |_| true,
        )
    };
    let requested = nodes.iter().map(|(name, node)| (name.clone(), amounts(node.get("requested"))));
    let given = case.given.iter().map(|spec| {
        let spec = serde_json::from_value(json!({"consumers": [spec]})).unwrap();
        Arc::clone(&hardware::demands("theirs", &spec).unwrap()[0].1)
    });
    NodeFacts {
        nodes: Read::Done(Arc::new(nodes.iter().map(|(name, node)| (name.clone(), read(node))).collect())),
        requested: if case.pods_forbidden {
            Read::Forbidden
        } else {
            Read::Done(Arc::new(requested.collect()))
        },
        given: given.collect(),
    }
}

fn policy_support(text: &str) -> PolicySupport {
    match text {
        "Enforced" => PolicySupport::Enforced,
        "NotEnforced" => PolicySupport::NotEnforced,
        other => panic!("networkPolicy {other}"),
    }
}

/// What every cluster of the tests serves, and some more.
pub fn apis(more: &[String]) -> ApiList {
    let usual = [
        "v1/Namespace!",
        "v1/ConfigMap",
        "v1/Secret",
        "v1/Service",
        "v1/ServiceAccount",
        "v1/Pod",
        "apps/v1/Deployment",
        "apps/v1/StatefulSet",
        "batch/v1/Job",
        "networking.k8s.io/v1/NetworkPolicy",
        "rbac.authorization.k8s.io/v1/ClusterRole!",
        "apiextensions.k8s.io/v1/CustomResourceDefinition!",
    ];
    let all = usual.iter().map(|text| (*text).to_owned()).chain(more.iter().cloned());
    let resource = |text: String| {
        let (text, namespaced) = match text.strip_suffix('!') {
            Some(text) => (text.to_owned(), false),
            None => (text, true),
        };
        let parts: Vec<_> = text.split('/').collect();
        let (group, version, kind) = match parts[..] {
            [version, kind] => ("", version, kind),
            [group, version, kind] => (group, version, kind),
            _ => panic!("{text}"),
        };
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced,
            listable: true,
            watchable: true,
        }
    };
    ApiList { resources: all.map(resource).collect() }
}
