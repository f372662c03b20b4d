//! A command line of `kubectl emco` comes in; what the hub says about it goes out, and an exit code that scripts can judge by.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind as Usage;

pub mod add;
pub mod args;
mod clusters;
mod complete;
mod diff;
mod hub;
mod orphans;
mod output;
mod pulse;
mod rebuild;
mod status;

use args::{Args, ClusterCommand, Command};

/// How a command ended, besides errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and everything that was asked about is as wanted.
    AsWanted,
    /// Done, and something is not as wanted.
    NotAsWanted,
}

/// Exit code of an error.
const ERROR: u8 = 1;
/// Exit code of a command line that cannot be understood.
const USAGE: u8 = 2;
/// Exit code of [`Outcome::NotAsWanted`].
const NOT_AS_WANTED: u8 = 3;

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
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(ERROR)
}

async fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.command {
        Command::Cluster { command: ClusterCommand::Add(args) } => Box::pin(add::run(*args)).await,
        Command::Clusters(args) => clusters::run(args).await,
        Command::Status(args) => Box::pin(status::run(args)).await,
        Command::Diff(args) => Box::pin(diff::run(args)).await,
        Command::Orphans(args) if args.rebuild => Box::pin(rebuild::run(args)).await,
        Command::Orphans(args) => orphans::run(args).await,
        Command::Completion { shell } => complete::script(shell).map(|()| Outcome::AsWanted),
        Command::Complete { words } => complete::words(&words).map(|()| Outcome::AsWanted),
        Command::Version => {
            print(&format!("kubectl-emco {}\n", env!("CARGO_PKG_VERSION")))?;
            Ok(Outcome::AsWanted)
        }
    }
}

/// Writes to standard output. Who reads only the beginning has what they wanted.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::anyhow!("standard output cannot be written: {error}")),
        Ok(()) => Ok(()),
    }
}
