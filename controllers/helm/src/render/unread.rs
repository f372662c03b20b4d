//! Finds values that were set, that the render did not read and that nothing explains: most often misspelt names.
//!
//! A value is explained by a default, by a default above it that is no table of named entries, and by any template that names
//! it or reads all of a table above it, whether the render came to that template or not. Doubt explains, too: what is found here is
//! shown to people, and one false alarm costs more than many misspelt names.
use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value as Json};

use super::compiled::Compiled;
use super::names::{AllNames, Names};
use super::variant::Member;
use crate::chart::Chart;

type Paths = BTreeSet<Vec<String>>;

/// Values that are found at most.
const MOST: usize = 100;
/// Values that are looked at more closely at most.
const MOST_DOUBTED: usize = 1_000;
/// Charts of a tree, counted at each place where values of theirs may be; with more nothing is found.
const MOST_LAYERS: usize = 1_000;
/// Longer names are not compared with others, in bytes.
const LONGEST_NAME: usize = 64;
/// Names of fewer letters have too little in common with any other.
const SHORTEST_NAME: usize = 3;
/// Defaults that are looked through for a name elsewhere.
const MOST_DEFAULTS: usize = 20_000;

/// A value that was set and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadValue {
    /// Where it is in the values: the first name on the way that the chart does not know.
    pub path: Vec<String>,
    /// The value that was perhaps meant.
    pub similar: Option<Vec<String>>,
}

/// The values that were set and not read; `reads` are the paths that were.
pub(super) fn find(
    compiled: &Compiled,
    root: &Member,
    overrides: &JsonMap<String, Json>,
    reads: &Paths,
) -> Vec<UnreadValue> {
    let defaults = Defaults::of(compiled.chart(), root);
    if defaults.layers.len() >= MOST_LAYERS {
        return Vec::new();
    }
    let mut walk = Walk { reads, defaults: &defaults, path: Vec::new(), found: Vec::new() };
    walk.map(overrides);
    let mut found = walk.found;
    if found.is_empty() {
        return Vec::new();
    }
    let names = compiled.names();
    let mut given = Names::default();
    given.texts(overrides);
    found.retain(|path| !defaults.named(path, names, &given, reads));
    found.truncate(MOST);
    let with_similar = |path: Vec<String>| {
        let similar = defaults.similar(&path, names, reads);
        UnreadValue { path, similar }
    };
    found.into_iter().map(with_similar).collect()
}

/// Whether something below a path was read.
fn is_read_below(reads: &Paths, path: &[String]) -> bool {
    reads.range(path.to_vec()..).find(|read| *read != path).is_some_and(|read| read.starts_with(path))
}

struct Walk<'w> {
    reads: &'w Paths,
    defaults: &'w Defaults<'w>,
    path: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Walk<'_> {
    fn map(&mut self, map: &JsonMap<String, Json>) {
        for (key, value) in map {
            if self.found.len() >= MOST_DOUBTED {
                return;
            }
            self.path.push(key.clone());
            self.value(value);
            self.path.pop();
        }
    }

    fn value(&mut self, value: &Json) {
        // A null takes something away, and there may be nothing.
        if value.is_null() || self.is_set_aside() || self.is_read() {
            return;
        }
        let table = value.as_object().filter(|map| !map.is_empty());
        match (self.defaults.known(&self.path), table) {
            (Known::No, _) if !is_read_below(self.reads, &self.path) => self.found.push(self.path.clone()),
            (Known::No | Known::Table, Some(map)) => self.map(map),
            (Known::Free, _) | (Known::No | Known::Table, None) => {}
        }
    }

    /// Names that are for others: globals, and what YAML files keep for themselves, such as anchors.
    fn is_set_aside(&self) -> bool {
        let Some(name) = self.path.last() else { return true };
        name.starts_with(['_', '.'])
            || name.starts_with("x-")
            || name == "global" && self.defaults.is_root(self.path.len() - 1, &self.path)
    }

    /// The value was read, or a table that holds it as a whole.
    fn is_read(&self) -> bool {
        (0..=self.path.len())
            .any(|length| self.path.get(..length).is_some_and(|path| self.reads.contains(path)))
    }
}

/// What defaults say of a value.
enum Known {
    No,
    /// It has a default that is a table of named entries.
    Table,
    /// It has another default, or lies below one.
    Free,
}

/// Values of a chart of the tree.
struct Layer<'d> {
    /// Where they are in the values of the root.
    prefix: Vec<String>,
    values: Option<&'d JsonMap<String, Json>>,
    chart: usize,
}

/// The defaults of all charts of a tree, those included that take no part.
struct Defaults<'d> {
    layers: Vec<Layer<'d>>,
}

impl<'d> Defaults<'d> {
    fn of(chart: &'d Chart, root: &'d Member) -> Self {
        let mut defaults = Self { layers: Vec::new() };
        defaults.chart(chart, Vec::new());
        defaults.member(root, Vec::new());
        defaults
    }

