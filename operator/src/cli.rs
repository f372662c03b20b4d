//! A command line of `kubectl emco` comes in; what the hub says about it goes out, and an exit code that scripts can judge by.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind as Usage;

mod absence;
pub mod add;
mod adopt;
pub mod args;
mod charts;
mod check;
mod clusters;
mod complete;
mod dashboard;
mod decide;
mod diff;
mod digest;
mod explain;
mod git;
mod history;
mod hold;
mod hub;
mod manifests;
mod objects;
mod on_edge;
mod orphans;
mod output;
mod plan;
mod pulse;
mod rebuild;
mod reconcile;
mod reference;
mod remove;
mod role;
mod rotate;
mod scheduling;
mod status;
mod stored;
mod uninstall;
mod wait;
mod watched;

use args::{Args, ChartCommand, ClusterCommand, Command, DeploymentCommand};
pub use stored::answer::Operator;

/// How a command ended, besides errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and everything that was asked about is as wanted.
    AsWanted,
    /// Done, and something is not as wanted.
    NotAsWanted,
    /// A plan would change something.
    WouldChange,
    /// A plan is refused.
    WouldBeRefused,
    /// A command that was run for the user ended with this code.
    Exited(u8),
}

/// Exit code of an error.
const ERROR: u8 = 1;
/// Exit code of a command line that cannot be understood.
const USAGE: u8 = 2;
/// Exit code of [`Outcome::NotAsWanted`].
const NOT_AS_WANTED: u8 = 3;
/// Exit code of [`Outcome::WouldChange`].
const WOULD_CHANGE: u8 = 2;
/// Exit code of [`Outcome::WouldBeRefused`].
const WOULD_BE_REFUSED: u8 = 4;

/// Runs what the process was called with.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let asked = matches!(error.kind(), Usage::DisplayHelp | Usage::DisplayVersion);
            // Nothing is left to be said to whoever closed the pipe.
            let _ = error.print();
            return if asked { ExitCode::SUCCESS } else { ExitCode::from(USAGE) };
        }
    };
    // Before anything can make a TLS client, so that all agree on one provider.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return fail("a TLS provider is installed already");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the threads cannot be started: {error}")),
    };
    let result = runtime.block_on(Box::pin(run(args)));
    // A plug-in that still runs, or a name that is still being looked up, holds nobody up.
    runtime.shutdown_background();
    match result {
        Ok(Outcome::AsWanted) => ExitCode::SUCCESS,
        Ok(Outcome::NotAsWanted) => ExitCode::from(NOT_AS_WANTED),
        Ok(Outcome::WouldChange) => ExitCode::from(WOULD_CHANGE),
        Ok(Outcome::WouldBeRefused) => ExitCode::from(WOULD_BE_REFUSED),
        Ok(Outcome::Exited(code)) => ExitCode::from(code),
        Err(error) => {
            let code = fail(&format!("{error:#}"));
            if error.is::<Misused>() { ExitCode::from(USAGE) } else { code }
        }
    }
}

/// A command line that clap accepts and that means nothing.
#[derive(Debug)]
pub struct Misused(pub String);

impl std::fmt::Display for Misused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misused {}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {}", output::printable(why));
    ExitCode::from(ERROR)
}

async fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Cluster { command } => match command {
            ClusterCommand::Add(args) => Box::pin(add::run(*args)).await,
            ClusterCommand::Cordon(args) => Box::pin(scheduling::cordon(args)).await,
            ClusterCommand::Uncordon(args) => Box::pin(scheduling::uncordon(args)).await,
            ClusterCommand::Drain(args) => Box::pin(scheduling::drain(args)).await,
            ClusterCommand::Rotate(args) => Box::pin(rotate::run(*args)).await,
            ClusterCommand::Remove(args) => Box::pin(remove::run(args)).await,
        },
        Command::Chart { command: ChartCommand::Push(args) } => Box::pin(charts::push::run(args)).await,
        Command::Check(args) => Box::pin(check::run(args)).await,
        Command::Clusters(args) => clusters::run(args).await,
        Command::Status(args) => Box::pin(status::run(args)).await,
        Command::Dashboard(args) => Box::pin(dashboard::run(args)).await,
        Command::Diff(args) => Box::pin(diff::run(args)).await,
        Command::Orphans(args) if args.rebuild => Box::pin(rebuild::run(args)).await,
        Command::Orphans(args) => orphans::run(args).await,
        Command::Uninstall(args) => Box::pin(uninstall::run(args)).await,
        Command::Deployment(command) => Box::pin(deployment(command)).await,
        Command::Completion { shell } => complete::script(shell).map(|()| Outcome::AsWanted),
        Command::Complete { words } => Box::pin(complete::words(&words)).await.map(|()| Outcome::AsWanted),
        Command::Reference => print(&reference::page()).map(|()| Outcome::AsWanted),
        Command::Version => {
            print(&format!("kubectl-emco {}\n", *crate::version::VERSION))?;
            Ok(Outcome::AsWanted)
        }
    }
}

async fn deployment(command: DeploymentCommand) -> anyhow::Result<Outcome> {
    match command {
        DeploymentCommand::Get(args) => Box::pin(objects::run(args)).await,
        DeploymentCommand::Manifests(args) => Box::pin(manifests::run(args)).await,
        DeploymentCommand::History(args) => Box::pin(history::run(args)).await,
        DeploymentCommand::Rollback(args) => Box::pin(hold::rollback(args)).await,
        DeploymentCommand::Suspend(args) => Box::pin(hold::suspend(args)).await,
        DeploymentCommand::Resume(args) => Box::pin(hold::resume(args)).await,
        DeploymentCommand::Adopt(args) => Box::pin(adopt::run(args)).await,
        DeploymentCommand::Plan(args) => Box::pin(plan::run(*args)).await,
        DeploymentCommand::Digest(args) => Box::pin(digest::run(args)).await,
        DeploymentCommand::Approve(args) => Box::pin(decide::approve(args)).await,
        DeploymentCommand::Reject(args) => Box::pin(decide::reject(args)).await,
        DeploymentCommand::Confirm(args) => Box::pin(decide::confirm::run(args)).await,
        DeploymentCommand::Reconcile(args) => Box::pin(reconcile::run(args)).await,
        DeploymentCommand::Wait(args) => Box::pin(wait::run(args)).await,
        DeploymentCommand::Explain(args) => Box::pin(explain::run(args)).await,
        DeploymentCommand::Reach(args) => Box::pin(explain::reach::run(args)).await,
        DeploymentCommand::Test(args) => Box::pin(charts::tested::run(args)).await,
        DeploymentCommand::Role(args) => Box::pin(role::run(args)).await,
        DeploymentCommand::Logs(args) => Box::pin(on_edge::logs(args)).await,
        DeploymentCommand::Exec(args) => Box::pin(on_edge::exec(args)).await,
        DeploymentCommand::Events(args) => Box::pin(on_edge::events::run(args)).await,
        DeploymentCommand::Edge(args) => Box::pin(on_edge::edge(args)).await,
    }
}

/// Writes to standard output. Who reads only the beginning has what they wanted.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(output::printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::anyhow!("standard output cannot be written: {error}")),
        Ok(()) => Ok(()),
    }
}
