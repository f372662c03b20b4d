//! Deployments, shards and the operator's pulse come in; deployments, their apps, the clusters of each and what is wrong there go
//! out.

use std::collections::BTreeMap;

use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::sync_shard::status::Connectivity;
use emco_crds::{DeploymentIntentGroup, RowStatus, State, SyncShard};
use emco_engine::drift::DELETED;
use emco_engine::shard::{Row, decode_status, rows};
use kube::ResourceExt as _;
use serde::Serialize;

use super::filter::{Counts, Filter, Share};
use super::verdict::{is_current, of_app, of_deployment};
use crate::cli::args::status::Verdict;
use crate::cli::pulse::Pulse;

/// Everything that is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// Whether it is the present.
    #[serde(flatten)]
    pub pulse: Pulse,
    /// What is shown of how many.
    pub counts: Counts,
    /// Deployments by namespace and name.
    pub groups: Vec<Group>,
}

/// One deployment intent group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// State of all of it, in a word.
    pub verdict: Verdict,
    /// In EMCO's words, or Unknown.
    pub state: String,
    /// True, False or Unknown.
    pub ready: String,
    /// The reason of Ready.
    pub reason: String,
    /// Its message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What its charts were rendered with that is most likely a mistake, and refuses nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The running revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Ready and all clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<String>,
    /// Ready and all objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<String>,
    /// A plan that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Its apps by name.
    pub apps: Vec<App>,
    /// Its rows are of what was asked for last: that was looked at, and is neither refused nor waits.
    #[serde(skip)]
    pub is_current: bool,
}

/// One app.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct App {
    /// Its name; empty for what is no app's.
    pub name: String,
    /// Where it is or shall be.
    pub clusters: Vec<There>,
}

/// One app on one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct There {
    /// `provider/cluster`
    pub cluster: String,
    /// How it is.
    pub verdict: Verdict,
    /// How it was when the operator was last heard of, while nobody can say now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reported: Option<Verdict>,
    /// The row's state in EMCO's words.
    pub state: State,
    /// Ready objects, of the app where the row says so, else of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
    /// All objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Objects that are not as wanted, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Thing>,
}

/// An object that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thing {
    /// `group/kind/namespace/name`; empty where it is about the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// A reason of the closed set, `Drift` or `FieldsLeftOut`.
    pub reason: String,
    /// A sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Tree {
    /// Builds it.
    pub fn of(groups: &[DeploymentIntentGroup], shards: &[SyncShard], pulse: Pulse, filter: &Filter) -> Self {
        let trusted = pulse.is_trusted();
        let mut counts = Counts::default();
        let mut shown: Vec<Group> = groups
            .iter()
            .map(|group| Group::of(group, shards, trusted, filter, &mut counts))
            .filter(|group| !group.apps.is_empty() || filter.takes_group(group.verdict))
            .collect();
        shown.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        counts.deployments = Share { shown: shown.len(), of: groups.len() };
        // Two trees that say the same are the same, however often the Lease was renewed in between.
        Self { pulse: Pulse { until: None, ..pulse }, counts, groups: shown }
    }
}

