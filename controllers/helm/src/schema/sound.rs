//! Refuses what Helm's validator refuses of a schema: words of a wrong type. Words that it does not know it does not look at.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::Draft;
use super::formats::is_url;
use super::refs::{Documents, Target};
use crate::goregex;

/// Findings on the way.
#[derive(Default)]
pub(super) struct Found {
    pub targets: BTreeMap<String, String>,
    pub patterns: Vec<String>,
    /// A `$ref` to another document.
    pub remote: Option<String>,
}

/// Patterns of one schema: each takes its time to compile, and nothing ends that before.
const MOST_PATTERNS: usize = 1000;

/// Bytes that the places of what `$ref` leads to may take.
const MOST_TARGETS: usize = 4 << 20;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "number", "null", "object", "string"];

pub(super) fn check(root: &Json, draft: Draft, documents: &Documents) -> Result<Found, String> {
    let mut check = Check {
        draft,
        documents,
        found: Found::default(),
        pending: Vec::new(),
        // The whole is looked at anyway.
        known: BTreeSet::from([String::new()]),
        target_bytes: 0,
        patterns: BTreeSet::new(),
    };
    let mut place = Vec::new();
    check.schema(root, &mut place).map_err(|error| at(&place, &error))?;
    while let Some((reference, pointer)) = check.pending.pop() {
        let Some(target) = root.pointer(&pointer) else {
            return Err(format!("$ref {reference:?} leads to nothing"));
        };
        place.clear();
        check.schema(target, &mut place).map_err(|error| at(&place, &format!("{error} ({reference})")))?;
    }
    check.found.patterns = check.patterns.into_iter().map(str::to_owned).collect();
    Ok(check.found)
}

fn at(place: &[&str], error: &str) -> String {
    let place = place.iter().take(20).copied().collect::<Vec<_>>().join(".");
    let mut text = if place.is_empty() { error.to_owned() } else { format!("{place}: {error}") };
    crate::limits::shorten(&mut text, 500);
    text
}

struct Check<'s, 'd> {
    draft: Draft,
    documents: &'d Documents,
    found: Found,
    /// Targets of `$ref` that were not looked at yet.
    pending: Vec<(String, String)>,
    /// Targets that are looked at, or will be: many names may lead to one.
    known: BTreeSet<String>,
    target_bytes: usize,
    patterns: BTreeSet<&'s str>,
}

type Place<'s> = Vec<&'s str>;

