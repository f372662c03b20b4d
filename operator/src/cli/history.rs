//! Lists the stored revisions of a deployment: why and when each was made, what it changed, and how it ended.

use std::collections::BTreeMap;

use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::names::label;
use emco_crds::{AppContext, DeploymentIntentGroup};
use emco_engine::identity::{Identity, SetDigest};
use emco_engine::set::Assignment;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde::Serialize;

use super::args::Format;
use super::args::deployments::HistoryArgs;
use super::diff::past;
use super::hub;
use super::output::{Table, age, machine, made};
use super::{Outcome, print, stored};

/// One revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub revision: i64,
    /// `Running`, `Replaced`, `TakenBack`, after too many clusters failed with it, or `Stored`, which is not given to clusters yet.
    pub state: &'static str,
    pub cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
    /// How it ended, in EMCO's words; of the running one, how it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// A rollout that fails may go back to it.
    pub good: bool,
    /// Objects on all clusters.
    pub objects: i64,
    pub digest: String,
    pub composite_app: Option<String>,
    /// Against the revision before; absent where that is stored no more, or the manifests may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
}

/// What differs between two revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Changes {
    clusters: Counts,
    objects: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    added: usize,
    changed: usize,
    removed: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} ~{} -{}", self.added, self.changed, self.removed)
    }
}

/// The revisions of a deployment as they are listed, the newest first.
pub fn entries(mut contexts: Vec<AppContext>, group: &DeploymentIntentGroup) -> Vec<Entry> {
    contexts.sort_by_key(|context| std::cmp::Reverse(context.spec.revision));
    contexts.iter().map(|context| entry(context, group)).collect()
}

/// `kubectl emco history`.
pub async fn run(args: HistoryArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let mut contexts = past::contexts(&hub, &namespace, &name).await?;
    contexts.sort_by_key(|context| std::cmp::Reverse(context.spec.revision));
    let mut entries: Vec<Entry> = contexts.iter().map(|context| entry(context, &group)).collect();
    if let Some(kind) = stored::unreadable(&hub).await? {
        eprintln!(
            "what each revision changed is left out: you may not get {kind} in namespace {}",
            hub.operator_namespace
        );
    } else {
        let content = stored::content(&hub);
        let mut revisions =
            Revisions { content: &content, sets: BTreeMap::new(), assignments: BTreeMap::new() };
        for (entry, context) in entries.iter_mut().zip(&contexts) {
            match revisions.changes(context, &contexts).await {
                Ok(changes) => entry.changes = changes,
                Err(error) => {
                    eprintln!("warning: what revision {} changed is not known: {error:#}", entry.revision);
                }
            }
        }
    }
    if entries.is_empty() && machine(args.output, &())?.is_none() {
        eprintln!("{namespace}/{name} has no revisions");
    }
    match machine(args.output, &entries)? {
        Some(text) => print(&text)?,
        None => print(&text(&entries, args.output == Some(Format::Wide)))?,
    }
    Ok(Outcome::AsWanted)
}

fn entry(context: &AppContext, group: &DeploymentIntentGroup) -> Entry {
    let spec = &context.spec;
    let status = group.status.as_ref();
    let running = status.and_then(|status| status.revision);
    let outcome = context.status.as_ref().and_then(|status| status.outcome);
    let (state, outcome) = match running {
        // Pinned, it runs all the same.
        Some(running) if context.is_taken_back() && running != spec.revision => ("TakenBack", outcome),
        Some(running) if running == spec.revision => ("Running", status.and_then(|status| status.state)),
        Some(running) if running > spec.revision => ("Replaced", outcome),
        _ => ("Stored", outcome),
    };
    let variants = spec.apps.iter().flat_map(|app| &app.variants);
    Entry {
        revision: spec.revision,
        state,
        cause: spec.cause.as_str(),
        made: made(&context.metadata),
        outcome: outcome.map(|outcome| outcome.to_string()),
        good: context.is_good(),
        objects: variants.map(|variant| variant.resources * variant.clusters).sum(),
        digest: spec.digest.clone(),
        composite_app: spec.composite_app.clone(),
        changes: None,
    }
}

