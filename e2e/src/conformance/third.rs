//! Chooses which of the deployed charts are upgraded in a run: a third of them, by the commit, or all.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result};
use emco_e2e::operator::root;

use super::corpus::Deployed;

/// Repeats a choice.
pub const VARIABLE: &str = "EMCO_TEST_SEED";
/// Of a checkout without history.
const NO_COMMIT: u64 = 20_261_127;
/// Runs that are needed at least to upgrade all charts.
const PARTS: u64 = 3;

/// What is upgraded.
#[derive(Clone, Copy)]
pub enum Choice {
    All,
    Third { seed: u64 },
}

impl Choice {
    /// All if asked for, else a third: by `EMCO_TEST_SEED`, by the commit, or always the same.
    pub fn new(all: bool) -> Result<Self> {
        if all {
            return Ok(Self::All);
        }
        Ok(Self::Third { seed: seed()? })
    }

    /// The places of the charts that are upgraded. Those with a next version are dealt out first, so that each third has some.
    pub fn of(self, charts: &[Deployed]) -> BTreeSet<usize> {
        let mut places: Vec<usize> = (0..charts.len()).collect();
        places.sort_by_key(|place| charts.get(*place).is_none_or(|chart| chart.next.is_none()));
        let mine = |turn: u64| match self {
            Self::All => true,
            Self::Third { seed } => turn % PARTS == seed % PARTS,
        };
        (0..).zip(places).filter(|(turn, _)| mine(*turn)).map(|(_, place)| place).collect()
    }

    /// For people: why these, and how to have them again.
    pub fn why(self) -> String {
        match self {
            Self::All => "all of them".to_owned(),
            Self::Third { seed } => {
                format!(
                    "a third by the commit; {VARIABLE}={seed} takes these again, --all (ALL=yes) takes all"
                )
            }
        }
    }
}

/// The number by which a run chooses: `EMCO_TEST_SEED`, one of the commit, or always the same.
pub fn seed() -> Result<u64> {
    let given = std::env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    let given =
        given.map(|given| given.parse::<u64>().with_context(|| format!("{VARIABLE}={given} is no number")));
    Ok(given.transpose()?.or_else(commit).unwrap_or(NO_COMMIT))
}

/// A number of the commit that is checked out.
fn commit() -> Option<u64> {
    let output = Command::new("git").arg("-C").arg(root()).args(["rev-parse", "HEAD"]).output().ok()?;
    of_commit(&String::from_utf8(output.stdout).ok()?)
}

fn of_commit(hash: &str) -> Option<u64> {
    u64::from_str_radix(hash.get(..16)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::super::corpus::CHARTS;
    use super::*;

    #[test]
    fn three_seeds_in_a_row_upgrade_every_chart_once() {
        let thirds = [7, 8, 9].map(|seed| Choice::Third { seed }.of(&CHARTS));
        let all: Vec<usize> = thirds.iter().flatten().copied().collect();
        assert_eq!(all.len(), CHARTS.len());
        assert_eq!(BTreeSet::from_iter(all), Choice::All.of(&CHARTS));
    }

    #[test]
    fn each_third_has_a_chart_with_a_next_version() {
        for seed in 0..PARTS {
            let third = Choice::Third { seed }.of(&CHARTS);
            assert!(third.iter().any(|place| CHARTS[*place].next.is_some()), "seed {seed}: {third:?}");
            assert!(third.len() <= CHARTS.len().div_ceil(3), "seed {seed}: {third:?}");
        }
    }

    #[test]
    fn another_commit_is_another_seed_and_the_same_one_is_not() {
        let seed = |last: char| of_commit(&format!("00000000000000f{last}aaaaaaaaaaaaaaaaaaaaaaaa\n"));
        assert_eq!(seed('1'), Some(0xf1));
        assert_eq!(seed('2'), Some(0xf2));
        assert_eq!(of_commit("fatal"), None);
    }
}
