//! Runs what belongs to the soak of test programs, as `cargo test` does, and fails where nothing ran.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::root;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// The tests in the `soak` modules of a program, one after the other.
pub async fn of_program(program: &str) -> Result<String> {
    passed(cargo(&["--test", program]).args(["--", "soak::", "--test-threads=1"])).await
}

/// Unit tests that die at writes, by their modules in the controllers.
const DYING: [&str; 2] = ["reconcile_tests::", "sync::tests::"];

/// The unit tests that die at writes: at every one.
pub async fn crashes() -> Result<String> {
    passed(cargo(&["--lib", "--"]).args(DYING).env("EMCO_CRASHES", "all")).await
}

/// The comparison with Helm, of everything.
pub async fn conformance(charts: &Path) -> Result<String> {
    let folder = charts.canonicalize().with_context(|| charts.display().to_string())?;
    let mut make = Command::new("make");
    make.arg("-C").arg(root()).args(["conformance", "ALL=yes"]).arg(format!("CHARTS={}", folder.display()));
    // What is compared is built with this program.
    make.env_remove("EMCO_OPERATOR_BIN").kill_on_drop(true);
    let status = make.stdin(Stdio::null()).status().await.context("make does not start")?;
    ensure!(status.success(), "the comparison ended with {status}; what it said stands above");
    Ok("all charts are as Helm makes them".to_owned())
}

/// `cargo test` of the whole workspace: with fewer packages libraries would get other features, and be built again.
fn cargo(which: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.current_dir(root()).args(["test", "--workspace"]).args(which);
    // As in every run, tests use the operator that is built with them.
    cargo.env_remove("EMCO_OPERATOR_BIN");
    cargo
}

/// Runs tests, and passes on what they print.
async fn passed(command: &mut Command) -> Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{:?} does not start", command.as_std()))?;
    let mut lines = BufReader::new(child.stdout.take().context("it has no output")?).lines();
    let mut count = 0;
    while let Some(line) = lines.next_line().await? {
        println!("{line}");
        count += passed_in(&line);
    }
    let status = child.wait().await?;
    ensure!(status.success(), "it ended with {status}; what failed stands above");
    ensure!(count > 0, "no test ran");
    Ok(format!("{count} {} passed", if count == 1 { "test" } else { "tests" }))
}

/// How many tests passed, by the line that ends a program: `test result: ok. 2 passed; 0 failed; ...`.
fn passed_in(line: &str) -> usize {
    let counts = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "));
    let passed = counts.and_then(|(_, counts)| counts.split_once(" passed"));
    passed.and_then(|(count, _)| count.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_dies_at_a_sample_belongs_to_the_step_of_crashes() {
        let sources = root().join("controllers/src");
        let search = ["-rlE", "crash_points::|mod soak\\b", "--include=*.rs", "."];
        let found = std::process::Command::new("grep").args(search).current_dir(sources).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        let others: Vec<&str> = found
            .lines()
            .filter(|path| !["./reconcile_tests/", "./sync/tests/"].iter().any(|dir| path.starts_with(dir)))
            .collect();
        assert!(found.lines().count() > 5 && others.is_empty(), "{DYING:?} does not run these: {others:?}");
    }

    #[tokio::test]
    async fn tests_that_fail_or_do_not_run_fail_the_step() {
        for (script, wanted) in [
            ("echo 'test result: ok. 2 passed; 0 failed; 0 ignored'", Ok("2 tests passed")),
            ("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'", Err("no test ran")),
            ("echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101", Err("exit status: 101")),
        ] {
            let said = passed(Command::new("sh").args(["-c", script])).await;
            match wanted {
                Ok(wanted) => assert_eq!(said.unwrap(), wanted),
                Err(wanted) => assert!(said.unwrap_err().to_string().contains(wanted), "{script}"),
            }
        }
    }
}