    fn chart(&mut self, chart: &'d Chart, prefix: Vec<String>) {
        for child in &chart.dependencies {
            let listed = chart.metadata.dependencies.iter().filter(|listed| listed.name == child.name());
            let mut names: BTreeSet<&str> = listed
                .map(|listed| if listed.alias.is_empty() { &*listed.name } else { &*listed.alias })
                .collect();
            if names.is_empty() {
                names.insert(child.name());
            }
            for name in names {
                if self.layers.len() < MOST_LAYERS {
                    self.chart(child, below(&prefix, name));
                }
            }
        }
        self.layers.push(Layer { prefix, values: chart.values.as_ref(), chart: chart.id });
    }

    /// With what charts import of their dependencies.
    fn member(&mut self, member: &'d Member, prefix: Vec<String>) {
        for child in &member.children {
            if self.layers.len() < MOST_LAYERS {
                self.member(child, below(&prefix, &child.name));
            }
        }
        self.layers.push(Layer { prefix, values: Some(&member.values), chart: member.id });
    }

    /// Whether the first parts of a path lead to the values of a chart.
    fn is_root(&self, length: usize, path: &[String]) -> bool {
        self.layers.iter().any(|layer| path.get(..length) == Some(layer.prefix.as_slice()))
    }

    fn known(&self, path: &[String]) -> Known {
        let mut known = Known::No;
        for Layer { prefix, values, .. } in &self.layers {
            if prefix.starts_with(path) {
                known = Known::Table;
                continue;
            }
            let (Some(rest), Some(values)) = (path.strip_prefix(prefix.as_slice()), values) else { continue };
            match default_at(values, rest) {
                Known::Free => return Known::Free,
                Known::Table => known = Known::Table,
                Known::No => {}
            }
        }
        known
    }

    /// Whether a template names the value, or may read a table above it as a whole.
    fn named(&self, path: &[String], names: &AllNames, given: &Names, reads: &Paths) -> bool {
        self.layers.iter().any(|layer| {
            let Some(rest) = path.strip_prefix(layer.prefix.as_slice()) else { return false };
            let untouched = |length: usize| {
                let above = path.get(..layer.prefix.len() + length);
                above.is_some_and(|above| !is_read_below(reads, above))
            };
            let mut all = names.of_chart(layer.chart).chain([given]);
            all.any(|names| names.may_read(rest, untouched))
        })
    }

    /// The value that was perhaps meant: one beside it with almost the same name, or the only one that has its name.
    fn similar(&self, path: &[String], names: &AllNames, reads: &Paths) -> Option<Vec<String>> {
        let (name, above) = path.split_last()?;
        let mut beside: BTreeSet<&str> = BTreeSet::new();
        let below = reads.range(above.to_vec()..).take_while(|read| read.starts_with(above));
        beside.extend(below.filter_map(|read| read.get(above.len())).map(String::as_str));
        for layer in &self.layers {
            let Some(rest) = above.strip_prefix(layer.prefix.as_slice()) else { continue };
            if let Some(table) = layer.values.and_then(|values| table_at(values, rest)) {
                beside.extend(table.keys().map(String::as_str));
            }
            for names in names.of_chart(layer.chart) {
                beside.extend(names.within(rest).map(String::as_str));
            }
        }
        let nearest = beside.into_iter().filter_map(|other| Some((distance(name, other)?, other))).min();
        let path_of = |name: &str| above.iter().cloned().chain([name.to_owned()]).collect();
        nearest.map(|(_, other)| path_of(other)).or_else(|| self.elsewhere(name))
    }

    fn elsewhere(&self, name: &str) -> Option<Vec<String>> {
        let mut found = Paths::new();
        let mut left = MOST_DEFAULTS;
        for layer in &self.layers {
            layer.values.iter().for_each(|values| {
                places(values, name, &mut layer.prefix.clone(), &mut left, &mut found);
            });
        }
        if found.len() == 1 && left > 0 { found.pop_first() } else { None }
    }
}

fn below(prefix: &[String], name: &str) -> Vec<String> {
    prefix.iter().cloned().chain(name.split('.').map(str::to_owned)).collect()
}

fn default_at(values: &JsonMap<String, Json>, path: &[String]) -> Known {
    let mut map = values;
    for name in path {
        match map.get(name) {
            None => return Known::No,
            Some(Json::Object(inner)) if !inner.is_empty() => map = inner,
            Some(_) => return Known::Free,
        }
    }
    Known::Table
}

fn table_at<'v>(values: &'v JsonMap<String, Json>, path: &[String]) -> Option<&'v JsonMap<String, Json>> {
    path.iter().try_fold(values, |map, name| map.get(name)?.as_object())
}

/// Where a name is among defaults.
fn places(
    values: &JsonMap<String, Json>,
    name: &str,
    path: &mut Vec<String>,
    left: &mut usize,
    found: &mut Paths,
) {
    for (key, value) in values {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        path.push(key.clone());
        if key == name {
            found.insert(path.clone());
        }
        if let Json::Object(map) = value {
            places(map, name, path, left, found);
        }
        path.pop();
    }
}

/// How many letters differ; `None` where two names have too little in common.
fn distance(name: &str, other: &str) -> Option<usize> {
    if name == other || name.len() > LONGEST_NAME || other.len() > LONGEST_NAME {
        return None;
    }
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let (name, other) = (plain(name), plain(other));
    let distance = strsim::damerau_levenshtein(&name, &other);
    let length = name.chars().count().max(other.chars().count());
    (distance * 4 <= length || distance == 1 && length >= SHORTEST_NAME).then_some(distance)
}
