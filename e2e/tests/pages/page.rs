//! In: a page of the book. Out: its commands, one after the other, in a shell.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{program, root};
use emco_e2e::programs::Program;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// What is printed by it is searched for secrets.
const EMCO: &str = "kubectl emco";
/// For one command.
const PATIENCE: Duration = Duration::from_mins(3);

/// A page with the commands that were not run yet.
pub struct Page<'a> {
    bed: &'a Bed,
    name: &'static str,
    left: VecDeque<String>,
}

/// Where the commands run: a folder that looks like a checkout, with the programs in its `bin`.
pub fn folder(bed: &Bed) -> Result<PathBuf> {
    let folder = bed.dir().join("reader");
    if !folder.is_dir() {
        std::fs::create_dir_all(folder.join("bin"))?;
        for name in ["charts", "config"] {
            std::os::unix::fs::symlink(root().join(name).canonicalize()?, folder.join(name))?;
        }
        let emco = program()?.with_file_name("kubectl-emco").canonicalize()?;
        let (kubectl, helm) = (bed.programs().path(Program::Kubectl)?, bed.programs().path(Program::Helm)?);
        for (name, file) in [("kubectl", kubectl), ("helm", helm), ("kubectl-emco", &emco)] {
            std::os::unix::fs::symlink(file, folder.join("bin").join(name))?;
        }
    }
    Ok(folder)
}

/// The commands of the console blocks; what a command prints is left out.
pub fn commands(text: &str) -> VecDeque<String> {
    let mut found = VecDeque::new();
    for block in text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let mut open = false;
        for line in block.lines() {
            // Blocks within a list are indented.
            let line = line.strip_prefix("   $").map_or_else(|| line.to_owned(), |rest| format!("${rest}"));
            if let Some(command) = line.strip_prefix("$ ") {
                found.push_back(command.to_owned());
            } else if open && let Some(last) = found.back_mut() {
                last.push('\n');
                last.push_str(&line);
            } else {
                continue;
            }
            open = line.ends_with('|') || line.ends_with('\\');
        }
    }
    found
}

/// Bash finds nothing wrong with how it is written.
pub async fn is_read_by_bash(command: &str) -> Result<()> {
    let read = Command::new("bash").args(["-n", "-c", command]).stdin(Stdio::null()).output().await?;
    ensure!(read.status.success(), "{command}: {}", String::from_utf8_lossy(&read.stderr));
    Ok(())
}

impl<'a> Page<'a> {
    pub fn read(bed: &'a Bed, name: &'static str) -> Result<Self> {
        let text = std::fs::read_to_string(root().join("docs").join(name))?;
        Ok(Self { bed, name, left: commands(&text) })
    }

    /// Commands that stand elsewhere.
    pub fn of(bed: &'a Bed, name: &'static str, commands: Vec<String>) -> Self {
        Self { bed, name, left: commands.into() }
    }

    /// The next command, which begins so, and is run elsewhere.
    pub fn take(&mut self, begins: &str) -> Result<String> {
        let next = self
            .left
            .pop_front()
            .with_context(|| format!("{} has no command {begins:?} any more", self.name))?;
        ensure!(next.starts_with(begins), "the next command of {} is {next:?}, not {begins:?}", self.name);
        Ok(next)
    }

    /// The next command, which is exactly this, and cannot run here: it needs a container engine. That bash reads it is checked.
    pub async fn take_exactly(&mut self, command: &str) -> Result<()> {
        let next = self.take(command)?;
        ensure!(next == command, "the next command of {} is {next:?}, not {command:?}", self.name);
        is_read_by_bash(&next).await
    }

    /// Runs the next command, which begins so, as printed: on the hub.
    pub async fn run(&mut self, begins: &str) -> Result<String> {
        self.run_on("hub", begins).await
    }

    /// The same where `context` is the current one.
    pub async fn run_on(&mut self, context: &str, begins: &str) -> Result<String> {
        self.run_to(context, begins, 0).await
    }

    /// Runs the next command, which begins so and ends with an exit code.
    pub async fn run_to(&mut self, context: &str, begins: &str, code: i32) -> Result<String> {
        let command = self.take(begins)?;
        self.execute(context, &command, code).await
    }

    /// Runs a command that stands so, or nearly so, on the page.
    pub async fn execute(&self, context: &str, command: &str, code: i32) -> Result<String> {
        let mut shell = self.bash(context, command)?;
        let run = async {
            // Other programs print what they are asked for.
            if command.contains(EMCO) {
                self.bed.hear(&mut shell).await
            } else {
                shell.output().await.map_err(anyhow::Error::from)
            }
        };
        let output = tokio::time::timeout(PATIENCE, run)
            .await
            .with_context(|| format!("{command} takes too long"))??;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(
            output.status.code() == Some(code),
            "{}: {command}\n{}: {out}{err}",
            self.name,
            output.status
        );
        Ok(out.into_owned())
    }

    /// Runs the next command, which begins so and goes on for ever, until it has printed some words.
    pub async fn run_until(&mut self, begins: &str, words: &str) -> Result<()> {
        let command = self.take(begins)?;
        let mut child = self.bash("hub", &command)?.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("it has no standard output")?).lines();
        let seen = async {
            while let Some(line) = lines.next_line().await? {
                if command.contains(EMCO) {
                    self.bed.printed().keep(&[&command], &[line.as_bytes()])?;
                }
                if line.contains(words) {
                    return Ok(());
                }
            }
            bail!("{command} ended without {words:?}")
        };
        tokio::time::timeout(PATIENCE, seen)
            .await
            .with_context(|| format!("{command} does not say {words:?}"))?
    }

    /// A shell as people have it: their folder, their programs, their kubeconfig.
    fn bash(&self, context: &str, command: &str) -> Result<Command> {
        let folder = folder(self.bed)?;
        // As `kubectl config use-context` leaves it.
        let all = std::fs::read_to_string(folder.join("all.kubeconfig"))?;
        let current = all.replacen("current-context: hub", &format!("current-context: {context}"), 1);
        std::fs::write(folder.join("config.yaml"), current)?;
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(&folder)
            .env("PATH", path)
            .env("KUBECONFIG", folder.join("config.yaml"))
            .env("HOME", &folder)
            // As in `kubectl.rs`: programs that end soon collect no garbage.
            .env("GOGC", "400")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(shell)
    }

    /// Nothing is left.
    pub fn end(self) -> Result<()> {
        ensure!(self.left.is_empty(), "commands of {} that are not run: {:?}", self.name, self.left);
        Ok(())
    }
}

/// The blocks of YAML of a page.
pub fn yaml(text: &str) -> Vec<&str> {
    text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
