//! Remembers which renderings passed, by a digest of everything that they depend on.
//!
//! Only a run with `EMCO_TEST_UNCHANGED=skip`, as `.ci/run` has it, leaves out what passed before, and only such a run remembers: it
//! builds from a clean clone, so what is read here is what was built.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use emco_e2e::operator::root;
use emco_e2e::programs::cache_dir;
use sha2::{Digest as _, Sha256};

/// Asks for it.
const VARIABLE: &str = "EMCO_TEST_UNCHANGED";
/// What every part depends on, below the root of the repository: the renderer, how it is built, and the code that compares.
/// (A manifest of any crate may switch on a feature of what the renderer uses.)
const COMMON: [&str; 12] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "controllers/Cargo.toml",
    "controllers/engine/Cargo.toml",
    "controllers/helm",
    "crds/Cargo.toml",
    "e2e/Cargo.toml",
    "e2e/src/conformance",
    "e2e/src/conformance.rs",
    "operator/Cargo.toml",
    "rust-toolchain.toml",
];
/// The same of the corpus.
const CORPUS: [&str; 3] = ["compare.py", "corpus.tar.xz", "oracle.tar.xz"];

/// Renderings that pass or fail together.
pub struct Part {
    name: &'static str,
    /// What they depend on besides.
    more: &'static [&'static str],
}

/// Installations beside what Helm printed, and misspelt values.
pub const INSTALLATIONS: Part = Part { name: "rendering", more: &[] };
/// Upgrades beside Helm's dry run on a server: as the engine plans them, by the Helm and the API server of the test bed.
pub const UPGRADES: Part = Part {
    name: "rendering of upgrades",
    more: &["controllers/engine", "crds/src", "e2e/controlplane", "e2e/helm"],
};

/// The file that says that a part passed as it is now; none where nothing is left out or remembered.
pub struct Mark {
    name: &'static str,
    file: Option<PathBuf>,
}

impl Part {
    /// The mark of what stands here now, with the corpus in `charts`. A run of `everything` has none.
    pub fn mark(&self, charts: &Path, everything: bool) -> Result<Mark> {
        let asked = std::env::var_os(VARIABLE).is_some_and(|value| value == "skip");
        if everything || !asked {
            return Ok(Mark { name: self.name, file: None });
        }
        self.mark_in(&cache_dir()?.join("conformance"), &root(), charts)
    }

    fn mark_in(&self, kept: &Path, root: &Path, charts: &Path) -> Result<Mark> {
        let mut digest = Sha256::new();
        for (folder, names) in [(root, &COMMON[..]), (root, self.more), (charts, &CORPUS[..])] {
            for name in names {
                add(&mut digest, &folder.join(name), name)?;
            }
        }
        let file = format!("{}-{}", self.name.replace(' ', "-"), hex::encode(digest.finalize()));
        Ok(Mark { name: self.name, file: Some(kept.join(file)) })
    }
}

impl Mark {
    /// What passed where nothing changed since.
    fn before(&self) -> Option<String> {
        fs::read_to_string(self.file.as_ref()?).ok()
    }

    /// Whether nothing changed since it passed, which is printed.
    pub fn is_unchanged(&self) -> bool {
        let before = self.before();
        if let Some(what) = &before {
            println!("{}: unchanged since it passed ({what})", self.name);
        }
        before.is_some()
    }

    /// Remembers that `what`, such as `158 charts`, passed.
    pub fn passed(&self, what: &str) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let write = || {
            let folder = file.parent().unwrap_or_else(|| Path::new("."));
            fs::create_dir_all(folder)?;
            // As a whole, or not at all.
            let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
            fresh.write_all(what.as_bytes())?;
            fresh.persist(file)?;
            Ok::<_, std::io::Error>(())
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Adds a file, or all files of a folder, with their names.
fn add(digest: &mut Sha256, path: &Path, name: &str) -> Result<()> {
    let read = || path.display().to_string();
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(read)?;
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<Vec<_>>>()
            .with_context(read)?;
        names.sort();
        return names.iter().try_for_each(|entry| add(digest, &path.join(entry), &format!("{name}/{entry}")));
    }
    let bytes = fs::read(path).with_context(read)?;
    // With their lengths: the end of a name is no beginning of a text.
    for part in [name.as_bytes(), &bytes] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 2] = [INSTALLATIONS, UPGRADES];

    /// A repository and a corpus in which everything that the part depends on is a folder with a file.
    fn files(part: &Part, dir: &Path) -> Vec<PathBuf> {
        let inputs = [("root", &COMMON[..]), ("root", part.more), ("charts", &CORPUS[..])];
        let inputs = inputs
            .iter()
            .flat_map(|(folder, names)| names.iter().map(move |name| dir.join(folder).join(name)));
        inputs
            .map(|input| {
                // One of them is a file, and so is its name.
                let is_folder = !input.ends_with("conformance.rs");
                let file = if is_folder { input.join("below/file") } else { input };
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, "text").unwrap();
                file
            })
            .collect()
    }

    fn mark(part: &Part, dir: &Path) -> Mark {
        part.mark_in(&dir.join("kept"), &dir.join("root"), &dir.join("charts")).unwrap()
    }

    #[test]
    fn what_passed_is_unchanged_until_a_byte_of_it_changes() {
        for part in PARTS {
            let dir = tempfile::tempdir().unwrap();
            let files = files(&part, dir.path());
            assert_eq!(mark(&part, dir.path()).before(), None);
            mark(&part, dir.path()).passed("3 charts").unwrap();
            for file in files {
                fs::write(&file, "texT").unwrap();
                assert_eq!(mark(&part, dir.path()).before(), None, "{} changed", file.display());
                fs::write(&file, "text").unwrap();
                assert_eq!(mark(&part, dir.path()).before().as_deref(), Some("3 charts"));
            }
        }
    }

    #[test]
    fn a_file_that_comes_goes_or_is_renamed_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        files(&INSTALLATIONS, dir.path());
        mark(&INSTALLATIONS, dir.path()).passed("3 charts").unwrap();
        let helm = dir.path().join("root/controllers/helm");
        fs::write(helm.join("another"), "").unwrap();
        assert_eq!(mark(&INSTALLATIONS, dir.path()).before(), None);
        fs::remove_file(helm.join("another")).unwrap();
        assert!(mark(&INSTALLATIONS, dir.path()).before().is_some());
        fs::rename(helm.join("below/file"), helm.join("below/other")).unwrap();
        assert_eq!(mark(&INSTALLATIONS, dir.path()).before(), None);
        fs::remove_file(helm.join("below/other")).unwrap();
        assert_eq!(mark(&INSTALLATIONS, dir.path()).before(), None);
    }

    #[test]
    fn one_part_that_passed_says_nothing_of_the_other() {
        let dir = tempfile::tempdir().unwrap();
        files(&UPGRADES, dir.path());
        mark(&INSTALLATIONS, dir.path()).passed("3 charts").unwrap();
        assert_eq!(mark(&UPGRADES, dir.path()).before(), None);
    }

    #[test]
    fn everything_that_a_part_depends_on_is_in_this_repository() {
        for name in COMMON.iter().chain(UPGRADES.more) {
            assert!(
                root().join(name).exists(),
                "{name} is gone: what passed would not depend on it any more"
            );
        }
    }
}
