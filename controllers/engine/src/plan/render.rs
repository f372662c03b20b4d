//! Renders jobs into drafts: as few renderings as the charts allow, in parallel, with the same result in any order.
//!
//! One rendering serves every cluster on which the chart could not tell the difference: the same values and release, and
//! the same answers to whatever it asked about the cluster. Charts that draw random values are rendered for each cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_helm::{Capabilities, Compat, Limits, LookupRead, Reads, Release, RenderError, RenderRequest};
use serde_json::Value;

use super::findings;
use super::lookup::{Answers, Holdings};
use super::work::Item;
use crate::apis::ApiList;
use crate::canonical;
use crate::manifests::{self, Draft};
use crate::refusal::Refusal;
use crate::resolve::Resolved;
use crate::snapshot::ClusterFacts;

/// Stack of a worker: what charts print may nest deeply until it is refused.
const STACK: usize = 16 << 20;

/// One rendering that is asked for.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Which app, where, with which values.
    pub item: Item<'a>,
    /// `.Release.IsInstall`.
    pub is_install: bool,
    /// `.Release.Revision`.
    pub revision: i64,
    /// What `now` gives, Unix seconds.
    pub now: i64,
    /// What `lookup` finds.
    pub holdings: Arc<Holdings>,
    /// It is only a try: a chart that fails then refuses nothing.
    pub tentative: bool,
}

/// What jobs must have in common to share a rendering at all.
type Key = (usize, String, bool, i64, i64, bool);

/// Lookups of one rendering that are compared between clusters with different sets; a chart that asks for more is rendered for
/// each set.
const MOST_COMPARED: usize = 1_000;

impl Job<'_> {
    fn key(&self) -> Key {
        // Not the edits: they come after the rendering, which clusters with other edits share.
        let chart_key = self.item.class.chart_key.clone();
        (self.item.app, chart_key, self.is_install, self.revision, self.now, self.tentative)
    }

    fn answers(&self) -> Answers<'_> {
        Answers::new(&self.holdings, self.item.cluster.apis.as_deref())
    }
}

/// What one rendering gave, and what it had asked.
struct Outcome<'j, 'a> {
    draft: Arc<Draft>,
    reads: Reads,
    job: &'j Job<'a>,
}

/// What came of a job.
#[derive(Clone, Debug)]
enum Slot {
    Pending,
    Done(Arc<Draft>),
    /// The try failed.
    Failed,
}

/// Renders all jobs; drafts are in the order of the jobs, and `None` where a try failed.
pub fn render(resolved: &Resolved<'_>, jobs: &[Job<'_>]) -> Result<Vec<Option<Arc<Draft>>>, Box<Refusal>> {
    let mut slots: Vec<Slot> = vec![Slot::Pending; jobs.len()];
    let mut groups: BTreeMap<Key, Group<'_, '_>> = BTreeMap::new();
    for (position, job) in jobs.iter().enumerate() {
        groups.entry(job.key()).or_default().pending.push(position);
    }
    loop {
        let picks: Vec<usize> = groups.values().flat_map(|group| group.picks(jobs)).collect();
        if picks.is_empty() {
            break;
        }
        for (position, rendered) in picks.iter().zip(in_parallel(resolved, jobs, &picks)?) {
            let Some(job) = jobs.get(*position) else { continue };
            let Some(slot) = slots.get_mut(*position) else { continue };
            let Some((draft, reads)) = rendered else {
                *slot = Slot::Failed;
                continue;
            };
            *slot = Slot::Done(Arc::clone(&draft));
            if let Some(group) = groups.get_mut(&job.key()) {
                group.outcomes.push(Outcome { draft, reads, job });
            }
        }
        for group in groups.values_mut() {
            group.share(jobs, &mut slots);
        }
    }
    Ok(slots.into_iter().map(|slot| if let Slot::Done(draft) = slot { Some(draft) } else { None }).collect())
}

/// Jobs with the same key.
#[derive(Default)]
struct Group<'j, 'a> {
    pending: Vec<usize>,
    outcomes: Vec<Outcome<'j, 'a>>,
}

