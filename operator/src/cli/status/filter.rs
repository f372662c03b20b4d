//! Selects what of a tree is shown, counts it, and says which app or cluster no deployment has.

use std::collections::BTreeSet;

use emco_crds::{DeploymentIntentGroup, SyncShard};
use emco_engine::shard::rows;
use emco_engine::text::counted;
use kube::ResourceExt as _;
use serde::Serialize;

use super::tree::{There, on_cluster};
use crate::cli::args::objects::ObjectArgs;
use crate::cli::args::status::Verdict;
use crate::cli::orphans::some;

/// Names that a sentence lists.
pub const LISTED: usize = 20;

/// What is shown of it all; empty lists select everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `provider/cluster`
    pub clusters: Vec<String>,
    /// Names of apps.
    pub apps: Vec<String>,
    /// State of a deployment, or of an app of it on a cluster.
    pub states: Vec<Verdict>,
    /// Objects that are not as wanted, and whether an app on a cluster is ready.
    pub objects: ObjectArgs,
}

/// How many are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// These.
    pub shown: usize,
    /// All.
    pub of: usize,
}

/// What is shown of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Deployments.
    pub deployments: Share,
    /// Apps on clusters.
    pub apps_on_clusters: Share,
    /// Objects that are not as wanted, as far as reports name them.
    pub objects: Share,
    /// Apps on clusters that are not ready, and left out only because their reports name no object that is asked for. They may have one:
    /// a report names the first few.
    pub undecided: usize,
}

impl Filter {
    /// Whether everything is shown.
    pub const fn is_all(&self) -> bool {
        self.clusters.is_empty() && self.apps.is_empty() && self.states.is_empty() && self.objects.is_all()
    }

    /// True where only some apps, clusters or objects are asked about.
    const fn is_of_parts(&self) -> bool {
        !self.clusters.is_empty() || !self.apps.is_empty() || self.objects.names_objects()
    }

    /// True where what is so is asked about.
    pub fn takes_state(&self, verdict: Verdict) -> bool {
        self.states.is_empty() || self.states.contains(&verdict)
    }

    /// True where a deployment is shown for how all of it is, whatever is shown of its apps.
    pub fn takes_group(&self, verdict: Verdict) -> bool {
        !self.is_of_parts()
            && self.takes_state(verdict)
            && self.objects.takes_readiness(verdict == Verdict::Ready)
    }

    /// Whether an app on a cluster is shown; its objects become those that are asked for.
    pub(super) fn admits(&self, app: &str, there: &mut There, counts: &mut Counts) -> bool {
        let named = |there: &There| there.objects.iter().filter(|thing| !thing.object.is_empty()).count();
        counts.apps_on_clusters.of += 1;
        counts.objects.of += named(there);
        if !self.takes(app, there) {
            return false;
        }
        if self.objects.names_objects() {
            there.objects.retain(|thing| self.objects.takes_reported(&thing.object));
            if there.objects.is_empty() {
                counts.undecided += usize::from(there.verdict != Verdict::Ready);
                return false;
            }
        }
        counts.apps_on_clusters.shown += 1;
        counts.objects.shown += named(there);
        true
    }

    fn takes(&self, app: &str, there: &There) -> bool {
        (self.clusters.is_empty() || self.clusters.contains(&there.cluster))
            && (self.apps.is_empty() || self.apps.iter().any(|wanted| wanted == app))
            && self.takes_state(there.verdict)
            && self.objects.takes_readiness(there.verdict == Verdict::Ready)
    }
}

impl Share {
    const fn is_all(self) -> bool {
        self.shown == self.of
    }
}

impl Counts {
    /// In a line; `None` where everything is shown.
    pub fn text(&self) -> Option<String> {
        let Self { deployments, apps_on_clusters, objects, undecided } = *self;
        if deployments.is_all() && apps_on_clusters.is_all() && objects.is_all() {
            return None;
        }
        let part = |share: Share, what: &str| format!("{} of {what}", share.shown);
        let mut parts = Vec::new();
        if deployments.of > 1 {
            parts.push(part(deployments, &counted(deployments.of, "deployment")));
        }
        let places = |number: usize| match number {
            1 => "1 app on a cluster".to_owned(),
            number => format!("{number} apps on clusters"),
        };
        parts.push(part(apps_on_clusters, &places(apps_on_clusters.of)));
        if objects.of > 0 {
            let what = counted(objects.of, "object");
            let are = if objects.of == 1 { "is" } else { "are" };
            parts.push(part(objects, &format!("{what} that {are} reported not to be as wanted")));
        }
        let mut text = format!("shown: {}", parts.join(", "));
        if undecided > 0 {
            text.push_str(&format!(
                "; left out are {} that may have such an object, not ready and not named: the command get looks at every object",
                places(undecided)
            ));
        }
        Some(text)
    }
}

/// The first app or cluster that is asked for and that no deployment has, in a sentence with those that there are. `None` also where
/// nothing is anywhere yet, so that nothing is known.
pub fn absent(groups: &[DeploymentIntentGroup], shards: &[SyncShard], filter: &Filter) -> Option<String> {
    if filter.apps.is_empty() && filter.clusters.is_empty() {
        return None;
    }
    let own = |shard: &&SyncShard| {
        groups.iter().any(|group| {
            shard.namespace() == group.namespace() && crate::cli::hub::is_of(shard, &group.name_any())
        })
    };
    let (mut apps, mut clusters) = (BTreeSet::new(), BTreeSet::new());
    for shard in shards.iter().filter(own) {
        for row in rows(&shard.spec, shard.status.as_ref()) {
            let found = on_cluster(&row, None);
            if !found.is_empty() {
                clusters.insert(row.cluster.to_string());
                apps.extend(found.into_keys());
            }
        }
    }
    // Which apps leave is not known of every row.
    let all_named = !apps.remove("");
    let list = |names: &BTreeSet<String>| some(&names.iter().cloned().collect::<Vec<_>>(), LISTED);
    let (nowhere, no_app) = match groups {
        [one] => {
            let one = format!("{}/{}", one.namespace().unwrap_or_default(), one.name_any());
            (format!("{one} has nothing on cluster"), format!("{one} has no app"))
        }
        all => {
            let all = counted(all.len(), "deployment");
            (format!("none of {all} is on cluster"), format!("none of {all} has an app"))
        }
    };
    if clusters.is_empty() {
        return None;
    }
    if let Some(cluster) = filter.clusters.iter().find(|one| !clusters.contains(one.as_str())) {
        return Some(format!("{nowhere} {cluster}: there are {}", list(&clusters)));
    }
    let app = filter.apps.iter().find(|one| !apps.contains(one.as_str())).filter(|_| all_named)?;
    Some(format!("{no_app} {app}: there are {}", list(&apps)))
}

#[cfg(test)]
mod tests;
