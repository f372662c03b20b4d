//! Works out what clusters get of a stored revision that is pinned: its content as it is, where it is still allowed.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::ClusterId;
use crate::set::Assignment;
use crate::snapshot::{ClusterFacts, Scheduling};

/// What clusters get of a pinned revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Who gets what.
    pub assignment: Assignment,
    /// Apps that the revision had somewhere and that would be nowhere, with one of their clusters.
    pub homeless: BTreeMap<String, ClusterId>,
}

/// The stored assignment on clusters that the deployment may use today. `candidates` are those of its logical cloud; a cordoned one
/// keeps what it is to `have`, and gets nothing else; a drained one is left, as by every placement.
pub fn pinned(
    stored: &Assignment,
    candidates: &BTreeSet<ClusterId>,
    clusters: &BTreeMap<ClusterId, ClusterFacts>,
    have: &BTreeSet<ClusterId>,
) -> Pinned {
    let allowed = |id: &ClusterId| {
        let takes = |facts: &ClusterFacts| match facts.scheduling {
            Scheduling::Enabled => true,
            Scheduling::Cordoned => have.contains(id),
            Scheduling::Drained => false,
        };
        candidates.contains(id) && clusters.get(id).is_some_and(takes)
    };
    let mut found = Pinned::default();
    for (cluster, apps) in stored {
        if allowed(cluster) {
            found.assignment.insert(cluster.clone(), apps.clone());
        } else {
            found.homeless.extend(apps.keys().map(|app| (app.clone(), cluster.clone())));
        }
    }
    let placed: BTreeSet<&String> = found.assignment.values().flat_map(BTreeMap::keys).collect();
    found.homeless.retain(|app, _| !placed.contains(app));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::SetDigest;
    use crate::set::Assigned;

    fn id(name: &str) -> ClusterId {
        ClusterId::new("acme", name)
    }

    fn facts(name: &str, scheduling: Scheduling) -> (ClusterId, ClusterFacts) {
        let facts = ClusterFacts {
            id: id(name),
            labels: BTreeMap::new(),
            properties: BTreeMap::new(),
            scheduling,
            reachable: true,
            by_git: false,
            uid: None,
            kubernetes_version: None,
            apis: None,
            nodes: None,
            network_policy: None,
        };
        (id(name), facts)
    }

    fn stored(apps: &[(&str, &[&str])]) -> Assignment {
        let assigned = Assigned {
            set: SetDigest("s".to_owned()),
            render_key: String::new(),
            now: 0,
            release_revision: 1,
            findings: None,
            provenance: None,
            rendered_revision: None,
            tests: None,
            edits: None,
        };
        let mut all = Assignment::new();
        for (app, clusters) in apps {
            for cluster in *clusters {
                all.entry(id(cluster)).or_default().insert((*app).to_owned(), assigned.clone());
            }
        }
        all
    }

    #[test]
    fn a_pin_gives_nothing_to_clusters_that_the_cloud_lost() {
        let clusters: BTreeMap<_, _> =
            [facts("a", Scheduling::Enabled), facts("b", Scheduling::Enabled)].into();
        let stored = stored(&[("web", &["a", "b", "gone"]), ("db", &["b"])]);
        let found = pinned(&stored, &[id("a"), id("gone")].into(), &clusters, &[id("b")].into());
        assert_eq!(found.assignment.keys().collect::<Vec<_>>(), [&id("a")]);
        assert_eq!(found.homeless, [("db".to_owned(), id("b"))].into(), "and web is still somewhere");
    }

    #[test]
    fn a_pin_brings_nothing_back_to_cordoned_clusters_and_leaves_drained_ones() {
        for (scheduling, stays) in [(Scheduling::Cordoned, true), (Scheduling::Drained, false)] {
            let clusters: BTreeMap<_, _> = [facts("a", scheduling)].into();
            let stored = stored(&[("web", &["a"])]);
            let candidates = [id("a")].into();
            let found = pinned(&stored, &candidates, &clusters, &BTreeSet::new());
            assert!(found.assignment.is_empty() && found.homeless.contains_key("web"));
            let found = pinned(&stored, &candidates, &clusters, &[id("a")].into());
            assert_eq!(found.assignment == stored, stays);
        }
    }
}
