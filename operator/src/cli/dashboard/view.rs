//! Holds what the pages show of the hub: deployments with their trees, clusters, and why any of it may be doubted.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::{DeploymentIntentGroup, OwnerKind, SyncShard};
use kube::ResourceExt as _;

use crate::cli::args::status::Verdict;
use crate::cli::clusters::Shown;
use crate::cli::decide::decidable;
use crate::cli::pulse::Pulse;
use crate::cli::status::filter::Filter;
use crate::cli::status::tree::{Group, Thing, Tree};

/// Everything that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The namespace that is shown; all if absent.
    pub namespace: Option<String>,
    /// Address of the hub.
    pub hub: String,
    /// Reason why less is shown than was asked for.
    pub note: Option<String>,
    pub pulse: Pulse,
    /// Reason why the hub is not heard; it last said what is shown.
    pub trouble: Option<String>,
    /// Reason why nothing may be shown any more.
    pub refused: Option<String>,
    /// By namespace and name.
    pub deployments: Vec<Arc<Deployment>>,
    pub clusters: Arc<Clusters>,
}

/// One deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Versions of all that it was made of: two of the same are the same.
    versions: Vec<String>,
    pub group: Group,
    pub object: DeploymentIntentGroup,
}

/// Clusters, by provider and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clusters {
    pub rows: Vec<Shown>,
    /// Reason why there are none.
    pub none: Option<String>,
}

/// The first app on a cluster that is not as wanted.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    pub app: &'a str,
    pub cluster: &'a str,
    pub verdict: Verdict,
    pub thing: Option<&'a Thing>,
}

impl PartialEq for Deployment {
    fn eq(&self, other: &Self) -> bool {
        self.versions == other.versions
    }
}

impl Deployment {
    /// True where a plan of it waits for a person.
    pub fn waits(&self) -> bool {
        self.group.pending.is_some()
    }

    /// The digest that a person may decide on: that of the plan that waits, else that of the rollout, whose waves may wait.
    pub fn digest(&self) -> Option<&str> {
        let pending = decidable(&self.object).map(|pending| pending.digest.as_str());
        let rollout = self.object.status.as_ref().and_then(|status| status.rollout.as_ref());
        pending.or_else(|| rollout.map(|rollout| rollout.inputs_digest.as_str()))
    }

    /// The worst failure; failed apps go before those that are only not there yet.
    pub fn failure(&self) -> Option<Failure<'_>> {
        let apps = self.group.apps.iter();
        let all = apps.flat_map(|app| app.clusters.iter().map(move |there| (app.name.as_str(), there)));
        let wrong = all.filter(|(_, there)| there.verdict != Verdict::Ready);
        let first = wrong.min_by_key(|(_, there)| badness(there.verdict))?;
        let (app, there) = first;
        Some(Failure { app, cluster: &there.cluster, verdict: there.verdict, thing: there.objects.first() })
    }

    /// Text that tells two states of it apart.
    pub fn version(&self) -> String {
        self.versions.join(" ")
    }
}

/// The worst first.
pub const fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Failed => 0,
        Verdict::Unreachable => 1,
        Verdict::Unknown => 2,
        Verdict::Removing => 3,
        Verdict::Progressing => 4,
        Verdict::Ready => 5,
    }
}

impl View {
    /// One deployment by namespace and name.
    pub fn deployment(&self, namespace: &str, name: &str) -> Option<&Arc<Deployment>> {
        let key = |one: &Arc<Deployment>| (one.group.namespace.clone(), one.group.name.clone());
        let wanted = (namespace.to_owned(), name.to_owned());
        self.deployments
            .binary_search_by(|one| key(one).cmp(&wanted))
            .ok()
            .and_then(|at| self.deployments.get(at))
    }
}

