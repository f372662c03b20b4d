//! Jobs in, drafts out: as few renderings as the charts allow, in parallel, with the same result in any order.
//!
//! One rendering serves every cluster on which the chart could not tell the difference: the same values and release, and
//! the same answers to whatever it asked about the cluster. Charts that draw random values are rendered for each cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_helm::{Capabilities, Compat, Reads, Release, RenderRequest};
use serde_json::Value;

use super::Refusal;
use super::work::Item;
use crate::apis::ApiList;
use crate::canonical;
use crate::manifests::{self, Draft};
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
}

/// What jobs must have in common to share a rendering at all.
type Key = (usize, String, bool, i64, i64);

impl Job<'_> {
    fn key(&self) -> Key {
        (self.item.app, self.item.class.render_key.clone(), self.is_install, self.revision, self.now)
    }
}

/// What one rendering gave, and what it had asked.
struct Outcome<'a> {
    draft: Arc<Draft>,
    reads: Reads,
    cluster: &'a ClusterFacts,
}

/// Renders all jobs; drafts are in the order of the jobs.
pub fn render(resolved: &Resolved<'_>, jobs: &[Job<'_>]) -> Result<Vec<Arc<Draft>>, Box<Refusal>> {
    let mut drafts: Vec<Option<Arc<Draft>>> = vec![None; jobs.len()];
    let mut groups: BTreeMap<Key, Group<'_>> = BTreeMap::new();
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
            let (draft, reads) = rendered;
            if let Some(slot) = drafts.get_mut(*position) {
                *slot = Some(Arc::clone(&draft));
            }
            if let Some(group) = groups.get_mut(&job.key()) {
                group.outcomes.push(Outcome { draft, reads, cluster: job.item.cluster });
            }
        }
        for group in groups.values_mut() {
            group.share(jobs, &mut drafts);
        }
    }
    Ok(drafts.into_iter().flatten().collect())
}

/// Jobs with the same key.
#[derive(Default)]
struct Group<'a> {
    pending: Vec<usize>,
    outcomes: Vec<Outcome<'a>>,
}

