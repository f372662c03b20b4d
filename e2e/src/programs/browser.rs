//! Unpacks Debian's Chromium with its driver, and axe-core from `PyPI`, into the cache.
//!
//! Nothing is installed. The libraries that the machine lacks are unpacked beside the programs, which are told where they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::{build, cache_dir, fetch};

/// In the cache, before the version that Debian gives.
const CHROMIUM: &str = "chromium-debian-";
/// The package of `PyPI` that has axe-core as one script, where the script is in it, and its digest.
const AXE: (&str, &str, &str) = (
    "axe-playwright-python==0.1.8",
    "axe_playwright_python/axe.min.js",
    "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc",
);

/// A browser, the server that drives it, and the script that judges whether a page can be used by everybody.
#[derive(Debug, Clone)]
pub struct Browser {
    tree: PathBuf,
    axe: String,
}

/// Fetches the browser before any test runs. Where that is impossible it says so: the tests are skipped by name.
pub fn prepare_browser() {
    if let Err(error) = Browser::get() {
        eprintln!("Chromium cannot be had, what needs it is skipped: {error:#}");
    }
}

impl Browser {
    /// Finds it in the cache, or fetches it. Runs on the calling thread for as long as it takes.
    ///
    /// # Errors
    /// It cannot be had on this machine.
    pub fn get() -> Result<Self> {
        let cache = cache_dir()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let axe = cache.join(format!("axe-{}", &AXE.2[..12])).join("axe.min.js");
        if let (Some(tree), Ok(axe)) = (kept(&cache), script(&axe)) {
            return Ok(Self { tree, axe });
        }
        ensure!(fetch::is_debian(), "there is no apt-get and dpkg-deb to have it from Debian");
        let _lock = build::lock(&cache)?;
        let tree = match kept(&cache) {
            Some(tree) => tree,
            None => chromium(&cache)?,
        };
        if script(&axe).is_err() {
            fetch_axe(&cache, &axe)?;
        }
        Ok(Self { tree, axe: script(&axe)? })
    }

    /// Chromium.
    pub fn chromium(&self) -> PathBuf {
        self.tree.join("usr/lib/chromium/chromium")
    }

    /// The server that speaks `WebDriver`.
    pub fn driver(&self) -> PathBuf {
        self.tree.join("usr/bin/chromedriver")
    }

    /// The environment variable that tells both where their libraries are.
    pub fn libraries(&self) -> (&'static str, String) {
        ("LD_LIBRARY_PATH", libraries(&self.tree))
    }

    /// axe-core, as a script.
    pub fn axe(&self) -> &str {
        &self.axe
    }
}

/// A browser of the cache that starts: another machine may lack a library that was not unpacked.
fn kept(cache: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(cache).ok()?.filter_map(Result::ok);
    let ours = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(CHROMIUM));
    ours.map(|folder| folder.path()).filter(|tree| version(tree).is_ok()).max()
}

/// The version of a browser and its driver, which both start.
fn version(tree: &Path) -> Result<String> {
    let browser = Browser { tree: tree.to_owned(), axe: String::new() };
    let of = |program: PathBuf| -> Result<String> {
        let (name, libraries) = browser.libraries();
        let mut command = Command::new(&program);
        let output = command.arg("--version").env(name, libraries).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("{} does not start", program.display()))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} does not start: {}", program.display(), error.trim());
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said_by(&said).map(str::to_owned);
        version.with_context(|| format!("{} says no version: {}", program.display(), said.trim()))
    };
    let (chromium, driver) = (of(browser.chromium())?, of(browser.driver())?);
    ensure!(chromium == driver, "Chromium {chromium} has a driver of version {driver}");
    Ok(chromium)
}

/// The version in `Chromium 156.0.8078.108 built on Debian`, or in `ChromeDriver 156.0.8078.108 (730482a9...)`.
fn said_by(text: &str) -> Option<&str> {
    let version = text.split_whitespace().nth(1)?;
    // It becomes the name of a folder.
    let plain = version.chars().all(|c| c.is_ascii_digit() || c == '.');
    (plain && version.starts_with(|c: char| c.is_ascii_digit())).then_some(version)
}

