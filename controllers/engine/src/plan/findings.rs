//! Says what renderings showed that is no error: values that nothing reads or checks, and charts that render no object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_helm::Rendered;
use serde_json::{Map, Value};

use crate::conditions::truncate;
use crate::identity::SetDigest;
use crate::resolve::Resolved;
use crate::set::{Assigned, Assignment, Findings, ManifestSet};
use crate::text::counted;
use crate::values::Layer;

/// Values of one rendering that are written down.
const MOST_STORED: usize = 16;
/// Values of one app that a sentence names.
const MOST_SAID: usize = 5;
/// Apps that a text speaks of.
const MOST_APPS: usize = 5;
/// Values that turn a chart on that are named.
const MOST_SWITCHES: usize = 3;
/// Longest name of a value or Secret, in bytes.
const LONGEST: usize = 160;

/// What is to be said of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remarks {
    /// The app.
    pub app: String,
    /// Values that nothing reads, at most sixteen.
    pub unread: Vec<String>,
    /// Sentences for people.
    pub sentences: Vec<String>,
}

/// All remarks as one text; empty without any.
pub fn sentence(remarks: &[Remarks]) -> String {
    let mut parts: Vec<String> =
        remarks.iter().take(MOST_APPS).flat_map(|of| of.sentences.iter().cloned()).collect();
    if let Some(more @ 1..) = remarks.len().checked_sub(MOST_APPS) {
        parts.push(format!("{} more have such remarks", counted(more, "app")));
    }
    parts.join("; ")
}

/// What one rendering showed. What only a Secret sets is not named, but the Secret is.
pub fn of(layers: &[Layer<'_>], rendered: &Rendered) -> Option<Findings> {
    let mut findings = Findings::default();
    for value in &rendered.unread {
        let setting = |layer: &&Layer<'_>| is_set(&layer.values, &value.path);
        let mut open = layers.iter().filter(|layer| !layer.secret);
        if open.any(|layer| setting(&layer)) {
            if findings.unread.len() < MOST_STORED {
                findings.unread.insert(shown(&value.path), value.similar.as_deref().map(shown));
            } else {
                findings.more += 1;
            }
        } else {
            let secrets = layers.iter().filter(|layer| layer.secret).filter(setting);
            findings.secrets.extend(secrets.map(|layer| truncate(&layer.origin, LONGEST)));
        }
    }
    if rendered.switches.len() <= MOST_SWITCHES {
        findings.switches = rendered.switches.iter().map(|path| shown(path)).collect();
    }
    (findings != Findings::default()).then_some(findings)
}

fn is_set(values: &Map<String, Value>, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let found = values.get(first);
    found.and_then(|value| rest.iter().try_fold(value, |value, name| value.get(name))).is_some()
}

/// A path as `--set` of Helm takes it, in one line.
fn shown(path: &[String]) -> String {
    let name = |name: &String| {
        let name = name.replace('.', "\\.");
        name.replace(|c: char| c.is_control() || c == '"', "?")
    };
    truncate(&path.iter().map(name).collect::<Vec<_>>().join("."), LONGEST)
}

/// What is to be said of each app, in the order of the composite app.
pub fn remarks(
    resolved: &Resolved<'_>,
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Vec<Remarks> {
    let mut all = Vec::new();
    for app in &resolved.apps {
        let name = app.app.name.as_str();
        let mut seen = Seen::default();
        for (cluster, assigned) in assignment.iter().filter_map(|(id, apps)| Some((id, apps.get(name)?))) {
            // What intents leave out is not the chart's doing.
            let is_empty =
                app.entries.is_empty() && sets.get(&assigned.set).is_some_and(|set| set.manifests.is_empty());
            seen.add(cluster.as_str(), assigned, is_empty);
        }
        let subject = format!("chart {} of app {name}", app.compiled.chart().name());
        let mut sentences = seen.sentences(&subject);
        if app.app.chart.skip_schema_validation == Some(true) {
            sentences.push(format!(
                "{subject} is rendered without a check of its values (chart.skipSchemaValidation)"
            ));
        }
        if !sentences.is_empty() {
            let unread = seen.unread.keys().take(MOST_STORED).map(|&value| value.to_owned()).collect();
            all.push(Remarks { app: name.to_owned(), unread, sentences });
        }
    }
    all
}

/// What was shown of one app on all its clusters.
#[derive(Default)]
struct Seen<'a> {
    clusters: usize,
    unread: BTreeMap<&'a str, Option<&'a str>>,
    more: usize,
    secrets: BTreeSet<&'a str>,
    /// Clusters where values are not read.
    unread_on: Clusters<'a>,
    switches: BTreeSet<&'a [String]>,
    /// Clusters where nothing is rendered.
    empty_on: Clusters<'a>,
}

#[derive(Default)]
struct Clusters<'a> {
    number: usize,
    first: &'a str,
}

