//! Pairs apps that are drawn from what charts make with their clusters: policies of servers and their clients.
//!
//! They come last. Clusters with equal sets, on which the same clients count, are looked at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Map;

use super::generated::Classes;
use super::{Class, Item};
use crate::act::{self, Edits, Objects};
use crate::identity::{ClusterId, SetDigest};
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::resolve::Resolved;
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::ClusterFacts;
use crate::terms::{self, Candidate};
use crate::traffic::{self, Group, Made, Place, Server};

/// All that is drawn.
#[derive(Debug, Default)]
pub struct Drawn<'a> {
    /// In the order of clusters, then of intents.
    pub items: Vec<Item<'a>>,
    /// On clusters where what charts make is not known yet.
    pub unread: Vec<Item<'a>>,
}

/// Draws the apps of all intents of traffic. `assignment` and `sets` are what all others are.
pub fn drawn<'a>(
    resolved: &'a Resolved<'a>,
    placement: &[(String, AppPlacement)],
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Result<Drawn<'a>, Box<Refusal>> {
    let mut drawn = Drawn::default();
    if resolved.traffic.is_empty() {
        return Ok(drawn);
    }
    check_clients(resolved, placement)?;
    let made = made(assignment, sets);
    let mut apps = Apps::of(resolved, placement);
    let nothing = BTreeMap::new();
    let mut known: BTreeMap<Key<'_>, Vec<Option<Arc<Class>>>> = BTreeMap::new();
    for (id, cluster) in clusters(resolved, placement) {
        let there = assignment.get(id).unwrap_or(&nothing);
        let placed = placement.iter().take(resolved.apps.len());
        let of_charts = placed.filter(|(_, placed)| placed.chosen.binary_search(id).is_ok());
        if !of_charts
            .map(|(app, _)| there.get(app))
            .all(|has| has.is_some_and(|has| made.contains_key(&has.set)))
        {
            drawn.unread.extend(apps.unread(resolved, cluster));
            continue;
        }
        let candidate = Candidate::new(cluster);
        let key = Key::of(resolved, there, &candidate);
        let classes = if let Some(classes) = known.get(&key) {
            classes.clone()
        } else {
            let classes = apps.classes(resolved, &candidate, (there, &made))?;
            known.insert(key, classes.clone());
            classes
        };
        drawn.items.extend(apps.items(resolved, cluster, classes));
    }
    Ok(drawn)
}

/// Clusters that have a server. Also those that get no policy: what is wrong there is refused there as well.
fn clusters<'a>(
    resolved: &'a Resolved<'_>,
    placement: &[(String, AppPlacement)],
) -> Vec<(&'a ClusterId, &'a ClusterFacts)> {
    let servers = resolved.traffic.iter().flat_map(|group| &group.spec.servers);
    let servers: BTreeSet<&str> = servers.map(|server| server.app.as_str()).collect();
    let placed = placement.iter().filter(|(app, _)| servers.contains(app.as_str()));
    let having: BTreeSet<&ClusterId> = placed.flat_map(|(_, placed)| &placed.chosen).collect();
    let all = &resolved.snapshot.clusters;
    having.into_iter().filter_map(|id| all.get_key_value(id)).collect()
}

/// Refuses clients that no server meets.
fn check_clients(resolved: &Resolved<'_>, placement: &[(String, AppPlacement)]) -> Result<(), Box<Refusal>> {
    let facts = |id: &ClusterId| resolved.snapshot.clusters.get(id);
    let clusters = |app: &str| -> Vec<&ClusterFacts> {
        let placed = placement.iter().find(|(name, _)| name == app);
        placed.into_iter().flat_map(|(_, placed)| &placed.chosen).filter_map(facts).collect()
    };
    resolved.traffic.iter().try_for_each(|group| traffic::unreached(group, clusters))
}

/// Contents of each set, read once.
fn made<'s>(
    assignment: &Assignment,
    sets: &'s BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> BTreeMap<&'s SetDigest, Made<'s>> {
    let named = assignment.values().flat_map(BTreeMap::values).map(|assigned| &assigned.set);
    let distinct: BTreeSet<&SetDigest> = named.collect();
    let found = distinct.into_iter().filter_map(|digest| sets.get_key_value(digest));
    found.map(|(digest, set)| (digest, Made::of(set))).collect()
}

/// All that decides what is drawn on a cluster: the sets of its apps, and which clients count.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'k> {
    sets: Vec<(&'k str, &'k SetDigest)>,
    counting: Vec<bool>,
}

