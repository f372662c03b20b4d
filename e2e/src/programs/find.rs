//! Finds a place on this machine that has a program in the right version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Program, cache_dir, fetch};

/// Looks in `EMCO_TEST_ASSETS`, `KUBEBUILDER_ASSETS`, `PATH` and the cache of built and fetched programs, in this order.
pub(super) fn find(program: Program) -> Option<PathBuf> {
    find_exact(program).or_else(|| fetch::kept(program))
}

/// As [`find`], without those of Debian, which have a version of their own.
pub(super) fn find_exact(program: Program) -> Option<PathBuf> {
    let assets = |key| std::env::var_os(key).map(|dir| PathBuf::from(dir).join(program.name()));
    // Whoever sets our own variable means it: no check, so that another version can be tried.
    if let Some(path) = assets("EMCO_TEST_ASSETS").filter(|path| path.is_file()) {
        return Some(path);
    }
    if program.is_ours() {
        return built(program);
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = assets("KUBEBUILDER_ASSETS").into_iter().collect();
    candidates.extend(std::env::split_paths(&on_path).map(|dir| dir.join(program.name())));
    if let Some(path) = candidates.into_iter().find(|path| path.is_file() && is_wanted(program, path)) {
        return Some(path);
    }
    built(program)
}

/// The program in the cache of built programs.
pub(super) fn built(program: Program) -> Option<PathBuf> {
    let path = cache_dir().ok()?.join(program.cache_key()).join(program.name());
    path.is_file().then_some(path)
}

pub(super) fn is_wanted(program: Program, path: &Path) -> bool {
    Command::new(path)
        .args(program.version_args())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| names_version(&String::from_utf8_lossy(&output.stdout), &program.said_version()))
}

/// Whether what a program says of itself names exactly this version.
fn names_version(text: &str, version: &str) -> bool {
    let bare = version.trim_start_matches('v');
    text.split(|c: char| c.is_whitespace() || matches!(c, '+' | ',' | '"'))
        .any(|word| word.trim_start_matches('v') == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_version_is_not_taken() {
        assert!(names_version("Kubernetes v1.36.3\n", "v1.36.3"));
        assert!(names_version("etcd Version: 3.6.8\nGit SHA: x", "v3.6.8"));
        assert!(names_version("v3.17.3+g1234567", "v3.17.3"));
        assert!(!names_version("Client Version: v1.32.4-dispatcher", "v1.32.4"));
        assert!(!names_version("Kubernetes v1.36.31", "v1.36.3"));
    }
}
