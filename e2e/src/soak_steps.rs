//! Runs the steps of `make soak`, one after the other.
//!
//! Not called `soak`: the gate leaves out what is in a module of that name, and the tests below are for it.

mod reach;
mod run_tests;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{Operator, program};
use emco_e2e::patches::{self, Amounts};
use emco_e2e::starts;

use crate::conformance::corpus::Corpus;
use crate::conformance::rendered_objects;

/// The command line.
#[derive(clap::Args)]
pub struct SoakArgs {
    /// Only the step of this name, or all that run test programs (`tests`); all steps if absent.
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
    /// The folder with corpus.tar.xz. The step `conformance` needs it, others use samples alone if absent.
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

/// Of the random patches.
const SEED: u64 = 20_261_127;
/// Patches that are compared.
const PATCHES: Amounts = Amounts { strategic: 100_000, through_kubectl: 1000, others: 1000 };
/// Connections that are judged.
const CONNECTIONS: usize = 20_000;
/// Lists of policies, with ten connections each, that become cases of the engine's tests.
const CASES: usize = 30;
/// The name of all steps that run test programs.
const TESTS: &str = "tests";

/// One step of the soak.
struct Step {
    name: &'static str,
    /// What it does, for people.
    about: &'static str,
    /// How long it takes on two quiet cores, what it builds included.
    minutes: u32,
    work: Work,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// An API server starts so often, with so many kinds.
    Starts(usize, usize),
    /// Random patches are compared.
    Patches,
    /// The `soak` modules of the test program that is called as the step.
    Tests,
    /// Unit tests die at every write.
    Crashes,
    /// Random connections are judged.
    Reach,
    /// The whole corpus is compared with Helm.
    Conformance,
}

const fn step(name: &'static str, minutes: u32, work: Work, about: &'static str) -> Step {
    Step { name, about, minutes, work }
}

/// All steps, in order. Each test program with a module `soak` has one of its name.
const STEPS: &[Step] = &[
    step(
        "oldest",
        15,
        Work::Tests,
        "a hub and edges of the oldest version of Kubernetes; builds its API server",
    ),
    step(
        "image",
        12,
        Work::Tests,
        "makes, unpacks and deploys the image, and installs from a release; builds buildah and krew",
    ),
    step("upgrade", 8, Work::Tests, "upgrades from the operator of the commit before; builds it"),
    step("messages", 3, Work::Tests, "asks krew for the commands that texts name; builds it"),
    step(
        "observability",
        8,
        Work::Tests,
        "has the newest Prometheus judge rules, targets and metrics; builds it",
    ),
    step("bad_input", 6, Work::Tests, "deploys five thousand objects"),
    step("crash", 8, Work::Tests, "kills the operator twelve times"),
    step("deletion", 8, Work::Tests, "deletes everything of a tenant in three orders"),
    step("deploy", 6, Work::Tests, "applies and deletes a tenant's objects in three orders"),
    step(
        "git",
        30,
        Work::Tests,
        "clusters through Git and the hub's own folder with Flux's controllers; builds them",
    ),
    step("gitops", 5, Work::Tests, "applies and deletes a tenant's folder in the other orders"),
    step(
        "hostile",
        4,
        Work::Tests,
        "charts that spin are refused, and one of keys is rendered for eight clusters",
    ),
    step(
        "bed",
        4,
        Work::Tests,
        "a Lease is renewed for a minute while the work takes all threads and processors",
    ),
    step(
        "restore",
        10,
        Work::Tests,
        "follows every edit after a restore of copies, and of an etcd that is an hour old",
    ),
    step("hardware", 6, Work::Tests, "a hundred sets of nodes and Pods before a real scheduler"),
    step("dashboard", 4, Work::Tests, "makes the pictures of the book in a real browser"),
    step("edges", 4, Work::Tests, "restores an edge whose store is behind what was seen of it"),
    step("rollout", 4, Work::Tests, "rolls out on eight clusters of which some die and one joins"),
    step("demo", 2, Work::Tests, "deploys a folder of packaged charts as make demo does"),
    step(
        "install",
        6,
        Work::Tests,
        "installs, keeps, releases and removes all, with everything that is said and held",
    ),
    step(
        "pages",
        5,
        Work::Tests,
        "follows the pages from an installation to a restored hub, and the one on k3d",
    ),
    step("crashes", 15, Work::Crashes, "the histories of the unit tests die at every write, not at a sample"),
    step(
        "starts-60",
        20,
        Work::Starts(25, 60),
        "the API server of an edge starts 25 times with 60 kinds while removals, ledgers, installs and plans wait for it",
    ),
    step("starts-600", 40, Work::Starts(25, 600), "the same with 600 kinds"),
    step(
        "patches",
        10,
        Work::Patches,
        "100000 random strategic merge patches are compared with Kubernetes' own, 3000 patches of all types with kubectl's",
    ),
    step(
        "reach",
        3,
        Work::Reach,
        "20000 random connections are judged as cyclonus judges them by the same NetworkPolicies; builds its matcher",
    ),
    step(
        "conformance",
        10,
        Work::Conformance,
        "every chart of the corpus is compared with Helm, upgrades included",
    ),
];

/// Runs the steps.
pub fn run(args: &SoakArgs) -> Result<()> {
    let steps = chosen(args.only.as_deref())?;
    let charts = args.charts.as_deref();
    let needs_charts = |step: &Step| charts.is_none() && step.work == Work::Conformance;
    ensure!(
        args.only.is_none() || !steps.iter().any(|step| needs_charts(step)),
        "the step conformance needs the corpus of real charts: make soak CHARTS=DIR, or set EMCO_CHARTS"
    );
    let (left_out, steps): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| needs_charts(step));
    for step in left_out {
        println!("{}: left out, since CHARTS names no corpus of real charts", step.name);
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    for step in &steps {
        println!("{}: {}; takes about {} minutes", step.name, step.about, step.minutes);
    }
    for step in steps {
        let (name, begun) = (step.name, Instant::now());
        println!("{name}: begins");
        let result = runtime.block_on(work(step, charts)).with_context(|| format!("step {name} failed"))?;
        println!("{name}: {result} ({} s)", begun.elapsed().as_secs());
    }
    Ok(())
}

/// The steps of this name; all without one.
fn chosen(only: Option<&str>) -> Result<Vec<&'static Step>> {
    let wanted = |step: &&Step| {
        only.is_none_or(|only| only == step.name || (only == TESTS && step.work == Work::Tests))
    };
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).chain([TESTS]).collect();
        bail!("there is no step of that name; there are {}", names.join(", "));
    }
    Ok(steps)
}

