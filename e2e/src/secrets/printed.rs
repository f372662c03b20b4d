//! Keeps what commands printed in a file of the bed, so that it can be searched for secrets.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::Secrets;

/// Words of commands whose purpose is to print a secret.
const ASKED_FOR: [&str; 1] = ["--show-secrets"];

/// All that commands of a bed printed.
#[derive(Debug, Clone)]
pub struct Printed(PathBuf);

impl Printed {
    /// What is kept in this folder.
    pub fn new(folder: &Path) -> Self {
        Self(folder.join("printed"))
    }

    /// Adds what a command with these words printed, unless it was asked for a secret.
    pub fn keep(&self, args: &[impl AsRef<str>], parts: &[&[u8]]) -> Result<()> {
        if args.iter().any(|arg| ASKED_FOR.iter().any(|asks| arg.as_ref().contains(asks))) {
            return Ok(());
        }
        // One write: others add to the file at the same time.
        let mut whole = parts.join(&b'\n');
        whole.push(b'\n');
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.0)
            .with_context(|| self.0.display().to_string())?;
        file.write_all(&whole).with_context(|| self.0.display().to_string())
    }

    /// Whether it is anything at all.
    pub fn is_empty(&self) -> bool {
        std::fs::metadata(&self.0).map_or(true, |file| file.len() == 0)
    }

    /// Which secret stands in it.
    pub fn shows(&self, secrets: &Secrets) -> Result<Option<String>> {
        secrets.shown_in_file(&self.0)
    }
}
