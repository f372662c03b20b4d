//! Counts what a revision changed, from the manifests of it and of the one before.

use std::collections::BTreeMap;

use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::AppContext;
use emco_crds::app_context::RevisionChanges;
use emco_crds::deployment_intent_group::status::ChangeCounts;
use emco_crds::names::label;
use emco_engine::identity::{Identity, SetDigest};
use emco_engine::set::Assignment;
use kube::ResourceExt as _;
use serde::Serialize;

use crate::cli::stored;

/// Clusters and objects that differ between two revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub clusters: Counts,
    pub objects: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    added: usize,
    changed: usize,
    removed: usize,
}

impl From<ChangeCounts> for Counts {
    fn from(counts: ChangeCounts) -> Self {
        let [added, changed, removed] = [counts.added, counts.changed, counts.removed]
            .map(|count| usize::try_from(count).unwrap_or_default());
        Self { added, changed, removed }
    }
}

impl From<RevisionChanges> for Changes {
    fn from(RevisionChanges { clusters, objects }: RevisionChanges) -> Self {
        Self { clusters: clusters.into(), objects: objects.into() }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} ~{} -{}", self.added, self.changed, self.removed)
    }
}

/// Digest of each manifest of a set, by object.
type Digests = BTreeMap<Identity, String>;

/// Stored revisions, read as far as they are compared.
pub struct Revisions<'a> {
    content: &'a HubContent,
    sets: BTreeMap<SetDigest, Digests>,
    assignments: BTreeMap<i64, Assignment>,
}

impl<'a> Revisions<'a> {
    /// None is read yet.
    pub const fn new(content: &'a HubContent) -> Self {
        Self { content, sets: BTreeMap::new(), assignments: BTreeMap::new() }
    }

    /// Counts what a revision changed; nothing where the one before is not stored.
    pub async fn changes(
        &mut self,
        context: &AppContext,
        all: &[AppContext],
    ) -> anyhow::Result<Option<Changes>> {
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
    use super::*;

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
