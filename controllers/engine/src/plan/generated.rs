//! Says where generated apps go: to every cluster where the deployment has any app, and something of the intent counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::act::Generated;
use crate::explain::{Considered, Explained, Verdict};
use crate::identity::ClusterId;
use crate::placement::{AppPlacement, Rejected};
use crate::resolve::Resolved;
use crate::snapshot::ClusterFacts;
use crate::terms::Candidate;

/// The reason of a cluster that an intent leaves out: the same word as where a rule of `spec.placement` names others.
const NOT_SELECTED: &str = "NotSelected";

/// Adds the placement of generated apps to that of the others.
pub(super) fn place(resolved: &Resolved<'_>, placement: &mut Vec<(String, AppPlacement)>) {
    if resolved.generated.is_empty() {
        return;
    }
    let clusters = having(resolved, placement);
    for generated in &resolved.generated {
        let (chosen, left): (Vec<_>, Vec<_>) =
            clusters.values().partition(|cluster| generated.objects.are_on(cluster));
        let rejected = left.first().map(|first| Rejected {
            reason: NOT_SELECTED.to_owned(),
            clusters: left.len(),
            example: first.facts.id.clone(),
            needs: needs(generated),
        });
        let chosen = chosen.into_iter().map(|cluster| cluster.facts.id.clone()).collect();
        let rejected = rejected.into_iter().collect();
        placement.push((generated.app.clone(), AppPlacement { chosen, rejected }));
    }
}

/// Intents whose objects come to no cluster at all, in words: that is most often a mistake in `allow` or `deny`.
pub(super) fn warnings(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Vec<String> {
    let of = placement.iter().skip(resolved.apps.len());
    let none = resolved.generated.iter().zip(of).filter(|(_, (_, placed))| placed.chosen.is_empty());
    let sentence = |generated: &Generated<'_>| {
        format!(
            "{} adds its own objects to no cluster of the deployment: allow and deny of its actions leave none",
            generated.origin()
        )
    };
    none.map(|(generated, _)| sentence(generated)).collect()
}

/// What was decided for generated apps of every cluster that has an app of a chart, and why.
pub(super) fn explain(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Vec<Explained> {
    let clusters = having(resolved, placement);
    let mut explained = Vec::with_capacity(resolved.generated.len());
    for generated in &resolved.generated {
        let placed = placement.iter().find(|(app, _)| *app == generated.app).map(|(_, placed)| placed);
        let chosen: BTreeSet<&ClusterId> = placed.into_iter().flat_map(|placed| &placed.chosen).collect();
        let considered = |id: &&ClusterId| {
            let (verdict, reason, needs) = if chosen.contains(*id) {
                let why = format!("intent {}/{}", generated.short, generated.intent);
                (Verdict::Chosen, why, String::new())
            } else {
                (Verdict::Rejected, NOT_SELECTED.to_owned(), needs(generated))
            };
            Considered { cluster: id.to_string(), verdict, reason, needs }
        };
        let clusters = clusters.keys().map(considered).collect();
        explained.push(Explained { app: generated.app.clone(), clusters });
    }
    explained
}

fn needs(generated: &Generated<'_>) -> String {
    format!("an action of {} that counts there: change its allow and deny", generated.origin())
}

/// Clusters that have an app of a chart.
fn having<'a>(
    resolved: &'a Resolved<'_>,
    placement: &[(String, AppPlacement)],
) -> BTreeMap<&'a ClusterId, Candidate<'a>> {
    let of_charts = placement.iter().take(resolved.apps.len());
    let chosen: BTreeSet<&ClusterId> = of_charts.flat_map(|(_, placed)| &placed.chosen).collect();
    let facts = |id: &&ClusterId| -> Option<(&'a ClusterId, &'a ClusterFacts)> {
        resolved.snapshot.clusters.get_key_value(*id)
    };
    chosen.iter().filter_map(facts).map(|(id, facts)| (id, Candidate::new(facts))).collect()
}
