//! Compares the charts of a corpus with real Helm, a line per chart that is deployed.
//!
//! Every chart is rendered, as an installation and as an upgrade. A few are deployed: edges under the operator hold what Helm makes
//! of the same archive, installed, and a third of them (`third.rs`) changed by a value and then by the chart's next version; they run
//! it, and are clean afterwards. Where Helm refuses a step, the operator has to refuse it for the same.
//!
//! Random strategic merge patches of what all charts render are compared with Kubernetes' own (`patched.rs`).
//!
//! Afterwards charts of the first EMCO's examples live together as those examples have them, one with an intent that changes, and
//! some with intents for hardware; and twenty everyday charts are deployed at level Standard (`levels.rs`).
//!
//! With `--all` every deployed chart is upgraded, and the examples' whole life is lived.
//!
//! Hub, two edges and a reference edge of the same Kubernetes. The charts come one after the other: then every object that
//! appears on a plane belongs to the chart at hand, and nothing has to be looked for by name.

mod acting;
mod compare;
pub mod corpus;
mod examples;
mod fitting;
mod levels;
mod life;
mod misspelt;
mod next;
mod patched;
mod reference;
mod refusal;
mod rendering;
mod same;
mod snapshot;
mod third;
mod unchanged;
mod upgrades;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{self, Operator};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use futures::future::try_join_all;
use kube::Api;
use serde_json::{Value, json};

use compare::{Exceptions, compare, held};
use corpus::{Case, Corpus};
use examples::Examples;
use reference::{Reference, Rendered};
use snapshot::{Key, Objects};

pub use patched::rendered_objects;

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
/// Differences told of one object.
const MOST_TOLD: usize = 5;

/// The command line.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // flags of a command line
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
    /// Only charts that are deployed: nothing else is rendered.
    #[arg(long)]
    deployed: bool,
    /// Only what is said of misspelt values: no control plane is started.
    #[arg(long)]
    values: bool,
    /// Only what everyday charts need at level Standard: nothing is compared with Helm.
    #[arg(long, conflicts_with_all = ["only", "values"])]
    levels: bool,
    /// Every chart is upgraded, not a third of them, and nothing is left out that passed before; so it is with --only, too.
    #[arg(long)]
    all: bool,
}

/// Tries every chart; an error when one failed.
pub fn run(args: &ConformanceArgs) -> Result<()> {
    let corpus = Corpus::open(&args.charts)?;
    let only = args.only.as_deref().unwrap_or_default();
    let rendered = corpus.rendered(only)?;
    if args.values {
        return misspelt::check(&rendered);
    }
    // Who asks for some charts looks at these, whatever passed before.
    let everything = args.all || !only.is_empty();
    let upgrades = unchanged::UPGRADES.mark(&args.charts, everything)?;
    let mut cases = Vec::new();
    if !args.deployed && !args.levels {
        render(args, &rendered, everything)?;
        if !upgrades.is_unchanged() {
            cases = Corpus::upgrades(&rendered);
        }
    }
    let program = args.operator.clone().map_or_else(operator::program, Ok)?;
    ensure!(
        program.is_file(),
        "there is no operator at {}: build it first (`cargo build --workspace --bins`)",
        program.display()
    );
    corpus.every_next_version_is_deployed()?;
    let choice = third::Choice::new(everything)?;
    let upgraded = choice.of(&corpus::CHARTS);
    let charts = (0..)
        .zip(&corpus::CHARTS)
        .filter(|(_, chart)| !args.levels && chart.folder.contains(only))
        .map(|(place, chart)| Tried::new(&corpus, chart, upgraded.contains(&place)))
        .collect::<Result<Vec<_>>>()?;
    let all = corpus::CHARTS.map(|chart| chart.folder);
    ensure!(
        args.levels || !charts.is_empty() || !cases.is_empty(),
        "no chart is called {only}; deployed are {}",
        all.join(", ")
    );
    // Who asks for some charts looks at these alone.
    let examples = || Examples::of(&corpus, (!args.levels).then_some(args.all), &program);
    let examples = only.is_empty().then(examples).transpose()?;
    let patched = (only.is_empty() && !args.deployed && !args.levels).then_some(rendered);
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        let spec = BedSpec::bare_hub().edges(&EDGES).edges(&[REFERENCE]).with_helm();
        let bed = Arc::new(Bed::start(spec).await?);
        if !cases.is_empty() {
            let passed = format!("{} upgrades", cases.len());
            println!("rendering {passed} as Helm's dry run on a server does");
            Box::pin(upgrades::compare(&bed, cases)).await?;
            upgrades.passed(&passed)?;
        }
        let number = charts.iter().filter(|chart| chart.change.is_some()).count();
        println!("deploying {} charts, and upgrading {number}: {}", charts.len(), choice.why());
        Box::pin(play(&program, bed, &charts, examples.as_ref(), patched)).await
    })
}

