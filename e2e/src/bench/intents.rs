//! Measures what edits of intents cost: patches on one core, and plans of many clusters with one intent.

mod hardware;

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_crds::fields::LabelSelector;
use emco_engine::act::{Edit, Edits, Pick, Wanted, What};
use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::cloud::CloudFacts;
use emco_engine::edits::{self, Patch};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::manifests::Draft;
use emco_engine::plan::{Plan, plan};
use emco_engine::role::Reach;
use emco_engine::set::provenance::Provenance;
use emco_engine::set::{Assigned, ManifestSet, Phase, SetManifest};
use emco_engine::snapshot::{ChartFacts, ClusterFacts, Installation, Running, Scheduling, Snapshot};
use emco_helm::{Chart, Compiled, Limits};
use serde_json::{Value, json};

use super::record::Entry;

const HOW: &str = "make bench-intents";
const CLUSTERS: usize = 10_000;
/// How often each is measured.
const ROUNDS: usize = 5;
/// One measurement of patches.
const LONG: Duration = Duration::from_millis(500);
/// Objects of the chart: enough that an edit for each cluster would be seen.
const OBJECTS: usize = 100;

/// Measures in this process; no control plane is started.
pub fn measure() -> Result<Vec<Entry>> {
    let mut patches = Vec::new();
    for _ in 0..ROUNDS {
        patches.push(patches_per_second()?);
    }
    let patches = Entry::median("json_patch_edits_per_s", "edits/s", patches, HOW);
    let patches = patches.context("nothing was measured")?.at_least(100_000.0);
    let mut edited = Vec::new();
    for _ in 0..ROUNDS {
        edited.push(edits_per_second()?);
    }
    let edited = Entry::median("edits_with_provenance_per_s", "edits/s", edited, HOW);
    let edited = edited.context("nothing was measured")?.at_least(100_000.0);
    let (mut one, mut all, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        one.push(changed(1, round, true)?);
        all.push(changed(CLUSTERS, round, true)?);
        without.push(changed(CLUSTERS, round, false)?);
    }
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    // An edit for each cluster would be as many times what it is for one.
    let times = (least(&all) - least(&without)) / least(&one);
    let (mut some, mut every) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        some.push(hardware::planned(false)?);
        every.push(hardware::planned(true)?);
    }
    let entry = |name: &str, samples| Entry::median(name, "s", samples, HOW).context("nothing was measured");
    Ok(vec![
        patches,
        edited,
        entry("plan_of_a_changed_intent_1_cluster_s", one)?,
        entry("plan_of_a_changed_intent_10000_clusters_s", all)?.at_most(2.0),
        entry("plan_of_nothing_changed_10000_clusters_s", without)?,
        Entry::one("edits_of_10000_clusters_per_plan_of_one", "times", times, HOW).at_most(100.0),
        entry("plan_of_10_apps_and_hardware_of_10000_clusters_s", some)?.at_most(1.0),
        entry("plan_of_10_apps_and_hardware_on_10000_clusters_s", every)?.at_most(1.0),
    ])
}

/// JSON patches of a Deployment in a second of one core.
fn patches_per_second() -> Result<f64> {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "web", "image": "example.com/web:1", "args": ["--one"], "env": [{"name": "A", "value": "1"}]},
            ]}},
        },
    });
    let patch = Patch::Json(vec![
        json!({"op": "test", "path": "/spec/replicas", "value": 2}),
        json!({"op": "replace", "path": "/spec/replicas", "value": 1}),
    ]);
    let (start, mut number) = (Instant::now(), 0.0);
    while start.elapsed() < LONG {
        for _ in 0..1000 {
            let edited = edits::patched(black_box(&object), black_box(&patch));
            black_box(edited.map_err(|error| anyhow!("{error}"))?);
        }
        number += 1000.0;
    }
    Ok(number / start.elapsed().as_secs_f64())
}

/// Objects of a set that an action edits in a second of one core, with whose each field is.
fn edits_per_second() -> Result<f64> {
    let manifest = |number: usize| {
        let metadata = json!({"name": format!("c{number}"), "namespace": "shop"});
        let data = json!({"text": "before"});
        let json = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        SetManifest {
            digest: String::new(),
            phase: Phase::Main,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json,
        }
    };
    let set = ManifestSet {
        digest: SetDigest(String::new()),
        app: "web".to_owned(),
        manifests: (0..OBJECTS).map(manifest).collect(),
    };
    let pick = Pick::Labels(LabelSelector::default());
    let wanted = Wanted { group: String::new(), kind: "ConfigMap".to_owned(), pick, may_be_missing: false };
    let patch = Patch::Json(vec![json!({"op": "replace", "path": "/data/text", "value": "after"})]);
    let edit = Edit {
        intent: "text".to_owned(),
        origin: "GenericActionIntent text, spec.actions[text]".to_owned(),
        secret: false,
        what: What::Change(wanted, patch),
    };
    let edits = Edits { digest: String::new(), all: vec![edit] };
    let (start, mut number) = (Instant::now(), 0);
    while start.elapsed() < LONG {
        let draft = Draft::of_set(black_box(&set), None);
        let draft = draft.edited("web", "app web", &edits).map_err(|refusal| anyhow!("{refusal}"))?;
        let provenance = Provenance::of(&draft.done, &set);
        ensure!(provenance.objects.len() == OBJECTS, "{} objects were edited", provenance.objects.len());
        number += OBJECTS;
    }
    Ok(f64::from(u32::try_from(number)?) / start.elapsed().as_secs_f64())
}