fn text(entries: &[Entry], wide: bool) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut columns = vec![
        "REVISION",
        "STATE",
        "CAUSE",
        "AGE",
        "OUTCOME",
        "GOOD",
        "OBJECTS",
        "CLUSTERS CHANGED",
        "OBJECTS CHANGED",
    ];
    if wide {
        columns.extend(["COMPOSITE APP", "DIGEST"]);
    }
    let mut table = Table::new(&columns);
    let now = Timestamp::now();
    for entry in entries {
        let counts = |of: fn(&Changes) -> Counts| {
            entry.changes.as_ref().map(|changes| of(changes).to_string()).unwrap_or_default()
        };
        let mut row = vec![
            entry.revision.to_string(),
            entry.state.to_owned(),
            entry.cause.to_owned(),
            age(entry.made, now),
            entry.outcome.clone().unwrap_or_default(),
            if entry.good { "yes" } else { "no" }.to_owned(),
            entry.objects.to_string(),
            counts(|changes| changes.clusters),
            counts(|changes| changes.objects),
        ];
        if wide {
            row.extend([entry.composite_app.clone().unwrap_or_default(), entry.digest.clone()]);
        }
        table.row(row);
    }
    table.text()
}

/// Digest of each manifest of a set, by object.
type Digests = BTreeMap<Identity, String>;

/// Stored revisions, read as far as they are compared.
struct Revisions<'a> {
    content: &'a HubContent,
    sets: BTreeMap<SetDigest, Digests>,
    assignments: BTreeMap<i64, Assignment>,
}

impl Revisions<'_> {
    /// What a revision changed; nothing where the one before is not stored.
    async fn changes(&mut self, context: &AppContext, all: &[AppContext]) -> anyhow::Result<Option<Changes>> {
        let before = match context.spec.previous {
            None => Assignment::new(),
            Some(number) => match all.iter().find(|one| one.spec.revision == number) {
                Some(before) => self.assignment(before).await?,
                None => return Ok(None),
            },
        };
        let now = self.assignment(context).await?;
        let mut changes = Changes::default();
        let earlier = all.iter().find(|one| Some(one.spec.revision) == context.spec.previous);
        let mut compared: BTreeMap<(Option<SetDigest>, Option<SetDigest>), Counts> = BTreeMap::new();
        let mut clusters: Vec<_> = before.keys().chain(now.keys()).collect();
        clusters.sort();
        clusters.dedup();
        for cluster in clusters {
            let (old, new) = (before.get(cluster), now.get(cluster));
            let mut apps: Vec<&String> = old.iter().chain(new.iter()).flat_map(|apps| apps.keys()).collect();
            apps.sort();
            apps.dedup();
            let mut differs = false;
            for app in apps {
                let set = |apps: Option<&BTreeMap<String, emco_engine::set::Assigned>>| {
                    apps.and_then(|apps| apps.get(app)).map(|assigned| assigned.set.clone())
                };
                let pair = (set(old), set(new));
                if pair.0 == pair.1 {
                    continue;
                }
                differs = true;
                let counts = match compared.get(&pair) {
                    Some(counts) => *counts,
                    None => self.compare(&pair, earlier, context).await?,
                };
                compared.insert(pair, counts);
                changes.objects.added += counts.added;
                changes.objects.changed += counts.changed;
                changes.objects.removed += counts.removed;
            }
            changes.clusters.added += usize::from(old.is_none());
            changes.clusters.removed += usize::from(new.is_none());
            changes.clusters.changed += usize::from(differs && old.is_some() && new.is_some());
        }
        Ok(Some(changes))
    }

    async fn assignment(&mut self, context: &AppContext) -> anyhow::Result<Assignment> {
        if let Some(known) = self.assignments.get(&context.spec.revision) {
            return Ok(known.clone());
        }
        let found = self
            .content
            .assignment(&source(context))
            .await
            .map_err(|trouble| anyhow::anyhow!("{}", trouble.message))?;
        self.assignments.insert(context.spec.revision, found.clone());
        Ok(found)
    }

    async fn compare(
        &mut self,
        (old, new): &(Option<SetDigest>, Option<SetDigest>),
        earlier: Option<&AppContext>,
        context: &AppContext,
    ) -> anyhow::Result<Counts> {
        let old = match (old, earlier) {
            (Some(set), Some(earlier)) => self.digests(set, earlier).await?,
            _ => Digests::new(),
        };
        let new = match new {
            Some(set) => self.digests(set, context).await?,
            None => Digests::new(),
        };
        Ok(compare(&old, &new))
    }

    async fn digests(&mut self, set: &SetDigest, context: &AppContext) -> anyhow::Result<Digests> {
        if let Some(known) = self.sets.get(set) {
            return Ok(known.clone());
        }
        let whole = stored::set(self.content, &source(context), set).await?;
        let digests: Digests =
            whole.manifests.iter().map(|one| (one.identity(), one.digest.clone())).collect();
        self.sets.insert(set.clone(), digests.clone());
        Ok(digests)
    }
}

