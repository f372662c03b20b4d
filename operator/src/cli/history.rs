//! Lists the stored revisions of a deployment: why and when each was made, what it changed, and what became of it.

use emco_crds::{AppContext, DeploymentIntentGroup, State};
use emco_engine::shard::is_failure;
use jiff::Timestamp;
use serde::Serialize;

use super::args::Format;
use super::args::deployments::HistoryArgs;
use super::diff::past;
use super::hub::{self, Hub};
use super::orphans::some;
use super::output::{Table, age, machine, made};
use super::{Outcome, print, stored};

mod compare;

use compare::{Changes, Counts, Revisions};

/// Revisions that a sentence names.
const NAMED: usize = 5;

/// One revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub revision: i64,
    /// `Running`, `Replaced`, `TakenBack`, after too many clusters failed with it, or `Stored`, which was not given to clusters yet.
    pub state: &'static str,
    /// `Good`, `Failed`, `TakenBack` or `ReplacedWhileProgressing`; of the running one also `Progressing`. Absent of one that clusters never
    /// got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub became: Option<&'static str>,
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
    /// Against the revision before. Absent where that is neither stored with it nor can be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
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
    Box::pin(compare_others(&hub, &contexts, &mut entries)).await?;
    if entries.is_empty() && machine(args.output, &())?.is_none() {
        eprintln!("{namespace}/{name} has no revisions");
    }
    match machine(args.output, &entries)? {
        Some(text) => print(&text)?,
        None => print(&text(&entries, args.output == Some(Format::Wide)))?,
    }
    Ok(Outcome::AsWanted)
}

/// Counts what revisions changed that do not say it themselves, such as those that an earlier release stored.
async fn compare_others(hub: &Hub, contexts: &[AppContext], entries: &mut [Entry]) -> anyhow::Result<()> {
    let silent = entries.iter().filter(|entry| entry.changes.is_none());
    let silent: Vec<String> = silent.map(|entry| entry.revision.to_string()).collect();
    if silent.is_empty() {
        return Ok(());
    }
    if let Some(kind) = stored::unreadable(hub).await? {
        eprintln!(
            "left out is what revision {} changed, which is not stored with it: you may not get {kind} in namespace {}",
            some(&silent, NAMED),
            hub.operator_namespace
        );
        return Ok(());
    }
    let content = stored::content(hub);
    let mut revisions = Revisions::new(&content);
    for (entry, context) in entries.iter_mut().zip(contexts).filter(|(entry, _)| entry.changes.is_none()) {
        match revisions.changes(context, contexts).await {
            Ok(changes) => entry.changes = changes,
            Err(error) => {
                eprintln!("warning: what revision {} changed is not known: {error:#}", entry.revision);
            }
        }
    }
    Ok(())
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
        // A newer one that has an outcome ran before the pinned one.
        Some(running) if running > spec.revision || outcome.is_some() => ("Replaced", outcome),
        _ => ("Stored", outcome),
    };
    let variants = spec.apps.iter().flat_map(|app| &app.variants);
    Entry {
        revision: spec.revision,
        state,
        became: became(context, state, outcome),
        cause: spec.cause.as_str(),
        made: made(&context.metadata),
        outcome: outcome.map(|outcome| outcome.to_string()),
        good: context.is_good(),
        objects: variants.map(|variant| variant.resources * variant.clusters).sum(),
        digest: spec.digest.clone(),
        composite_app: spec.composite_app.clone(),
        changes: spec.changes.map(Changes::from),
    }
}

/// The end of a revision, in a word. Once it is good, it stays so, whatever clusters do later.
fn became(context: &AppContext, state: &str, outcome: Option<State>) -> Option<&'static str> {
    Some(match state {
        _ if context.is_taken_back() => "TakenBack",
        _ if context.is_good() => "Good",
        "Stored" => return None,
        _ if outcome.is_some_and(is_failure) => "Failed",
        "Running" => "Progressing",
        _ => "ReplacedWhileProgressing",
    })
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
        "BECAME",
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
            entry.became.unwrap_or_default().to_owned(),
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
        assert_eq!(said(3, applied_alone, false), of("Replaced", "Updated", false), "another one is pinned");
        assert_eq!(said(3, json!({}), false), of("Stored", "", false));
    }

    #[test]
    fn the_end_of_each_revision_is_said_in_a_word() {
        let ended = |number: i64, now: &str, status: serde_json::Value, taken_back: bool| {
            let group: DeploymentIntentGroup = serde_json::from_value(json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
                "metadata": {"name": "till", "namespace": "shop"},
                "spec": {"compositeAppRef": {"name": "till"}, "placement": {"allOf": [{"selector": {}}]}},
                "status": {"revision": 2, "state": now},
            }))
            .unwrap();
            entry(&revision(number, &status, taken_back), &group).became
        };
        let was = |outcome: &str, good: bool| json!({"outcome": outcome, "good": good});
        assert_eq!(ended(1, "Updated", was("Instantiated", true), false), Some("Good"));
        assert_eq!(ended(1, "Updated", was("UpdateFailed", false), false), Some("Failed"));
        assert_eq!(ended(1, "Updated", was("UpdateFailed", false), true), Some("TakenBack"));
        let replaced = Some("ReplacedWhileProgressing");
        assert_eq!(ended(1, "Updated", was("Updating", false), false), replaced);
        assert_eq!(ended(1, "Updated", was("Updated", false), false), replaced, "applied, and never ready");
        assert_eq!(ended(1, "Updated", json!({}), false), replaced, "the process ended meanwhile");
        assert_eq!(ended(2, "Updating", json!({"good": false}), false), Some("Progressing"));
        assert_eq!(ended(2, "UpdateFailed", json!({"good": false}), false), Some("Failed"));
        assert_eq!(ended(2, "UpdateFailed", was("Updated", true), false), Some("Good"), "an outage");
        assert_eq!(ended(3, "Updated", json!({}), false), None);
    }

    #[test]
    fn counts_that_are_stored_with_a_revision_are_shown() {
        use emco_crds::app_context::RevisionChanges;
        use emco_crds::deployment_intent_group::status::ChangeCounts;

        let mut context = revision(2, &json!({}), false);
        let counts = |added: i64| ChangeCounts { added, changed: 2, removed: 0 };
        context.spec.changes = Some(RevisionChanges { clusters: counts(1), objects: counts(-1) });
        let changes = entry(&context, &DeploymentIntentGroup::default()).changes.unwrap();
        assert_eq!(changes.clusters.to_string(), "+1 ~2 -0");
        assert_eq!(changes.objects.to_string(), "+0 ~2 -0", "nothing can be fewer than none");
    }
}
