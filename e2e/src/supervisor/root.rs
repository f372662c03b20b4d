//! Makes a folder for temporary files, and removes those of supervisors that were killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "emco-bed-";

/// A folder that lives as long as its supervisor. The lock tells others that the supervisor lives.
pub(super) struct Root {
    pub dir: PathBuf,
    _lock: File,
}

impl Root {
    pub fn new() -> Result<Self> {
        let temp = std::env::temp_dir();
        sweep(&temp);
        let id = std::process::id();
        // It gets the name that is swept only once it is locked.
        let (unlocked, dir) = (temp.join(format!(".{PREFIX}{id}")), temp.join(format!("{PREFIX}{id}")));
        // Whoever had this process id before has ended.
        for old in [&unlocked, &dir] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
            }
        }
        fs::create_dir(&unlocked).with_context(|| format!("cannot make {}", unlocked.display()))?;
        let lock = File::create(unlocked.join("lock")).context("cannot make a lock file")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).context("cannot lock the folder for data")?;
        fs::rename(&unlocked, &dir).with_context(|| format!("cannot name {}", dir.display()))?;
        Ok(Self { dir, _lock: lock })
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("cannot remove {}: {error}", self.dir.display());
        }
    }
}

/// Removes the folders whose supervisor has ended without removing them.
fn sweep(temp: &Path) {
    let Ok(entries) = fs::read_dir(temp) else { return };
    for dir in entries.flatten().map(|entry| entry.path()) {
        let ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if !ours {
            continue;
        }
        let Ok(lock) = File::open(dir.join("lock")) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another sweeper may have been faster.
            let _ = fs::remove_dir_all(&dir);
        }
    }
}
