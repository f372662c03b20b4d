//! Selects the dependencies of a chart that take part, by conditions, tags and overrides.
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map as JsonMap, Value as Json};

use super::coalesce::{Layer, Warnings, coalesce};
use crate::chart::{Chart, Dependency};
use crate::value::{Map, MapType, Value};
use crate::versions;

/// A dependency as `Chart.yaml` lists it. Two copies of one chart under different aliases share its list, and see what
/// happened to it on behalf of the other.
#[derive(Debug)]
pub(crate) struct Listed {
    pub dependency: Dependency,
    /// Its `import-values` were carried out.
    pub imported: bool,
}

pub(crate) type Shared = Rc<RefCell<Listed>>;

/// A chart that takes part in a render.
#[derive(Clone, Debug)]
pub(crate) struct Node<'c> {
    pub chart: &'c Chart,
    /// The chart's name, or its alias.
    pub name: String,
    /// The path of the chart's files in messages and template names.
    pub path: String,
    pub listed: Vec<Shared>,
    lists_dependencies: bool,
    /// Its parent lists dependencies, but not this one: copies of the parent under other names have the very same chart.
    unlisted: bool,
    pub values: Cow<'c, JsonMap<String, Json>>,
    pub dependencies: Vec<Self>,
}

impl Layer for Node<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn defaults(&self) -> &JsonMap<String, Json> {
        &self.values
    }

    fn children(&self) -> &[Self] {
        &self.dependencies
    }
}

impl<'c> Node<'c> {
    fn new(chart: &'c Chart, path: String) -> Self {
        let dependencies = chart
            .dependencies
            .iter()
            .map(|child| Self::new(child, child_path(&path, child.name())))
            .collect();
        let listed = chart.metadata.dependencies.iter().map(|dependency| {
            Rc::new(RefCell::new(Listed { dependency: dependency.clone(), imported: false }))
        });
        Self {
            chart,
            name: chart.name().to_owned(),
            path,
            listed: listed.collect(),
            lists_dependencies: chart.metadata.lists_dependencies,
            unlisted: false,
            values: chart.values.as_ref().map_or_else(Cow::default, Cow::Borrowed),
            dependencies,
        }
    }

    /// A text that two trees share only if the same charts take part in both, and list the same dependencies.
    pub fn signature(&self, out: &mut String) {
        out.push_str(&self.path);
        for listed in &self.listed {
            out.push(',');
            out.push_str(&listed.borrow().dependency.name);
        }
        out.push('(');
        for child in &self.dependencies {
            child.signature(out);
        }
        out.push(')');
    }

    fn set_path(&mut self, path: String) {
        self.path = path;
        for child in &mut self.dependencies {
            let path = child_path(&self.path, &child.name);
            child.set_path(path);
        }
    }
}

fn child_path(parent: &str, name: &str) -> String {
    format!("{parent}/charts/{name}")
}

/// Paths of values that conditions and tags asked for.
type Reads = BTreeSet<Vec<String>>;

/// Chooses the charts that take part, given the overrides.
pub(crate) fn select<'c>(
    chart: &'c Chart,
    overrides: &Map,
    warnings: &mut Warnings,
    reads: &mut Reads,
) -> Result<Node<'c>, String> {
    let mut root = Node::new(chart, chart.name().to_owned());
    enable(&mut root, overrides, "", warnings, reads)?;
    Ok(root)
}

fn enable(
    node: &mut Node<'_>,
    overrides: &Map,
    path: &str,
    warnings: &mut Warnings,
    reads: &mut Reads,
) -> Result<(), String> {
    if !node.lists_dependencies {
        return Ok(());
    }
    node.dependencies = resolve(node);
    for listed in &node.listed {
        listed.borrow_mut().dependency.enabled = true;
    }
    let values = deep_copy(overrides);
    coalesce(node, &values, false, warnings)?;
    tags(&node.listed, &values, warnings, reads);
    conditions(&node.listed, &values, path, warnings, reads);
    let disabled: Vec<String> = node
        .listed
        .iter()
        .map(|listed| listed.borrow())
        .filter(|listed| !listed.dependency.enabled)
        .map(|listed| listed.dependency.name.clone())
        .collect();
    node.dependencies.retain(|child| !disabled.contains(&child.name));
    node.listed.retain(|listed| !disabled.contains(&listed.borrow().dependency.name));
    for child in &mut node.dependencies {
        let path = format!("{path}{}.", child.name);
        enable(child, &values, &path, warnings, reads)?;
    }
    share_unlisted(&mut node.dependencies);
    Ok(())
}

