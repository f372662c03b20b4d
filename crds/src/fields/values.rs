//! Values of fields: anything-goes objects, durations, quantities, shares.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A JSON object of any content, kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(pub Map<String, Value>);

impl Deref for RawJson {
    type Target = Map<String, Value>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl JsonSchema for RawJson {
    fn schema_name() -> Cow<'static, str> {
        "RawJson".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// A length of time as text: `10m`, `1h30m`, `500ms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

impl DurationText {
    /// The text of a time, to the millisecond.
    pub fn of(time: Duration) -> Self {
        let millis = time.as_millis();
        let parts = [
            (millis / 3_600_000, "h"),
            (millis / 60_000 % 60, "m"),
            (millis / 1000 % 60, "s"),
            (millis % 1000, "ms"),
        ];
        let mut text = String::new();
        for (number, unit) in parts.into_iter().filter(|(number, _)| *number > 0) {
            text.push_str(&number.to_string());
            text.push_str(unit);
        }
        Self(if text.is_empty() { "0s".to_owned() } else { text })
    }

    /// The time meant; `None` where the text is none of ours (the API server refuses such).
    pub fn parse(&self) -> Option<Duration> {
        let mut rest = self.0.as_str();
        let mut total = Duration::ZERO;
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: u64 = rest.get(..digits)?.parse().ok()?;
            let tail = rest.get(digits..)?;
            let (unit, next) =
                ["ms", "h", "m", "s"].iter().find_map(|u| tail.strip_prefix(u).map(|t| (*u, t)))?;
            total = total.checked_add(match unit {
                "ms" => Duration::from_millis(number),
                "s" => Duration::from_secs(number),
                "m" => Duration::from_secs(number.checked_mul(60)?),
                _ => Duration::from_secs(number.checked_mul(3600)?),
            })?;
            rest = next;
        }
        Some(total)
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "DurationText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 32, "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"})
    }
}

/// A whole number or a text, as the API server's int-or-string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrText {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
}

impl std::fmt::Display for IntOrText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A Kubernetes quantity: `64Gi`, `500m`, `2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub IntOrText);

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 32,
            "pattern": "^[+]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$",
        })
    }
}

/// A share or a number of clusters: `25%` or `3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PercentOrCount(pub IntOrText);

impl PercentOrCount {
    /// A share.
    pub fn percent(percent: u8) -> Self {
        Self(IntOrText::Text(format!("{percent}%")))
    }
}

impl std::fmt::Display for PercentOrCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for PercentOrCount {
    fn schema_name() -> Cow<'static, str> {
        "PercentOrCount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maximum": 100_000,
            "maxLength": 6,
            "pattern": "^((100|[0-9]{1,2})%|[0-9]{1,6})$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_mean_them() {
        for (text, millis) in [
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("1s500ms", 1_500),
            ("24h", 86_400_000),
            ("0s", 0),
        ] {
            assert_eq!(DurationText::from(text).parse(), Some(Duration::from_millis(millis)), "{text}");
        }
        for (text, millis) in [("10m", 600_000), ("1h30m", 5_400_000), ("1s500ms", 1_500), ("0s", 0)] {
            assert_eq!(DurationText::of(Duration::from_millis(millis)), DurationText::from(text));
        }
        for text in ["", "10", "m", "1d", "-1s", "1.5h", "10m ", "99999999999999999999s"] {
            assert_eq!(DurationText::from(text).parse(), None, "{text}");
        }
    }

    #[test]
    fn a_number_too_large_for_32_bits_is_still_a_quantity() {
        let bytes: Quantity = serde_json::from_str("268435456000").unwrap();
        assert_eq!(bytes.0, IntOrText::Int(268_435_456_000));
    }
}
