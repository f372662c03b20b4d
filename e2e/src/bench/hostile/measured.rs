//! Turns edits beside attacks into entries: each attack's worst delay over that of the quiet edits around it.

use anyhow::{Context as _, Result};
use emco_e2e::hostile::{Attack, Edits, Seen};

use super::HOW;
use crate::bench::record::Entry;

/// How much later than in quiet the slowest edit in a hundred may come.
const RATIO: f64 = 1.5;
const PEAK_MIB: f64 = 1024.0;
const PART: f64 = 0.99;

/// What was measured so far.
#[derive(Default)]
pub struct Measured {
    quiet: Vec<f64>,
    attacks: Vec<(Attack, Edits, Seen)>,
    /// What the operator did in quiet.
    rest: Vec<Seen>,
}

impl Measured {
    /// Edits beside nothing. All of them together are what each attack is held against: a few of them have no tail.
    pub fn quiet(&mut self, edits: Edits, seen: Seen) {
        self.quiet.extend(edits.seconds);
        self.rest.push(seen);
    }

    /// Edits beside an attack; answers a line for people.
    pub fn attack(&mut self, attack: Attack, edits: Edits, seen: Seen, answered: &[String]) -> String {
        let mut sorted = edits.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let (middle, last) = (sorted.get(sorted.len() / 2), sorted.last());
        let line = format!(
            "edits took {:.3} s, at most {:.3} s, {} did not come; {} MiB, {} restarts, {} missed probes; answered: {}",
            middle.unwrap_or(&0.0),
            last.unwrap_or(&0.0),
            edits.lost,
            seen.peak_bytes >> 20,
            seen.restarts,
            seen.missed_probes,
            answered.join(" | "),
        );
        self.attacks.push((attack, edits, seen));
        line
    }

    /// The goals first, then what they were made of.
    pub fn entries(self) -> Result<Vec<Entry>> {
        let none = "nothing was measured";
        let of =
            |name: &str, samples: &[f64], part: f64| Entry::quantile(name, "s", samples.to_vec(), part, HOW);
        let quiet = of("victim_quiet_p99_s", &self.quiet, PART).context(none)?;
        let middle = of("victim_quiet_p50_s", &self.quiet, 0.5).context(none)?;
        let (mut ratios, mut more) = (Vec::new(), vec![middle]);
        for (attack, edits, seen) in &self.attacks {
            let name = attack.name();
            let beside = of(&format!("victim_{name}_p99_s"), &edits.seconds, PART).context(none)?;
            let ratio = beside.value / quiet.value;
            ratios.push(ratio);
            more.push(Entry::one(&format!("victim_{name}_p99_ratio"), "ratio", ratio, HOW).at_most(RATIO));
            more.extend(of(&format!("victim_{name}_p50_s"), &edits.seconds, 0.5));
            more.push(beside);
            more.push(
                Entry::one(&format!("operator_{name}_peak_rss_mib"), "MiB", mebibytes(seen), HOW)
                    .at_most(PEAK_MIB),
            );
        }
        let all = || self.attacks.iter().map(|(.., seen)| seen).chain(&self.rest);
        let restarts = all().map(|seen| f64::from(seen.restarts)).sum();
        let missed = all().map(|seen| f64::from(seen.missed_probes)).sum();
        let lost = self.attacks.iter().map(|(_, edits, _)| count(edits.lost)).sum();
        let mut entries = vec![
            worst("victim_p99_ratio", "ratio", ratios).context(none)?.at_most(RATIO),
            worst("operator_peak_rss_mib", "MiB", all().map(mebibytes).collect())
                .context(none)?
                .at_most(PEAK_MIB),
            Entry::one("operator_restarts", "restarts", restarts, HOW).at_most(0.0),
            Entry::one("victim_lost_edits", "edits", lost, HOW).at_most(0.0),
            Entry::one("operator_missed_probes", "probes", missed, HOW),
            quiet,
        ];
        entries.append(&mut more);
        Ok(entries)
    }
}

fn worst(name: &str, unit: &str, samples: Vec<f64>) -> Option<Entry> {
    Entry::quantile(name, unit, samples, 1.0, HOW)
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Far below what a float holds exactly.
fn mebibytes(seen: &Seen) -> f64 {
    f64::from(u32::try_from(seen.peak_bytes >> 20).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_attack_is_the_ratio_and_every_restart_counts() {
        let edits = |seconds: f64| Edits { seconds: vec![seconds; 60], lost: 0 };
        let mut measured = Measured::default();
        measured.quiet(edits(0.1), Seen { peak_bytes: 3 << 20, restarts: 1, missed_probes: 0 });
        measured.attack(Attack::Spin, edits(0.2), Seen::default(), &[]);
        let lost = Edits { lost: 1, ..edits(0.1) };
        measured.attack(Attack::Git, lost, Seen { restarts: 2, ..Seen::default() }, &[]);
        let entries = measured.entries().unwrap();
        let value = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap();
        assert!((value("victim_p99_ratio").value - 2.0).abs() < 1e-9);
        assert_eq!(value("victim_p99_ratio").met, Some(false));
        assert_eq!(value("victim_git_p99_ratio").met, Some(true));
        assert!((value("operator_restarts").value - 3.0).abs() < 1e-9);
        assert_eq!(value("victim_lost_edits").met, Some(false), "who waits for ever is no ratio");
        assert!((value("operator_peak_rss_mib").value - 3.0).abs() < 1e-9);
    }
}