/// Renders installations as Helm does, and counts what is said of misspelt values.
fn render(args: &ConformanceArgs, charts: &[Case], everything: bool) -> Result<()> {
    let mark = unchanged::INSTALLATIONS.mark(&args.charts, everything)?;
    if mark.is_unchanged() {
        return Ok(());
    }
    let passed = format!("{} charts", charts.len());
    println!("rendering {passed} as Helm does");
    rendering::compare(&args.charts, args.only.as_deref().unwrap_or_default())?;
    misspelt::check(charts)?;
    mark.passed(&passed)
}

/// A chart that is tried.
struct Tried {
    folder: &'static str,
    package: Package,
    /// The values of its installation.
    values: Value,
    /// How it is upgraded, if it is.
    change: Option<Change>,
}

/// The upgrades of a chart that is tried.
struct Change {
    values: Value,
    /// The next version, which gets the same values.
    next: Option<Package>,
}

impl Tried {
    fn new(corpus: &Corpus, chart: &corpus::Deployed, upgraded: bool) -> Result<Self> {
        let package = |folder| Package::of_folder(&corpus.chart(folder)?);
        let read = |text| serde_json::from_str(text).with_context(|| format!("{}: no JSON", chart.folder));
        let values: Value = read(chart.values)?;
        let change = if upgraded {
            let mut changed = values.clone();
            emco_helm::merge_values(&mut changed, read(chart.change)?);
            Some(Change { values: changed, next: chart.next.map(package).transpose()? })
        } else {
            None
        };
        Ok(Self { folder: chart.folder, package: package(chart.folder)?, values, change })
    }
}

/// Deploys the charts, one after the other, and compares patches of what others render.
async fn play(
    program: &Path,
    bed: Arc<Bed>,
    charts: &[Tried],
    examples: Option<&Examples>,
    patched: Option<Vec<Case>>,
) -> Result<()> {
    let operator = Operator::start(&bed, program).await?;
    let prepared = operator::unless_ended(operator.process(), prepare(&bed)).await;
    prepared.context("the clusters could not be registered")?;
    let (mut tried, mut failed) = (0, 0);
    let mut told = |name: &str, start: Instant, seen: Result<String>| {
        let took = start.elapsed().as_secs_f64();
        tried += 1;
        match seen {
            Ok(seen) => println!("ok      {name}: {seen}, {took:.1} s"),
            Err(error) => {
                failed += 1;
                println!("FAILED  {name}: {error:#}, {took:.1} s");
            }
        }
    };
    for chart in charts {
        let start = Instant::now();
        let seen = operator::unless_ended(operator.process(), Box::pin(try_chart(&bed, chart))).await;
        told(chart.folder, start, seen);
    }
    if let Some(all) = patched {
        let start = Instant::now();
        let seen = Box::pin(patched::compare(all)).await;
        told("patches of what all charts render", start, seen);
    }
    for example in examples.into_iter().flat_map(Examples::all) {
        let start = Instant::now();
        let seen = operator::unless_ended(operator.process(), example.live(&bed)).await;
        told(example.name(), start, seen);
    }
    if failed > 0 {
        println!("\nthe end of the operator's log:\n{}", operator.process().log_tail(20));
    }
    drop(operator);
    Arc::into_inner(bed).context("a task still uses the control planes")?.end().await?;
    println!("{} passed, {failed} failed", tried - failed);
    ensure!(failed == 0, "{failed} of {tried} cases are not as they have to be");
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

/// One chart from its archive over its upgrades, if it has any, to its removal. Answers what was seen.
async fn try_chart(bed: &Bed, tried: &Tried) -> Result<String> {
    let Tried { package, values, .. } = tried;
    let release = package.name.as_str();
    let reference = Reference::new(bed, "installed", package, values).await?;
    // Rendering makes nothing. It comes before anything is there that could be looked up: all that is drawn differs.
    let (before, rendered, next) =
        tokio::try_join!(all(bed), reference.render(), Box::pin(next::Next::new(bed, tried)))?;
    let (installed, deployed) = tokio::join!(reference.install(), deploy(bed, package, values));
    let compared = match installed.and(deployed) {
        Ok(()) => compare_steps(bed, &before, tried, &rendered, next.as_ref()).await,
        Err(error) => Err(error),
    };
    if compared.is_err() {
        // Now, while everything is still as it failed.
        println!("{}", bed.diagnostics().await);
    }
    // Whatever was found, the next chart is to find clean edges.
    let (removed, uninstalled) = tokio::join!(remove(bed, release), reference.uninstall());
    let seen = compared?;
    removed?;
    uninstalled?;
    let left = left(bed, &before).await?;
    Ok(format!("{seen}; afterwards {left}"))
}

/// Makes the ConfigMap of a packaged chart; answers what a CompositeApp says of it.
async fn hand_over(bed: &Bed, package: &Package, step: &str) -> Result<Value> {
    let size = package.bytes.len();
    ensure!(size <= MOST_BYTES, "the packaged chart has {size} bytes, a ConfigMap holds {MOST_BYTES}");
    let name = format!("{}-{step}", package.name);
    let map = BTreeMap::from([("chart.tgz".to_owned(), package.bytes.clone())]);
    operator::binary_map(bed, PROJECT, &name, map).await?;
    Ok(json!({"configMapRef": {"name": name, "key": "chart.tgz"}}))
}

async fn deploy(bed: &Bed, package: &Package, values: &Value) -> Result<()> {
    let release = package.name.as_str();
    let chart = hand_over(bed, package, "installed").await?;
    let metadata = json!({"name": release, "namespace": PROJECT});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata,
         "spec": {"apps": [{"name": "chart", "chart": chart}]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata,
         "spec": {"compositeAppRef": {"name": release}, "placement": {"allOf": [{"selector": {}}]},
                  "overrideValues": [{"app": "chart", "values": values}]}},
    ]});
    bed.hub().kubectl().apply(&objects.to_string()).await?;
    operator::deployed(bed, PROJECT, release, 1).await.context("the deployment does not get ready").map(drop)
}

