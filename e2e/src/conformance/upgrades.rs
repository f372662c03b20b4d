//! Renders every chart of the corpus as an upgrade, with each of its files of values, beside Helm's own dry run on a server.
//!
//! A chart is installed as a plan: its stored set is what `lookup` answers from. The objects of it that the upgrade looks up are put
//! on the reference plane, where Helm's `lookup` finds the same. Then both render the upgrade. Where they differ, both render once
//! more: leaves in which two renderings by Helm differ are random and not compared. A value that was drawn by the installation
//! and is looked up is the same in both, so it is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::cloud::CloudFacts;
use emco_engine::identity::ClusterId;
use emco_engine::plan::lookup::{Answers, Completeness, Holdings};
use emco_engine::plan::plan;
use emco_engine::set::ManifestSet;
use emco_engine::snapshot::{ChartFacts, ClusterFacts, Installation, Scheduling, Snapshot};
use emco_helm::{
    Capabilities, Chart, Compiled, Found, Limits, Lookup, LookupRead, Release, RenderRequest, yaml,
};
use futures::StreamExt as _;
use kube::discovery::{Discovery, Scope, verbs};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::corpus::Case;
use super::reference::{self, Documents};
use super::{MOST_TOLD, REFERENCE, refusal, same};

/// The time of renderings, Unix seconds.
const NOW: i64 = 1_800_000_000;
/// One of every unit that templates print, in seconds.
const LATER: i64 = 86_400 + 3_600 + 60 + 1;
const RELEASE: &str = "myrel";
/// What both sides take for the version of the cluster.
pub const KUBE_VERSION: &str = "1.32.0";
/// Charts at a time: Helm asks its cluster while others are rendered.
const AT_ONCE: usize = 4;

/// What became of one chart.
enum Outcome {
    /// Rendered alike.
    Same {
        /// It looks something up that it has.
        looks_up: bool,
    },
    /// Helm refuses it, and so do we, for the same.
    BothRefuse(String),
    /// Helm renders it, and we refuse it on purpose.
    OnPurpose(String),
}

