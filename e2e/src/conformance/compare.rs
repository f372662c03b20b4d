//! Compares what is on the edges with what is on the reference edge.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::reference::Rendered;
use super::snapshot::{self, Key, Objects};
use super::{EDGES, MOST_TOLD, REFERENCE, same};

/// Differences told of one chart.
const MOST_TOLD_OF_CHART: usize = 20;

/// The drawn values of Secrets that the upgrade left as they were on the reference edge are as they were on all edges.
pub fn held(
    installed: &BTreeMap<&str, Objects>,
    changed: &BTreeMap<&str, Objects>,
    rendered: &Rendered,
) -> Result<String> {
    let secret = |of: &BTreeMap<&str, Objects>, plane: &str, name: &str, path: &[same::Step]| {
        let mut objects = of.get(plane)?.iter();
        let (_, object) = objects.find(|(key, _)| key.kind == "Secret" && key.name == name)?;
        same::at(object, path).cloned()
    };
    let mut kept = 0;
    for (name, path) in rendered.drawn() {
        let both = |plane| (secret(installed, plane, name, path), secret(changed, plane, name, path));
        let (drawn, left) = both(REFERENCE);
        if drawn.is_none() || drawn != left {
            continue;
        }
        kept += 1;
        for edge in EDGES {
            let (drawn, left) = both(edge);
            ensure!(drawn == left, "the upgrade drew another value for Secret {name} on {edge}");
        }
    }
    let changes = |(key, object): (&Key, &Value)| {
        let before = installed.get(REFERENCE).and_then(|objects| objects.get(key));
        before.is_some_and(|before| !same::differences(key, before, object, rendered).is_empty())
    };
    let moved = changed.get(REFERENCE).is_some_and(|objects| objects.iter().any(changes));
    ensure!(moved, "the upgrade changed nothing: give another value");
    let values = if kept == 1 { "value" } else { "values" };
    Ok(format!("{kept} drawn {values} kept"))
}

/// What Helm and the operator leave otherwise on purpose, and `docs/helm-compatibility.md` says so.
#[derive(Default)]
pub struct Exceptions {
    /// Definitions may be more on the edges.
    pub definitions: bool,
    /// Objects of hooks may be left on the reference edge alone.
    pub hooks: bool,
}

/// What appeared on each edge is what appeared on the reference edge, but for exceptions. Answers how many objects.
pub fn compare(
    before: &BTreeMap<&str, Objects>,
    after: &BTreeMap<&str, Objects>,
    rendered: &Rendered,
    rules: &Exceptions,
) -> Result<String> {
    let new = |plane: &str| -> Objects {
        let known = before.get(plane);
        let fresh = |key: &Key| !known.is_some_and(|known| known.contains_key(key));
        let objects = after.get(plane).into_iter().flatten();
        let own = objects.filter(|(key, object)| fresh(key) && !snapshot::is_derived(object));
        own.map(|(key, object)| (key.clone(), object.clone())).collect()
    };
    let wanted = new(REFERENCE);
    let (mut told, mut extra, mut left) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for edge in EDGES {
        let found = new(edge);
        for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            match (wanted.get(key), found.get(key)) {
                (Some(wanted), Some(found)) => {
                    let differences = same::differences(key, wanted, found, rendered);
                    told.extend(
                        differences.iter().take(MOST_TOLD).map(|text| format!("{edge}: {key}: {text}")),
                    );
                    told.extend(
                        same::unready(found).map(|text| format!("{edge}: {key} is not ready: {text}")),
                    );
                }
                (Some(wanted), None) if rules.hooks && snapshot::is_of_hook(wanted) => {
                    left.insert(key.clone());
                }
                (Some(_), None) => told.push(format!("{edge}: {key} is missing")),
                (None, _) if rules.definitions && key.kind == "CustomResourceDefinition" => {
                    extra.insert(key.clone());
                }
                (None, _) => told.push(format!("{edge}: {key} is there, Helm makes none")),
            }
        }
    }
    let more = told.len().saturating_sub(MOST_TOLD_OF_CHART);
    told.truncate(MOST_TOLD_OF_CHART);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    ensure!(told.is_empty(), "not as Helm makes it:\n    {}\n   ", told.join("\n    "));
    ensure!(!wanted.is_empty(), "Helm made nothing of this chart");
    let names = |keys: &BTreeSet<Key>| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut seen = format!("{} objects", wanted.len() - left.len());
    if !extra.is_empty() {
        seen = format!("{seen}, besides by EMCO alone {}", names(&extra));
    }
    if !left.is_empty() {
        seen = format!("{seen}, left by Helm alone {}", names(&left));
    }
    Ok(seen)
}
