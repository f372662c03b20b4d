//! Chooses at which points of a history the tests let a process die, or something else go wrong.
//!
//! A test that dies at every write repeats one fact dozens of times. The gate takes a sample that changes with the commit, so that
//! all points are met in the course of time, and `EMCO_CRASHES=all` (`make soak STEP=crashes`) takes all of them.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Points of a sample beside the first and the last one. A history of so many, or fewer, is taken whole.
const BETWEEN: usize = 4;
/// The seed where there is neither `EMCO_CRASH_SEED` nor a commit.
const NO_COMMIT: &str = "no commit";

/// The choice of this run.
static CHOICE: LazyLock<Choice> = LazyLock::new(|| {
    let of = |name: &str| std::env::var(name).ok();
    Choice::of(of("EMCO_CRASHES").as_deref(), of("EMCO_CRASH_SEED"), commit)
});

/// Which points of each history are taken.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    All,
    /// The first, the last and some between, by this seed.
    Sample(String),
}

impl Choice {
    /// The choice for the values of `EMCO_CRASHES` and `EMCO_CRASH_SEED`.
    fn of(crashes: Option<&str>, seed: Option<String>, commit: impl FnOnce() -> Option<String>) -> Self {
        let said = |text: &String| !text.is_empty();
        match crashes {
            Some("all") => Self::All,
            None | Some("") => {
                let seed = seed.filter(said).or_else(|| commit().filter(said));
                Self::Sample(seed.unwrap_or_else(|| NO_COMMIT.to_owned()))
            }
            Some(other) => panic!("EMCO_CRASHES is {other:?}: set it to all, or unset it for a sample"),
        }
    }

    /// The numbers of the points that are taken, of so many.
    fn points(&self, number: usize) -> BTreeSet<usize> {
        let Self::Sample(seed) = self else { return (0..number).collect() };
        let last = number.saturating_sub(1);
        let mut between: Vec<usize> = (1..last).collect();
        // As good as random, and the same on every machine.
        between.sort_by_cached_key(|point| Sha256::digest(format!("{seed}/{number}/{point}")));
        between.truncate(BETWEEN);
        between.into_iter().chain([0, last]).filter(|point| *point < number).collect()
    }

    /// What a test says of its points when it fails.
    fn text(&self, points: &BTreeSet<usize>, number: usize) -> String {
        match self {
            Self::All => format!("takes all {number} points"),
            Self::Sample(seed) => format!(
                "takes points {points:?} of 0..{number}: EMCO_CRASH_SEED={seed:?} takes these again, EMCO_CRASHES=all takes all"
            ),
        }
    }
}

/// The commit of the working tree, if there is one.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let answer = git.output().ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
}

/// Those of a history's points that are taken, in their order. A test that fails shows which they were.
pub fn chosen<T>(points: impl IntoIterator<Item = T>) -> Vec<T> {
    let all: Vec<T> = points.into_iter().collect();
    let taken = CHOICE.points(all.len());
    // Only the output of a test that failed is shown.
    println!("{}", CHOICE.text(&taken, all.len()));
    all.into_iter().enumerate().filter(|(at, _)| taken.contains(at)).map(|(_, point)| point).collect()
}

#[cfg(test)]
mod tests;
