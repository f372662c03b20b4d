//! Prints aligned columns, JSON or YAML.

use std::borrow::Cow;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::args::Format;

/// Text of a cell that has none.
const NONE: &str = "<none>";

/// A text without what commands a terminal: clusters and charts have a say in messages, names and manifests.
pub fn printable(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(commands) { Cow::Owned(text.replace(commands, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// A table as kubectl prints it.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[&str]) -> Self {
        Self { rows: vec![columns.iter().map(|&column| column.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        let shown = |cell: String| if cell.is_empty() { NONE.to_owned() } else { cell };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// The lines; the last column is as wide as it needs to be.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}   "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A value for programs; `None` where people read.
pub fn machine(format: Option<Format>, value: &impl Serialize) -> anyhow::Result<Option<String>> {
    match format {
        Some(Format::Json) => serde_json::to_string_pretty(value)
            .map(|text| Some(text + "\n"))
            .context("the answer cannot be written as JSON"),
        Some(Format::Yaml) => {
            serde_yaml::to_string(value).map(Some).context("the answer cannot be written as YAML")
        }
        Some(Format::Wide) | None => Ok(None),
    }
}

/// How long ago something was, as kubectl says it.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(since).as_secs().max(0);
    match (seconds, seconds / 60, seconds / 3600) {
        (0..120, ..) => format!("{seconds}s"),
        (_, minutes @ 0..120, _) => format!("{minutes}m"),
        (_, _, hours @ 0..48) => format!("{hours}h"),
        (_, _, hours) => format!("{}d", hours / 24),
    }
}

/// When an object was made.
pub fn made(meta: &ObjectMeta) -> Option<Timestamp> {
    meta.creation_timestamp.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_a_cluster_commands_no_terminal() {
        assert_eq!(printable("red \u{1b}[31m\r\u{7}\tü\n"), "red \u{fffd}[31m\u{fffd}\u{fffd}\tü\n");
        assert!(matches!(printable("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn columns_are_aligned_and_empty_cells_are_said() {
        let mut table = Table::new(&["NAME", "READY", "AGE"]);
        table.row(vec!["berlin".to_owned(), String::new(), "3s".to_owned()]);
        assert_eq!(table.text(), "NAME     READY    AGE\nberlin   <none>   3s\n");
    }

    #[test]
    fn ages_have_one_unit() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        for (since, text) in [
            ("2026-11-21T11:59:57Z", "3s"),
            ("2026-11-21T11:50:00Z", "10m"),
            ("2026-11-20T18:00:00Z", "18h"),
            ("2026-11-01T12:00:00Z", "20d"),
            ("2026-11-21T12:00:09Z", "0s"),
        ] {
            assert_eq!(age(Some(since.parse().unwrap()), now), text);
        }
        assert_eq!(age(None, now), "<unknown>");
    }
}