/// Renders all of them; an error when one is not as Helm renders it.
pub async fn compare(bed: &Arc<Bed>, cases: Vec<Case>) -> Result<()> {
    let start = Instant::now();
    let apis = Arc::new(apis(bed).await?);
    let alone = Arc::new(RwLock::new(()));
    // Each in a task of its own: they compute, and one task would have one processor.
    let tried = cases.into_iter().enumerate().map(|(number, case)| {
        let (bed, apis, alone) = (Arc::clone(bed), Arc::clone(&apis), Arc::clone(&alone));
        tokio::spawn(async move {
            let outcome = Box::pin(try_case(&bed, &case, number, &apis, &alone)).await;
            (case, outcome)
        })
    });
    let mut tried = futures::stream::iter(tried).buffer_unordered(AT_ONCE);
    let (mut same, mut looked_up, mut refused, mut on_purpose, mut failed) = (0, 0, 0, 0, 0);
    while let Some(ended) = tried.next().await {
        let (case, outcome) = ended.context("a chart's task ended in the middle")?;
        match outcome {
            Ok(Outcome::Same { looks_up }) => {
                same += 1;
                looked_up += usize::from(looks_up);
            }
            Ok(Outcome::BothRefuse(what)) => {
                refused += 1;
                println!("refused {}: {what}", case.name);
            }
            Ok(Outcome::OnPurpose(what)) => {
                on_purpose += 1;
                println!("refused on purpose {}: {what}", case.name);
            }
            Err(error) => {
                failed += 1;
                println!("FAILED  {}: {error:#}", case.name);
            }
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "{same} upgrades rendered as by Helm ({looked_up} with lookups), {refused} refused with its words, {on_purpose} on purpose, {failed} failed, {took:.1} s"
    );
    ensure!(failed == 0, "{failed} upgrades are not rendered as Helm renders them");
    Ok(())
}

async fn try_case(
    bed: &Bed,
    case: &Case,
    number: usize,
    apis: &Arc<ApiList>,
    alone: &RwLock<()>,
) -> Result<Outcome> {
    let namespace = format!("upgrade-{number}");
    let helm = |is_upgrade| reference::template(bed, case, RELEASE, &namespace, is_upgrade);
    let chart = Chart::load_path(&case.chart, &Limits::default())?;
    let values = values(case.values.as_deref())?;
    let compiled = match Compiled::new(chart) {
        Ok(compiled) => Arc::new(compiled),
        // Helm reads the templates when it renders.
        Err(error) => return both_refuse(&error.to_string(), &helm(false).await),
    };
    let set = match installed(&compiled, &values, &namespace, apis) {
        Ok(set) => set,
        Err(refusal) => {
            let refusal = refusal.to_string();
            if refusal.contains(MADE_TWICE) {
                helm(false).await.context("Helm refuses it, too")?;
                return Ok(Outcome::OnPurpose(refusal));
            }
            if refusal.contains(SCHEMA) {
                return refused_by_schema(&reference::validate(bed, case, RELEASE).await);
            }
            return both_refuse(&refusal, &helm(false).await);
        }
    };
    let upgrade = |now| upgraded(&compiled, &values, &namespace, &set, apis, now);
    let (ours, found) = upgrade(NOW);
    let there = Objects::new(&set, &found);
    // What belongs to no namespace, such as a webhook, is there for all charts.
    let (_beside_others, _alone) =
        if there.cluster_wide { (None, Some(alone.write().await)) } else { (Some(alone.read().await), None) };
    there.put(bed, &namespace).await?;
    let compared = async {
        let one = helm(true).await;
        let (one, ours) = match (one, ours) {
            (Ok(one), Ok(ours)) => (one, ours),
            (Ok(_), Err(ours)) => bail!("Helm renders the upgrade: {ours:#}"),
            (Err(helm), Ok(_)) => bail!("only Helm refuses the upgrade: {helm:#}"),
            (helm, Err(ours)) => return both_refuse(&ours.to_string(), &helm),
        };
        if differ(&one, &one, &ours, &ours).is_err() {
            differ(&one, &helm(true).await?, &ours, &upgrade(NOW + LATER).0?)?;
        }
        Ok(Outcome::Same { looks_up: !there.items.is_empty() })
    };
    let outcome = compared.await;
    // A node port is the cluster's: the installations that follow need it.
    there.take_away(bed, &namespace).await?;
    outcome
}

/// Begins what both say of values that a chart's schema refuses; the words that follow are a library's.
const SCHEMA: &str = "values don't meet the specifications of the schema(s)";
/// Of an object that a chart makes twice: Helm applies the last of them, EMCO refuses it (docs/helm-compatibility.md).
const MADE_TWICE: &str = " both make ";

fn refused_by_schema(helm: &Result<String>) -> Result<Outcome> {
    match helm {
        Err(error) if format!("{error:#}").contains(SCHEMA) => {
            Ok(Outcome::BothRefuse("the chart's own schema".to_owned()))
        }
        Err(error) => bail!("a schema refuses its values; Helm says: {error:#}"),
        Ok(_) => bail!("Helm renders what a schema refuses here"),
    }
}

fn both_refuse(ours: &str, helm: &Result<Documents>) -> Result<Outcome> {
    match helm {
        Ok(_) => bail!("Helm renders it: {ours}"),
        Err(helm) => refusal::same(&format!("{helm:#}"), ours).map(Outcome::BothRefuse),
    }
}

/// An error that names the first differences. What Helm renders otherwise `again` is random, and what we render otherwise `later` is
/// a time.
fn differ(wanted: &Documents, again: &Documents, found: &Documents, later: &Documents) -> Result<()> {
    let mut lines = Vec::new();
    // Names that are drawn are of as many objects.
    let drawn = |kind: &str| wanted.keys().filter(|key| key[1] == kind && !again.contains_key(*key)).count();
    let named = |kind: &str| found.keys().filter(|key| key[1] == kind && !wanted.contains_key(*key)).count();
    for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        match (wanted.get(key), found.get(key)) {
            (Some(wanted), Some(found)) => {
                let random = again.get(key).map(|again| same::leaves(wanted, again));
                let times = later.get(key).map(|later| same::leaves(found, later));
                let left_out = [random, times].into_iter().flatten().flatten().collect::<Vec<_>>();
                let differences = same::rendered_differences(wanted, found, &left_out);
                lines.extend(differences.into_iter().map(|text| format!("{key:?}: {text}")));
            }
            _ if drawn(&key[1]) > 0 && drawn(&key[1]) == named(&key[1]) => {}
            (Some(_), None) => lines.push(format!("{key:?} is missing")),
            (None, _) => lines.push(format!("{key:?} is there, Helm renders none")),
        }
    }
    lines.truncate(MOST_TOLD);
    ensure!(lines.is_empty(), "not as Helm renders the upgrade:\n    {}", lines.join("\n    "));
    Ok(())
}