/// All folders with libraries that packages of Debian brought, as the loader reads them.
fn libraries(tree: &Path) -> String {
    let mut found = BTreeSet::new();
    let mut folders: Vec<PathBuf> = fs::read_dir(tree.join("usr/lib"))
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().ends_with("-linux-gnu"))
        .map(|entry| entry.path())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().contains(".so") {
                found.insert(folder.display().to_string());
            }
        }
    }
    found.into_iter().collect::<Vec<_>>().join(":")
}

fn chromium(cache: &Path) -> Result<PathBuf> {
    eprintln!("fetching Chromium");
    let work = cache.join("fetch-chromium");
    fetch::remove(&work)?;
    let archives = work.join("archives");
    fs::create_dir_all(archives.join("partial")).context("no folder for packages")?;
    // With what it depends on, as far as that is not installed. Nothing is: the packages stay in the folder.
    let into = format!("Dir::Cache::archives={}", archives.display());
    let download = [
        "-o",
        &into,
        "-o",
        "Debug::NoLocking=true",
        "install",
        "--download-only",
        "--reinstall",
        "--yes",
        "--no-install-recommends",
        "chromium",
        "chromium-driver",
    ];
    fetch::from_debian(&work, &download)?;
    let tree = work.join("tree");
    fetch::unpacked(&fetch::packages_in(&archives)?, &tree)?;
    let version = version(&tree)?;
    let target = cache.join(format!("{CHROMIUM}{version}"));
    fetch::remove(&target)?;
    fs::rename(&tree, &target).with_context(|| format!("cannot name {}", target.display()))?;
    fetch::remove(&work)?;
    eprintln!("fetched  Chromium {version}");
    Ok(target)
}

fn fetch_axe(cache: &Path, target: &Path) -> Result<()> {
    let work = cache.join("fetch-axe");
    fetch::remove(&work)?;
    fetch::from_pypi(&work, AXE.0)?;
    let fresh = work.join(AXE.1);
    script(&fresh)?;
    fs::create_dir_all(target.parent().context("it is in a folder")?)?;
    fs::rename(&fresh, target).with_context(|| format!("cannot name {}", target.display()))?;
    fetch::remove(&work)
}

/// axe-core of this digest, and no other.
fn script(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let digest = hex::encode(Sha256::digest(&bytes));
    ensure!(digest == AXE.2, "{} has digest {digest}, not {}", file.display(), AXE.2);
    String::from_utf8(bytes).with_context(|| format!("{} is no text", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_browser_and_driver_print() {
        assert_eq!(said_by("Chromium 156.0.8078.108 built on Debian\n"), Some("156.0.8078.108"));
        assert_eq!(said_by("ChromeDriver 156.0.8078.108 (730482a9-refs/{#2244})"), Some("156.0.8078.108"));
        assert_eq!(said_by("error: ../156"), None);
        assert_eq!(said_by(""), None);
    }

    #[test]
    fn folders_below_that_of_the_architecture_are_searched_for_libraries_too() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("usr/lib");
        for file in [
            "x86_64-linux-gnu/libpulse.so.0",
            "x86_64-linux-gnu/pulseaudio/libcommon.so",
            "chromium/libEGL.so",
        ] {
            let file = lib.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let at = |folder: &str| lib.join(folder).display().to_string();
        let wanted = [at("x86_64-linux-gnu"), at("x86_64-linux-gnu/pulseaudio")].join(":");
        assert_eq!(libraries(dir.path()), wanted);
    }

    #[test]
    fn another_script_than_the_one_that_was_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("axe.min.js");
        fs::write(&file, "alert(1)").unwrap();
        let error = script(&file).unwrap_err();
        assert!(error.to_string().contains("has digest"), "{error}");
    }
}