impl Group {
    fn of(
        group: &DeploymentIntentGroup,
        shards: &[SyncShard],
        trusted: bool,
        filter: &Filter,
        counts: &mut Counts,
    ) -> Self {
        let (namespace, name) = (group.namespace().unwrap_or_default(), group.name_any());
        let mut apps: BTreeMap<String, Vec<There>> = BTreeMap::new();
        let own = |shard: &&SyncShard| {
            shard.metadata.namespace.as_deref() == Some(&namespace) && crate::cli::hub::is_of(shard, &name)
        };
        for shard in shards.iter().filter(own) {
            let known = shard.status.as_ref().map(|s| decode_status(&shard.spec, s)).unwrap_or_default();
            for row in rows(&shard.spec, shard.status.as_ref()) {
                for (app, mut there) in on_cluster(&row, known.get(&row.id)) {
                    if !trusted {
                        there.last_reported = Some(std::mem::replace(&mut there.verdict, Verdict::Unknown));
                    }
                    if filter.admits(&app, &mut there, counts) {
                        apps.entry(app).or_default().push(there);
                    }
                }
            }
        }
        let apps = apps
            .into_iter()
            .map(|(name, mut clusters)| {
                clusters.sort_by(|a, b| a.cluster.cmp(&b.cluster));
                App { name, clusters }
            })
            .collect();
        let status = group.status.clone().unwrap_or_default();
        let ready = status.condition(types::READY);
        // What was last said speaks of an older spec until it is looked at.
        let generation = group.metadata.generation;
        let looked_at = status.observed_generation == generation || status.failing(generation).is_some();
        let unknown = || "Unknown".to_owned();
        let state = status.state.map_or_else(unknown, |state| state.to_string());
        let summary = status.summary.clone().unwrap_or_default();
        let is_known = trusted && looked_at;
        Self {
            verdict: if is_known { of_deployment(group, &status) } else { Verdict::Unknown },
            is_current: is_known && is_current(&status),
            state: if trusted { state } else { unknown() },
            ready: ready.filter(|_| is_known).map_or_else(unknown, |ready| ready.status.clone()),
            reason: if !trusted {
                "OperatorSilent".to_owned()
            } else if looked_at {
                ready.map_or_else(|| "NotLookedAt".to_owned(), |ready| ready.reason.clone())
            } else {
                "NotLookedAt".to_owned()
            },
            message: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
            note: note(&status),
            revision: status.revision,
            clusters: summary.clusters,
            resources: summary.resources,
            pending: status.pending.map(|p| match p.revision {
                0 => format!("removal ({}): {}", p.short_digest, p.summary),
                revision => format!("revision {revision} ({}): {}", p.short_digest, p.summary),
            }),
            namespace,
            name,
            apps,
        }
    }

    /// A deployment of which nothing is anywhere.
    pub fn nothing(group: &DeploymentIntentGroup) -> Self {
        Self::of(group, &[], true, &Filter::default(), &mut Counts::default())
    }

    /// True where everything that is asked about is ready.
    pub fn is_as_wanted(&self, filter: &Filter) -> bool {
        let mut shown = self.apps.iter().flat_map(|app| &app.clusters);
        self.itself_is_as_wanted(filter) && shown.all(|there| there.verdict == Verdict::Ready)
    }

    /// The same of what is said of all of it. Where only a part is asked about, others may be as they are; a change that is refused concerns
    /// every part.
    pub fn itself_is_as_wanted(&self, filter: &Filter) -> bool {
        if filter.is_all() {
            self.ready == "True"
        } else if filter.takes_group(self.verdict) {
            self.verdict == Verdict::Ready
        } else {
            self.is_current
        }
    }
}

/// What the condition Rendered says of values that no chart reads and charts that render nothing.
pub fn note(status: &DeploymentIntentGroupStatus) -> Option<String> {
    let rendered = status.condition(types::RENDERED)?;
    (rendered.status == "True" && !rendered.message.is_empty()).then(|| rendered.message.clone())
}