fn values(file: Option<&Path>) -> Result<Value> {
    let Some(file) = file else { return Ok(json!({})) };
    let text = std::fs::read(file).with_context(|| file.display().to_string())?;
    let values: Value =
        yaml::to_json(text.as_slice()).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    // A file of comments sets nothing.
    Ok(if values.is_null() { json!({}) } else { values })
}

/// The cluster that charts are compared for.
fn reference(id: &ClusterId, apis: &Arc<ApiList>) -> ClusterFacts {
    ClusterFacts {
        id: id.clone(),
        labels: BTreeMap::new(),
        properties: BTreeMap::new(),
        scheduling: Scheduling::Enabled,
        reachable: true,
        by_git: false,
        uid: Some("reference".to_owned()),
        kubernetes_version: Some(format!("v{KUBE_VERSION}")),
        apis: Some(Arc::clone(apis)),
        nodes: None,
        network_policy: None,
    }
}

/// The stored set of the installation.
fn installed(
    compiled: &Arc<Compiled>,
    values: &Value,
    namespace: &str,
    apis: &Arc<ApiList>,
) -> Result<Arc<ManifestSet>> {
    let id = ClusterId::new("conformance", "reference");
    let app = json!({"name": "app", "chart": {"configMapRef": {"name": "chart"}}});
    let object = |kind: &str, spec: Value| json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": {"name": RELEASE, "namespace": "charts"}, "spec": spec});
    let spec = json!({
        "compositeAppRef": {"name": RELEASE}, "logicalCloudRef": {"name": "default"}, "release": RELEASE,
        "placement": {"allOf": [{"selector": {}}]}, "overrideValues": [{"app": "app", "values": values}],
    });
    let facts = reference(&id, apis);
    let chart = ChartFacts { digest: "sha256:chart".to_owned(), compiled: Arc::clone(compiled) };
    let snapshot = Snapshot {
        installation: Arc::new(Installation {
            id: "conformance".to_owned(),
            digest_key: [1; 32],
            random_key: [2; 32],
        }),
        project: "charts".to_owned(),
        objects_per_app: None,
        dig: Arc::new(serde_json::from_value(object("DeploymentIntentGroup", spec))?),
        composite_app: Some(Arc::new(serde_json::from_value(object(
            "CompositeApp",
            json!({"apps": [app]}),
        ))?)),
        profile: None,
        intents: BTreeMap::new(),
        hardware: BTreeMap::new(),
        traffic: BTreeMap::new(),
        cloud: Some(CloudFacts {
            name: "default".to_owned(),
            level: "Admin".to_owned(),
            namespace: namespace.to_owned(),
            reach: emco_engine::role::Reach { cluster: true, ..Default::default() },
            derived: None,
            isolation: emco_crds::logical_cloud::Isolation::None,
            clusters: BTreeSet::from([id.clone()]),
        }),
        clusters: BTreeMap::from([(id, facts)]),
        charts: BTreeMap::from([("app".to_owned(), chart)]),
        sources: BTreeMap::new(),
        running: None,
        waiting: None,
        installed: BTreeSet::new(),
        leaving: BTreeMap::new(),
        now: NOW,
    };
    let plan = plan(&snapshot).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    plan.sets.into_values().next().context("the chart renders nothing")
}

/// Objects of a chart that it looks up.
struct Objects {
    items: Vec<Value>,
    cluster_wide: bool,
}

