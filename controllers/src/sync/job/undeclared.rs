//! Removes fields that an API server does not know from a manifest, by its own answer.
//!
//! Server-side apply refuses such fields, while an object that is created or updated loses them without a word, as does one
//! that Helm installs: charts in use hold some, and they are to run here as they do there. The row says which.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::sync_shard::status::LeftOut;
use serde_json::Value;

use super::super::line_bound::Sort;
use super::Job;
use super::desired::{App, Item};
use crate::api::ApiError;
use crate::object::LogFields;

mod nulls;

pub use nulls::leave_out_nulls;

const COMPLAINT: &str = ": field not declared in schema";
/// An answer names a few fields at a time.
pub const TRIES_TO_KNOW: usize = 8;

/// Fields that were left out (or rewritten by the cluster), by object. A job that begins goes on with what the row says, as nothing is applied again then.
#[derive(Default)]
pub(super) struct LeftOuts {
    by_object: BTreeMap<String, Vec<String>>,
    /// Those that the row counts and does not name.
    unnamed: i64,
}

impl LeftOuts {
    pub fn of(status: Option<&LeftOut>) -> Self {
        let mut left_outs = Self::default();
        let Some(LeftOut { fields, first }) = status else { return left_outs };
        for (object, path) in first.iter().filter_map(|text| text.split_once(" .")) {
            left_outs.by_object.entry(object.to_owned()).or_default().push(format!(".{path}"));
        }
        left_outs.unnamed = fields - left_outs.named();
        left_outs
    }

    fn named(&self) -> i64 {
        i64::try_from(self.by_object.values().map(Vec::len).sum::<usize>()).unwrap_or(i64::MAX)
    }

    /// An object was applied, without these.
    pub fn applied(&mut self, object: &str, fields: Vec<String>) {
        if fields.is_empty() {
            self.by_object.remove(object);
        } else {
            self.by_object.insert(object.to_owned(), fields);
        }
    }

    /// Another target was completed, each of whose new objects was applied.
    pub fn completed(&mut self) {
        self.unnamed = 0;
    }

    /// Forgets what is not wanted any more.
    pub fn retain(&mut self, apps: &[App]) {
        if self.by_object.is_empty() {
            return;
        }
        let wanted: BTreeSet<String> =
            apps.iter().flat_map(|app| app.set.ids.iter().map(ToString::to_string)).collect();
        self.by_object.retain(|object, _| wanted.contains(object));
    }

    /// For the row; `None` where everything is known.
    pub fn row(&self) -> Option<LeftOut> {
        let fields = self.named() + self.unnamed;
        let named = self
            .by_object
            .iter()
            .flat_map(|(object, paths)| paths.iter().map(move |p| format!("{object} {p}")));
        (fields > 0).then(|| LeftOut { fields, first: named.take(4).collect() })
    }
}

impl Job {
    /// Logs fields that an object was applied without.
    pub(super) fn log_left_out(&self, item: &Item, fields: &[String]) {
        if fields.is_empty() || !self.ctx.log.takes(Sort::LeftOut) {
            return;
        }
        let (cluster, resource) = (self.ctx.edge.id.as_str(), item.id.to_string());
        let (revision, fields) = (self.revision(), fields.join(" "));
        let LogFields { project, deployment, object } = &self.ctx.log.owner;
        tracing::info!(
            project,
            deployment,
            object,
            cluster,
            revision,
            resource,
            fields,
            "the cluster does not know these fields: applied without"
        );
    }
}

/// Removes the fields that the answer to an apply calls unknown, and answers their paths; none when it says something else.
pub fn leave_out(manifest: &mut Value, error: &ApiError) -> Vec<String> {
    let ApiError::Status { message, .. } = error else { return Vec::new() };
    if !message.contains("typed patch object") {
        return Vec::new();
    }
    let paths = message.lines().filter_map(|line| {
        let (before, _) = line.split_once(COMPLAINT)?;
        Some(before.split_once("): ").map_or(before, |(_, path)| path).trim())
    });
    paths.filter(|path| remove(manifest, path)).map(str::to_owned).collect()
}