impl<'a> Clusters<'a> {
    fn add(&mut self, cluster: &'a str) {
        if self.number == 0 {
            self.first = cluster;
        }
        self.number += 1;
    }

    /// ` on acme/berlin`, ` on 2 of 3 clusters`, or nothing where it is all of them.
    fn place(&self, all: usize) -> String {
        match self.number {
            number if number == all => String::new(),
            1 => format!(" on {}", self.first),
            number => format!(" on {number} of {}", counted(all, "cluster")),
        }
    }
}

impl<'a> Seen<'a> {
    fn add(&mut self, cluster: &'a str, assigned: &'a Assigned, is_empty: bool) {
        self.clusters += 1;
        if is_empty {
            self.empty_on.add(cluster);
            self.switches
                .insert(assigned.findings.as_deref().map_or(&[], |findings| findings.switches.as_slice()));
        }
        let Some(Findings { unread, more, secrets, switches: _ }) = assigned.findings.as_deref() else {
            return;
        };
        if unread.is_empty() && secrets.is_empty() {
            return;
        }
        self.unread_on.add(cluster);
        self.unread.extend(unread.iter().map(|(value, similar)| (value.as_str(), similar.as_deref())));
        self.more = self.more.max(*more);
        self.secrets.extend(secrets.iter().map(String::as_str));
    }

    fn sentences(&self, subject: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.empty_on.number > 0 {
            sentences.push(self.empty(subject));
        }
        let place = self.unread_on.place(self.clusters);
        if !self.unread.is_empty() {
            let one = |(value, similar): (&&str, &Option<_>)| match similar {
                Some(similar) => format!("\"{value}\" (did you mean \"{similar}\"?)"),
                None => format!("\"{value}\""),
            };
            let mut named: Vec<String> = self.unread.iter().take(MOST_SAID).map(one).collect();
            let more = self.unread.len() + self.more - named.len();
            if more > 0 {
                named.push(counted(more, "other"));
            }
            let verb = if named.len() == 1 { "reads no value" } else { "reads none of the values" };
            sentences.push(format!("{subject} {verb} {}{place}", listed(&named)));
        }
        for secret in self.secrets.iter().take(MOST_SAID) {
            sentences.push(format!(
                "{subject} does not read every value of {secret}{place}; names in Secrets are not shown"
            ));
        }
        sentences
    }

    fn empty(&self, subject: &str) -> String {
        let place = self.empty_on.place(self.clusters);
        let switches = if self.switches.len() == 1 { self.switches.first() } else { None };
        let switches: Vec<String> =
            switches.into_iter().copied().flatten().map(|value| format!("\"{value}\"")).collect();
        match switches.as_slice() {
            [] => format!("{subject} renders no object{place}"),
            [value] => format!("{subject} renders no object{place}: value {value} turns it on"),
            several => format!("{subject} renders no object{place}: values {} turn it on", listed(several)),
        }
    }
}

/// `a, b and c`
fn listed(parts: &[String]) -> String {
    match parts.split_last() {
        Some((last, rest @ [_, ..])) => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}
