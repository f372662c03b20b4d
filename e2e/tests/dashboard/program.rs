//! `kubectl emco dashboard`, which serves until it is dropped.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::program;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::stage::kubeconfig;

/// For one line, or the end of the program.
const PATIENCE: Duration = Duration::from_secs(45);

/// A dashboard that serves.
pub struct Dashboard {
    child: Child,
    /// As it was printed.
    pub link: String,
    /// Where it listens.
    pub port: u16,
    /// Without a reader it could not print any more.
    _lines: Lines<BufReader<ChildStdout>>,
}

fn command(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Command> {
    let emco = program()?.with_file_name("kubectl-emco");
    ensure!(emco.is_file(), "there is no {}: build it with `cargo build -p emco-operator`", emco.display());
    let mut command = Command::new(emco.canonicalize()?);
    command
        .arg("dashboard")
        .args(args)
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("PATH", bed.hub().kubectl().program().parent().context("kubectl is in a folder")?)
        .env("HOME", bed.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// Runs it to its end, which has to come by itself.
pub async fn ended(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Output> {
    let mut command = command(bed, kubeconfig, args)?;
    let output = tokio::time::timeout(PATIENCE, bed.hear(&mut command)).await;
    output.with_context(|| format!("kubectl emco dashboard {args:?} goes on"))?
}

impl Dashboard {
    /// Starts it as a user of the hub.
    pub async fn start(bed: &Bed, user: &str, args: &[&str]) -> Result<Self> {
        Self::start_with(bed, &kubeconfig(bed, user)?, args).await
    }

    /// Starts it as the administrator of the hub.
    pub async fn of_administrator(bed: &Bed, args: &[&str]) -> Result<Self> {
        Self::start_with(bed, bed.hub().kubectl().kubeconfig(), args).await
    }

    /// Starts it with a kubeconfig, and reads the link that it prints.
    pub async fn start_with(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Self> {
        let mut child = command(bed, kubeconfig, args)?.spawn().context("it does not start")?;
        let mut lines = BufReader::new(child.stdout.take().context("it has no standard output")?).lines();
        let printed = async {
            while let Some(line) = lines.next_line().await? {
                bed.printed().keep(args, &[line.as_bytes()])?;
                if let Some(link) = line.split_whitespace().find(|word| word.starts_with("http://")) {
                    return Ok(link.to_owned());
                }
            }
            bail!("it ended without a link")
        };
        let link = match tokio::time::timeout(PATIENCE, printed).await {
            Ok(Ok(link)) => link,
            failed => {
                drop(child.start_kill());
                let mut said = String::new();
                if let Some(errors) = &mut child.stderr {
                    errors.read_to_string(&mut said).await?;
                }
                bail!("kubectl emco dashboard {args:?} printed no link ({failed:?}): {said}");
            }
        };
        let address = link.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let port = address.strip_prefix("127.0.0.1:").and_then(|port| port.parse().ok());
        let port = port.with_context(|| format!("{address} is no port of 127.0.0.1"))?;
        Ok(Self { child, link, port, _lines: lines })
    }

    /// The path of the link, with the secret and without a slash at its end.
    pub fn path(&self) -> &str {
        let rest = self.link.trim_start_matches("http://");
        rest.find('/').map_or("", |at| rest[at..].trim_end_matches('/'))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Ends it as Ctrl-C does, and answers its exit code.
    pub async fn interrupt(mut self) -> Result<Option<i32>> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).context("it has ended before")?;
        kill_process(pid, Signal::INT)?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        Ok(status.context("it goes on after Ctrl-C")??.code())
    }
}