impl Objects {
    /// Those of the stored set that were found.
    fn new(set: &ManifestSet, found: &BTreeSet<Named>) -> Self {
        let manifests = set.manifests.iter().map(|manifest| &manifest.json);
        let mut items: Vec<Value> =
            manifests.filter(|object| found.contains(&named(object))).cloned().collect();
        // Nothing answers behind a webhook: it comes last.
        items.sort_by_key(|object| named(object)[0].ends_with("WebhookConfiguration"));
        let cluster_wide = items.iter().any(|object| named(object)[1].is_empty());
        Self { items, cluster_wide }
    }

    /// Puts them on the reference plane.
    async fn put(&self, bed: &Bed, namespace: &str) -> Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        bed.edge(REFERENCE).namespace(namespace).await?;
        self.change(bed, namespace, &["apply", "--server-side"], self.items.iter().collect()).await
    }

    /// Takes them away again.
    async fn take_away(&self, bed: &Bed, namespace: &str) -> Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        self.change(bed, namespace, &["delete", "--ignore-not-found"], self.items.iter().rev().collect())
            .await
    }

    async fn change(&self, bed: &Bed, namespace: &str, verb: &[&str], items: Vec<&Value>) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let args = [verb, &["--namespace", namespace, "-f", "-"]].concat();
        let changed = bed.edge(REFERENCE).kubectl().run_with(&args, &list).await;
        changed.context("the reference plane refuses what the chart installs").map(drop)
    }
}

/// Kind, namespace and name.
type Named = [String; 3];

fn named(object: &Value) -> Named {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    ["/kind", "/metadata/namespace", "/metadata/name"].map(text)
}

/// Answers lookups as the operator does, and notes which objects were found.
struct Noted<'a> {
    answers: Answers<'a>,
    found: Mutex<BTreeSet<Named>>,
}

impl Lookup for Noted<'_> {
    fn lookup(&self, read: &LookupRead) -> Result<Found<'_>, String> {
        let answer = self.answers.lookup(read)?;
        let objects = match &answer {
            Found::Nothing => Vec::new(),
            Found::Object(object) => vec![*object],
            Found::List(objects) => objects.clone(),
        };
        let mut found = self.found.lock().map_err(|error| error.to_string())?;
        found.extend(objects.into_iter().map(named));
        Ok(answer)
    }
}

/// The upgrade as we render it, and the objects that it looks up and has.
fn upgraded(
    compiled: &Compiled,
    values: &Value,
    namespace: &str,
    set: &Arc<ManifestSet>,
    apis: &ApiList,
    now: i64,
) -> (Result<Documents>, BTreeSet<Named>) {
    let holdings = Holdings::new(Some(Arc::clone(set)), Completeness::All, true);
    let lookup = Noted { answers: Answers::new(&holdings, Some(apis)), found: Mutex::default() };
    let request = RenderRequest {
        release: Release {
            name: RELEASE.to_owned(),
            namespace: namespace.to_owned(),
            revision: 1,
            is_install: false,
        },
        values: values.clone(),
        capabilities: Capabilities { kube_version: KUBE_VERSION.to_owned(), ..Capabilities::default() },
        // What differs between two renderings is a time.
        seed: Some([3; 32]),
        now: Some(now),
        lookup: Some(&lookup),
        skip_schema: true,
        ..RenderRequest::default()
    };
    let rendered =
        compiled.render(&request).map_err(|error| anyhow::anyhow!("{error}")).and_then(|rendered| {
            // As they are printed: an empty line more is part of some texts.
            let stream: String =
                rendered.documents.iter().map(|document| format!("---\n{}\n", document.text)).collect();
            reference::documents(&stream)
        });
    (rendered, lookup.found.into_inner().unwrap_or_default())
}

/// What the reference plane serves.
async fn apis(bed: &Bed) -> Result<ApiList> {
    let discovery = Discovery::new(bed.edge(REFERENCE).client().await?).run().await;
    let discovery = discovery.context("cannot learn the kinds of the reference plane")?;
    let mut resources = Vec::new();
    for group in discovery.groups() {
        for (resource, able) in group.recommended_resources() {
            resources.push(ApiResource {
                group: resource.group,
                version: resource.version,
                kind: resource.kind,
                plural: resource.plural,
                namespaced: able.scope == Scope::Namespaced,
                listable: able.supports_operation(verbs::LIST),
                watchable: able.supports_operation(verbs::WATCH),
            });
        }
    }
    Ok(ApiList { resources })
}
