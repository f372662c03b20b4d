//! Runs kubectl against a plane.

mod apply;
mod change;
pub(crate) mod kinds;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, setpriority_process};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::launch;

/// For one call.
const PATIENCE: Duration = Duration::from_mins(3);
/// Until a server heeds a rule, and how often it is asked: soon at first, then once in a while.
const HEEDED: Duration = Duration::from_mins(2);
const HEEDED_FIRST: Duration = Duration::from_millis(200);
const HEEDED_EVERY: Duration = Duration::from_secs(1);
/// Niceness that leaves the processor to everything else.
const LOWEST: i32 = 19;

/// kubectl with the kubeconfig of one plane.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    /// Whether it leaves the processor to everything else.
    low_priority: bool,
}

/// How a call of kubectl ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it exited with 0.
    pub fn is_ok(&self) -> bool {
        self.code == Some(0)
    }
}

impl Kubectl {
    pub(crate) fn new(program: &Path, dir: &Path) -> Self {
        Self {
            program: program.to_owned(),
            kubeconfig: dir.join("kubeconfig"),
            home: dir.to_owned(),
            low_priority: false,
        }
    }

    /// The file that it uses as kubeconfig: user `tester`, past the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program itself.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The same kubectl with another kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(&self, file: &Path) -> Self {
        Self { kubeconfig: file.to_owned(), ..self.clone() }
    }

    /// The same kubectl with the lowest priority, as if it ran on another machine: for measuring what its requests cost.
    #[must_use]
    pub fn at_low_priority(&self) -> Self {
        Self { low_priority: true, ..self.clone() }
    }

    /// Runs it and answers its standard output; an exit code other than 0 is an error with what it said. A patch, a label, an
    /// annotation or the deletion of one object of a kind that tests know is sent without the program; what is refused is said in
    /// kubectl's own words.
    pub async fn run(&self, args: &[&str]) -> Result<String> {
        if let Some(change) = change::of(args).filter(|_| !self.low_priority)
            && let Ok(said) = change::carry_out(&self.kubeconfig, change).await
        {
            return Ok(said);
        }
        self.run_with(args, "").await
    }

    /// As [`Kubectl::run`], with text for its standard input.
    pub async fn run_with(&self, args: &[&str], input: &str) -> Result<String> {
        let output = self.output(args, input).await?;
        if !output.is_ok() {
            bail!("kubectl {} failed:\n{}{}", args.join(" "), output.stdout, output.stderr);
        }
        Ok(output.stdout)
    }

    /// Runs it and answers how it ended, whatever it says.
    pub async fn output(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut child = Command::from(launch::tied(&self.program)?)
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            // It ends before much garbage is worth collecting: so it uses a third less of the processor.
            .env("GOGC", "400")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start kubectl")?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid.filter(|_| self.low_priority) {
            // One that ended already needs none.
            let _ = setpriority_process(Some(pid), LOWEST);
        }
        let mut stdin = child.stdin.take().context("kubectl has no standard input")?;
        let written = async move {
            // It need not read all of it to refuse it.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let both = async { tokio::join!(written, child.wait_with_output()).1 };
        let output = tokio::time::timeout(PATIENCE, both)
            .await
            .with_context(|| format!("kubectl {} takes too long", args.join(" ")))?
            .context("cannot wait for kubectl")?;
        Ok(Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs it again and again until it succeeds, or until it is refused. No watch tells when a server heeds a new rule.
    pub async fn until(&self, args: &[&str], input: &str, succeeds: bool) -> Result<()> {
        let end = Instant::now() + HEEDED;
        let mut pause = HEEDED_FIRST;
        loop {
            let output = self.output(args, input).await?;
            if output.is_ok() == succeeds {
                return Ok(());
            }
            ensure!(Instant::now() < end, "kubectl {} still ends so: {output:?}\n{input}", args.join(" "));
            sleep(pause).await;
            // Each time is a process.
            pause = (pause * 2).min(HEEDED_EVERY);
        }
    }

    /// Applies YAML text on the server's side. What succeeds needs no program; what is refused is said in kubectl's own words.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        self.applied(None, yaml).await
    }

    /// Applies YAML text on the server's side; objects that name no namespace go to `namespace`.
    pub async fn apply_to(&self, namespace: &str, yaml: &str) -> Result<String> {
        self.applied(Some(namespace), yaml).await
    }

    async fn applied(&self, namespace: Option<&str>, yaml: &str) -> Result<String> {
        if !self.low_priority {
            let applied = apply::apply(&self.kubeconfig, namespace, yaml);
            if let Ok(Ok(said)) = tokio::time::timeout(PATIENCE, Box::pin(applied)).await {
                return Ok(said);
            }
        }
        let mut args = vec!["apply", "--server-side", "-f", "-"];
        args.extend(namespace.into_iter().flat_map(|namespace| ["-n", namespace]));
        self.run_with(&args, yaml).await
    }

    /// Applies a file, or a folder with all below it, on the server's side.
    pub async fn apply_path(&self, path: &Path) -> Result<String> {
        self.run(&["apply", "--server-side", "--recursive", "-f", &path.display().to_string()]).await
    }
}
