//! Prints a tree as lines for people.

use std::fmt::Write as _;

use emco_engine::text::counted;

use super::tree::{App, Group, There, Tree};
use super::warning;
use crate::cli::args::status::Verdict;
use crate::cli::orphans::some;

/// Clusters that are named where all of them are ready.
const NAMED: usize = 3;

/// The text of a tree. `wide` spells what is ready, too.
pub fn text(tree: &Tree, wide: bool) -> String {
    let mut text = String::new();
    for group in &tree.groups {
        head(&mut text, group);
        let last = group.apps.len();
        for (at, app) in group.apps.iter().enumerate() {
            branch(&mut text, app, at + 1 == last, wide);
        }
    }
    if !tree.groups.is_empty() {
        counts(&mut text, tree);
    }
    text
}

/// As [`text`], beginning with what makes it doubtful: for a stream that has no standard error beside it.
pub fn text_with_warning(tree: &Tree, wide: bool) -> String {
    let mut said = warning(&tree.pulse).map_or_else(String::new, |said| format!("warning: {said}\n"));
    said.push_str(&text(tree, wide));
    if tree.groups.is_empty() {
        counts(&mut said, tree);
    }
    said
}

/// What is shown of how many, where it is not all.
fn counts(text: &mut String, tree: &Tree) {
    if let Some(said) = tree.counts.text() {
        let _ = writeln!(text, "{said}");
    }
}

/// The first lines of a deployment.
pub fn head(text: &mut String, group: &Group) {
    let Group {
        namespace,
        name,
        verdict: _,
        state,
        ready,
        reason,
        message,
        note,
        revision,
        clusters,
        resources,
        pending,
        apps: _,
        is_current: _,
    } = group;
    let _ = write!(text, "{namespace}/{name}  {state}  ready: {ready}");
    if ready != "True" {
        let _ = write!(text, " ({reason})");
    }
    for (what, value) in [
        ("revision", revision.map(|revision| revision.to_string()).as_ref()),
        ("clusters", clusters.as_ref()),
        ("objects", resources.as_ref()),
    ] {
        if let Some(value) = value {
            let _ = write!(text, "  {what}: {value}");
        }
    }
    text.push('\n');
    if ready != "True" && !message.is_empty() {
        let last = if reason == "OperatorSilent" { "last reported: " } else { "" };
        let _ = writeln!(text, "   {last}{message}");
    }
    if let Some(note) = note {
        let _ = writeln!(text, "   note: {note}");
    }
    if let Some(pending) = pending {
        let _ = writeln!(text, "   pending: {pending}");
    }
}

fn branch(text: &mut String, app: &App, last: bool, wide: bool) {
    let (knot, line) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
    let name = if app.name.is_empty() { "(what was there before)" } else { &app.name };
    let plain = |there: &&There| there.verdict == Verdict::Ready && there.objects.is_empty() && !wide;
    let (ready, spelled): (Vec<&There>, Vec<&There>) = app.clusters.iter().partition(plain);
    let names: Vec<String> = ready.iter().map(|there| there.cluster.clone()).collect();
    let all = app.clusters.len();
    let count = app.clusters.iter().filter(|there| there.verdict == Verdict::Ready).count();
    let _ = write!(text, "{knot}{name}  {count}/{} ready", counted(all, "cluster"));
    if !names.is_empty() {
        let _ = write!(text, ": {}", some(&names, NAMED));
    }
    text.push('\n');
    for (at, there) in spelled.iter().enumerate() {
        let last = at + 1 == spelled.len();
        let (knot, deeper) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let _ = writeln!(text, "{line}{knot}{}", leaf(there));
        for thing in &there.objects {
            let object = if thing.object.is_empty() { String::new() } else { format!("{}  ", thing.object) };
            let _ = writeln!(text, "{line}{deeper}   {object}{}: {}", thing.reason, thing.message);
        }
    }
}

fn leaf(there: &There) -> String {
    let mut text = format!("{}  {}", there.cluster, there.verdict.as_str());
    if let Some(last) = there.last_reported {
        let _ = write!(text, " (last reported {})", last.as_str());
    }
    if let (Some(ready), Some(total)) = (there.ready, there.total) {
        let total = usize::try_from(total).unwrap_or_default();
        let _ = write!(text, "  {ready}/{} ready", counted(total, "object"));
    }
    if there.verdict != Verdict::Ready
        && let Some(since) = &there.since
    {
        let _ = write!(text, "  since {since}");
    }
    text
}