/// Compares what was installed. If it is upgraded, changes it by a value and by its next version, and compares each time: what Helm
/// holds of what was drawn is held on the edges.
async fn compare_steps(
    bed: &Bed,
    before: &BTreeMap<&str, Objects>,
    Tried { package, change, .. }: &Tried,
    rendered: &Rendered,
    next: Option<&next::Next<'_>>,
) -> Result<String> {
    let installed = all(bed).await?;
    let seen = compare(before, &installed, rendered, &Exceptions::default())?;
    let seen = format!("{seen} as Helm makes them on both edges, ready");
    let Some(Change { values: changed, .. }) = change else { return Ok(seen) };
    let release = package.name.as_str();
    let reference = Reference::new(bed, "changed", package, changed).await?;
    let patch = json!({"spec": {"overrideValues": [{"app": "chart", "values": changed}]}}).to_string();
    let change_group = async {
        let object = format!("deploymentintentgroups.emco.io/{release}");
        bed.hub().kubectl().run(&["patch", &object, "-n", PROJECT, "--type=merge", "-p", &patch]).await?;
        let deployed = operator::deployed(bed, PROJECT, release, 2).await;
        deployed.context("the changed deployment does not get ready").map(drop)
    };
    let (upgraded, done) = tokio::join!(reference.upgrade(), change_group);
    upgraded.and(done)?;
    let changed = all(bed).await?;
    compare(before, &changed, rendered, &Exceptions::default()).context("after the change of a value")?;
    let kept = held(&installed, &changed, rendered)?;
    let seen = format!("{seen}; the same after an upgrade, {kept}");
    let Some(next) = next else { return Ok(seen) };
    let step = next.step(before, &changed, rendered).await;
    Ok(format!("{seen}; {}", step.with_context(|| format!("version {}", next.version()))?))
}

async fn remove(bed: &Bed, release: &str) -> Result<()> {
    let hub = bed.hub();
    let object = format!("deploymentintentgroups.emco.io/{release}");
    hub.kubectl().run(&["delete", &object, "-n", PROJECT, "--wait=false", "--ignore-not-found"]).await?;
    let api: Api<DeploymentIntentGroup> = hub.api(PROJECT).await?;
    wait_until_gone(api, release, GONE).await.context("the deployment is not removed")?;
    // Another case of the same chart makes it anew.
    let object = format!("compositeapps.emco.io/{release}");
    hub.kubectl().run(&["delete", &object, "-n", PROJECT, "--ignore-not-found"]).await.map(drop)
}

/// Nothing is left of what appeared since `before`, but definitions and the claims of `StatefulSets`, which outlive them. What
/// the operator applied must be gone already; what controllers of the edge made of it may take its time.
async fn left(bed: &Bed, before: &BTreeMap<&str, Objects>) -> Result<String> {
    let kept = try_join_all(EDGES.map(|edge| left_on(bed, edge, before))).await?;
    let kept: BTreeSet<String> = kept.into_iter().flatten().collect();
    if kept.is_empty() {
        return Ok("nothing is left".to_owned());
    }
    Ok(format!("only these are left: {}", kept.into_iter().collect::<Vec<_>>().join(", ")))
}

/// The kinds of what may stay and does, on one edge.
async fn left_on(bed: &Bed, edge: &str, before: &BTreeMap<&str, Objects>) -> Result<BTreeSet<String>> {
    let known = before.get(edge).context("there is no snapshot of the edge")?;
    let mut kept = BTreeSet::new();
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
        let ours =
            names(&mut go.iter().filter(|(_, object)| !snapshot::is_derived(object)).map(|(key, _)| *key));
        ensure!(ours.is_empty(), "left on {edge} after the removal: {ours}");
        if go.is_empty() {
            return Ok(kept);
        }
        let rest = names(&mut go.iter().map(|(key, _)| *key));
        ensure!(Instant::now() < deadline, "not collected on {edge} after the removal: {rest}");
        // No watch covers all kinds; a look takes longer than this pause.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Everything on all planes that have charts.
async fn all(bed: &Bed) -> Result<BTreeMap<&'static str, Objects>> {
    let planes = [EDGES[0], EDGES[1], REFERENCE];
    let objects = try_join_all(planes.map(|plane| snapshot::of(bed.edge(plane)))).await?;
    Ok(planes.into_iter().zip(objects).collect())
}
