//! Finds the values that turn a chart off that rendered nothing, where that is certain.
use std::collections::{BTreeMap, BTreeSet};

use super::variant::{Member, Variant};
use crate::template::ast::{Node, Operand, Template};
use crate::value::{Map, Value};

const NOTES: &str = "NOTES.txt";

/// The values that are not set and without which no file of the chart prints anything: each file is one `if` of one value. Empty
/// where anything else could be the reason.
pub(super) fn find(variant: &Variant, values: &Map) -> BTreeSet<Vec<String>> {
    let mut prefixes = BTreeMap::new();
    prefixes_of(&variant.root, &[], &mut prefixes);
    let mut found = BTreeSet::new();
    for file in &variant.files {
        let base = file.path.rsplit('/').next().unwrap_or_default();
        if base.starts_with('_') || base == NOTES {
            continue;
        }
        let Some(template) = variant.templates.get(&file.path) else { continue };
        match switch(template) {
            Switch::Blank => {}
            Switch::Unknown => return BTreeSet::new(),
            Switch::Value(names) => {
                let Some(prefix) = prefixes.get(file.chart.as_str()) else { return BTreeSet::new() };
                let path = [prefix.as_slice(), &names].concat();
                if !is_off(values, &path) {
                    return BTreeSet::new();
                }
                found.insert(path);
            }
        }
    }
    found
}

fn prefixes_of<'m>(member: &'m Member, prefix: &[String], found: &mut BTreeMap<&'m str, Vec<String>>) {
    for child in &member.children {
        let below = child.name.split('.').map(str::to_owned);
        prefixes_of(child, &prefix.iter().cloned().chain(below).collect::<Vec<_>>(), found);
    }
    found.insert(&member.path, prefix.to_vec());
}

enum Switch {
    /// It prints nothing but space.
    Blank,
    /// It prints nothing unless this value is set.
    Value(Vec<String>),
    Unknown,
}

fn switch(template: &Template) -> Switch {
    let is_space = |node: &&Node| match node {
        Node::Text(span) => {
            template.source.text.get(span.clone()).is_some_and(|text| text.trim_ascii().is_empty())
        }
        _ => false,
    };
    let mut nodes = template.root.nodes.iter().filter(|node| !is_space(node));
    match (nodes.next(), nodes.next()) {
        (None, _) => Switch::Blank,
        (Some(Node::If(branch)), None) if branch.otherwise.is_none() && branch.pipe.decl.is_empty() => {
            match branch.pipe.commands.as_slice() {
                [command] if command.rest.is_empty() => value(&command.first),
                _ => Switch::Unknown,
            }
        }
        _ => Switch::Unknown,
    }
}

fn value(operand: &Operand) -> Switch {
    let names = match operand {
        Operand::Field(field) => &field.names,
        Operand::Variable(variable) if variable.name == "$" => &variable.fields,
        _ => return Switch::Unknown,
    };
    match names.as_slice() {
        [first, rest @ ..] if &**first == "Values" && !rest.is_empty() => {
            Switch::Value(rest.iter().map(ToString::to_string).collect())
        }
        _ => Switch::Unknown,
    }
}

fn is_off(values: &Map, path: &[String]) -> bool {
    let mut at = Value::Map(values.clone());
    for name in path {
        let Some(next) = at.as_map().and_then(|map| map.get(name)) else { return true };
        at = next;
    }
    matches!(at, Value::Nil | Value::Bool(false))
}