fn source(context: &AppContext) -> Source {
    Source {
        namespace: context.namespace().unwrap_or_default(),
        owner: context.labels().get(label::OWNER).cloned().unwrap_or_default(),
        revision: context.spec.revision,
    }
}

fn compare(old: &Digests, new: &Digests) -> Counts {
    Counts {
        added: new.keys().filter(|id| !old.contains_key(id)).count(),
        changed: new
            .iter()
            .filter(|(id, digest)| old.get(id).is_some_and(|before| before != *digest))
            .count(),
        removed: old.keys().filter(|id| !new.contains_key(id)).count(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(number: i64, status: &serde_json::Value, taken_back: bool) -> AppContext {
        let marks =
            if taken_back { json!({"emco.io/taken-back": "2026-11-21T07:00:00Z"}) } else { json!({}) };
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "AppContext",
            "metadata": {"name": format!("dig-till-{number}"), "annotations": marks},
            "spec": {"format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": "till", "uid": "u"},
                "revision": number, "digest": "sha256:0", "cause": "Update"},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn what_was_good_and_what_was_taken_back_is_said() {
        let group: DeploymentIntentGroup = serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "till", "namespace": "shop"},
            "spec": {"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}},
            "status": {"revision": 2, "state": "Updated"},
        }))
        .unwrap();
        let said = |number: i64, status: serde_json::Value, taken_back: bool| {
            let Entry { state, outcome, good, .. } = entry(&revision(number, &status, taken_back), &group);
            (state, outcome.unwrap_or_default(), good)
        };
        let of = |state, outcome: &str, good| (state, outcome.to_owned(), good);
        // An older release stored it: its outcome tells.
        assert_eq!(said(1, json!({"outcome": "Instantiated"}), false), of("Replaced", "Instantiated", true));
        assert_eq!(said(1, json!({"outcome": "UpdateFailed"}), false), of("Replaced", "UpdateFailed", false));
        assert_eq!(said(2, json!({"good": true}), false), of("Running", "Updated", true));
        let applied_alone = json!({"outcome": "Updated", "good": false});
        assert_eq!(said(1, applied_alone.clone(), false), of("Replaced", "Updated", false));
        let failed = json!({"outcome": "UpdateFailed", "good": false});
        assert_eq!(said(3, failed, true), of("TakenBack", "UpdateFailed", false));
        assert_eq!(said(3, applied_alone, false), of("Stored", "Updated", false));
    }

    #[test]
    fn objects_of_two_sets_are_added_changed_and_removed() {
        let set = |objects: &[(&str, &str)]| -> Digests {
            let id = |name: &str| Identity {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            };
            objects.iter().map(|(name, digest)| (id(name), (*digest).to_owned())).collect()
        };
        let counts =
            compare(&set(&[("a", "1"), ("b", "1"), ("c", "1")]), &set(&[("b", "2"), ("c", "1"), ("d", "1")]));
        assert_eq!(counts.to_string(), "+1 ~1 -1");
    }
}