/// Builds the deployments; what did not change since is taken over.
pub fn deployments<'a>(
    groups: impl Iterator<Item = &'a DeploymentIntentGroup>,
    shards: impl Iterator<Item = &'a SyncShard>,
    pulse: &Pulse,
    before: &[Arc<Deployment>],
) -> Vec<Arc<Deployment>> {
    let mut of: BTreeMap<(&str, &str), Vec<&SyncShard>> = BTreeMap::new();
    for shard in shards.filter(|shard| shard.spec.owner.kind == OwnerKind::DeploymentIntentGroup) {
        let namespace = shard.metadata.namespace.as_deref().unwrap_or_default();
        of.entry((namespace, shard.spec.owner.name.as_str())).or_default().push(shard);
    }
    let known: BTreeMap<(&str, &str), &Arc<Deployment>> =
        before.iter().map(|one| ((one.group.namespace.as_str(), one.group.name.as_str()), one)).collect();
    let mut all: Vec<Arc<Deployment>> = groups
        .map(|group| {
            let meta = &group.metadata;
            let key =
                (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
            let own = of.get(&key).map(Vec::as_slice).unwrap_or_default();
            let versions = versions(group, own, pulse.is_trusted());
            match known.get(&key) {
                Some(before) if before.versions == versions => Arc::clone(before),
                _ => Arc::new(deployment(group, own, pulse, versions)),
            }
        })
        .collect();
    let key = |one: &Arc<Deployment>| (one.group.namespace.clone(), one.group.name.clone());
    all.sort_by_cached_key(key);
    all
}

fn versions(group: &DeploymentIntentGroup, shards: &[&SyncShard], trusted: bool) -> Vec<String> {
    let of = |uid: Option<String>, version: Option<String>| {
        format!("{}@{}", uid.unwrap_or_default(), version.unwrap_or_default())
    };
    let mut versions = vec![trusted.to_string(), of(group.uid(), group.resource_version())];
    versions.extend(shards.iter().map(|shard| of(shard.uid(), shard.resource_version())));
    versions
}

fn deployment(
    group: &DeploymentIntentGroup,
    shards: &[&SyncShard],
    pulse: &Pulse,
    versions: Vec<String>,
) -> Deployment {
    let own: Vec<SyncShard> = shards.iter().map(|&shard| shard.clone()).collect();
    let tree = Tree::of(std::slice::from_ref(group), &own, pulse.clone(), &Filter::default());
    let mut group_tree = tree.groups.into_iter();
    // A filter that takes everything leaves none out.
    let shown = group_tree.next().unwrap_or_else(|| Group::nothing(group));
    Deployment { versions, group: shown, object: group.clone() }
}

/// Clusters with their states made Unknown where the operator is silent.
pub fn doubted(mut rows: Vec<Shown>, pulse: &Pulse) -> Vec<Shown> {
    if !pulse.is_trusted() {
        for row in &mut rows {
            let was = std::mem::replace(&mut row.reason, "OperatorSilent".to_owned());
            row.said = format!("last reported {} {was}", row.ready);
            "Unknown".clone_into(&mut row.ready);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::status::tree::tests::{alive, group, shard};

    #[test]
    fn what_did_not_change_is_not_worked_out_again() {
        let (mut group, mut shard) = (group(), shard());
        group.metadata.resource_version = Some("1".to_owned());
        shard.metadata.resource_version = Some("1".to_owned());
        let build = |group: &_, shard: &_, before: &[_]| {
            deployments(std::iter::once(group), std::iter::once(shard), &alive(), before)
        };
        let first = build(&group, &shard, &[]);
        let again = build(&group, &shard, &first);
        assert!(Arc::ptr_eq(&first[0], &again[0]));
        shard.metadata.resource_version = Some("2".to_owned());
        let changed = build(&group, &shard, &first);
        assert!(!Arc::ptr_eq(&first[0], &changed[0]));
        assert_eq!(first[0].group, changed[0].group);
    }

    #[test]
    fn what_fails_is_named_before_what_cannot_be_reached() {
        let all = deployments(std::iter::once(&group()), std::iter::once(&shard()), &alive(), &[]);
        let failure = all[0].failure().unwrap();
        assert_eq!((failure.app, failure.cluster, failure.verdict), ("db", "acme/b", Verdict::Failed));
        assert_eq!(failure.thing.map(|thing| thing.reason.as_str()), Some("ImmutableField"));
    }
}
