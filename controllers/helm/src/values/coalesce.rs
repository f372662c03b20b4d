//! Coalesces the values of a chart, its dependencies and overrides into one tree.
//!
//! Maps are shared exactly as Helm shares them, since templates that change values can see the difference.
use serde_json::{Map as JsonMap, Value as Json};

use crate::value::{Map, MapType, Text, Value};

/// A chart among others, as far as its values go.
pub(crate) trait Layer: Sized {
    /// The chart's name, or its alias.
    fn name(&self) -> &str;
    fn defaults(&self) -> &JsonMap<String, Json>;
    fn children(&self) -> &[Self];
}

/// Remarks made on the way, each once, and not without end.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<String>);

impl Warnings {
    const MAX: usize = 100;

    pub fn add(&mut self, warning: impl Into<String>) {
        let mut warning = warning.into();
        crate::limits::shorten(&mut warning, 1000);
        if self.0.len() < Self::MAX && !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    pub fn into_vec(self) -> Vec<String> {
        self.0
    }
}

/// Whether nulls remove keys (when values are finished) or stay (while they are still to be merged again).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Remove,
    Keep,
}

/// Fills `overrides` up with the defaults of a chart and its dependencies. Without `keep_nulls`, nulls remove defaults.
pub(crate) fn coalesce<L: Layer>(
    chart: &L,
    overrides: &Map,
    keep_nulls: bool,
    warnings: &mut Warnings,
) -> Result<(), String> {
    chart_values(chart, overrides, "", if keep_nulls { Nulls::Keep } else { Nulls::Remove }, warnings)
}

fn join(a: &str, b: &str) -> String {
    if a.is_empty() { b.to_owned() } else { format!("{a}.{b}") }
}

/// A plain mapping; `Values` do not occur inside values.
fn table(value: &Value) -> Option<&Map> {
    value.as_map().filter(|map| map.map_type() == MapType::Any)
}

fn chart_values<L: Layer>(
    chart: &L,
    dest: &Map,
    prefix: &str,
    nulls: Nulls,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let prefix = join(prefix, chart.name());
    own_values(chart, dest, &prefix, nulls, warnings);
    for child in chart.children() {
        let values = match dest.get(child.name()) {
            None => {
                let values = Map::new(MapType::Any);
                dest.insert(child.name(), Value::Map(values.clone()));
                values
            }
            Some(value) => {
                let Some(map) = table(&value) else {
                    let shown = go_bool(&value);
                    return Err(format!("type mismatch on {}: {shown}", child.name()));
                };
                map.clone()
            }
        };
        globals(&values, dest, &prefix, warnings);
        chart_values(child, &values, &prefix, nulls, warnings)?;
    }
    Ok(())
}

/// Passes the globals of a parent on to a child; the parent's win.
fn globals(child: &Map, parent: &Map, prefix: &str, warnings: &mut Warnings) {
    let of = |map: &Map| match map.get("global") {
        None => Some(Map::new(MapType::Any)),
        Some(value) => table(&value).cloned(),
    };
    let Some(dest) = of(child) else {
        return warnings.add("skipping globals because destination global is not a table");
    };
    let Some(source) = of(parent) else {
        return warnings.add("skipping globals because source global is not a table");
    };
    for (key, value) in source.entries() {
        let old = dest.get(&key);
        if let Some(map) = table(&value) {
            let copy = map.shallow_copy(MapType::Any);
            match old.as_ref().map(table) {
                None => {}
                Some(Some(old)) => tables(&copy, old, &join(prefix, &key.lossy()), Nulls::Keep, warnings),
                Some(None) => {
                    warnings.add(format!("cannot merge a map onto the non-map global {}", key.lossy()));
                    continue;
                }
            }
            dest.insert(key, Value::Map(copy));
        } else if old.as_ref().and_then(table).is_none() {
            dest.insert(key, value);
        }
    }
    child.insert("global", Value::Map(dest));
}

/// Fills in the defaults of one chart.
fn own_values<L: Layer>(chart: &L, dest: &Map, prefix: &str, nulls: Nulls, warnings: &mut Warnings) {
    for (key, default) in chart.defaults() {
        let Some(value) = dest.get(key) else {
            dest.insert(key.as_str(), Value::from_json(default));
            continue;
        };
        if matches!(value, Value::Nil) && nulls == Nulls::Remove {
            dest.remove(key);
        } else if let Some(map) = table(&value) {
            match Value::from_json(default) {
                Value::Map(defaults) => {
                    let is_child = chart.children().iter().any(|child| child.name() == key);
                    let nulls = if is_child { Nulls::Keep } else { nulls };
                    tables(map, &defaults, &join(prefix, key), nulls, warnings);
                }
                Value::Nil => {}
                _ => warnings.add(format!("skipped value for {prefix}.{key}: Not a table.")),
            }
        }
    }
}

/// Fills `dest` up from `source`, deeply.
pub(super) fn merge_tables(dest: &Map, source: &Map, warnings: &mut Warnings) {
    tables(dest, source, "", Nulls::Keep, warnings);
}

fn tables(dest: &Map, source: &Map, prefix: &str, nulls: Nulls, warnings: &mut Warnings) {
    for (key, value) in source.entries() {
        let Some(old) = dest.get(&key) else {
            dest.insert(key, value);
            continue;
        };
        if matches!(old, Value::Nil) && nulls == Nulls::Remove {
            dest.remove(&key);
            continue;
        }
        match (table(&value), table(&old)) {
            (Some(source), Some(dest)) => tables(dest, source, &path(prefix, &key), nulls, warnings),
            (Some(_), None) => {
                warnings.add(format!("cannot overwrite table with non table for {}", path(prefix, &key)));
            }
            (None, Some(_)) if !matches!(value, Value::Nil) => warnings
                .add(format!("destination for {} is a table. Ignoring non-table value", path(prefix, &key))),
            (None, _) => {}
        }
    }
}

/// A value as Helm shows it here: with a verb for booleans, whatever it is.
fn go_bool(value: &Value) -> String {
    let shown = crate::versions::call("printf", &[Value::text("%t"), value.clone()]);
    shown.as_ref().and_then(Value::as_text).map(|text| text.lossy().into_owned()).unwrap_or_default()
}

fn path(prefix: &str, key: &Text) -> String {
    join(prefix, &key.lossy())
}