impl<'s> Check<'s, '_> {
    fn schema(&mut self, schema: &'s Json, place: &mut Place<'s>) -> Result<(), String> {
        let map = match schema {
            Json::Bool(_) if self.draft >= Draft::Six => return Ok(()),
            Json::Object(map) => map,
            _ => return Err("it is no schema, which is an object".to_owned()),
        };
        self.name(map)?;
        if let Some(definitions) = map.get("definitions") {
            self.schemas("definitions", definitions, place)?;
        }
        for word in ["title", "description"] {
            text(map, word)?;
        }
        if let Some(reference) = text(map, "$ref")? {
            // Words beside it have no meaning.
            return self.reference(reference);
        }
        types(map)?;
        numbers(map, self.draft)?;
        counts(map)?;
        lists(map)?;
        text(map, "format")?;
        if let Some(pattern) = text(map, "pattern")? {
            self.pattern(pattern)?;
        }
        self.parts(map, place)
    }

    /// The word that names a part depends on the draft.
    fn name(&self, map: &'s Map<String, Json>) -> Result<(), String> {
        let word = match self.draft {
            Draft::Four => "id",
            Draft::Any if map.contains_key("id") => "id",
            _ => "$id",
        };
        match text(map, word)? {
            Some(name) if !is_url(name) => Err(format!("{word} {name:?} is no URL")),
            _ => Ok(()),
        }
    }

    fn reference(&mut self, reference: &str) -> Result<(), String> {
        if self.found.targets.contains_key(reference) {
            return Ok(());
        }
        match self.documents.target(reference)? {
            Target::Here(pointer) => {
                self.target_bytes = self.target_bytes.saturating_add(reference.len() + pointer.len());
                if self.target_bytes > MOST_TARGETS {
                    return Err(format!("what its $ref lead to takes more than {MOST_TARGETS} bytes"));
                }
                if self.known.insert(pointer.clone()) {
                    self.pending.push((reference.to_owned(), pointer.clone()));
                }
                self.found.targets.insert(reference.to_owned(), pointer);
            }
            Target::Remote => self.found.remote = Some(reference.to_owned()),
            Target::Nowhere => return Err(format!("$ref {reference:?} names nothing of this schema")),
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &'s str) -> Result<(), String> {
        if !self.patterns.contains(pattern) {
            if self.patterns.len() >= MOST_PATTERNS {
                return Err(format!("it has more than {MOST_PATTERNS} patterns"));
            }
            goregex::compile(pattern.as_bytes())?;
            self.patterns.insert(pattern);
        }
        Ok(())
    }

    /// The schemas within a schema.
    fn parts(&mut self, map: &'s Map<String, Json>, place: &mut Place<'s>) -> Result<(), String> {
        for (word, value) in map {
            match word.as_str() {
                "properties" => self.schemas(word, value, place)?,
                "patternProperties" => {
                    for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                        self.pattern(pattern)?;
                    }
                    self.schemas(word, value, place)?;
                }
                "dependencies" => self.dependencies(value, place)?,
                "additionalProperties" | "additionalItems" if value.is_boolean() => {}
                "additionalProperties" | "additionalItems" | "not" => self.below(word, value, place)?,
                "propertyNames" | "contains" if self.draft >= Draft::Six => self.below(word, value, place)?,
                "if" | "then" | "else" if self.draft >= Draft::Seven => self.below(word, value, place)?,
                "items" if !value.is_array() => self.below(word, value, place)?,
                "items" | "oneOf" | "anyOf" | "allOf" => {
                    for schema in value.as_array().ok_or_else(|| format!("{word} must be a list"))? {
                        self.below(word, schema, place)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn below(&mut self, step: &'s str, schema: &'s Json, place: &mut Place<'s>) -> Result<(), String> {
        place.push(step);
        self.schema(schema, place)?;
        place.pop();
        Ok(())
    }

    fn schemas(&mut self, word: &'s str, value: &'s Json, place: &mut Place<'s>) -> Result<(), String> {
        let Json::Object(schemas) = value else { return Err(format!("{word} must be an object")) };
        place.push(word);
        for (name, schema) in schemas {
            self.below(name, schema, place)?;
        }
        place.pop();
        Ok(())
    }

    fn dependencies(&mut self, value: &'s Json, place: &mut Place<'s>) -> Result<(), String> {
        let Json::Object(all) = value else { return Err("dependencies must be an object".to_owned()) };
        for (name, dependency) in all {
            match dependency {
                Json::Array(names) if names.iter().all(Json::is_string) => {}
                Json::Array(_) => return Err(format!("dependencies of {name:?} must be texts")),
                schema => self.below(name, schema, place)?,
            }
        }
        Ok(())
    }
}

fn text<'s>(map: &'s Map<String, Json>, word: &str) -> Result<Option<&'s str>, String> {
    match map.get(word) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{word} must be a text")),
    }
}

fn types(map: &Map<String, Json>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut one = |name: &Json| match name.as_str() {
        Some(name) if !TYPES.contains(&name) => Err(format!("type {name:?} is none of {}", TYPES.join(", "))),
        Some(name) if !seen.insert(name.to_owned()) => Err(format!("type has {name:?} twice")),
        Some(_) => Ok(()),
        None => Err("type must be a text or a list of texts".to_owned()),
    };
    match map.get("type") {
        None => Ok(()),
        Some(Json::Array(names)) => names.iter().try_for_each(one),
        Some(name) => one(name),
    }
}

fn numbers(map: &Map<String, Json>, draft: Draft) -> Result<(), String> {
    for word in ["multipleOf", "minimum", "maximum"] {
        if map.get(word).is_some_and(|value| !value.is_number()) {
            return Err(format!("{word} must be a number"));
        }
    }
    if map.get("multipleOf").and_then(Json::as_f64).is_some_and(|number| number <= 0.0) {
        return Err("multipleOf must be greater than 0".to_owned());
    }
    for (word, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match map.get(word) {
            None => {}
            Some(Json::Number(_)) if draft != Draft::Four => {}
            Some(Json::Bool(_)) if matches!(draft, Draft::Four | Draft::Any) && map.contains_key(bound) => {}
            Some(Json::Bool(_)) if matches!(draft, Draft::Four | Draft::Any) => {
                return Err(format!("{word} cannot be used without {bound}"));
            }
            Some(_) => {
                let wanted = if draft == Draft::Four { "a boolean" } else { "a number" };
                return Err(format!("{word} must be {wanted}"));
            }
        }
    }
    Ok(())
}

fn counts(map: &Map<String, Json>) -> Result<(), String> {
    const PAIRS: [(&str, &str); 3] =
        [("minLength", "maxLength"), ("minProperties", "maxProperties"), ("minItems", "maxItems")];
    for (least, most) in PAIRS {
        for word in [least, most] {
            if map.get(word).is_some_and(|value| value.as_u64().is_none()) {
                return Err(format!("{word} must be a whole number, and at least 0"));
            }
        }
        let (low, high) = (map.get(least).and_then(Json::as_u64), map.get(most).and_then(Json::as_u64));
        // Lists may ask for the impossible.
        if least != "minItems" && low.zip(high).is_some_and(|(low, high)| low > high) {
            return Err(format!("{least} is greater than {most}"));
        }
    }
    Ok(())
}

fn lists(map: &Map<String, Json>) -> Result<(), String> {
    if map.get("uniqueItems").is_some_and(|value| !value.is_boolean()) {
        return Err("uniqueItems must be true or false".to_owned());
    }
    for word in ["required", "enum"] {
        let items = match map.get(word) {
            None => continue,
            Some(Json::Array(items)) => items,
            Some(_) => return Err(format!("{word} must be a list")),
        };
        if word == "required" && !items.iter().all(Json::is_string) {
            return Err("required must have texts".to_owned());
        }
        let mut seen = BTreeSet::new();
        if !items.iter().all(|item| seen.insert(super::check::canonical(item))) {
            return Err(format!("{word} has an item twice"));
        }
    }
    Ok(())
}
