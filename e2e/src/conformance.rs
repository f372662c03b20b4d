//! In: the folder of a corpus of real charts, and the operator's program. Out: whether edges under the operator hold, for each
//! of a few charts, what real Helm makes of the same archive, run it, and are clean afterwards; a line per chart.
//!
//! Hub, two edges and a reference edge of the same Kubernetes. The charts come one after the other: then every object that
//! appears on a plane belongs to the chart at hand, and nothing has to be looked for by name.

mod corpus;
mod reference;
mod same;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{self, Operator};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use kube::Api;
use serde_json::json;

use corpus::Corpus;
use reference::{Reference, Rendered};
use snapshot::{Key, Objects};

/// Where the operator deploys.
const EDGES: [&str; 2] = ["one", "two"];
/// Where Helm installs.
const REFERENCE: &str = "reference";
const PROVIDER: &str = "conformance";
/// Project, and namespace of every release on every plane.
const PROJECT: &str = "charts";
/// What a ConfigMap may hold.
const MOST_BYTES: usize = 1024 * 1024;
/// For objects that controllers of the edge delete after what they belong to.
const COLLECTED: Duration = Duration::from_secs(60);
/// For a removal.
const GONE: Duration = Duration::from_mins(2);
/// Differences told of one object, and of one chart.
const MOST_TOLD: usize = 5;
const MOST_TOLD_OF_CHART: usize = 20;

/// The command line.
#[derive(clap::Args)]
pub struct ConformanceArgs {
    /// The folder with corpus.tar.xz.
    #[arg(long, value_name = "DIR")]
    charts: PathBuf,
    /// The operator's program; the one beside this program if absent.
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Only charts whose folder's name contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Tries every chart; an error when one failed.
pub fn run(args: &ConformanceArgs) -> Result<()> {
    let corpus = Corpus::open(&args.charts)?;
    let program = args.operator.clone().map_or_else(operator::program, Ok)?;
    ensure!(
        program.is_file(),
        "there is no operator at {}: build it first (`make build`)",
        program.display()
    );
    let only = args.only.as_deref().unwrap_or_default();
    let folders: Vec<&str> = corpus::CHARTS.into_iter().filter(|folder| folder.contains(only)).collect();
    ensure!(!folders.is_empty(), "no chart is called {only}; there are {}", corpus::CHARTS.join(", "));
    let charts = folders
        .into_iter()
        .map(|folder| Ok((folder, Package::of_folder(&corpus.chart(folder)?)?)))
        .collect::<Result<Vec<_>>>()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(Box::pin(play(&program, &charts)))
}

async fn play(program: &Path, charts: &[(&str, Package)]) -> Result<()> {
    let spec = BedSpec::hub().edges(&EDGES).edges(&[REFERENCE]).with_helm();
    let bed = Bed::start(spec).await?;
    let operator = Operator::start(&bed, program).await?;
    let prepared = operator::unless_ended(operator.process(), prepare(&bed)).await;
    prepared.context("the clusters could not be registered")?;
    let mut failed = 0;
    for (folder, package) in charts {
        let start = Instant::now();
        let tried = operator::unless_ended(operator.process(), Box::pin(try_chart(&bed, package))).await;
        let took = start.elapsed().as_secs_f64();
        match tried {
            Ok(told) => println!("ok      {folder}: {told}, {took:.1} s"),
            Err(error) => {
                failed += 1;
                println!("FAILED  {folder}: {error:#}, {took:.1} s");
            }
        }
    }
    if failed > 0 {
        println!("\nthe end of the operator's log:\n{}", operator.process().log_tail(20));
    }
    drop(operator);
    bed.end().await?;
    println!("{} passed, {failed} failed", charts.len() - failed);
    ensure!(failed == 0, "{failed} of {} charts are not as Helm makes them", charts.len());
    Ok(())
}

/// Until the project's namespace is there on all edges: what is there then was not made for a chart.
async fn prepare(bed: &Bed) -> Result<()> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    operator::project(bed, PROJECT).await?;
    bed.edge(REFERENCE).namespace(PROJECT).await?;
    operator::wait::<emco_crds::LogicalCloud, _>(bed, PROJECT, "default", |cloud| {
        operator::is(cloud.status.as_ref(), emco_crds::conditions::types::READY, "True")
    })
    .await?;
    Ok(())
}

/// One chart from its archive to its removal. Answers what was seen.
async fn try_chart(bed: &Bed, package: &Package) -> Result<String> {
    let release = package.name.as_str();
    let reference = Reference::new(bed, package).await?;
    let before = all(bed).await?;
    let rendered = reference.render().await?;
    let (installed, deployed) = tokio::join!(reference.install(), deploy(bed, package));
    let compared = match installed.and(deployed) {
        Ok(()) => compare(bed, &before, &rendered).await,
        Err(error) => {
            // Now, while everything is still as it failed.
            println!("{}", bed.diagnostics().await);
            Err(error)
        }
    };
    // Whatever was found, the next chart is to find clean edges.
    let removed = remove(bed, release).await;
    let uninstalled = reference.uninstall().await;
    let seen = compared?;
    removed?;
    uninstalled?;
    let left = left(bed, &before).await?;
    Ok(format!("{seen} as Helm makes them on both edges, ready; afterwards {left}"))
}