/// Seconds of a plan of so many clusters whose intent changed, or of which nothing changed.
fn changed(clusters: usize, round: usize, changes: bool) -> Result<f64> {
    let planned = |snapshot: &Snapshot| plan(snapshot).map_err(|refusal| anyhow!("{refusal}"));
    let before = planned(&snapshot(clusters, "before", None)?)?;
    let running = Running {
        revision: 1,
        plan_digest: before.plan_digest.clone(),
        inputs_digest: before.inputs_digest.clone(),
        composite_app: "shop".to_owned(),
        assignment: before.assignment,
        sets: before.sets,
        parts: BTreeMap::new(),
        waves: None,
    };
    let text = if changes { format!("after {round}") } else { "before".to_owned() };
    let snapshot = snapshot(clusters, &text, Some(running))?;
    let start = Instant::now();
    let after = planned(&snapshot)?;
    let took = start.elapsed().as_secs_f64();
    ensure!(after.change.is_some() == changes, "the plan says {:?}", after.change);
    ensure!(named(&after) == (1, 1), "different edited and rendered sets: {:?}", named(&after));
    Ok(took)
}

/// The number of different edited and rendered sets.
fn named(plan: &Plan) -> (usize, usize) {
    let cells: Vec<&Assigned> = plan.assignment.values().flat_map(BTreeMap::values).collect();
    let edited: BTreeSet<_> = cells.iter().map(|cell| &cell.set).collect();
    let rendered: BTreeSet<_> =
        cells.iter().filter(|cell| cell.edits.is_some()).map(|cell| cell.base()).collect();
    (edited.len(), rendered.len())
}

pub fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: &Value) -> Result<Arc<K>> {
    let metadata = json!({"name": name, "namespace": "shop"});
    let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
    Ok(Arc::new(serde_json::from_value(object)?))
}

/// One app on all clusters, whose every object an intent gives this text.
fn snapshot(clusters: usize, text: &str, running: Option<Running>) -> Result<Snapshot> {
    let intents = json!([{"kind": "GenericActionIntent", "name": "text"}]);
    let spec = json!({
        "compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "edge"},
        "placement": {"allOf": [{"selector": {}}]}, "intents": intents,
    });
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "selector": {}});
    let action = json!({"name": "text", "app": "web", "type": "JSONPatch", "target": target,
        "jsonPatch": [{"op": "replace", "path": "/data/text", "value": text}]});
    let all = fleet(clusters);
    let installed = running.as_ref().map(|_| all.keys().map(|id| (id.clone(), "web".to_owned())).collect());
    Ok(Snapshot {
        installation: Arc::new(Installation {
            id: "bench".to_owned(),
            digest_key: [1; 32],
            random_key: [2; 32],
        }),
        project: "shop".to_owned(),
        objects_per_app: None,
        dig: object("DeploymentIntentGroup", "shop", &spec)?,
        composite_app: Some(object(
            "CompositeApp",
            "shop",
            &json!({"apps": [{"name": "web", "chart": {"configMapRef": {"name": "web"}}}]}),
        )?),
        profile: None,
        intents: [("text".to_owned(), object("GenericActionIntent", "text", &json!({"actions": [action]}))?)]
            .into(),
        hardware: BTreeMap::new(),
        traffic: BTreeMap::new(),
        cloud: Some(CloudFacts {
            name: "edge".to_owned(),
            level: "Admin".to_owned(),
            namespace: "shop".to_owned(),
            reach: Reach { cluster: true, ..Reach::default() },
            derived: None,
            isolation: emco_crds::logical_cloud::Isolation::None,
            clusters: all.keys().cloned().collect(),
        }),
        clusters: all,
        charts: [("web".to_owned(), chart()?)].into(),
        sources: BTreeMap::new(),
        running,
        waiting: None,
        installed: installed.unwrap_or_default(),
        leaving: BTreeMap::new(),
        now: 1_800_000_000,
    })
}

fn fleet(clusters: usize) -> BTreeMap<ClusterId, ClusterFacts> {
    let apis = Arc::new(ApiList { resources: vec![resource("", "ConfigMap", "configmaps")] });
    let facts = |number: usize| {
        let id = ClusterId::new("acme", &format!("c{number}"));
        let facts = ClusterFacts {
            id: id.clone(),
            labels: BTreeMap::new(),
            properties: BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: Some(format!("uid-{number}")),
            kubernetes_version: Some("v1.36.3".to_owned()),
            apis: Some(Arc::clone(&apis)),
            nodes: None,
            network_policy: None,
        };
        (id, facts)
    };
    (0..clusters).map(facts).collect()
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
        listable: true,
        watchable: true,
    }
}

fn chart() -> Result<ChartFacts> {
    let template = format!(
        "{{{{- range until {OBJECTS} }}}}\n---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{{{{ . }}}}}}, data: {{text: plain}}}}\n{{{{- end }}}}"
    );
    chart_of("web", &template)
}

fn chart_of(name: &str, template: &str) -> Result<ChartFacts> {
    let files = vec![
        ("Chart.yaml".to_owned(), format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n").into_bytes()),
        ("templates/all.yaml".to_owned(), template.as_bytes().to_vec()),
    ];
    let chart = Chart::from_files(files, &Limits::default())?;
    Ok(ChartFacts { digest: format!("sha256:{name}"), compiled: Arc::new(Compiled::new(chart)?) })
}
