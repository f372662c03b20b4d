//! In: words of a command line. Out: what the program said; and the stage on which it says it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{SharedOperator, program};
use emco_e2e::secrets::Printed;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Mutex, MutexGuard};

/// `a` and `b` are registered with the provider acme, `b` behind a proxy. `c` grants bound tokens for a day only. `e` comes and goes, by
/// one test after the other. `g` has no rights but those of a printed role, and `i` has the rights of level Standard.
pub static STAGE: SharedOperator = SharedOperator::new(
    || {
        BedSpec::bare_hub()
            .with(PlaneSpec::new("a", Parts::Controllers))
            .with(PlaneSpec::new("b", Parts::Controllers).proxied())
            .with(
                PlaneSpec::new("c", Parts::Controllers)
                    .api_flag("--service-account-max-token-expiration=24h"),
            )
            .with(PlaneSpec::new("e", Parts::Controllers))
            .with(PlaneSpec::new("g", Parts::Controllers))
            .with(PlaneSpec::edge("i").audit(Audit::All))
    },
    &["a", "b"],
);

/// For clusters that come and go. Every other project of the stage would have a namespace on them, each of which a cluster takes seconds
/// to delete.
const APART: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: apart, labels: {emco.io/provider: apart}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: apart}
spec: {grants: [{name: few, projects: [moves, removes, rotates], maxLevel: Admin}]}
";

/// Makes the provider `apart`, whose clusters are granted to few projects.
pub async fn apart(bed: &Bed) -> Result<()> {
    bed.hub().kubectl().apply(APART).await.map(drop)
}

/// Waits for the turn to register the plane `e` with the provider `apart`, and until what the test before removed there is gone. Whoever
/// has it takes the cluster off the hub in the end.
pub async fn lend_e(bed: &Bed) -> Result<MutexGuard<'static, ()>> {
    static LENT: Mutex<()> = Mutex::const_new(());
    let turn = LENT.lock().await;
    apart(bed).await?;
    // They are collected after `cluster remove` has ended.
    for gone in ["clusterrole/emco-hub", "namespace/emco-system"] {
        bed.edge("e").kubectl().run(&["wait", gone, "--for=delete", "--timeout=120s"]).await?;
    }
    Ok(turn)
}

/// For one call.
const PATIENCE: Duration = Duration::from_mins(3);

/// What it said, and its exit code.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// It ended with this code, and standard output and error together hold these words.
    #[track_caller]
    pub fn is(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        for word in words {
            assert!(
                self.out.contains(word) || self.err.contains(word),
                "{word:?} is not in:\n{}\n{}",
                self.out,
                self.err
            );
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.out, self.err))
    }
}

/// The program.
pub fn emco() -> Result<PathBuf> {
    let file = program()?.with_file_name("kubectl-emco");
    ensure!(file.is_file(), "there is no {}: build it with `cargo build -p emco-operator`", file.display());
    file.canonicalize().context("the program has no path")
}

/// The program with a kubeconfig, to be started.
pub fn command(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Command> {
    let mut command = Command::new(emco()?);
    command
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

/// Runs it as the administrator of the hub.
pub async fn run(bed: &Bed, args: &[&str]) -> Result<Said> {
    run_as(bed, bed.hub().kubectl().kubeconfig(), args).await
}

/// Runs it as the administrator of the hub, with a file as its standard input.
pub async fn run_fed(bed: &Bed, input: &Path, args: &[&str]) -> Result<Said> {
    let mut command = command(bed, bed.hub().kubectl().kubeconfig(), args)?;
    command.stdin(std::fs::File::open(input)?);
    said(bed, command, args).await
}

/// Runs it with a kubeconfig.
pub async fn run_as(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Said> {
    said(bed, command(bed, kubeconfig, args)?, args).await
}

/// Runs it as the administrator of the hub, with the programs of a folder.
pub async fn run_with(bed: &Bed, programs: &Path, args: &[&str]) -> Result<Said> {
    let mut command = command(bed, bed.hub().kubectl().kubeconfig(), args)?;
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    said(bed, command, args).await
}

async fn said(bed: &Bed, mut command: Command, args: &[&str]) -> Result<Said> {
    let output = tokio::time::timeout(PATIENCE, bed.hear(&mut command))
        .await
        .with_context(|| format!("kubectl emco {} takes too long", args.join(" ")))??;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) })
}

/// A program that goes on, line by line. It ends when dropped.
pub struct Running {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    printed: Printed,
    args: Vec<String>,
}

impl Running {
    pub fn start(bed: &Bed, args: &[&str]) -> Result<Self> {
        Self::start_as(bed, bed.hub().kubectl().kubeconfig(), args)
    }

    pub fn start_as(bed: &Bed, kubeconfig: &Path, args: &[&str]) -> Result<Self> {
        let mut child = command(bed, kubeconfig, args)?.spawn()?;
        let out = child.stdout.take().context("it has no standard output")?;
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Ok(Self { _child: child, lines: BufReader::new(out).lines(), printed: bed.printed(), args })
    }

    /// The next line that holds a text.
    pub async fn until(&mut self, words: &str) -> Result<String> {
        let mut seen = String::new();
        let found = async {
            while let Some(line) = self.lines.next_line().await? {
                self.printed.keep(&self.args, &[line.as_bytes()])?;
                if line.contains(words) {
                    return Ok(line);
                }
                seen.push_str(&line);
                seen.push('\n');
            }
            anyhow::bail!("it ended without {words:?}")
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found
            .map_err(|_| anyhow::anyhow!("no line with {words:?} came"))
            .and_then(|found| found)
            .with_context(|| seen)
    }
}

/// A file of the bed.
pub async fn file(bed: &Bed, name: &str, text: &str) -> Result<PathBuf> {
    let path = bed.dir().join(name);
    // Tests that run at once write the same file: who reads it has all of the one or of the other.
    let whole = tempfile::NamedTempFile::new_in(bed.dir())?;
    std::fs::write(whole.path(), text)?;
    whole.persist(&path)?;
    Ok(path)
}
