//! Prints a plan as a tree: apps, clusters on which the same changes, objects with the lines that differ, hooks.

use emco_crds::deployment_intent_group::rollout::WaveApproval;
use emco_crds::deployment_intent_group::status::{ChangeCounts, PendingApp};
use emco_engine::changes::{DryRun, MOST_ASKED, RecreatedRow, RefusedRow, What};
use emco_engine::rollout::Outline;
use emco_engine::text::counted;

use super::read::{App, Object, OfApp, Variant};
use super::{Answer, Plan, Verdict};
use crate::cli::orphans::some;

/// Clusters that a line names.
const NAMED: usize = 5;

/// A line, what belongs to it, and what is below it.
#[derive(Default)]
struct Node {
    line: String,
    more: Vec<String>,
    children: Vec<Self>,
}

/// The text of an answer.
pub fn text(answer: &Answer) -> String {
    let Answer { deployment, verdict, runs, refusal, unknown, plan } = answer;
    let mut text = match runs {
        Some(revision) => format!("{deployment}: revision {revision} runs"),
        None => format!("{deployment}: no revision runs"),
    };
    if *verdict == Verdict::Nothing {
        text.push_str(", and nothing would change");
    }
    text.push('\n');
    if let Some(refusal) = refusal {
        text.push_str(&format!(
            "refused: {}=False {}: {}\n",
            refusal.condition, refusal.reason, refusal.message
        ));
    }
    if let Some(why) = unknown {
        text.push_str(&format!("not planned: {why}\n"));
    }
    let Some(plan) = plan else { return text };
    head(&mut text, plan);
    let mut nodes: Vec<Node> = plan.apps.iter().map(app).collect();
    nodes.extend(plan.brief.iter().map(brief));
    for (at, node) in nodes.iter().enumerate() {
        write(&mut text, node, "", at + 1 == nodes.len());
    }
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    if !plan.waits.is_empty() && refusal.is_none() {
        text.push_str(&format!("waits: {}\n", plan.waits));
    }
    text
}

fn head(text: &mut String, plan: &Plan) {
    let digest = plan.digest.trim_start_matches("sha256:").get(..12).unwrap_or_default();
    let digest = if digest.is_empty() { String::new() } else { format!(", digest {digest}") };
    match plan.revision {
        0 => text.push_str(&format!("the deletion would remove everything{digest}\n")),
        revision => text.push_str(&format!("revision {revision} would come{digest}\n")),
    }
    let counts = |of: ChangeCounts, noun: &str, [added, changed, removed]: [&str; 3]| {
        format!("{noun}: {} {added}, {} {changed}, {} {removed}\n", of.added, of.changed, of.removed)
    };
    text.push_str(&counts(plan.clusters, "clusters", ["gained", "changed", "lost"]));
    text.push_str(&counts(plan.resources, "objects", ["added", "changed", "removed"]));
    if !plan.gains.is_empty() {
        text.push_str(&format!("gains: {}\n", plan.gains.join(", ")));
    }
    if !plan.waves.is_empty() {
        let waves: Vec<String> = plan.waves.iter().map(wave).collect();
        text.push_str(&format!("waves: {}\n", waves.join("; ")));
    }
}

/// A wave with what stands before and after it.
fn wave(wave: &Outline) -> String {
    let Outline { name, clusters, soak, approval } = wave;
    let before = if *approval == WaveApproval::Before { ", after an approval" } else { "" };
    let soak = if *soak > 0 { format!(", watched for {soak} s") } else { String::new() };
    let after = if *approval == WaveApproval::After { ", then an approval" } else { "" };
    format!("{name} on {}{before}{soak}{after}", counted(*clusters, "cluster"))
}

fn number(number: usize, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{number} {what}"))
}

fn app(app: &App) -> Node {
    let mut children: Vec<Node> = app.variants.iter().map(variant).collect();
    if app.left_out > 0 {
        let more = counted(app.left_out, "more group");
        children.push(Node { line: format!("... {more} of clusters"), ..Node::default() });
    }
    Node { line: format!("{} on {}", app.name, counted(app.clusters, "cluster")), more: Vec::new(), children }
}

fn variant(variant: &Variant) -> Node {
    let word = match variant.change {
        OfApp::Changes => "changes on",
        OfApp::Joins => "joins",
        OfApp::Leaves => "leaves",
    };
    let mut named: Vec<String> = variant.clusters.iter().take(NAMED).cloned().collect();
    if variant.total > named.len() {
        named.push(format!("{} more", variant.total - named.len()));
    }
    let counts = [(variant.added, "added"), (variant.changed, "changed"), (variant.removed, "removed")];
    let counts: Vec<String> = counts.into_iter().filter_map(|(of, what)| number(of, what)).collect();
    let counts = if counts.is_empty() { "no object differs".to_owned() } else { counts.join(", ") };
    let all = variant.added + variant.changed + variant.removed;
    let mut children: Vec<Node> = variant.objects.iter().map(object).collect();
    if let Some(more) = all.checked_sub(variant.objects.len()).and_then(|more| number(more, "more objects")) {
        children.push(Node { line: format!("... {more}"), ..Node::default() });
    }
    let hooks = variant.hooks.iter().map(|hook| Node { line: format!("hook {hook}"), ..Node::default() });
    children.extend(hooks);
    if variant.dry_run.as_ref().is_none_or(|run| run.cluster.is_none()) {
        children.extend(foreseen(variant));
    }
    children.extend(variant.dry_run.iter().flat_map(answered));
    Node { line: format!("{word} {}: {counts}", named.join(", ")), more: Vec::new(), children }
}

