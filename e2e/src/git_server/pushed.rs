//! A bare repository that takes pushes: with a hook that refuses them, answers that are lost, and somebody else who commits in between.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

use super::{Backend, GitServer, git_in};

/// Folder of the clone by which somebody else commits.
const SOMEBODY: &str = "somebody";

/// Faults of the next pushes.
#[derive(Default)]
pub(super) struct Faults {
    lose: AtomicBool,
    race: Mutex<Option<(String, String)>>,
}

impl Faults {
    /// True once: the answer to this push is lost.
    pub(super) fn loses_the_answer(&self) -> bool {
        self.lose.swap(false, Ordering::SeqCst)
    }
}

/// Does what is to happen right before a push.
pub(super) async fn before(backend: &Backend) -> Result<()> {
    let race = backend.faults.race.lock().unwrap_or_else(PoisonError::into_inner).take();
    match race {
        Some((path, text)) => commit_in(&backend.root, &[(&path, Some(&text))]).await.map(drop),
        None => Ok(()),
    }
}

impl GitServer {
    /// Starts it with an empty bare repository that takes pushes.
    pub async fn bare(login: Option<(&str, &str)>) -> Result<Self> {
        let this = Self::serve(login).await?;
        this.renew().await?;
        Ok(this)
    }

    /// Replaces the repository by an empty one at the same address.
    pub async fn renew(&self) -> Result<()> {
        // A clone of the one before would bring its commits back.
        let clone = self.folder.path().join(SOMEBODY);
        if clone.exists() {
            std::fs::remove_dir_all(clone)?;
        }
        std::fs::remove_dir_all(self.work())?;
        std::fs::create_dir(self.work())?;
        self.git(&["init", "-q", "--bare", "-b", "main"]).await?;
        self.git(&["config", "http.receivepack", "true"]).await.map(drop)
    }

    /// Refuses pushes with these words, or takes them again.
    pub fn refuse(&self, words: Option<&str>) -> Result<()> {
        let hook = self.work().join("hooks/pre-receive");
        let Some(words) = words else {
            return Ok(std::fs::remove_file(&hook)?);
        };
        std::fs::create_dir_all(hook.parent().context("a hook is in a folder")?)?;
        std::fs::write(&hook, format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"))?;
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// The next push arrives, and its answer is lost.
    pub fn lose_an_answer(&self) {
        self.state.faults.lose.store(true, Ordering::SeqCst);
    }

    /// Somebody else commits this file right before the next push.
    pub fn race(&self, path: &str, text: &str) {
        let file = Some((path.to_owned(), text.to_owned()));
        *self.state.faults.race.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// The commit that branch main is at; empty while there is none.
    pub async fn tip(&self) -> Result<String> {
        self.git(&["for-each-ref", "--format=%(objectname)", "refs/heads/main"]).await
    }

    /// The files of a commit.
    pub async fn files(&self, commit: &str) -> Result<Vec<String>> {
        let listed = self.git(&["ls-tree", "-r", "--name-only", commit]).await?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// The text of a file at the tip.
    pub async fn text(&self, path: &str) -> Result<String> {
        self.git(&["show", &format!("main:{path}")]).await
    }

    /// Somebody else's commit of these files; one without text is deleted.
    pub async fn push(&self, files: &[(&str, Option<&str>)]) -> Result<String> {
        commit_in(self.folder.path(), files).await
    }

    /// The tree of a commit in a folder of the caller's, as an agent has it.
    pub async fn check_out(&self, commit: &str, folder: &Path) -> Result<()> {
        if !folder.exists() {
            let (from, to) = (self.work().display().to_string(), folder.display().to_string());
            self.git(&["clone", "-q", "--no-checkout", &from, &to]).await?;
        }
        git_in(self.folder.path(), folder, &["fetch", "-q", "origin"]).await?;
        git_in(self.folder.path(), folder, &["checkout", "-q", "--force", "--detach", commit]).await?;
        git_in(self.folder.path(), folder, &["clean", "-q", "-d", "--force"]).await.map(drop)
    }
}

/// Commits in a clone of somebody else, and pushes by the file system: no server is asked.
async fn commit_in(root: &Path, files: &[(&str, Option<&str>)]) -> Result<String> {
    let clone: PathBuf = root.join(SOMEBODY);
    if !clone.exists() {
        git_in(root, root, &["clone", "-q", "charts.git", SOMEBODY]).await?;
    }
    git_in(root, &clone, &["fetch", "-q", "origin"]).await?;
    if !git_in(root, &clone, &["for-each-ref", "refs/remotes/origin/main"]).await?.is_empty() {
        git_in(root, &clone, &["checkout", "-q", "--force", "-B", "main", "origin/main"]).await?;
    }
    for (path, text) in files {
        let file = clone.join(path);
        match text {
            Some(text) => {
                std::fs::create_dir_all(file.parent().context("a file is in a folder")?)?;
                std::fs::write(&file, text).with_context(|| file.display().to_string())?;
            }
            None => std::fs::remove_file(&file).with_context(|| file.display().to_string())?,
        }
    }
    git_in(root, &clone, &["add", "-A"]).await?;
    git_in(root, &clone, &["commit", "-q", "-m", "by somebody else"]).await?;
    git_in(root, &clone, &["push", "-q", "origin", "HEAD:main"]).await?;
    git_in(root, &clone, &["rev-parse", "HEAD"]).await
}