impl<'j, 'a> Group<'j, 'a> {
    /// What to render next: one job for each kind of cluster, or all once the chart is known to draw random values.
    fn picks(&self, jobs: &[Job<'_>]) -> Vec<usize> {
        if self.outcomes.iter().any(|outcome| outcome.reads.random) {
            return self.pending.clone();
        }
        // The first rendering tells what the chart asks, which most often spares the others.
        if self.outcomes.is_empty() {
            return self.pending.first().copied().into_iter().collect();
        }
        let looks_up = self.outcomes.iter().any(|outcome| !outcome.reads.lookups.is_empty());
        let mut picks: Vec<usize> = Vec::new();
        for &position in &self.pending {
            let alike = |other: &usize| match (jobs.get(*other), jobs.get(position)) {
                (Some(a), Some(b)) => {
                    (!looks_up || Arc::ptr_eq(&a.holdings, &b.holdings))
                        && same_cluster(a.item.cluster, b.item.cluster)
                }
                _ => false,
            };
            if !picks.iter().any(alike) {
                picks.push(position);
            }
        }
        picks
    }

    /// Gives drafts to jobs that could not come out differently.
    fn share(&mut self, jobs: &'j [Job<'a>], slots: &mut [Slot]) {
        let outcomes = &self.outcomes;
        self.pending.retain(|&position| {
            let Some(slot @ Slot::Pending) = slots.get_mut(position) else { return false };
            let Some(job) = jobs.get(position) else { return false };
            let Some(outcome) = outcomes.iter().find(|outcome| outcome.holds_for(job)) else {
                return true;
            };
            *slot = Slot::Done(Arc::clone(&outcome.draft));
            false
        });
    }
}

impl Outcome<'_, '_> {
    /// Whether the chart would have got the same answers for that job.
    fn holds_for(&self, job: &Job<'_>) -> bool {
        let Reads { random, kube_version, all_api_versions, api_versions, values: _, lookups } = &self.reads;
        let (mine, cluster) = (self.job.item.cluster, job.item.cluster);
        // Values are alike: they are part of the key.
        !random
            && (!kube_version || mine.kubernetes_version == cluster.kubernetes_version)
            && (!all_api_versions || same_apis(mine, cluster))
            && (api_versions.is_empty() || same_apis(mine, cluster) || {
                let (one, other) = (serves(mine), serves(cluster));
                api_versions.iter().all(|asked| one(asked) == other(asked))
            })
            && (lookups.is_empty()
                || Arc::ptr_eq(&self.job.holdings, &job.holdings) && same_apis(mine, cluster)
                || lookups.len() <= MOST_COMPARED && self.job.answers().same_as(&job.answers(), lookups))
    }
}

fn same_cluster(a: &ClusterFacts, b: &ClusterFacts) -> bool {
    a.kubernetes_version == b.kubernetes_version && same_apis(a, b)
}

fn same_apis(a: &ClusterFacts, b: &ClusterFacts) -> bool {
    match (&a.apis, &b.apis) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

/// `.Capabilities.APIVersions.Has` of a cluster.
fn serves(cluster: &ClusterFacts) -> impl Fn(&str) -> bool + '_ {
    let versions = cluster.apis.as_deref().map(ApiList::helm_api_versions).unwrap_or_default();
    move |asked| versions.contains(asked)
}

/// `None` where a try failed.
type Rendered = Option<(Arc<Draft>, Reads)>;

/// Renders some jobs on all cores. Of each app its first failure by position is told, whichever thread met it.
fn in_parallel(
    resolved: &Resolved<'_>,
    jobs: &[Job<'_>],
    picks: &[usize],
) -> Result<Vec<Rendered>, Box<Refusal>> {
    let next = AtomicUsize::new(0);
    let failed: Vec<AtomicUsize> = resolved.apps.iter().map(|_| AtomicUsize::new(usize::MAX)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(picks.len());
    let work = || {
        let mut done = Vec::new();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = picks.get(turn).and_then(|position| jobs.get(*position)) else { return done };
            let of_app = failed.get(job.item.app);
            // There is no plan with a failure: the rest of its app would be rendered in vain. What comes before it is not left out.
            if of_app.is_some_and(|first| first.load(Ordering::Relaxed) < turn) {
                continue;
            }
            let result = one(resolved, job);
            if let (Err(_), Some(first)) = (&result, of_app) {
                first.fetch_min(turn, Ordering::Relaxed);
            }
            done.push((turn, job.item.app, result));
        }
    };
    let mut results: Vec<(usize, usize, Result<Rendered, Box<Refusal>>)> = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (0..threads).filter_map(spawn).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    results.sort_by_key(|(turn, ..)| *turn);
    let (mut rendered, mut refusals) = (Vec::new(), BTreeMap::new());
    for (_, app, result) in results {
        match result {
            Ok(done) => rendered.push(done),
            Err(refusal) => {
                refusals.entry(app).or_insert(refusal);
            }
        }
    }
    if let Some(refusal) = Refusal::all(refusals.into_values()) {
        return Err(refusal);
    }
    if rendered.len() < picks.len() {
        let text = "a rendering ended without a result: see the operator's log".to_owned();
        return Err(Refusal::new(RENDERED, Reason::TemplateError, text));
    }
    Ok(rendered)
}

/// Runs a rendering on a thread of its own: one that is made slow gives nothing back that others wait for.
fn apart<T: Send>(render: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, render).ok()?.join().ok()
    })
}

