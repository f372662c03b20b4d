//! Installs the shells that tests type into, where they are missing and this machine allows it.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::fetch::ends_well;

/// Both are packages of Debian under their own name.
const SHELLS: [&str; 2] = ["zsh", "fish"];
/// The most time for all of it.
const LIMIT: Duration = Duration::from_mins(5);

/// Whether a shell is on this machine.
#[must_use]
pub fn has_shell(name: &str) -> bool {
    let version = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

/// Installs the shells that are missing, before any test runs. Where that is impossible it says so: the tests are skipped by name.
pub fn prepare_shells() {
    let missing: Vec<&str> = SHELLS.into_iter().filter(|shell| !has_shell(shell)).collect();
    if missing.is_empty() {
        return;
    }
    let named = missing.join(" and ");
    eprintln!("installing {named}");
    match install(&missing) {
        Ok(()) => eprintln!("installed  {named}"),
        Err(error) => eprintln!("{named} cannot be installed, what needs them is skipped: {error:#}"),
    }
}

fn install(packages: &[&str]) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "only root may install packages");
    // Not tied to this process: who ends apt-get in the middle leaves a machine that has to be mended.
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["--quiet", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]);
        apt.args(["-o", "DPkg::Lock::Timeout=120"]).env("DEBIAN_FRONTEND", "noninteractive");
        ends_well(apt.args(args), LIMIT)
    };
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    if apt(&install).is_ok() {
        return Ok(());
    }
    // Where nobody has asked for the lists yet.
    apt(&["update"]).and_then(|()| apt(&install)).context("apt-get")
}
