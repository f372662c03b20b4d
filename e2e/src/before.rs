//! Finds the charts as they were before their last change, and builds the operator of that time.
//!
//! The program is built from the sources of that commit, as `git archive` gives them, into a target folder of its own within ours:
//! libraries are copied from there instead of being built again, and what was built stays until the commit is another one. A
//! commit that changes no program builds nothing. In a checkout without history the charts are those kept beside the tests, and there
//! is no such program.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use tokio::process::Command;

use crate::launch::own_binary;
use crate::operator::{program, root};

/// What an upgrade can change.
const PATHS: [&str; 6] = ["charts", "crds", "controllers", "operator", "Cargo.toml", "Cargo.lock"];
/// Charts as they once were: `git archive COMMIT charts`.
const KEPT: &str = "e2e/tests/data/charts-before.tar.gz";

/// What people upgrade from.
pub struct Before {
    /// The folder with the charts; the caller may change them.
    pub charts: PathBuf,
    /// The operator.
    pub program: PathBuf,
}

/// Sources and program of a commit. Others read them, too.
struct Built {
    sources: PathBuf,
    program: PathBuf,
}

async fn said(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.context("it cannot be started")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?}: {}", command.as_std(), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

async fn git(args: &[&str]) -> Result<String> {
    said(Command::new("git").arg("-C").arg(root()).args(args)).await
}

/// The commit before the last one that changed charts or programs; where that is not in the history, the parent. None without one.
async fn commit() -> Result<Option<String>> {
    let Ok(parent) = git(&["rev-parse", "--verify", "--quiet", "HEAD~1"]).await else { return Ok(None) };
    let changed = git(&[&["log", "-1", "--format=%H", "HEAD", "--"], &PATHS[..]].concat()).await?;
    let before = git(&["rev-parse", "--verify", "--quiet", &format!("{changed}~1")]).await;
    Ok(Some(before.unwrap_or(parent)))
}

/// Charts of that commit, or those that are kept, with the present program. `scratch` is a folder of the test.
pub async fn charts(scratch: PathBuf) -> Result<Before> {
    std::fs::create_dir_all(&scratch)?;
    let archive = match commit().await? {
        Some(commit) => {
            let archive = scratch.join("charts.tar");
            let file = archive.display().to_string();
            git(&["archive", "--format=tar", "--output", &file, &commit, "charts"]).await?;
            archive
        }
        None => root().join(KEPT),
    };
    said(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&scratch)).await?;
    Ok(Before { charts: scratch.join("charts"), program: program()? })
}

/// Charts and program of that commit; an error in a checkout without history. `scratch` is a folder of the test.
pub async fn both(scratch: PathBuf) -> Result<Before> {
    std::fs::create_dir_all(&scratch)?;
    let built =
        built().await?.context("this checkout has no history: there is no operator to upgrade from")?;
    said(Command::new("cp").arg("-r").arg(built.sources.join("charts")).arg(&scratch)).await?;
    Ok(Before { charts: scratch.join("charts"), program: built.program })
}

/// Builds the program, so that no test has to wait for that, and answers where it is; None in a checkout without history.
pub async fn prepare() -> Result<Option<PathBuf>> {
    Ok(built().await?.map(|built| built.program))
}

async fn built() -> Result<Option<Built>> {
    let Some(commit) = commit().await? else { return Ok(None) };
    let folder = target()?.join("before");
    let sources = folder.join(&commit);
    if !sources.is_dir() {
        // What was built of another commit would only grow; and a half-unpacked folder must not pass for a whole one.
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder)?;
        }
        let part = folder.join("part");
        std::fs::create_dir_all(&part)?;
        let archive = folder.join("sources.tar").display().to_string();
        git(&["archive", "--format=tar", "--output", &archive, &commit]).await?;
        said(Command::new("tar").args(["-xf", &archive, "-C"]).arg(&part)).await?;
        std::fs::remove_file(&archive)?;
        std::fs::rename(&part, &sources)?;
    }
    let program =
        build(&sources, &folder.join("target")).await.with_context(|| format!("commit {commit}"))?;
    Ok(Some(Built { sources, program }))
}

/// The target folder that this was built in.
fn target() -> Result<PathBuf> {
    // target/debug/emco-e2e
    let folder = own_binary()?.ancestors().nth(2).map(Path::to_owned);
    folder.context("this program is not in a target folder")
}

/// Builds the operator. Of the whole workspace's packages, and with an example, so that libraries have the features with which
/// ours were built.
async fn build(sources: &Path, into: &Path) -> Result<PathBuf> {
    let debug = into.join("debug");
    let ours = target()?.join("debug");
    if !debug.is_dir() && ours.is_dir() {
        let part = into.with_file_name("seeding").join("debug");
        for folder in ["deps", "build", ".fingerprint"] {
            copy_of_others(&ours.join(folder), &part.join(folder)).await?;
        }
        std::fs::create_dir_all(into)?;
        std::fs::rename(&part, &debug)?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut build = Command::new(cargo);
    build
        .current_dir(sources)
        .args(["build", "--workspace", "--bin", "emco-operator", "--example", "crdgen", "--target-dir"])
        .arg(into);
    // It was linted in its time.
    build.env_remove("RUSTC_WORKSPACE_WRAPPER");
    // The runner of the tests sets it for their harness. Libraries would be built otherwise with it.
    build.env_remove("RUSTC_BOOTSTRAP");
    // Those of the test's own build say where its packages are.
    for (key, _) in std::env::vars()
        .filter(|(key, _)| key.starts_with("CARGO_PKG_") || key.starts_with("CARGO_MANIFEST_"))
    {
        build.env_remove(key);
    }
    said(&mut build).await?;
    Ok(debug.join("emco-operator"))
}

/// Copies what was built of other people's packages.
async fn copy_of_others(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut others = Vec::new();
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let own = ["emco", "libemco", "kubectl-emco", "kubectl_emco"].iter().any(|own| name.starts_with(own));
        // Test programs and their like are of no use; they would be gigabytes.
        let of_use = [".rlib", ".rmeta", ".so", ".d"].iter().any(|kind| name.ends_with(kind));
        let of_use = of_use || entry.file_type()?.is_dir();
        if !own && of_use {
            others.push(entry.path());
        }
    }
    for some in others.chunks(500) {
        said(
            Command::new("cp").args(["--archive", "--reflink=auto", "--target-directory"]).arg(to).args(some),
        )
        .await?;
    }
    Ok(())
}
