//! Counts the lines that an operator logs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::SOON;
use emco_e2e::supervisor::Process;

/// Nothing tells of a file's growth.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A place in a log.
pub struct LogMark {
    file: PathBuf,
    lines: usize,
}

impl LogMark {
    /// Its first line.
    pub fn beginning(process: &Process) -> Self {
        Self { file: process.log().to_owned(), lines: 0 }
    }

    /// Its present end.
    pub fn now(process: &Process) -> Result<Self> {
        let mut mark = Self::beginning(process);
        mark.lines = mark.read()?.lines().count();
        Ok(mark)
    }

    fn read(&self) -> Result<String> {
        let bytes =
            std::fs::read(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The lines since then.
    pub fn since(&self) -> Result<Vec<String>> {
        Ok(self.read()?.lines().skip(self.lines).map(str::to_owned).collect())
    }

    /// Waits until a line has these words.
    pub async fn until(&self, words: &str) -> Result<()> {
        let deadline = Instant::now() + SOON;
        while !self.since()?.iter().any(|line| line.contains(words)) {
            ensure!(Instant::now() < deadline, "{} does not say: {words}", self.file.display());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}
