//! Says where generated apps go: to every cluster where the deployment has any app, and something of the intent counts. What is drawn from
//! charts goes where these are, and where it has an effect.

use std::collections::{BTreeMap, BTreeSet};

use crate::act::{Generated, Objects};
use crate::explain::{Considered, Explained, Verdict};
use crate::identity::ClusterId;
use crate::placement::{AppPlacement, Rejected};
use crate::resolve::Resolved;
use crate::snapshot::ClusterFacts;
use crate::terms::Candidate;
use crate::text::listed;
use crate::traffic;

/// The reason of a cluster that an intent leaves out: the same word as where a rule of `spec.placement` names others.
const NOT_SELECTED: &str = "NotSelected";
/// The reason of a cluster where it would have no effect.
const BACKEND_MISSING: &str = "BackendMissing";

/// Adds the placement of generated apps to that of the others.
pub(super) fn place(resolved: &Resolved<'_>, placement: &mut Vec<(String, AppPlacement)>) {
    if resolved.generated.is_empty() {
        return;
    }
    let charts = Charts::of(resolved, placement);
    let mut all = Vec::with_capacity(resolved.generated.len());
    for generated in &resolved.generated {
        let mut chosen = Vec::new();
        let mut rejected: BTreeMap<&str, Rejected> = BTreeMap::new();
        for (id, cluster) in &charts.clusters {
            let Err((reason, needs)) = charts.verdict(generated, cluster) else {
                chosen.push((*id).clone());
                continue;
            };
            let fresh = || Rejected { reason: reason.to_owned(), clusters: 0, example: (*id).clone(), needs };
            rejected.entry(reason).or_insert_with(fresh).clusters += 1;
        }
        let rejected = rejected.into_values().collect();
        all.push((generated.app.clone(), AppPlacement { chosen, rejected }));
    }
    placement.extend(all);
}

/// Intents whose objects come to no cluster at all, in words: that is most often a mistake in `allow` or `deny`. And servers that no policy
/// fences, for where they are it would have no effect.
pub(super) fn warnings(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Vec<String> {
    let of = placement.iter().skip(resolved.apps.len());
    let charts = Charts::of(resolved, placement);
    let sentence = |(generated, (_, placed)): (&Generated<'_>, &(String, AppPlacement))| {
        let Objects::Drawn(apps) = &generated.objects else {
            return placed.chosen.is_empty().then(|| {
                format!(
                    "{} adds its own objects to no cluster of the deployment: allow and deny of its actions leave none",
                    generated.origin()
                )
            });
        };
        let open = |id: &&ClusterId| {
            apps.iter().any(|app| charts.has(app, id))
                && resolved.snapshot.clusters.get(*id).is_some_and(traffic::is_without)
        };
        let open: Vec<String> =
            charts.clusters.keys().copied().filter(open).map(ToString::to_string).collect();
        (!open.is_empty()).then(|| {
            format!(
                "{}: its servers are open to everybody on {}, where spec.network.networkPolicy of the Cluster is NotEnforced",
                generated.origin(),
                listed(&open)
            )
        })
    };
    resolved.generated.iter().zip(of).filter_map(sentence).collect()
}

/// What was decided for generated apps of every cluster that has an app of a chart, and why.
pub(super) fn explain(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Vec<Explained> {
    let charts = Charts::of(resolved, placement);
    let mut explained = Vec::with_capacity(resolved.generated.len());
    for generated in &resolved.generated {
        let considered = |cluster: &Candidate<'_>| {
            let (verdict, reason, needs) = match charts.verdict(generated, cluster) {
                Ok(()) => {
                    let why = format!("intent {}/{}", generated.short, generated.intent);
                    (Verdict::Chosen, why, String::new())
                }
                Err((reason, needs)) => (Verdict::Rejected, reason.to_owned(), needs),
            };
            Considered { cluster: cluster.facts.id.to_string(), verdict, reason, needs }
        };
        let clusters = charts.clusters.values().map(considered).collect();
        explained.push(Explained { app: generated.app.clone(), clusters });
    }
    explained
}

/// Clusters of the apps of charts.
struct Charts<'a> {
    resolved: &'a Resolved<'a>,
    /// Clusters that have one.
    clusters: BTreeMap<&'a ClusterId, Candidate<'a>>,
    /// By app.
    placed: BTreeMap<&'a str, BTreeSet<ClusterId>>,
}

impl<'a> Charts<'a> {
    fn of(resolved: &'a Resolved<'_>, placement: &[(String, AppPlacement)]) -> Self {
        let of_charts = || placement.iter().take(resolved.apps.len());
        let chosen: BTreeSet<&ClusterId> = of_charts().flat_map(|(_, placed)| &placed.chosen).collect();
        let facts = |id: &&ClusterId| -> Option<(&'a ClusterId, &'a ClusterFacts)> {
            resolved.snapshot.clusters.get_key_value(*id)
        };
        let clusters = chosen.iter().filter_map(facts).map(|(id, facts)| (id, Candidate::new(facts)));
        let names = resolved.apps.iter().map(|app| app.app.name.as_str());
        let placed =
            names.zip(of_charts()).map(|(app, (_, placed))| (app, placed.chosen.iter().cloned().collect()));
        Self { resolved, clusters: clusters.collect(), placed: placed.collect() }
    }

    fn has(&self, app: &str, cluster: &ClusterId) -> bool {
        self.placed.get(app).is_some_and(|placed| placed.contains(cluster))
    }

    /// Ok for a cluster that gets a generated app; else the reason, and what it needs.
    fn verdict(
        &self,
        generated: &Generated<'_>,
        cluster: &Candidate<'_>,
    ) -> Result<(), (&'static str, String)> {
        let Objects::Drawn(apps) = &generated.objects else {
            if generated.objects.are_on(cluster) {
                return Ok(());
            }
            let needs =
                format!("an action of {} that counts there: change its allow and deny", generated.origin());
            return Err((NOT_SELECTED, needs));
        };
        let id = &cluster.facts.id;
        if !apps.iter().any(|app| self.has(app, id)) {
            let apps = apps.iter().map(|app| (*app).to_owned()).collect::<Vec<_>>();
            return Err((NOT_SELECTED, format!("a server of {} ({})", generated.origin(), listed(&apps))));
        }
        // It runs, and stays.
        if traffic::is_without(cluster.facts) && !self.runs(&generated.app, id) {
            return Err((BACKEND_MISSING, traffic::NEEDS.to_owned()));
        }
        Ok(())
    }

    fn runs(&self, app: &str, cluster: &ClusterId) -> bool {
        let running = self.resolved.snapshot.running.as_ref();
        let there = running.and_then(|running| running.assignment.get(cluster));
        there.is_some_and(|apps| apps.contains_key(app))
    }
}