/// Does a step; what it answers is printed.
async fn work(step: &Step, charts: Option<&Path>) -> Result<String> {
    match (step.work, charts) {
        (Work::Starts(often, kinds), _) => Box::pin(starts(often, kinds)).await,
        (Work::Patches, _) => Box::pin(patches(charts)).await,
        (Work::Reach, _) => Box::pin(reach()).await,
        (Work::Tests, _) => run_tests::of_program(step.name).await,
        (Work::Crashes, _) => run_tests::crashes().await,
        (Work::Conformance, Some(charts)) => run_tests::conformance(charts).await,
        (Work::Conformance, None) => bail!("there is no corpus of charts"),
    }
}

/// The API server of an edge starts while work waits for it.
async fn starts(starts: usize, kinds: usize) -> Result<String> {
    let bed = Bed::start(starts::bed()).await?;
    starts::define(&bed, kinds).await?;
    let mut operator = Operator::start(&bed, &program()?).await?;
    let windows = Box::pin(starts::run(&bed, &mut operator, 1..=starts, kinds)).await?;
    // A bed ends with the last handle of its programs.
    drop(operator);
    bed.end().await?;
    ensure!(
        windows.incomplete > 0,
        "no start was seen to answer before it knew all kinds: nothing was shown ({windows})"
    );
    Ok(format!("nothing was lost or made anew in {starts} starts with {kinds} kinds; {windows}"))
}

/// Random connections, of which some become cases where a file for them is named.
async fn reach() -> Result<String> {
    if let Some(file) = std::env::var_os("EMCO_REACH_CASES") {
        let cases = reach::answered(SEED, CASES).await?;
        std::fs::write(&file, serde_json::to_string(&cases)? + "\n")
            .with_context(|| format!("{} cannot be written", Path::new(&file).display()))?;
    }
    reach::example().await?;
    let compared = reach::compare(SEED, CONNECTIONS).await?;
    compared.agree()?;
    Ok(compared.to_string())
}

/// Random patches of the objects of real charts.
async fn patches(charts: Option<&Path>) -> Result<String> {
    let mut objects = patches::samples()?;
    if let Some(folder) = charts {
        let charts = Corpus::open(folder)?.rendered("")?;
        objects.extend(rendered_objects(charts).await?);
    }
    let objects = patches::comparable(objects);
    let compared = Box::pin(patches::compare(&objects, SEED, PATCHES)).await?;
    compared.agree()?;
    Ok(format!("{compared}, of {} objects", objects.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Programs below `e2e/tests` in which a file declares a module `soak`.
    fn programs_with_soak() -> BTreeSet<String> {
        fn declares(path: &Path) -> bool {
            if path.is_dir() {
                let mut files = std::fs::read_dir(path).unwrap().map(|file| file.unwrap().path());
                return files.any(|file| declares(&file));
            }
            let is_source = path.extension().is_some_and(|kind| kind == "rs");
            is_source
                && std::fs::read_to_string(path)
                    .unwrap()
                    .lines()
                    .any(|line| ["mod soak;", "mod soak {"].contains(&line.trim()))
        }
        let folder = emco_e2e::operator::root().join("e2e/tests");
        let programs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let with_soak = programs.filter(|path| declares(path));
        with_soak.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn every_test_program_with_a_module_soak_is_a_step() {
        let steps = STEPS.iter().filter(|step| step.work == Work::Tests);
        let steps: BTreeSet<String> = steps.map(|step| step.name.to_owned()).collect();
        assert_eq!(steps, programs_with_soak(), "STEPS is left, programs with a module `soak` are right");
    }

    #[test]
    fn a_step_is_chosen_by_its_name_and_all_test_programs_by_one() {
        assert_eq!(chosen(None).unwrap().len(), STEPS.len());
        assert_eq!(
            chosen(Some("patches")).unwrap().iter().map(|step| step.name).collect::<Vec<_>>(),
            ["patches"]
        );
        assert!(chosen(Some("tests")).unwrap().iter().all(|step| step.work == Work::Tests));
        let refused = chosen(Some("oldes")).err().unwrap().to_string();
        assert!(refused.contains("there are oldest, image,") && refused.ends_with("tests"), "{refused}");
    }

    #[test]
    fn the_comparison_with_helm_is_refused_without_charts() {
        let args = SoakArgs { only: Some("conformance".to_owned()), charts: None };
        assert!(run(&args).unwrap_err().to_string().contains("make soak CHARTS=DIR"));
    }
}
