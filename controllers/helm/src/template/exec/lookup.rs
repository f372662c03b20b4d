//! The function `lookup`: asks the caller for objects, and shows them as Helm shows those of a cluster.
use serde_json::Value as Json;

use super::State;
use super::call::{Args, Failed};
use crate::limits::{LimitError, MAP_BYTES, NODE_BYTES, fits};
use crate::value::{Map, MapType, Text, Value};

/// Answers `lookup`: what a cluster holds.
pub trait Lookup: Sync {
    /// What is found; the error fails the render. Everything a chart asks is hostile input: an answer costs what it holds.
    fn lookup(&self, read: &LookupRead) -> Result<Found<'_>, String>;
}

/// One `lookup` that a render made: its four arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupRead {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    /// Empty for all objects of the kind.
    pub name: String,
}

/// What a `lookup` finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// No such object, or no such kind: the template gets an empty map.
    Nothing,
    /// One object.
    Object(&'a Json),
    /// All objects of a kind, in the order of their namespaces and names.
    List(Vec<&'a Json>),
}

impl State<'_> {
    pub(super) fn lookup(&mut self, args: &Args) -> Result<Value, Failed> {
        let text = |index| args.get(index).and_then(Value::as_text).map(Text::lossy).unwrap_or_default();
        let (api_version, kind, namespace, name) = (text(0), text(1), text(2), text(3));
        let meter = &self.render.shared.meter;
        let bytes = size_of::<LookupRead>() + api_version.len() + kind.len() + namespace.len() + name.len();
        meter.charge(bytes).map_err(Failed::Limit)?;
        let read = LookupRead {
            api_version: api_version.into_owned(),
            kind: kind.into_owned(),
            namespace: namespace.into_owned(),
            name: name.into_owned(),
        };
        let found = match self.render.lookup {
            Some(lookup) => lookup.lookup(&read).map_err(Failed::Text)?,
            None => Found::Nothing,
        };
        let value = match found {
            Found::Nothing => None,
            Found::Object(object) => Some(self.shown(object)?),
            Found::List(items) => Some(self.list_of(&read, &items)?),
        };
        if self.render.lookups.borrow_mut().insert(read) {
            meter.keep(bytes).map_err(Failed::Limit)?;
        }
        Ok(value.unwrap_or_else(|| Value::Map(Map::new(MapType::Any))))
    }

    /// As a client of Kubernetes decodes a list.
    fn list_of(&self, read: &LookupRead, items: &[&Json]) -> Result<Value, Failed> {
        let kind = format!("{}List", read.kind);
        let bytes = 2 * MAP_BYTES + (5 + items.len()) * NODE_BYTES + kind.len() + read.api_version.len();
        self.render.shared.meter.charge(bytes).map_err(Failed::Limit)?;
        let items = items.iter().map(|item| self.shown(item)).collect::<Result<_, _>>()?;
        let metadata = Value::map([(Text::from("resourceVersion"), Value::text(""))]);
        Ok(Value::map([
            (Text::from("apiVersion"), Value::text(read.api_version.as_str())),
            (Text::from("kind"), Value::text(kind)),
            (Text::from("metadata"), metadata),
            (Text::from("items"), Value::list(items)),
        ]))
    }

    /// An object as templates see it: a value of its own, since templates change what they get.
    fn shown(&self, object: &Json) -> Result<Value, Failed> {
        let meter = &self.render.shared.meter;
        // The object exists already, so that its values would be made at once, however many they are.
        if !fits(weight(object)) {
            return Err(Failed::Limit(LimitError::Memory(meter.limits().memory_bytes)));
        }
        meter.charge(keys(object)).map_err(Failed::Limit)?;
        let value = Value::from_object_json(object);
        meter.check_memory().map_err(Failed::Limit)?;
        Ok(value)
    }
}

/// Bytes that the values of a document take, its keys left out.
fn weight(json: &Json) -> usize {
    match json {
        Json::String(text) => NODE_BYTES + text.len(),
        Json::Array(items) => NODE_BYTES + items.iter().map(weight).sum::<usize>(),
        Json::Object(entries) => NODE_BYTES + MAP_BYTES + entries.values().map(weight).sum::<usize>(),
        _ => NODE_BYTES,
    }
}

/// Bytes that the keys of a document take.
fn keys(json: &Json) -> usize {
    match json {
        Json::Array(items) => items.iter().map(keys).sum(),
        Json::Object(entries) => entries.iter().map(|(key, value)| key.len() + keys(value)).sum(),
        _ => 0,
    }
}