/// Renders one job.
fn one(resolved: &Resolved<'_>, job: &Job<'_>) -> Result<Rendered, Box<Refusal>> {
    let Job { item, is_install, revision, now, holdings: _, tentative } = job;
    if resolved.supervisor.stop().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(Refusal::new(RENDERED, Reason::PlanTooLong, "the plan was stopped"));
    }
    let Some(app) = resolved.apps.get(item.app) else {
        return Err(Refusal::new(RENDERED, Reason::TemplateError, "a rendering of no app"));
    };
    let snapshot = resolved.snapshot;
    let (name, cluster) = (app.app.name.as_str(), item.cluster);
    let dig = resolved.dig.metadata.name.as_deref().unwrap_or_default();
    let random_key = &snapshot.installation.random_key;
    let versions = cluster.apis.as_deref().map(ApiList::helm_api_versions).unwrap_or_default();
    let answers = job.answers();
    let request = RenderRequest {
        release: Release {
            name: resolved.dig.release().to_owned(),
            namespace: resolved.cloud.namespace.clone(),
            revision: *revision,
            is_install: *is_install,
        },
        values: Value::Object(item.class.values.clone()),
        capabilities: Capabilities {
            kube_version: cluster.kubernetes_version.clone().unwrap_or_default(),
            api_versions: versions.into_iter().collect(),
            ..Capabilities::default()
        },
        compat: Compat::Helm3_17,
        seed: Some(canonical::seed(random_key, &snapshot.project, dig, name, cluster.id.as_str())),
        now: Some(*now),
        lookup: Some(&answers),
        skip_schema: app.app.chart.skip_schema_validation == Some(true),
        reuse: true,
        limits: Limits {
            stop: resolved.supervisor.stop(),
            slow: resolved.supervisor.slow(),
            ..Limits::default()
        },
        ..RenderRequest::default()
    };
    let mut rendered = None;
    resolved.supervisor.rendering(&mut || rendered = apart(|| app.compiled.render(&request)));
    let Some(rendered) = rendered else {
        return Err(Refusal::new(RENDERED, Reason::TemplateError, "a rendering that was not run"));
    };
    let mut rendered = match rendered {
        Ok(rendered) => rendered,
        Err(error) if *tentative && error.limit().is_none() => return Ok(None),
        Err(error) => return Err(refused(resolved, job, &error, &answers)),
    };
    // A chart that names versions of Kubernetes was compared with this one.
    rendered.reads.kube_version |= !app.compiled.chart().metadata().kube_version.is_empty();
    let findings = findings::of(&app.layers, &rendered);
    let documents = rendered.manifests.into_iter().map(manifests::Document::from).collect();
    let mut draft = Draft::new(name, documents, rendered.warnings)?;
    draft.lookups.clone_from(&rendered.reads.lookups);
    draft.findings = findings.map(Arc::new);
    Ok(Some((Arc::new(draft), rendered.reads)))
}

/// Why a chart was not rendered: it fails, or it asks for what is stored and cannot be read. Without an answer it would draw
/// another password for a database that runs.
fn refused(
    resolved: &Resolved<'_>,
    job: &Job<'_>,
    error: &RenderError,
    answers: &Answers<'_>,
) -> Box<Refusal> {
    let cluster = &job.item.cluster.id;
    let Some(app) = resolved.apps.get(job.item.app) else {
        return Refusal::new(RENDERED, Reason::TemplateError, "a rendering of no app");
    };
    let name = app.app.name.as_str();
    if let Some(LookupRead { kind, name: object, .. }) = answers.unanswered() {
        let object = if object.is_empty() { "(all of them)".to_owned() } else { object };
        let text = format!(
            "app {name} on {cluster}: the chart looks up {kind} {object}, and what is stored of the app there cannot be read, so \
             that passwords could change: restore its packs from a backup, or take the app off the cluster and place it there again"
        );
        return Refusal::new(RENDERED, Reason::ContentLost, text);
    }
    let mut secrets = crate::values::secrets(&app.layers);
    if answers.quotes(&error.to_string()) {
        secrets.push("Secrets that the chart looked up");
    }
    manifests::failed(name, cluster, error, &secrets)
}

#[cfg(test)]
mod tests;