/// The apps of a row: those it is to have, and those it may still have.
pub(super) fn on_cluster(row: &Row, status: Option<&RowStatus>) -> BTreeMap<String, There> {
    let mut found = BTreeMap::new();
    let unreachable = status.is_some_and(|status| status.connectivity == Connectivity::Unreachable);
    let wanted = row.target.iter().flat_map(|target| target.apps.keys());
    for app in wanted {
        let own = status.and_then(|status| status.apps.iter().find(|own| own.app == *app));
        let verdict = match status {
            _ if unreachable => Verdict::Unreachable,
            None => Verdict::Progressing,
            Some(status) => of_app(row, status, app),
        };
        // A row that is as wanted does not count by app.
        let counts = own.map(|own| (own.ready, own.total));
        let only = status
            .filter(|_| row.target.as_ref().is_some_and(|t| t.apps.len() == 1))
            .map(|s| (s.ready, s.total));
        let (ready, total) = counts.or(only).unzip();
        // Since when an app was not as wanted says nothing of when its cluster was lost.
        let since = own.filter(|_| !unreachable).and_then(|own| own.since.clone());
        let since = since.or_else(|| status.and_then(|status| status.since.clone()));
        let there = There {
            cluster: row.cluster.to_string(),
            verdict,
            last_reported: None,
            state: own.map_or_else(|| status.map(|s| s.state).unwrap_or_default(), |own| own.state),
            ready,
            total,
            since: since.map(|time| format!("{:.0}", time.0)),
            objects: things(status, app, row),
        };
        found.insert(app.clone(), there);
    }
    let gone = !row.complete || row.target.is_some();
    if row.target.is_none() && gone {
        let leaving = row.applied_apps.iter().flat_map(|apps| apps.keys().cloned()).collect::<Vec<_>>();
        let leaving = if leaving.is_empty() { vec![String::new()] } else { leaving };
        for app in leaving {
            let failed = status.is_some_and(|status| status.state == State::TerminateFailed);
            let there = There {
                cluster: row.cluster.to_string(),
                verdict: match (unreachable, failed) {
                    (true, _) => Verdict::Unreachable,
                    (false, true) => Verdict::Failed,
                    (false, false) => Verdict::Removing,
                },
                last_reported: None,
                state: status.map_or(State::Terminating, |status| status.state),
                ready: None,
                total: None,
                since: status.and_then(|s| s.since.as_ref()).map(|time| format!("{:.0}", time.0)),
                objects: things(status, &app, row),
            };
            found.insert(app, there);
        }
    }
    found
}

/// What a row says of objects of an app. What names no app is said with the first one.
fn things(status: Option<&RowStatus>, app: &str, row: &Row) -> Vec<Thing> {
    let Some(status) = status else { return Vec::new() };
    let first =
        row.target.as_ref().and_then(|target| target.apps.keys().next()).is_none_or(|first| first == app);
    let mut things = Vec::new();
    if let Some(error) = &status.error
        && error.app.as_deref().map_or(first, |name| name == app)
    {
        things.push(Thing {
            object: error.resource.clone().unwrap_or_default(),
            reason: error.reason.clone(),
            message: error.message.clone(),
        });
    }
    let waits = status.apps.iter().find(|own| own.app == app).and_then(|own| own.waits_for.as_ref());
    if let Some(waits) = waits.filter(|waits| !things.iter().any(|thing| thing.message.contains(*waits))) {
        things.push(Thing {
            object: String::new(),
            reason: "WaitingForDependency".to_owned(),
            message: waits.clone(),
        });
    }
    // The first of them may be the row's error already.
    let error = status.error.as_ref().and_then(|error| error.resource.as_deref());
    things.extend(
        status.unready.iter().filter(|one| one.app == app && Some(one.resource.as_str()) != error).map(
            |one| Thing {
                object: one.resource.clone(),
                reason: "NotReady".to_owned(),
                message: one.message.clone(),
            },
        ),
    );
    if first && let Some(drift) = &status.drift {
        things.extend(drift.objects.iter().map(|object| Thing {
            object: object.resource.clone(),
            reason: "Drift".to_owned(),
            message: match object.by.as_str() {
                "" => "others changed it".to_owned(),
                DELETED => "others deleted it".to_owned(),
                by => format!("changed by {by}"),
            },
        }));
    }
    if first && let Some(left_out) = &status.left_out {
        things.extend(left_out.first.iter().map(|text| {
            let (object, field) = text.split_once(' ').unwrap_or((text, ""));
            Thing {
                object: object.to_owned(),
                reason: "FieldsLeftOut".to_owned(),
                message: format!("the cluster does not know the field {field}"),
            }
        }));
    }
    things
}

#[cfg(test)]
pub mod tests;
