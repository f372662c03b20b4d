//! Checks values against `values.schema.json`, by the rules of Helm's validator. Nothing is fetched.
mod check;
mod email;
mod formats;
mod number;
mod refs;
mod sound;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::gojson;
use crate::goregex;
use crate::limits::{LimitError, Meter};

/// Patterns of one schema that are kept compiled; others are compiled where they are met.
const KEPT_PATTERNS: usize = 500;

/// A schema that was read.
#[derive(Debug)]
pub(crate) enum Schema {
    Ready(Box<Rules>),
    /// The schema refers to a URL, and is skipped.
    Remote(String),
    /// The schema is none, which fails every render as it does in Helm.
    Broken(String),
}

/// The schema as it stands in the file, and what was found out about it.
#[derive(Debug)]
pub(crate) struct Rules {
    root: Json,
    draft: Draft,
    /// The JSON pointer into the schema to which each `$ref` leads.
    targets: BTreeMap<String, String>,
    patterns: BTreeMap<String, goregex::Compiled>,
}

/// The words that a schema has. One that names no draft, or an unknown one, has those of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    Six,
    Seven,
    Any,
}

/// The reason for which values were not checked.
#[derive(Debug)]
pub(crate) enum Unchecked {
    Skipped(String),
    Limit(LimitError),
}

/// The document that the text begins with. What follows it is not read, as by Helm: a brace too many does no harm, and bytes
/// that are no UTF-8 become U+FFFD.
pub(crate) fn read(data: &[u8]) -> Result<Json, String> {
    let (value, _) = gojson::decode_prefix(data)?;
    value.to_json().ok_or_else(|| "it nests too deeply".to_owned())
}

impl Schema {
    /// Reads a schema. Recursion is as deep as the document nests: the thread needs the stack of a render.
    pub fn new(data: &[u8]) -> Self {
        let mut root = match read(data) {
            Ok(root) => root,
            Err(error) => return Self::Broken(format!("values.schema.json is no JSON: {error}")),
        };
        let read = Draft::of(&root).and_then(|draft| {
            let documents = refs::resolve(&mut root)?;
            Ok((draft, sound::check(&root, draft, &documents)?))
        });
        match read {
            Ok((draft, sound::Found { targets, patterns, remote: None })) => {
                Self::Ready(Box::new(Rules { root, draft, targets, patterns: keep(&patterns) }))
            }
            Ok((_, sound::Found { remote: Some(url), .. })) => Self::Remote(format!(
                "values.schema.json is skipped: it refers to {url}, and schemas are not fetched"
            )),
            Err(error) => Self::Broken(format!(
                "values.schema.json is no valid schema: {error}. Correct it, or skip it"
            )),
        }
    }

    /// The problems values have, one a line, `None` if they fit.
    pub fn check(&self, values: &Json, meter: &Meter) -> Result<Option<String>, Unchecked> {
        match self {
            Self::Ready(rules) => check::check(rules, values, meter).map_err(Unchecked::Limit),
            Self::Remote(reason) => Err(Unchecked::Skipped(reason.clone())),
            Self::Broken(reason) => Ok(Some(format!("{reason}\n"))),
        }
    }
}

impl Draft {
    /// The draft that a schema names by its exact address.
    fn of(schema: &Json) -> Result<Self, String> {
        let named = match schema {
            Json::Bool(_) => return Ok(Self::Any),
            Json::Object(map) => map.get("$schema"),
            _ => return Err("it is neither an object nor a boolean".to_owned()),
        };
        let named = match named {
            None => return Ok(Self::Any),
            Some(Json::String(named)) => named,
            Some(_) => return Err("$schema is no string".to_owned()),
        };
        if !formats::is_url(named) {
            return Err("$schema is no URL".to_owned());
        }
        Ok(match named.trim_end_matches('#') {
            "http://json-schema.org/draft-04/schema" => Self::Four,
            "http://json-schema.org/draft-06/schema" => Self::Six,
            "http://json-schema.org/draft-07/schema" => Self::Seven,
            _ => Self::Any,
        })
    }
}

impl Rules {
    /// A text fits a pattern. A text that is too long to search fits none.
    fn fits(&self, pattern: &str, text: &str) -> bool {
        let fits = |compiled: &goregex::Compiled| {
            compiled.admits(text.as_bytes()).is_ok() && compiled.regex.is_match(text.as_bytes())
        };
        match self.patterns.get(pattern) {
            Some(compiled) => fits(compiled),
            None => goregex::compile(pattern.as_bytes()).is_ok_and(|compiled| fits(&compiled)),
        }
    }
}

/// The patterns compiled, as far as they are small: a schema is a tenant's input, and is kept for long.
fn keep(patterns: &[String]) -> BTreeMap<String, goregex::Compiled> {
    let compiled = patterns.iter().filter_map(|pattern| {
        let compiled = goregex::small(pattern)?;
        Some((pattern.clone(), compiled))
    });
    compiled.take(KEPT_PATTERNS).collect()
}

#[cfg(test)]
mod tests;
