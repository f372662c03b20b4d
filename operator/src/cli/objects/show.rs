//! Writes the tree of objects for people.

use emco_engine::text::counted;
use jiff::Timestamp;

use super::report::{Answer, ClusterObjects, Object, ObjectState};
use crate::cli::output::age;
use crate::cli::status::{show, tree::Group};

/// The text of an answer; `wide` adds API versions, ages, and what stays at removal.
pub fn text(answer: &Answer, group: &Group, wide: bool) -> String {
    let mut text = String::new();
    show::head(&mut text, group);
    for (at, app) in answer.apps.iter().enumerate() {
        let (knot, line) = branch(at, answer.apps.len());
        let name = if app.name.is_empty() { "(what was there before)" } else { &app.name };
        text.push_str(&format!("{knot}{name}\n"));
        for (at, cluster) in app.clusters.iter().enumerate() {
            let (knot, deeper) = branch(at, app.clusters.len());
            text.push_str(&format!("{line}{knot}{}\n", head(cluster)));
            let indent = format!("{line}{deeper}");
            if let Some(error) = &cluster.error {
                text.push_str(&format!("{indent}   {error}\n"));
            }
            for row in objects(&cluster.objects, wide) {
                text.push_str(&format!("{indent}{row}\n"));
            }
        }
    }
    if let Some(counts) = answer.counts.text().filter(|_| !answer.apps.is_empty()) {
        text.push_str(&format!("{counts}\n"));
    }
    text
}

const fn branch(at: usize, all: usize) -> (&'static str, &'static str) {
    if at + 1 == all { ("└─ ", "   ") } else { ("├─ ", "│  ") }
}

fn head(cluster: &ClusterObjects) -> String {
    let ready = cluster.objects.iter().filter(|object| object.state == ObjectState::Ready).count();
    let mut text = format!("{}  {}", cluster.cluster, cluster.verdict.as_str());
    if cluster.error.is_none() {
        text.push_str(&format!("  {ready}/{} ready", counted(cluster.objects.len(), "object")));
        if cluster.objects.len() < cluster.total {
            text.push_str(&format!("  {} of {} shown", cluster.objects.len(), cluster.total));
        }
    }
    match cluster.revision {
        Some(revision) => text.push_str(&format!("  revision {revision}")),
        None => text.push_str("  on its way out"),
    }
    text
}

/// A line for each object, in columns.
fn objects(objects: &[Object], wide: bool) -> Vec<String> {
    let now = Timestamp::now();
    let cells: Vec<Vec<String>> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![object.id(), object.state.as_str().to_owned()];
            if wide {
                let old = object.made.map_or_else(|| "-".to_owned(), |made| age(Some(made), now));
                let stays = if object.stays { "stays" } else { "" };
                cells.extend([object.api_version.clone(), old, stays.to_owned()]);
            }
            cells.push(object.message.clone());
            cells
        })
        .collect();
    let width = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..cells.first().map_or(0, Vec::len)).map(width).collect();
    cells
        .iter()
        .enumerate()
        .map(|(at, row)| {
            let line: String =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
            format!("{}{}", branch(at, cells.len()).0, line.trim_end())
        })
        .collect()
}
