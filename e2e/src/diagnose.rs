//! Describes a bed in which something failed: its objects, events and the complaints at the ends of its logs, bounded.

use std::fs::File;
use std::future::Future;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;

use futures::FutureExt as _;

use crate::bed::Bed;

/// Of the end of a file.
const TAIL_BYTES: u64 = 64 * 1024;
/// Of what one call of kubectl says.
const ANSWER_BYTES: usize = 16 * 1024;

/// What kubectl is asked about each plane. Only the hub has objects of the second question.
const QUESTIONS: [&[&str]; 4] = [
    &["get", "nodes,namespaces,persistentvolumes,crds", "--request-timeout=5s"],
    &["get", "deploymentintentgroups,syncshards", "--all-namespaces", "-o", "yaml", "--request-timeout=5s"],
    &["get", "all,persistentvolumeclaims", "--all-namespaces", "-o", "wide", "--request-timeout=5s"],
    &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp", "--request-timeout=5s"],
];

impl Bed {
    /// Runs a test; should it panic or fail, its bed's state is printed before the failure goes on. It fails, too, where a log, an
    /// Event, a status, a metric or what `kubectl emco` printed shows a secret.
    ///
    /// # Panics
    /// When the test fails or panics.
    pub async fn explain<T>(&self, test: impl Future<Output = anyhow::Result<T>>) -> T {
        let done = match AssertUnwindSafe(test).catch_unwind().await {
            Ok(Ok(value)) => Box::pin(self.shows_no_secret()).await.map(|()| value),
            Ok(Err(error)) => Err(error),
            Err(panic) => {
                eprintln!("{}", self.diagnostics().await);
                resume_unwind(panic)
            }
        };
        match done {
            Ok(value) => value,
            Err(error) => {
                eprintln!("{}", self.diagnostics().await);
                panic!("{error:#}");
            }
        }
    }

    /// What each plane holds and what its programs said last.
    pub async fn diagnostics(&self) -> String {
        let mut text = String::new();
        for plane in self.planes() {
            for args in QUESTIONS {
                let said = match plane.kubectl().output(args, "").await {
                    Ok(output) => format!("{}{}", output.stdout, output.stderr),
                    Err(error) => format!("{error:#}\n"),
                };
                text.extend([
                    "--- ",
                    plane.name(),
                    ": kubectl ",
                    &args.join(" "),
                    "
",
                    &end_of(&said),
                ]);
            }
        }
        text + &logs(&self.dir().join("logs"), 40)
    }
}

/// The ends of all logs of a bed; audit logs are left out.
pub(crate) fn logs(dir: &Path, lines: usize) -> String {
    let mut files: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    let text = |file: &std::path::PathBuf| {
        format!("--- {}\n{}\n", file.display(), last_lines(file, lines, |line| !is_chatter(line)))
    };
    files.iter().map(text).collect()
}

/// The last lines of a file, without the control bytes that a terminal would obey.
pub(crate) fn tail(file: &Path, lines: usize) -> String {
    last_lines(file, lines, |_| true)
}

/// The last of the lines that `wanted` accepts.
fn last_lines(file: &Path, lines: usize, wanted: impl Fn(&str) -> bool) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) => return format!("(cannot read the log: {error})"),
    };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().filter(|line| wanted(line)).collect();
    let last = all[all.len().saturating_sub(lines)..].join("\n");
    last.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect()
}

/// Whether a line of a Kubernetes program says nothing of a failure: `I1121 10:45:20.803744 ...`, or the same in JSON.
fn is_chatter(line: &str) -> bool {
    let digits = |text: &str| text.len() >= 4 && text.bytes().take(4).all(|byte| byte.is_ascii_digit());
    line.strip_prefix(['I', 'W']).is_some_and(digits) || line.contains("\"level\":\"INFO\"")
}

fn end_of(text: &str) -> String {
    let start = text.len().saturating_sub(ANSWER_BYTES);
    let start = (start..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let mut end = text[start..].to_owned();
    if !end.ends_with('\n') {
        end.push('\n');
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_has_no_control_bytes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\ntwo\n\u{1b}[31mthree\n").unwrap();
        assert_eq!(tail(file.path(), 2), "two\n[31mthree");
    }

    #[test]
    fn what_is_no_error_is_left_out_of_a_failure() {
        assert!(is_chatter("I1121 10:45:20.803744   14781 storage.go:137] created"));
        assert!(is_chatter("{\"time\":\"2026\",\"level\":\"INFO\",\"msg\":\"Patch pod\"}"));
        assert!(!is_chatter("E1121 10:45:20.803744   14781 storage.go:137] failed"));
        assert!(!is_chatter("In the beginning"));
    }
}
