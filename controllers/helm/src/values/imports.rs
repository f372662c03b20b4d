//! Adds what parents take over from children (`import-values`) to their defaults.
use std::borrow::Cow;

use serde_json::Value as Json;

use super::coalesce::{Warnings, coalesce, merge_tables};
use super::select::{Node, deep_copy};
use crate::value::{Map, MapType, Value};

/// Carries the imports out, from the leaves up.
pub(crate) fn import_values(node: &mut Node<'_>, warnings: &mut Warnings) -> Result<(), String> {
    for child in &mut node.dependencies {
        import_values(child, warnings)?;
    }
    if node.listed.is_empty() {
        return Ok(());
    }
    let values = Map::new(MapType::Any);
    coalesce(node, &values, true, warnings)?;
    let imported = Map::new(MapType::Any);
    for listed in &node.listed {
        let mut listed = listed.borrow_mut();
        if listed.imported {
            listed.dependency.import_values.clear();
        }
        listed.imported = true;
        for import in &listed.dependency.import_values {
            let (child, parent) = import.paths();
            let Some(found) = table_at(&values, &format!("{}.{child}", listed.dependency.name)) else {
                warnings
                    .add(format!("ImportValues missing table {child} from chart {}", listed.dependency.name));
                continue;
            };
            merge_tables(&imported, &at_path(&parent, found), warnings);
        }
    }
    // What the parent says itself wins over what it imports.
    let values = deep_copy(&values);
    merge_tables(&values, &imported, warnings);
    match Value::Map(values).to_json() {
        Some(Json::Object(values)) => node.values = Cow::Owned(values),
        _ => return Err(format!("the values of chart {} nest too deeply", node.name)),
    }
    Ok(())
}

fn table_at(values: &Map, path: &str) -> Option<Map> {
    let mut table = values.clone();
    for name in path.split('.') {
        table = match table.get(name) {
            Some(Value::Map(inner)) => inner,
            _ => return None,
        };
    }
    Some(table)
}

/// A table wrapped so that it lies at a dotted path; `.` is the root.
fn at_path(path: &str, table: Map) -> Map {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, name| {
        Map::from_entries(MapType::Any, [(crate::value::Text::from(name), Value::Map(inner))])
    })
}
