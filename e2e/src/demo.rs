//! Shows a deployment on three real control planes, or of a folder of charts, step by step, each step observed before the
//! next.

mod apps;
mod checks;
mod live;
mod look;
mod sample;
mod screen;
mod stage;
mod view;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::signal::unix::{Signal, SignalKind, signal};

use apps::Apps;
use emco_e2e::repository::Repository;
use screen::Screen;
use stage::Stage;

/// For a deployment to be ready: a big folder of charts on a small machine.
const READY: Duration = Duration::from_mins(10);
/// For everything else.
const SOON: Duration = Duration::from_mins(3);

/// The command line.
#[derive(clap::Args)]
pub struct DemoArgs {
    /// The operator's program.
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
    /// Deploy every packaged chart (.tgz) of this folder instead of our own.
    #[arg(long, env = "EMCO_DEMO_APPS", value_name = "DIR")]
    apps: Option<PathBuf>,
}

/// Runs the demo until its end, or on a terminal until Ctrl-C.
pub fn run(args: &DemoArgs) -> Result<()> {
    ensure!(
        args.operator.is_file(),
        "there is no operator at {}: build it first (`make build`)",
        args.operator.display()
    );
    // Before anything is started: a folder without charts needs no control planes to be refused.
    let folder = args.apps.as_deref().filter(|dir| !dir.as_os_str().is_empty());
    let apps = folder.map(Apps::of_folder).transpose()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(Box::pin(play(args, apps)))
}

async fn play(args: &DemoArgs, apps: Option<Apps>) -> Result<()> {
    let mut told = Told::listen()?;
    let screen = Screen::new();
    let stage = tokio::select! {
        stage = Box::pin(Stage::start(&screen, &args.operator)) => stage?,
        error = told.the_end() => return Err(error),
    };
    let (result, told_to_end) = tokio::select! {
        result = Box::pin(story(&stage, &screen, apps)) => (result, false),
        error = told.the_end() => (Err(error), true),
    };
    match &result {
        Ok(_) if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            screen.say("It all stays until Ctrl-C.");
            told.the_end().await;
        }
        Err(error) if !told_to_end => stage.explain(&screen, error).await,
        _ => {}
    }
    screen.step("Ending everything");
    stage.end().await?;
    result?;
    screen.say("Every step was observed; nothing is left running.");
    Ok(())
}

/// All of it. What it answers is kept until the end: a server of charts.
async fn story(stage: &Stage, screen: &Screen, apps: Option<Apps>) -> Result<Option<Repository>> {
    stage.register_clusters(screen).await?;
    let server = if let Some(apps) = &apps {
        Some(apps.play(stage, screen).await?)
    } else {
        sample::play(stage, screen).await?;
        None
    };
    look::around(stage, screen, apps.as_ref().map_or(sample::PROJECT, |_| apps::PROJECT));
    Ok(server)
}

/// Signals that ask for the end, listened to from the first moment, so that none is lost between two waits.
struct Told {
    interrupted: Signal,
    terminated: Signal,
}

impl Told {
    fn listen() -> Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?,
            terminated: signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?,
        })
    }

    async fn the_end(&mut self) -> anyhow::Error {
        tokio::select! {
            _ = self.interrupted.recv() => anyhow!("interrupted"),
            _ = self.terminated.recv() => anyhow!("told to end"),
        }
    }
}