/// Objects that would be deleted and made again, as far as the manifests tell.
fn foreseen(variant: &Variant) -> Vec<Node> {
    let mut lines: Vec<String> = variant
        .recreated
        .iter()
        .map(|RecreatedRow { object, lost }| {
            format!("{object} cannot be changed: it would be deleted and made again: {lost}")
        })
        .collect();
    let more = number(variant.more_recreated, "more cannot be changed, and would be deleted and made again");
    lines.extend(more);
    lines.into_iter().map(|line| Node { line, ..Node::default() }).collect()
}

/// What a cluster would say.
fn answered(run: &DryRun) -> Vec<Node> {
    let line = |line: String| Node { line, ..Node::default() };
    let Some(cluster) = &run.cluster else {
        let why = match run.left_out {
            _ if run.by_git => {
                "not tried: these clusters are written to through Git, and a dry run is a write".to_owned()
            }
            0 => "no cluster of these could be asked whether it would accept this".to_owned(),
            _ => format!("not asked about: clusters are asked about {MOST_ASKED} branches of a plan"),
        };
        return vec![line(why)];
    };
    let mut lines = Vec::new();
    // It may say nothing before what is missing there comes with the plan.
    let accepted = run.asked.saturating_sub(run.recreated.len() + run.more_recreated);
    if run.refused.is_empty() && accepted > 0 {
        lines.push(line(format!("{cluster} would accept {}", counted(accepted, "object"))));
    }
    lines.extend(run.recreated.iter().map(|RecreatedRow { object, lost }| {
        line(format!("{cluster} cannot change {object}: it would be deleted and made again: {lost}"))
    }));
    if let Some(more) = number(run.more_recreated, "more") {
        lines.push(line(format!("{cluster} cannot change {more} that would be deleted and made again")));
    }
    let row = |row: &RefusedRow| {
        line(format!("{cluster} would refuse {}: {}: {}", row.object, row.reason, row.message))
    };
    lines.extend(run.refused.iter().map(row));
    if let Some(more) = number(run.more, "more") {
        lines.push(line(format!("{cluster} would refuse {more}")));
    }
    if run.unanswered > 0 {
        lines.push(line(format!("{cluster} has not answered for {}", counted(run.unanswered, "object"))));
    }
    if run.left_out > 0 {
        lines.push(line(format!("not asked about: {}", counted(run.left_out, "object"))));
    }
    lines
}

fn object(object: &Object) -> Node {
    let sign = match object.row.what {
        What::Added => '+',
        What::Changed => '~',
        What::Removed => '-',
    };
    let more = object.difference.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    Node { line: format!("{sign} {}{}", object.row.object, object.row.only_by()), more, children: Vec::new() }
}

/// What `status.pending` says of an app.
fn brief(app: &PendingApp) -> Node {
    let PendingApp { name, clusters, resources, first, gained, lost, hooks, refused, recreated } = app;
    let counts = |of: &ChangeCounts, words: [&str; 3]| {
        let parts = [of.added, of.changed, of.removed].into_iter().zip(words).filter(|(of, _)| *of > 0);
        parts.map(|(of, word)| format!("{of} {word}")).collect::<Vec<_>>().join(", ")
    };
    let lines = [
        ("clusters", counts(clusters, ["gained", "changed", "lost"])),
        ("objects", counts(resources, ["added", "changed", "removed"])),
        ("such as", some(first, first.len())),
        ("gained", some(gained, gained.len())),
        ("lost", some(lost, lost.len())),
        ("hooks", some(hooks, hooks.len())),
        ("would be refused", some(refused, refused.len())),
        ("would be deleted and made again", some(recreated, recreated.len())),
    ];
    let lines = lines.into_iter().filter(|(_, said)| !said.is_empty());
    let children = lines.map(|(what, said)| Node { line: format!("{what}: {said}"), ..Node::default() });
    Node { line: name.clone(), more: Vec::new(), children: children.collect() }
}

fn write(text: &mut String, node: &Node, before: &str, last: bool) {
    let (knot, deeper) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
    text.push_str(&format!("{before}{knot}{}\n", node.line));
    let deeper = format!("{before}{deeper}");
    for line in &node.more {
        text.push_str(&format!("{deeper}   {line}\n"));
    }
    for (at, child) in node.children.iter().enumerate() {
        write(text, child, &deeper, at + 1 == node.children.len());
    }
}

#[cfg(test)]
mod tests;
