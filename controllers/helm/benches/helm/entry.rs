//! Writes a measurement: to a file for programs, to a table for people.
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub name: String,
    pub value: f64,
    pub unit: String,
    /// Such as `<= 60`.
    pub goal: Option<String>,
    pub met: Option<bool>,
    /// What Helm needs for the same, in the same unit.
    pub reference: Option<f64>,
    /// What `value` was made of.
    pub samples: Vec<f64>,
    /// The command that measures it.
    pub how: String,
}

impl Entry {
    /// The median of samples.
    pub fn median(name: &str, unit: &str, samples: Vec<f64>) -> Result<Self> {
        let value = median(&samples)?;
        Ok(Self { samples, ..Self::one(name, unit, value) })
    }

    /// One number.
    pub fn one(name: &str, unit: &str, value: f64) -> Self {
        let (name, unit, how) = (name.to_owned(), unit.to_owned(), super::HOW.to_owned());
        Self { name, value, unit, goal: None, met: None, reference: None, samples: vec![value], how }
    }

    /// With the most that is wanted.
    pub fn at_most(mut self, most: f64) -> Self {
        self.goal = Some(format!("<= {most}"));
        self.met = Some(self.value <= most);
        self
    }

    /// With what Helm needs.
    pub fn beside(self, reference: f64) -> Self {
        Self { reference: Some(reference), ..self }
    }
}

/// The middle one of the samples.
pub fn median(samples: &[f64]) -> Result<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().context("nothing was measured")
}

/// Writes the entries as a list in JSON.
pub fn write(file: &Path, entries: &[Entry]) -> Result<()> {
    let mut text = serde_json::to_string_pretty(entries)?;
    text.push('\n');
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Prints the entries as a table.
pub fn print(entries: &[Entry]) {
    println!("{:<40} {:>10} {:<6} {:<8} {:<4} HELM", "NAME", "VALUE", "UNIT", "GOAL", "MET");
    for entry in entries {
        let met = match entry.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let goal = entry.goal.as_deref().unwrap_or_default();
        let reference = entry.reference.map(|value| format!("{value:.1}")).unwrap_or_default();
        println!("{:<40} {:>10.2} {:<6} {goal:<8} {met:<4} {reference}", entry.name, entry.value, entry.unit);
    }
}
