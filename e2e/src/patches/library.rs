//! Asks Kubernetes' own library: a process that merges strategic merge patches, and reads the tags of the types.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use emco_engine::edits::Patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::Case;
use crate::launch;
use crate::programs::{Program, Programs};

/// For the answers to one call.
const PATIENCE: Duration = Duration::from_mins(3);

/// The process while it answers.
pub(super) struct Library {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

#[derive(Serialize)]
struct Question<'a> {
    object: &'a Value,
    patch: &'a Value,
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Value>,
    error: Option<String>,
}

impl Library {
    pub(super) async fn start() -> Result<Self> {
        let mut child = command()
            .await?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("patch-checks does not start")?;
        let stdin = child.stdin.take().context("patch-checks has no standard input")?;
        let stdout = child.stdout.take().context("patch-checks has no standard output")?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout).lines() })
    }

    /// The result of each strategic merge patch, or the words in which the library refuses it.
    pub(super) async fn answers(&mut self, cases: &[Case]) -> Result<Vec<Result<Value, String>>> {
        let mut asked = Vec::new();
        for Case { object, patch } in cases {
            let Patch::Strategic(patch) = patch else { bail!("the library merges strategic patches alone") };
            serde_json::to_writer(&mut asked, &Question { object, patch })?;
            asked.push(b'\n');
        }
        let Self { stdin, stdout, .. } = self;
        let ask = async { stdin.write_all(&asked).await.context("patch-checks reads no more") };
        // It answers while it is asked: a pipe holds little.
        let listen = async {
            let mut answers = Vec::with_capacity(cases.len());
            while answers.len() < cases.len() {
                let line = stdout.next_line().await?.context("patch-checks ended before it had answered")?;
                answers.push(read(&line)?);
            }
            anyhow::Ok(answers)
        };
        let both = async { tokio::try_join!(ask, listen) };
        let ((), answers) = timeout(PATIENCE, both).await.context("patch-checks takes too long")??;
        Ok(answers)
    }

    /// Ends the process, which answers nothing more.
    pub(super) async fn end(self) -> Result<()> {
        let Self { mut child, stdin, mut stdout } = self;
        drop(stdin);
        let rest = timeout(PATIENCE, stdout.next_line()).await.context("patch-checks does not end")??;
        ensure!(rest.is_none(), "patch-checks answered more than it was asked");
        let status = timeout(PATIENCE, child.wait()).await.context("patch-checks does not end")??;
        ensure!(status.success(), "patch-checks ended with {status}; what it said stands above");
        Ok(())
    }
}

/// The lines in which it prints the tags of all types.
pub(super) async fn tags() -> Result<String> {
    let mut command = command().await?;
    let output = command.arg("-tags").stdin(Stdio::null()).output();
    let output = timeout(PATIENCE, output).await.context("patch-checks takes too long")?;
    let output = output.context("patch-checks does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "patch-checks ended with {}: {}", output.status, said.trim());
    String::from_utf8(output.stdout).context("patch-checks prints no text")
}

async fn command() -> Result<Command> {
    let programs = Programs::get(&[Program::PatchChecks]).await?;
    let mut command = Command::from(launch::tied(programs.path(Program::PatchChecks)?)?);
    command.kill_on_drop(true);
    Ok(command)
}

fn read(line: &str) -> Result<Result<Value, String>> {
    let answer: Answer = serde_json::from_str(line).context("patch-checks gave no answer")?;
    Ok(match answer {
        Answer { result: Some(result), error: None } => Ok(result),
        Answer { error, .. } => Err(error.unwrap_or_else(|| "it gives no reason".to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_a_result_or_a_refusal() {
        assert_eq!(read(r#"{"result":{"kind":"Pod"}}"#).unwrap(), Ok(json!({"kind": "Pod"})));
        assert_eq!(read(r#"{"error":"no such kind"}"#).unwrap(), Err("no such kind".to_owned()));
        assert_eq!(read("{}").unwrap(), Err("it gives no reason".to_owned()));
        assert!(read("panic").is_err());
    }
}
