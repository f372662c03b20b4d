//! Finds or builds programs, runs a bed, or is one of the helper processes of a bed.

mod bench;
mod conformance;
mod demo;
mod soak_steps;
mod up;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use emco_e2e::fake_edges::fleet;
use emco_e2e::package::Package;
use emco_e2e::programs::{Program, Programs, prepare_browser, prepare_shells};
use emco_e2e::{launch, supervisor};

#[derive(Parser)]
#[command(version, about = "Real control planes on one machine")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find the programs that tests run, fetching or building those that this machine lacks, and print where they are.
    Programs {
        /// Such as kube-apiserver or helm. If none is named: all of `make test`, and the shells that it types into.
        names: Vec<String>,
    },
    /// Build the operator as it was before its last change, for `make soak STEP=upgrade`, and print where it is.
    Before,
    /// Simulate many clusters on loopback until Ctrl-C: API servers that store what they are sent.
    Fleet(fleet::FleetArgs),
    /// Run control planes until Ctrl-C, and print their kubeconfigs.
    Up {
        /// Full clusters edge-1 to edge-N, with one node each, beside the hub.
        #[arg(long, default_value_t = 1)]
        edges: usize,
    },
    /// Show a deployment on three real control planes.
    Demo(demo::DemoArgs),
    /// Deploy real charts on two edges, and compare what is there with what real Helm makes of them.
    Conformance(conformance::ConformanceArgs),
    /// Measure, print a table and write target/bench/AREA.json.
    Bench(bench::BenchArgs),
    /// Repeat for long what tests do a few times; stops at the first step that fails.
    Soak(soak_steps::SoakArgs),
    /// Package the chart in a folder, the same bytes for the same files, and print the file's name.
    Package {
        /// The folder with Chart.yaml.
        chart: PathBuf,
        /// Where the archive goes.
        #[arg(long, default_value = ".")]
        destination: PathBuf,
    },
    /// Own the programs of a test bed until standard input closes.
    #[command(hide = true)]
    Supervise,
    /// Become a program that ends with the process that wanted it.
    #[command(hide = true)]
    Launch {
        #[arg(long)]
        tell: bool,
        parent: u32,
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a backtrace, whatever the environment says: whoever reads it wants the cause.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Programs { names } => programs(&names),
        Command::Before => before(),
        Command::Fleet(args) => {
            let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
            runtime.block_on(Box::pin(fleet::run(&args)))
        }
        Command::Up { edges } => up::up(edges),
        Command::Demo(args) => demo::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Soak(args) => soak_steps::run(&args),
        Command::Package { chart, destination } => {
            let package = Package::of_folder(&chart)?;
            let file = destination.join(package.file_name());
            std::fs::write(&file, &package.bytes)
                .with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}", file.display());
            Ok(())
        }
        Command::Supervise => supervisor::serve(),
        Command::Launch { tell, parent, program } => match program.split_first() {
            Some((program, args)) => Err(launch::become_program(parent, tell, program, args)),
            None => bail!("no program to launch"),
        },
    }
}

fn before() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    match runtime.block_on(emco_e2e::before::prepare())? {
        Some(program) => println!("{}", program.display()),
        None => println!("this checkout has no history"),
    }
    Ok(())
}

fn programs(names: &[String]) -> Result<()> {
    let mut wanted = Vec::new();
    for name in names {
        match Program::by_name(name) {
            Some(program) => wanted.push(program),
            None => {
                bail!("no program is called {name}; there are {}", Program::ALL.map(Program::name).join(", "))
            }
        }
    }
    if names.is_empty() {
        wanted.extend(Program::ALL.into_iter().filter(|program| !program.is_for_soak()));
        prepare_shells();
        prepare_browser();
    }
    let programs = Programs::get_blocking(&wanted)?;
    for (program, version, path) in programs.all() {
        println!("{} {version} {}", program.name(), path.display());
    }
    Ok(())
}