impl<'a> Group<'a> {
    /// What to render next: one job for each kind of cluster, or all once the chart is known to draw random values.
    fn picks(&self, jobs: &[Job<'_>]) -> Vec<usize> {
        if self.outcomes.iter().any(|outcome| outcome.reads.random) {
            return self.pending.clone();
        }
        // The first rendering tells what the chart asks, which most often spares the others.
        if self.outcomes.is_empty() {
            return self.pending.first().copied().into_iter().collect();
        }
        let mut picks: Vec<usize> = Vec::new();
        for &position in &self.pending {
            let cluster = |position: usize| jobs.get(position).map(|job| job.item.cluster);
            let alike = |other: &usize| match (cluster(*other), cluster(position)) {
                (Some(a), Some(b)) => same_cluster(a, b),
                _ => false,
            };
            if !picks.iter().any(alike) {
                picks.push(position);
            }
        }
        picks
    }

    /// Gives drafts to jobs that could not come out differently.
    fn share(&mut self, jobs: &[Job<'a>], drafts: &mut [Option<Arc<Draft>>]) {
        let outcomes = &self.outcomes;
        self.pending.retain(|&position| {
            if drafts.get(position).is_none_or(Option::is_some) {
                return false;
            }
            let Some(job) = jobs.get(position) else { return false };
            let Some(outcome) = outcomes.iter().find(|outcome| outcome.holds_for(job.item.cluster)) else {
                return true;
            };
            if let Some(slot) = drafts.get_mut(position) {
                *slot = Some(Arc::clone(&outcome.draft));
            }
            false
        });
    }
}

impl Outcome<'_> {
    /// Whether the chart would have got the same answers on that cluster.
    fn holds_for(&self, cluster: &ClusterFacts) -> bool {
        let Reads { random, kube_version, all_api_versions, api_versions, values: _, lookups: _ } =
            &self.reads;
        // Lookups find nothing anywhere: rendering reaches no cluster. Values are alike: they are part of the key.
        !random
            && (!kube_version || self.cluster.kubernetes_version == cluster.kubernetes_version)
            && (!all_api_versions || same_apis(self.cluster, cluster))
            && (api_versions.is_empty() || same_apis(self.cluster, cluster) || {
                let (one, other) = (serves(self.cluster), serves(cluster));
                api_versions.iter().all(|asked| one(asked) == other(asked))
            })
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

type Rendered = (Arc<Draft>, Reads);

/// Renders some jobs on all cores; the first failure by position wins, whichever thread met it.
fn in_parallel(
    resolved: &Resolved<'_>,
    jobs: &[Job<'_>],
    picks: &[usize],
) -> Result<Vec<Rendered>, Box<Refusal>> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(picks.len());
    let work = || {
        let mut done = Vec::new();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = picks.get(turn).and_then(|position| jobs.get(*position)) else { return done };
            done.push((turn, one(resolved, job)));
        }
    };
    let mut results: Vec<(usize, Result<Rendered, Box<Refusal>>)> = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (0..threads).filter_map(spawn).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    results.sort_by_key(|(turn, _)| *turn);
    if results.len() < picks.len() {
        let text = "a rendering ended without a result: see the operator's log".to_owned();
        return Err(Refusal::new(RENDERED, Reason::TemplateError, text));
    }
    results.into_iter().map(|(_, result)| result).collect()
}

/// Renders one job.
fn one(resolved: &Resolved<'_>, job: &Job<'_>) -> Result<Rendered, Box<Refusal>> {
    let Job { item, is_install, revision, now } = job;
    let Some(app) = resolved.apps.get(item.app) else {
        return Err(Refusal::new(RENDERED, Reason::TemplateError, "a rendering of no app"));
    };
    let snapshot = resolved.snapshot;
    let (name, cluster) = (app.app.name.as_str(), item.cluster);
    let dig = resolved.dig.metadata.name.as_deref().unwrap_or_default();
    let random_key = &snapshot.installation.random_key;
    let versions = cluster.apis.as_deref().map(ApiList::helm_api_versions).unwrap_or_default();
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
        reuse: true,
        ..RenderRequest::default()
    };
    let mut rendered = None;
    resolved.timing.rendering(&mut || rendered = Some(app.compiled.render(&request)));
    let Some(rendered) = rendered else {
        return Err(Refusal::new(RENDERED, Reason::TemplateError, "a rendering that was not run"));
    };
    let mut rendered = rendered.map_err(|error| manifests::failed(name, &cluster.id, &error))?;
    // A chart that names versions of Kubernetes was compared with this one.
    rendered.reads.kube_version |= !app.compiled.chart().metadata().kube_version.is_empty();
    let documents = rendered.manifests.into_iter().map(manifests::Document::from).collect();
    let draft = Draft::new(name, documents, rendered.warnings)?;
    Ok((Arc::new(draft), rendered.reads))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apis::ApiResource;
    use crate::identity::ClusterId;
    use crate::plan::work::Class;
    use crate::snapshot::Scheduling;

    fn cluster(name: &str, version: &str, kind: &str) -> ClusterFacts {
        let api = ApiResource {
            group: "x".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: String::new(),
            namespaced: true,
            listable: true,
        };
        ClusterFacts {
            id: ClusterId::new("acme", name),
            labels: BTreeMap::new(),
            properties: BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            uid: None,
            kubernetes_version: Some(version.to_owned()),
            apis: Some(Arc::new(ApiList { resources: vec![api] })),
        }
    }

    fn fleet() -> [ClusterFacts; 4] {
        [
            cluster("a", "v1.36.3", "One"),
            cluster("b", "v1.36.3", "One"),
            cluster("c", "v1.35.0", "One"),
            cluster("d", "v1.36.3", "Two"),
        ]
    }

    /// Which clusters are rendered, wave after wave, by a chart that asks what `reads` says.
    fn waves(reads: &Reads) -> Vec<Vec<usize>> {
        let fleet = fleet();
        let class = Arc::new(Class { values: serde_json::Map::new(), render_key: String::new() });
        let jobs: Vec<_> = fleet
            .iter()
            .map(|cluster| Job {
                item: Item { app: 0, cluster, class: Arc::clone(&class), previous: None },
                is_install: true,
                revision: 1,
                now: 0,
            })
            .collect();
        let mut drafts = vec![None; jobs.len()];
        let mut group = Group { pending: (0..jobs.len()).collect(), outcomes: Vec::new() };
        let mut waves = Vec::new();
        loop {
            let picks = group.picks(&jobs);
            if picks.is_empty() {
                return waves;
            }
            for &position in &picks {
                let draft = Arc::new(Draft::new("web", Vec::new(), Vec::new()).unwrap());
                drafts[position] = Some(Arc::clone(&draft));
                group.outcomes.push(Outcome {
                    draft,
                    reads: reads.clone(),
                    cluster: jobs[position].item.cluster,
                });
            }
            group.share(&jobs, &mut drafts);
            waves.push(picks);
        }
    }

    #[test]
    fn a_chart_that_asks_nothing_is_rendered_once_for_all_clusters() {
        assert_eq!(waves(&Reads::default()), [vec![0]]);
    }

    #[test]
    fn a_chart_that_asks_the_version_is_rendered_once_for_each_version() {
        assert_eq!(waves(&Reads { kube_version: true, ..Reads::default() }), [vec![0], vec![2]]);
    }

    #[test]
    fn a_chart_that_asks_for_an_api_is_rendered_once_for_each_answer() {
        let asks = |what: &str| Reads { api_versions: [what.to_owned()].into(), ..Reads::default() };
        assert_eq!(waves(&asks("x/v1/Two")), [vec![0], vec![3]]);
        assert_eq!(waves(&asks("x/v1")), [vec![0]]);
    }

    #[test]
    fn a_chart_that_draws_random_values_is_rendered_for_each_cluster() {
        assert_eq!(waves(&Reads { random: true, ..Reads::default() }), [vec![0], vec![1, 2, 3]]);
    }
}