/// Removes what is at a path such as `.spec.containers[name="web"].image`; false if nothing is there.
fn remove(value: &mut Value, path: &str) -> bool {
    if let Some(rest) = path.strip_prefix('.') {
        let Some(map) = value.as_object_mut() else { return false };
        // Names may hold dots themselves: the longest that fits is meant.
        let fits = |key: &&String| rest.strip_prefix(key.as_str()).is_some_and(ends_a_name);
        let Some(key) = map.keys().filter(fits).max_by_key(|key| key.len()).cloned() else { return false };
        let rest = rest.strip_prefix(key.as_str()).unwrap_or_default();
        if rest.is_empty() {
            return map.remove(&key).is_some();
        }
        return map.get_mut(&key).is_some_and(|value| remove(value, rest));
    }
    let Some((inside, rest)) = path.strip_prefix('[').and_then(bracket) else { return false };
    let Some(items) = value.as_array_mut() else { return false };
    // A whole entry is no field.
    if rest.is_empty() {
        return false;
    }
    let item = match inside.parse::<usize>() {
        Ok(index) => items.get_mut(index),
        Err(_) => items.iter_mut().find(|item| has_key(item, inside)),
    };
    item.is_some_and(|item| remove(item, rest))
}

fn ends_a_name(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', '['])
}

/// What stands before the closing bracket, and what behind it. Brackets within quotes do not close.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let at = unquoted(text, ']')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Where a character stands outside of quotes.
fn unquoted(text: &str, wanted: char) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == wanted && !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether an entry of a list has a key such as `containerPort=80,protocol="TCP"`. A part that the manifest leaves to the
/// server's default is not there.
fn has_key(item: &Value, mut key: &str) -> bool {
    while !key.is_empty() {
        let end = unquoted(key, ',').unwrap_or(key.len());
        let Some((name, value)) = key.get(..end).and_then(|part| part.split_once('=')) else { return false };
        let value: Option<Value> = serde_json::from_str(value).ok();
        if value.is_none() || item.get(name).is_some_and(|there| Some(there) != value.as_ref()) {
            return false;
        }
        key = key.get(end + 1..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(message: &str) -> ApiError {
        let (reason, message) = (String::new(), message.to_owned());
        ApiError::Status { code: 500, reason, message, retry_after: None, causes: Vec::new() }
    }

    #[test]
    fn one_unknown_field_is_left_out() {
        let mut manifest = json!({"spec": {"replicas": 1, "selector": {}}});
        let error = status(
            "failed to create typed patch object (n/x; apps/v1, Kind=DaemonSet): .spec.replicas: field not declared in schema",
        );
        assert_eq!(leave_out(&mut manifest, &error), [".spec.replicas"]);
        assert_eq!(manifest, json!({"spec": {"selector": {}}}));
    }

    #[test]
    fn several_are_left_out_wherever_they_are() {
        let mut manifest = json!({"spec": {"a.b": 1, "containers": [
            {"name": "a", "odd": 1},
            {"name": "b]", "odd": 1, "ports": [{"containerPort": 80, "what": 1}, {"containerPort": 81, "what": 1}]},
        ]}});
        let error = status(
            "failed to create typed patch object (n/x; v1, Kind=Pod): errors:\n  .spec.a.b: field not declared in schema\n  \
             .spec.containers[name=\"b]\"].odd: field not declared in schema\n  \
             .spec.containers[name=\"b]\"].ports[containerPort=81,protocol=\"TCP\"].what: field not declared in schema",
        );
        assert_eq!(leave_out(&mut manifest, &error).len(), 3);
        let wanted = json!({"spec": {"containers": [
            {"name": "a", "odd": 1},
            {"name": "b]", "ports": [{"containerPort": 80, "what": 1}, {"containerPort": 81}]},
        ]}});
        assert_eq!(manifest, wanted);
    }

    #[test]
    fn other_refusals_leave_the_manifest_as_it_is() {
        let mut manifest = json!({"spec": {"x": 1}});
        for message in [
            "failed to create typed patch object (n/x; v1, Kind=Pod): .spec.x: expected string, got 1",
            "field not declared in schema",
            "failed to create typed patch object (n/x; v1, Kind=Pod): .spec.y: field not declared in schema",
        ] {
            assert_eq!(leave_out(&mut manifest, &status(message)), Vec::<String>::new(), "{message}");
        }
        assert_eq!(manifest, json!({"spec": {"x": 1}}));
    }
}
