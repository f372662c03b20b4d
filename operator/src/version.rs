//! What this build calls itself.

use std::sync::LazyLock;

/// The commit of this build, as `make build` passes it, `-changed` after it where files were not as committed; empty for other builds.
pub const COMMIT: &str = match option_env!("EMCO_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// The version, and the commit where the build knows it: `0.1.0 (commit 1234567890ab)`.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    if COMMIT.is_empty() { version.to_owned() } else { format!("{version} (commit {COMMIT})") }
});