async fn deploy(bed: &Bed, package: &Package) -> Result<()> {
    let release = package.name.as_str();
    let size = package.bytes.len();
    ensure!(size <= MOST_BYTES, "the packaged chart has {size} bytes, a ConfigMap holds {MOST_BYTES}");
    let map = BTreeMap::from([("chart.tgz".to_owned(), package.bytes.clone())]);
    operator::binary_map(bed, PROJECT, release, map).await?;
    let chart = json!({"configMapRef": {"name": release, "key": "chart.tgz"}});
    let metadata = json!({"name": release, "namespace": PROJECT});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata,
         "spec": {"apps": [{"name": "chart", "chart": chart}]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata,
         "spec": {"compositeAppRef": {"name": release}, "placement": {"allOf": [{"selector": {}}]}}},
    ]});
    bed.hub().kubectl().apply(&objects.to_string()).await?;
    operator::deployed(bed, PROJECT, release, 1).await.context("the deployment does not get ready").map(drop)
}

/// What appeared on each edge is what appeared on the reference edge. Answers how many objects.
async fn compare(bed: &Bed, before: &BTreeMap<&str, Objects>, rendered: &Rendered) -> Result<String> {
    let after = all(bed).await?;
    let new = |plane: &str| -> Objects {
        let known = before.get(plane);
        let fresh = |key: &Key| !known.is_some_and(|known| known.contains_key(key));
        let objects = after.get(plane).into_iter().flatten();
        let own = objects.filter(|(key, object)| fresh(key) && !snapshot::is_derived(object));
        own.map(|(key, object)| (key.clone(), object.clone())).collect()
    };
    let wanted = new(REFERENCE);
    let mut told = Vec::new();
    for edge in EDGES {
        let found = new(edge);
        for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            match (wanted.get(key), found.get(key)) {
                (Some(wanted), Some(found)) => {
                    let differences = same::differences(key, wanted, found, rendered);
                    told.extend(
                        differences.iter().take(MOST_TOLD).map(|text| format!("{edge}: {key}: {text}")),
                    );
                    told.extend(
                        same::unready(found).map(|text| format!("{edge}: {key} is not ready: {text}")),
                    );
                }
                (Some(_), None) => told.push(format!("{edge}: {key} is missing")),
                (None, _) => told.push(format!("{edge}: {key} is there, Helm makes none")),
            }
        }
    }
    let more = told.len().saturating_sub(MOST_TOLD_OF_CHART);
    told.truncate(MOST_TOLD_OF_CHART);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    ensure!(told.is_empty(), "not as Helm makes it:\n    {}\n   ", told.join("\n    "));
    ensure!(!wanted.is_empty(), "Helm made nothing of this chart");
    Ok(format!("{} objects", wanted.len()))
}

async fn remove(bed: &Bed, release: &str) -> Result<()> {
    let hub = bed.hub();
    let object = format!("deploymentintentgroups.emco.io/{release}");
    hub.kubectl().run(&["delete", &object, "-n", PROJECT, "--wait=false", "--ignore-not-found"]).await?;
    let api: Api<DeploymentIntentGroup> = hub.api(PROJECT).await?;
    wait_until_gone(api, release, GONE).await.context("the deployment is not removed")
}

/// Nothing is left of what appeared since `before`, but definitions and the claims of `StatefulSets`, which outlive them. What
/// the operator applied must be gone already; what controllers of the edge made of it may take its time.
async fn left(bed: &Bed, before: &BTreeMap<&str, Objects>) -> Result<String> {
    let mut kept = BTreeSet::new();
    for edge in EDGES {
        let known = before.get(edge).context("there is no snapshot of the edge")?;
        let deadline = Instant::now() + COLLECTED;
        loop {
            let now = snapshot::of(bed.edge(edge)).await?;
            let fresh: Vec<_> = now.iter().filter(|(key, _)| !known.contains_key(*key)).collect();
            let (stay, go): (Vec<_>, Vec<_>) =
                fresh.into_iter().partition(|(key, object)| snapshot::may_stay(key, object));
            kept.extend(stay.into_iter().map(|(key, _)| key.kind.clone()));
            let names = |objects: &mut dyn Iterator<Item = &Key>| {
                objects.take(MOST_TOLD).map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            let ours = names(
                &mut go.iter().filter(|(_, object)| !snapshot::is_derived(object)).map(|(key, _)| *key),
            );
            ensure!(ours.is_empty(), "left on {edge} after the removal: {ours}");
            if go.is_empty() {
                break;
            }
            let rest = names(&mut go.iter().map(|(key, _)| *key));
            ensure!(Instant::now() < deadline, "not collected on {edge} after the removal: {rest}");
            // No watch covers all kinds; a look takes longer than this pause.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    if kept.is_empty() {
        return Ok("nothing is left".to_owned());
    }
    Ok(format!("only these are left: {}", kept.into_iter().collect::<Vec<_>>().join(", ")))
}

/// Everything on all planes that have charts.
async fn all(bed: &Bed) -> Result<BTreeMap<&'static str, Objects>> {
    let mut all = BTreeMap::new();
    for plane in [EDGES[0], EDGES[1], REFERENCE] {
        all.insert(plane, snapshot::of(bed.edge(plane)).await?);
    }
    Ok(all)
}