impl<'k> Key<'k> {
    fn of(resolved: &Resolved<'_>, there: &'k BTreeMap<String, Assigned>, cluster: &Candidate<'_>) -> Self {
        let servers = resolved.traffic.iter().flat_map(|group| &group.spec.servers);
        let clients = servers.flat_map(|server| &server.clients);
        let terms = clients.filter_map(|client| client.clusters.as_ref());
        Self {
            sets: there.iter().map(|(app, assigned)| (app.as_str(), &assigned.set)).collect(),
            counting: terms.map(|terms| terms::any_matches(terms, cluster)).collect(),
        }
    }
}

/// The apps that are drawn.
struct Apps<'a> {
    /// Of each intent its position among all apps, and its classes, where it makes policies.
    all: Vec<Option<(usize, Classes<'a>)>>,
    /// Clusters that each is placed on, by position.
    placed: BTreeMap<usize, BTreeSet<ClusterId>>,
}

impl<'a> Apps<'a> {
    fn of(resolved: &'a Resolved<'a>, placement: &[(String, AppPlacement)]) -> Self {
        let first = resolved.apps.len();
        let drawn =
            |(_, generated): &(usize, &'a act::Generated<'a>)| matches!(generated.objects, Objects::Drawn(_));
        let apps: Vec<_> = resolved.generated.iter().enumerate().filter(drawn).collect();
        let of = |group: &Group<'a>| {
            let (at, generated) = apps.iter().find(|(_, generated)| generated.intent == group.name)?;
            Some((first + at, Classes::new(resolved, generated)))
        };
        let all: Vec<_> = resolved.traffic.iter().map(of).collect();
        let positions = all.iter().flatten().map(|(position, _)| *position);
        let placed = positions.filter_map(|position| {
            let (_, placed) = placement.get(position)?;
            Some((position, placed.chosen.iter().cloned().collect()))
        });
        Self { placed: placed.collect(), all }
    }

    fn classes(
        &mut self,
        resolved: &'a Resolved<'a>,
        cluster: &Candidate<'_>,
        (there, made): (&BTreeMap<String, Assigned>, &BTreeMap<&SetDigest, Made<'_>>),
    ) -> Result<Vec<Option<Arc<Class>>>, Box<Refusal>> {
        let release = resolved.dig.release();
        let apps = there.iter().filter_map(|(app, assigned)| Some((app.as_str(), made.get(&assigned.set)?)));
        let place = Place { cluster, apps: apps.collect(), namespace: &resolved.cloud.namespace, release };
        let groups = &resolved.traffic;
        let servers =
            groups.iter().map(|group| traffic::draw(group, &place)).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<(Group<'_>, &[Server])> =
            groups.iter().copied().zip(servers.iter().map(Vec::as_slice)).collect();
        if let Some(refusal) = traffic::contradiction(&all) {
            return Err(refusal);
        }
        let key = &resolved.snapshot.installation.digest_key;
        let mut found = Vec::with_capacity(all.len());
        for (app, (group, servers)) in self.all.iter_mut().zip(all) {
            let class = app.as_mut().and_then(|(_, classes)| {
                let edits = Edits::made(act::traffic::policies(&group, servers, release), key)?;
                Some(classes.class(edits, key))
            });
            found.push(class);
        }
        Ok(found)
    }

    fn items(
        &self,
        resolved: &'a Resolved<'a>,
        cluster: &'a ClusterFacts,
        classes: Vec<Option<Arc<Class>>>,
    ) -> Vec<Item<'a>> {
        let item = |(app, class): (&Option<(usize, Classes<'a>)>, Option<Arc<Class>>)| {
            let position = self.position(app.as_ref()?, cluster)?;
            Some(Item::new(resolved, position, cluster, class?))
        };
        self.all.iter().zip(classes).filter_map(item).collect()
    }

    /// Nothing can be drawn: what is there stays.
    fn unread(&self, resolved: &'a Resolved<'a>, cluster: &'a ClusterFacts) -> Vec<Item<'a>> {
        let nothing = Arc::new(Class {
            values: Map::new(),
            chart_key: String::new(),
            edits: None,
            render_key: String::new(),
        });
        let apps = self.all.iter().flatten().filter_map(|app| self.position(app, cluster));
        apps.map(|position| Item::new(resolved, position, cluster, Arc::clone(&nothing))).collect()
    }

    /// The position of an app, where the cluster gets it.
    fn position(&self, (position, _): &(usize, Classes<'a>), cluster: &ClusterFacts) -> Option<usize> {
        self.placed.get(position)?.contains(&cluster.id).then_some(*position)
    }
}
