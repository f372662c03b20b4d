//! Finds one entry in a repository's `index.yaml`. The other charts of the index are passed over without being kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

mod lines;

/// One version of one chart.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Entry {
    /// Exact version.
    #[serde(default, deserialize_with = "scalar")]
    pub version: String,
    /// SHA-256 of the archive, with or without `sha256:`.
    #[serde(default)]
    pub digest: Option<String>,
    /// Where the archive is; absolute, or relative to the repository.
    #[serde(default)]
    pub urls: Option<Vec<String>>,
}

/// What an index says of one chart and version.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The entry.
    Entry(Entry),
    /// The chart has only these versions, at most five of them.
    Versions(Vec<String>),
    /// The index does not name the chart.
    Nothing,
}

/// Bytes of an index in another form than usual.
const WHOLE: usize = 1 << 20;
/// Versions told of a chart that lacks the wanted one.
pub const TOLD: usize = 5;

/// Looks a chart up. The error says where the index is broken, and quotes nothing.
pub fn find(index: &[u8], name: &str, version: &str) -> Result<Found, String> {
    let wanted = Wanted { name, version };
    let json = index.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if json {
        let mut reader = serde_json::Deserializer::from_slice(index);
        return Top(wanted).deserialize(&mut reader).map_err(|error| format!("at line {}", error.line()));
    }
    if let Some(found) = lines::find(index, name, version) {
        return Ok(found);
    }
    // The reader keeps all of a document in memory, at a hundred times its bytes.
    if index.len() > WHOLE {
        return Err(
            "it is not written as helm repo index does, and too large to be read in another form".to_owned()
        );
    }
    let reader = serde_yaml::Deserializer::from_slice(index);
    Top(wanted).deserialize(reader).map_err(|error| match error.location() {
        Some(at) => format!("at line {}", at.line()),
        None => "as a whole".to_owned(),
    })
}

/// `v1.2.3` and `1.2.3` are one version, as Helm reads them.
pub fn same_version(a: &str, b: &str) -> bool {
    a.strip_prefix('v').unwrap_or(a) == b.strip_prefix('v').unwrap_or(b)
}

#[derive(Clone, Copy)]
struct Wanted<'a> {
    name: &'a str,
    version: &'a str,
}

struct Top<'a>(Wanted<'a>);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = Found;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the index of a chart repository")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::Nothing;
        while let Some(key) = map.next_key::<String>()? {
            if key == "entries" {
                found = map.next_value_seed(Charts(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Charts<'a>(Wanted<'a>);

impl<'de> DeserializeSeed<'de> for Charts<'_> {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Charts<'_> {
    type Value = Found;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("charts by name")
    }
    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Nothing)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::Nothing;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.0.name {
                found = map.next_value_seed(Versions(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Versions<'a>(Wanted<'a>);

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = Found;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("versions of a chart")
    }
    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Versions(Vec::new()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let mut choice = Choice::new(self.0.version);
        while let Some(entry) = list.next_element::<Entry>()? {
            choice.offer(entry);
        }
        Ok(choice.found())
    }
}

/// The entry of a version among others.
struct Choice<'a> {
    version: &'a str,
    found: Option<Entry>,
    told: Vec<String>,
}

impl<'a> Choice<'a> {
    const fn new(version: &'a str) -> Self {
        Self { version, found: None, told: Vec::new() }
    }

    /// The exact text wins over one with a `v`.
    fn offer(&mut self, entry: Entry) {
        let exact = entry.version == self.version;
        let better = exact && self.found.as_ref().is_none_or(|known| known.version != self.version);
        if better || self.found.is_none() && same_version(&entry.version, self.version) {
            self.found = Some(entry);
        } else if self.told.len() < TOLD {
            self.told.push(entry.version);
        }
    }

    fn found(self) -> Found {
        self.found.map_or(Found::Versions(self.told), Found::Entry)
    }
}

/// Versions such as `1.2` without quotes are numbers to YAML.
fn scalar<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Text(String),
        Number(serde_json::Number),
    }
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Text(text) => text,
        Scalar::Number(number) => number.to_string(),
    })
}
