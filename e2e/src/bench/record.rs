//! Writes measurements to a file for programs and a table for people.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    pub name: String,
    pub value: f64,
    pub unit: String,
    /// Such as `<= 0.02`.
    pub goal: Option<String>,
    pub met: Option<bool>,
    /// What another program needs for the same, in the same unit.
    pub reference: Option<f64>,
    /// The least and the most of `samples`: how far they spread.
    pub min: f64,
    pub max: f64,
    /// What `value` was made of.
    pub samples: Vec<f64>,
    /// The command that measures it.
    pub how: String,
}

impl Entry {
    /// The median of `samples`, without a goal. None of no samples.
    pub fn median(name: &str, unit: &str, samples: Vec<f64>, how: &str) -> Option<Self> {
        Self::quantile(name, unit, samples, 0.5, how)
    }

    /// What a part of `samples`, such as 0.99, does not exceed, without a goal. None of no samples.
    pub fn quantile(name: &str, unit: &str, samples: Vec<f64>, part: f64, how: &str) -> Option<Self> {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let above = sorted.iter().enumerate().find(|(at, _)| {
            let (at, all) =
                (u32::try_from(*at).unwrap_or(u32::MAX), u32::try_from(sorted.len()).unwrap_or(u32::MAX));
            f64::from(at) + 0.5 >= part * f64::from(all) - 0.5
        });
        let value = *above.map(|(_, value)| value)?;
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (name, unit, how) = (name.to_owned(), unit.to_owned(), how.to_owned());
        Some(Self { name, value, unit, goal: None, met: None, reference: None, min, max, samples, how })
    }

    /// One number, without a goal.
    pub fn one(name: &str, unit: &str, value: f64, how: &str) -> Self {
        let (name, unit, how) = (name.to_owned(), unit.to_owned(), how.to_owned());
        let (min, max, samples) = (value, value, vec![value]);
        Self { name, value, unit, goal: None, met: None, reference: None, min, max, samples, how }
    }

    /// With the least that is wanted.
    #[must_use]
    pub fn at_least(mut self, least: f64) -> Self {
        self.goal = Some(format!(">= {least}"));
        self.met = Some(self.value >= least);
        self
    }

    /// With the most that is wanted.
    #[must_use]
    pub fn at_most(mut self, most: f64) -> Self {
        self.goal = Some(format!("<= {most}"));
        self.met = Some(self.value <= most);
        self
    }
}

/// Writes the entries as a list in JSON.
pub fn write(file: &Path, entries: &[Entry]) -> Result<()> {
    let folder = file.parent().with_context(|| format!("{} is no file in a folder", file.display()))?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut text = serde_json::to_string_pretty(entries).context("measurements cannot be written as JSON")?;
    text.push('\n');
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Names of the entries that miss their goal.
pub fn missed(entries: &[Entry]) -> Vec<&str> {
    entries.iter().filter(|entry| entry.met == Some(false)).map(|entry| entry.name.as_str()).collect()
}

/// Prints the entries as a table.
pub fn print(entries: &[Entry]) {
    println!("{:<40} {:>10} {:<9} {:<10} {:<4} SPREAD", "NAME", "VALUE", "UNIT", "GOAL", "MET");
    for entry in entries {
        let met = match entry.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let goal = entry.goal.as_deref().unwrap_or_default();
        let spread = match entry.samples.len() {
            0 | 1 => String::new(),
            _ => format!("{:.4} to {:.4}", entry.min, entry.max),
        };
        let line = format!(
            "{:<40} {:>10.4} {:<9} {goal:<10} {met:<4} {spread}",
            entry.name, entry.value, entry.unit
        );
        println!("{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_value_and_a_goal_is_judged_by_it() {
        let entry = Entry::median("x", "s", vec![3.0, 1.0, 2.0], "make bench-x").unwrap();
        assert!((entry.value - 2.0).abs() < f64::EPSILON);
        assert_eq!([entry.min, entry.max].map(f64::to_bits), [1.0, 3.0].map(f64::to_bits));
        assert_eq!(entry.clone().at_most(2.0).met, Some(true));
        assert_eq!(entry.clone().at_most(1.5).met, Some(false));
        assert!(Entry::median("x", "s", Vec::new(), "").is_none());
        let entries = [entry.clone().at_most(1.5), entry.clone().at_most(2.0), entry];
        assert_eq!(missed(&entries), ["x"]);
    }

    #[test]
    fn a_file_lists_every_member_of_an_entry() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("bench/x.json");
        write(&file, &[Entry::one("x", "s", 1.5, "make bench-x")]).unwrap();
        let read: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let wanted = serde_json::json!([{"name": "x", "value": 1.5, "unit": "s", "goal": null, "met": null,
            "reference": null, "min": 1.5, "max": 1.5, "samples": [1.5], "how": "make bench-x"}]);
        assert_eq!(read, wanted);
    }
}
