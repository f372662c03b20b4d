//! Says how tests ended: a line for each, and all of them for programs.

use std::fmt;

use emco_engine::text::counted;
use serde::Serialize;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// Its object did what it is for.
    Succeeded,
    /// It failed, did not end in time, or could not be made.
    Failed,
    /// An earlier one failed.
    NotRun,
}

/// One test on one cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    pub app: String,
    pub cluster: String,
    /// The revision that it is of.
    pub revision: i64,
    /// `Pod/shop/web-smoke`
    pub test: String,
    pub phase: Phase,
    pub seconds: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What its containers wrote, where that is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<Logs>,
}

/// What one container wrote.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Logs {
    pub pod: String,
    pub container: String,
    pub text: String,
    /// Why they could not be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

impl fmt::Display for Tested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { app, cluster, test, phase, seconds, message, .. } = self;
        let phase = format!("{phase:?}");
        write!(f, "{phase:<9}  {cluster}  {app}  {test}")?;
        if self.phase != Phase::NotRun {
            write!(f, "  {seconds}s")?;
        }
        if !message.is_empty() {
            write!(f, "  {}", message.trim().replace('\n', " "))?;
        }
        writeln!(f)?;
        for Logs { pod, container, text, error } in &self.logs {
            writeln!(f, "LOGS of Pod {pod}, container {container}, on {cluster}:")?;
            if error.is_empty() {
                writeln!(f, "{}", text.trim_end())?;
            } else {
                writeln!(f, "(they cannot be read: {error})")?;
            }
        }
        Ok(())
    }
}

/// Why something could not be tested.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    pub message: String,
}

impl Problem {
    pub fn new(cluster: &str, app: Option<&str>, message: &str) -> Self {
        Self { cluster: cluster.to_owned(), app: app.map(str::to_owned), message: message.to_owned() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let app = self.app.as_ref().map_or_else(String::new, |app| format!(" ({app})"));
        write!(f, "{}{app}: {}", self.cluster, self.message)
    }
}

/// The answer, as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    deployment: String,
    /// All tests succeeded, and nothing kept any from being run.
    pub passed: bool,
    tests: Vec<Tested>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
}

impl Answer {
    pub fn of(deployment: &str, tests: Vec<Tested>, problems: Vec<Problem>) -> Self {
        let passed = problems.is_empty() && tests.iter().all(|test| test.phase == Phase::Succeeded);
        Self { deployment: deployment.to_owned(), passed, tests, problems }
    }

    /// The last line for people.
    pub fn summary(&self) -> String {
        let passed = self.tests.iter().filter(|test| test.phase == Phase::Succeeded).count();
        let problems = match self.problems.len() {
            0 => String::new(),
            1 => "; 1 problem kept tests from being run".to_owned(),
            many => format!("; {many} problems kept tests from being run"),
        };
        format!("{}: {passed} of {} passed{problems}\n", self.deployment, counted(self.tests.len(), "test"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(phase: Phase, message: &str) -> Tested {
        Tested {
            app: "web".to_owned(),
            cluster: "acme/berlin".to_owned(),
            revision: 2,
            test: "Pod/shop/smoke".to_owned(),
            phase,
            seconds: 3,
            message: message.to_owned(),
            logs: Vec::new(),
        }
    }

    #[test]
    fn a_test_is_one_line_with_its_reason() {
        assert_eq!(
            tested(Phase::Succeeded, "").to_string(),
            "Succeeded  acme/berlin  web  Pod/shop/smoke  3s\n"
        );
        assert_eq!(
            tested(Phase::Failed, "the pod failed:\nso").to_string(),
            "Failed     acme/berlin  web  Pod/shop/smoke  3s  the pod failed: so\n"
        );
        assert_eq!(
            tested(Phase::NotRun, "an earlier test failed").to_string(),
            "NotRun     acme/berlin  web  Pod/shop/smoke  an earlier test failed\n"
        );
    }

    #[test]
    fn logs_follow_their_test() {
        let mut one = tested(Phase::Succeeded, "");
        let logs = |text: &str, error: &str| Logs {
            pod: "smoke".to_owned(),
            container: "curl".to_owned(),
            text: text.to_owned(),
            error: error.to_owned(),
        };
        one.logs = vec![logs("hello\n", ""), logs("", "gone")];
        let lines = one.to_string();
        assert_eq!(
            lines.lines().skip(1).collect::<Vec<_>>(),
            [
                "LOGS of Pod smoke, container curl, on acme/berlin:",
                "hello",
                "LOGS of Pod smoke, container curl, on acme/berlin:",
                "(they cannot be read: gone)",
            ]
        );
    }

    #[test]
    fn a_run_passes_where_all_succeeded_and_nothing_was_in_the_way() {
        let good = || tested(Phase::Succeeded, "");
        let answer = Answer::of("shop/till", vec![good()], Vec::new());
        assert!(answer.passed);
        assert_eq!(answer.summary(), "shop/till: 1 of 1 test passed\n");
        let answer = Answer::of("shop/till", vec![good(), tested(Phase::NotRun, "")], Vec::new());
        assert!(!answer.passed);
        assert_eq!(answer.summary(), "shop/till: 1 of 2 tests passed\n");
        let problem = Problem::new("acme/oslo", Some("web"), "it does not answer");
        assert_eq!(problem.to_string(), "acme/oslo (web): it does not answer");
        let answer = Answer::of("shop/till", Vec::new(), vec![problem]);
        assert!(!answer.passed);
        assert_eq!(answer.summary(), "shop/till: 0 of 0 tests passed; 1 problem kept tests from being run\n");
    }
}
