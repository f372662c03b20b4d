//! Runs the steps of `make soak`, one after the other.

mod charts;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{Operator, program, root};
use emco_e2e::{patches, starts};
use futures::future::BoxFuture;
use tokio::process::Command;

/// The command line.
#[derive(clap::Args)]
pub struct SoakArgs {
    /// Only the step of this name; all if absent.
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
    /// The folder with corpus.tar.xz, for steps that use real charts; they use samples alone if absent.
    #[arg(long, value_name = "DIR")]
    charts: Option<PathBuf>,
}

/// Of the random patches.
const SEED: u64 = 20_261_127;
/// Strategic merge patches that are compared.
const PATCHES: usize = 5000;

/// One step of the soak.
struct Step {
    name: &'static str,
    /// What it does, for people.
    about: &'static str,
    /// How long it takes on two quiet cores.
    minutes: u32,
    /// Does it, with the corpus of charts where there is one; what it returns is printed.
    run: fn(Option<PathBuf>) -> BoxFuture<'static, Result<String>>,
}

/// All steps, in order.
const STEPS: [Step; 4] = [
    Step {
        name: "starts-60",
        about: "the API server of an edge starts 25 times with 60 kinds while removals, ledgers, installs and plans wait for it",
        minutes: 20,
        run: |_| Box::pin(starts(25, 60)),
    },
    Step {
        name: "starts-600",
        about: "the same with 600 kinds",
        minutes: 40,
        run: |_| Box::pin(starts(25, 600)),
    },
    Step {
        name: "patches",
        about: "5000 random strategic merge patches, with JSON and merge patches, are compared with kubectl's",
        minutes: 10,
        run: |charts| Box::pin(patches(charts)),
    },
    Step {
        name: "conformance",
        about: "every chart of the corpus is rendered and upgraded as by Helm, with nothing left out that passed before",
        minutes: 10,
        run: |charts| Box::pin(conformance(charts)),
    },
];

/// Runs the steps.
pub fn run(args: &SoakArgs) -> Result<()> {
    let chosen = |step: &&Step| args.only.as_ref().is_none_or(|only| only == step.name);
    let steps: Vec<&Step> = STEPS.iter().filter(chosen).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step of that name; there are {}", names.join(", "));
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    for step in &steps {
        println!("{}: {}; takes about {} minutes", step.name, step.about, step.minutes);
    }
    for Step { name, run, .. } in steps {
        let begun = Instant::now();
        println!("{name}: begins");
        let result =
            runtime.block_on(run(args.charts.clone())).with_context(|| format!("step {name} failed"))?;
        println!("{name}: {result} ({} s)", begun.elapsed().as_secs());
    }
    Ok(())
}

/// The API server of an edge starts while work waits for it.
async fn starts(starts: usize, kinds: usize) -> Result<String> {
    let bed = Bed::start(starts::bed()).await?;
    starts::define(&bed, kinds).await?;
    let mut operator = Operator::start(&bed, &program()?).await?;
    let windows = Box::pin(starts::run(&bed, &mut operator, starts, kinds)).await?;
    // A bed ends with the last handle of its programs.
    drop(operator);
    bed.end().await?;
    ensure!(
        windows.incomplete > 0,
        "no start was seen to answer before it knew all kinds: nothing was shown ({windows})"
    );
    Ok(format!("nothing was lost or made anew in {starts} starts with {kinds} kinds; {windows}"))
}

/// Random patches of the objects of real charts.
async fn patches(charts: Option<PathBuf>) -> Result<String> {
    let mut objects = patches::samples()?;
    if let Some(folder) = charts {
        objects.extend(charts::objects(&folder).await?);
    }
    let objects = patches::comparable(objects);
    let compared = patches::compare(&objects, SEED, PATCHES).await?;
    compared.agree()?;
    Ok(format!("{compared}, of {} objects", objects.len()))
}

/// The whole comparison with Helm, where there is a corpus.
async fn conformance(charts: Option<PathBuf>) -> Result<String> {
    let Some(folder) = charts else { return Ok("left out, for CHARTS names no corpus".to_owned()) };
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let mut make = Command::new("make");
    make.arg("-C").arg(root()).args(["conformance", "ALL=yes"]);
    let status = make.arg(format!("CHARTS={}", folder.display())).kill_on_drop(true).status().await;
    ensure!(status.context("cannot start make")?.success(), "make conformance ALL=yes failed");
    Ok("all charts are as Helm makes them".to_owned())
}