/// Of a chart that takes part under several names, the charts below that it does not list exist once: they are found
/// at the path of the last copy, and look as it left them.
fn share_unlisted(copies: &mut [Node<'_>]) {
    for last in (1..copies.len()).rev() {
        let (before, rest) = copies.split_at_mut(last);
        let Some(last) = rest.first() else { continue };
        for copy in before.iter_mut().filter(|copy| copy.chart.id == last.chart.id) {
            for child in copy.dependencies.iter_mut().filter(|child| child.unlisted) {
                let same = |other: &&Node<'_>| other.unlisted && other.chart.id == child.chart.id;
                if let Some(shared) = last.dependencies.iter().find(same) {
                    *child = shared.clone();
                }
            }
        }
    }
}

/// The charts present: first those nobody lists, then the listed ones in their order, under their aliases.
fn resolve<'c>(node: &Node<'c>) -> Vec<Node<'c>> {
    let fits = |child: &Node<'_>, dependency: &Dependency| {
        child.name == dependency.name && versions::in_range(&dependency.version, child.chart.version())
    };
    let is_listed =
        |child: &Node<'_>| node.listed.iter().any(|listed| fits(child, &listed.borrow().dependency));
    let mut present: Vec<Node<'c>> =
        node.dependencies.iter().filter(|child| !is_listed(child)).cloned().collect();
    for child in &mut present {
        child.unlisted = true;
    }
    for listed in &node.listed {
        let mut listed = listed.borrow_mut();
        let found = node.dependencies.iter().find(|child| fits(child, &listed.dependency));
        if let Some(mut child) = found.cloned() {
            if !listed.dependency.alias.is_empty() {
                child.name.clone_from(&listed.dependency.alias);
                let path = child_path(&node.path, &child.name);
                if child.lists_dependencies {
                    child.set_path(path);
                } else {
                    // Helm leaves unlisted charts below at the path without the alias.
                    child.path = path;
                }
            }
            present.push(child);
        }
        if !listed.dependency.alias.is_empty() {
            let Dependency { name, alias, .. } = &mut listed.dependency;
            name.clone_from(alias);
        }
    }
    present
}

fn tags(listed: &[Shared], values: &Map, warnings: &mut Warnings, reads: &mut Reads) {
    let names = listed.iter().flat_map(|listed| listed.borrow().dependency.tags.clone());
    reads.extend(names.map(|tag| vec!["tags".to_owned(), tag]));
    let Some(Value::Map(tags)) = values.get("tags") else { return };
    for listed in listed {
        let mut listed = listed.borrow_mut();
        let (mut any_true, mut any_false) = (false, false);
        for tag in &listed.dependency.tags {
            match tags.get(tag) {
                None => {}
                Some(Value::Bool(true)) => any_true = true,
                Some(Value::Bool(false)) => any_false = true,
                Some(_) => warnings
                    .add(format!("Tag '{tag}' for chart {} returned non-bool value", listed.dependency.name)),
            }
        }
        listed.dependency.enabled = any_true || !any_false;
    }
}

fn conditions(listed: &[Shared], values: &Map, path: &str, warnings: &mut Warnings, reads: &mut Reads) {
    for listed in listed {
        let mut listed = listed.borrow_mut();
        let dependency = &mut listed.dependency;
        for condition in dependency.condition.trim().split(',').filter(|condition| !condition.is_empty()) {
            let condition_path = format!("{path}{condition}");
            reads.insert(condition_path.split('.').map(str::to_owned).collect());
            match value_at(values, &condition_path) {
                Some(Value::Bool(enabled)) => {
                    dependency.enabled = enabled;
                    break;
                }
                None | Some(Value::Map(_)) => {}
                Some(_) => warnings.add(format!(
                    "Condition path '{condition}' for chart {} returned non-bool value",
                    dependency.name
                )),
            }
        }
    }
}

/// The value at a dotted path.
fn value_at(values: &Map, path: &str) -> Option<Value> {
    let mut parts = path.split('.');
    let mut value = values.get(parts.next()?)?;
    for part in parts {
        value = value.as_map()?.get(part)?;
    }
    Some(value)
}

/// A copy that shares no map with the original. Values come from JSON, so their depth is bounded.
pub(super) fn deep_copy(map: &Map) -> Map {
    fn copy(value: &Value) -> Value {
        match value {
            Value::Map(map) => Value::Map(deep_copy(map)),
            Value::List(list) if !list.is_nil() => Value::List(crate::value::List::new(
                list.list_type(),
                list.items().iter().map(copy).collect(),
            )),
            other => other.clone(),
        }
    }
    let entries = map.entries();
    Map::from_entries(MapType::Any, entries.into_iter().map(|(key, value)| (key, copy(&value))))
}
