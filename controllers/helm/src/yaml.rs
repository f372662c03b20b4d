//! Reads and writes YAML as Helm and kubectl do.
//!
//! Reading follows Go's YAML 1.1: `yes` and `on` are booleans, `0644` is octal, times stay text, keys become
//! strings, the last of equal keys wins. Writing gives the very text of `toYaml`, because charts hash it.
mod chars;
mod compose;
mod decode;
mod emit;
mod resolve;
mod scanner;
mod shown;
mod sort;
mod source;
mod target;
mod token;

use crate::value::Value;
use compose::Composer;
use decode::{Build, Decoder};
use emit::{Emitter, Flavor};

/// How deep documents may nest.
pub const MAX_DEPTH: usize = 512;

/// Begins complaints about keys that cannot become strings.
const BAD_KEY: &str = "unsupported map key";
const VALUE_AT_KEY: &str = ", value: ";

/// Why text is not YAML, or data cannot be written as such. Displays as Helm's `error converting YAML to JSON: …`
/// continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    message: String,
}

impl YamlError {
    fn plain(problem: impl Into<String>) -> Self {
        Self { message: format!("yaml: {}", problem.into()) }
    }

    fn at(line: Option<usize>, problem: impl Into<String>) -> Self {
        match line {
            Some(line) => Self::plain(format!("line {line}: {}", problem.into())),
            None => Self::plain(problem),
        }
    }

    /// A complaint about a key, with the value that stands at it.
    fn about(mut self, value: impl FnOnce() -> String) -> Self {
        if self.message.starts_with(BAD_KEY) && !self.message.contains(VALUE_AT_KEY) {
            self.message += VALUE_AT_KEY;
            self.message += &value();
        }
        self
    }

    /// A complaint of the step from YAML to JSON.
    fn json(message: String) -> Self {
        Self { message }
    }
}

/// The first document of a text; empty text is null. Whole numbers stay integers.
pub fn to_json(text: &[u8]) -> Result<serde_json::Value, YamlError> {
    first(text)
}

/// As `to_json`, for values of charts: templates tell minus zero from zero, and API servers do not.
pub fn to_values(text: &[u8]) -> Result<serde_json::Value, YamlError> {
    first::<target::Exact<false>>(text).map(|exact| exact.0)
}

/// As `to_json`, but a number written as a float stays one, be it whole.
pub(crate) fn to_exact_json(text: &[u8]) -> Result<serde_json::Value, YamlError> {
    first::<target::Exact<true>>(text).map(|exact| exact.0)
}

/// As `to_json`, as templates see it: every number is a `float64`.
pub fn to_value(text: &[u8]) -> Result<Value, YamlError> {
    first(text)
}

/// All documents of a stream, without those that are null.
pub fn documents(text: &[u8]) -> Result<Vec<serde_json::Value>, YamlError> {
    let mut composer = Composer::new(text, MAX_DEPTH)?;
    let mut found = Vec::new();
    while let Some(document) = composer.document()? {
        let value: serde_json::Value = Decoder::new(&document, MAX_DEPTH).value(document.root)?;
        if !value.is_null() {
            found.push(value);
        }
    }
    Ok(found)
}

fn first<T: Build>(text: &[u8]) -> Result<T, YamlError> {
    match Composer::new(text, MAX_DEPTH)?.document()? {
        Some(document) => Decoder::new(&document, MAX_DEPTH).value(document.root),
        None => Ok(T::null()),
    }
}

/// A document as YAML, with a final line break. `to_json` reads the same data back.
pub fn from_json(value: &serde_json::Value) -> String {
    let written = Emitter::new(Flavor::Compact, true).document(&value).unwrap_or_default();
    String::from_utf8(written).unwrap_or_default()
}

/// A value as `toYaml` writes it, with the final line break that `toYaml` cuts off. Fails where Go's JSON does: for
/// infinite numbers, for maps inside themselves; and where Go's YAML cannot read that JSON.
pub fn from_value(value: &Value) -> Result<Vec<u8>, YamlError> {
    Emitter::new(Flavor::Compact, false).document(&source::ByJson(value.clone()))
}

/// A value as `toYamlPretty` writes it: sequences indented, lines never folded.
pub fn from_value_pretty(value: &Value) -> Result<Vec<u8>, YamlError> {
    Emitter::new(Flavor::Pretty, false).document(&source::Direct(value.clone()))
}

#[cfg(test)]
mod tests;
