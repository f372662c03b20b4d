//! Proves from manifests who reaches the servers of a deployment: on each cluster all policies of all apps together, and that of the logical
//! cloud, compared with the graph. Clusters with equal sets, on which the same clients count, are judged once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::cluster::PolicySupport;
use emco_crds::deployment_intent_group::reachability::{
    Difference, Reachability, ReachabilityVerdict, ReachabilityViolation,
};
use emco_crds::logical_cloud::Isolation;

use super::made::Made;
use super::{Group, KIND, Place, Server, contradiction, draw, enforcement, is_without};
use crate::cloud;
use crate::identity::{ClusterId, SetDigest};
use crate::refusal::Refusal;
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::ClusterFacts;
use crate::terms::{self, Candidate};
use crate::text::{counted, listed};

mod cells;
pub mod connection;
mod ends;
mod judge;
mod pods;
mod policies;
mod rules;
mod target;

pub use cells::Cell;

use judge::{Found, Judged};

/// Violations and assumptions that a status names.
const MOST: usize = 5;
/// Longest text of a status, in bytes.
const LONGEST: usize = 256;
/// Longest port of a status, in bytes.
const LONGEST_PORT: usize = 64;

/// A deployment that is to be proved.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// Intents of traffic, in their order.
    pub groups: &'q [Group<'q>],
    /// All clusters.
    pub clusters: &'q BTreeMap<ClusterId, ClusterFacts>,
    /// Sets of each cluster.
    pub assignment: &'q Assignment,
    /// Clusters that wait for their first contact, and have not yet all that they are to have.
    pub waiting: &'q BTreeMap<ClusterId, Vec<String>>,
    /// All of it.
    pub sets: &'q BTreeMap<SetDigest, Arc<ManifestSet>>,
    /// Namespace of the logical cloud.
    pub namespace: &'q str,
    /// The isolation of that.
    pub isolation: Isolation,
    /// Release name.
    pub release: &'q str,
}

/// The outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Pairs of an end and a port that were judged, on all clusters.
    pub pairs: usize,
    /// Things that have to be true besides.
    pub assumptions: Vec<String>,
    /// Differences from the graph, those that refuse a plan first.
    pub violations: Vec<Violation>,
}

/// One difference from the graph, on all clusters that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The difference.
    pub found: Found,
    /// Its clusters.
    pub clusters: Vec<ClusterId>,
}

impl<'q> Question<'q> {
    /// Judges every cluster that has a server.
    pub fn proof(&self) -> Result<Proof, Box<Refusal>> {
        let made = self.made(self.assignment.values());
        let mut known: BTreeMap<Key<'_>, Arc<Judged>> = BTreeMap::new();
        let mut proof = Gathered::default();
        for (id, there) in self.assignment {
            let Some(cluster) = self.clusters.get(id).filter(|_| self.has_server(there)) else { continue };
            match enforcement(cluster) {
                Some(PolicySupport::NotEnforced) => {
                    proof.open.push(id.to_string());
                    continue;
                }
                None => proof.unknown.push(id.to_string()),
                Some(PolicySupport::Enforced) => {}
            }
            if self.waiting.contains_key(id) {
                proof.waiting.push(id.to_string());
                continue;
            }
            let candidate = Candidate::new(cluster);
            let Some(place) = self.place(&candidate, there, &made) else {
                proof.unread.push(id.to_string());
                continue;
            };
            let key = self.key(there, &candidate);
            let judged = if let Some(judged) = known.get(&key) {
                Arc::clone(judged)
            } else {
                let judged = Arc::new(self.judge(&place)?);
                known.insert(key, Arc::clone(&judged));
                judged
            };
            proof.take(id, &judged);
        }
        Ok(proof.done())
    }

    /// Contents of each set of some clusters, read once.
    fn made(
        &self,
        there: impl Iterator<Item = &'q BTreeMap<String, Assigned>>,
    ) -> BTreeMap<&'q SetDigest, Made<'q>> {
        let named = there.flat_map(BTreeMap::values).map(|assigned| &assigned.set);
        let distinct: BTreeSet<&SetDigest> = named.collect();
        let found = distinct.into_iter().filter_map(|digest| self.sets.get_key_value(digest));
        found.map(|(digest, set)| (digest, Made::of(set))).collect()
    }

    fn has_server(&self, there: &BTreeMap<String, Assigned>) -> bool {
        let mut servers = self.groups.iter().flat_map(|group| &group.spec.servers);
        servers.any(|server| there.contains_key(&server.app))
    }

    /// All that decides the verdict on a cluster.
    fn key<'k>(&self, there: &'k BTreeMap<String, Assigned>, cluster: &Candidate<'_>) -> Key<'k> {
        let clients =
            self.groups.iter().flat_map(|group| &group.spec.servers).flat_map(|server| &server.clients);
        let terms = clients.filter_map(|client| client.clusters.as_ref());
        let sets = there.iter().map(|(app, assigned)| (app.as_str(), &assigned.set)).collect();
        (sets, terms.map(|terms| terms::any_matches(terms, cluster)).collect())
    }

    /// A cluster, unless what it has cannot be read.
    fn place<'p>(
        &'p self,
        cluster: &'p Candidate<'p>,
        there: &'p BTreeMap<String, Assigned>,
        made: &'p BTreeMap<&SetDigest, Made<'_>>,
    ) -> Option<Place<'p>> {
        let apps = there.iter().map(|(app, assigned)| Some((app.as_str(), made.get(&assigned.set)?)));
        let apps = apps.collect::<Option<BTreeMap<&str, &Made<'_>>>>()?;
        Some(Place { cluster, apps, namespace: self.namespace, release: self.release })
    }

    fn drawn(&self, place: &Place<'_>) -> Result<Vec<Vec<Server>>, Box<Refusal>> {
        self.groups.iter().map(|group| draw(group, place)).collect()
    }

    fn judge(&self, place: &Place<'_>) -> Result<Judged, Box<Refusal>> {
        let servers = self.drawn(place)?;
        let all = self.pairs(&servers);
        if let Some(refusal) = contradiction(&all) {
            return Err(refusal);
        }
        Ok(judge::judge(place, &all, &self.policies(place)))
    }

    fn pairs<'s>(&'s self, servers: &'s [Vec<Server>]) -> Vec<(Group<'s>, &'s [Server])> {
        self.groups.iter().copied().zip(servers.iter().map(Vec::as_slice)).collect()
    }

    fn policies(&self, place: &Place<'_>) -> Vec<rules::Policy> {
        let isolation = cloud::isolation(self.namespace, self.isolation);
        policies::policies(place.apps.iter().map(|(app, made)| (*app, *made)), isolation.as_ref())
    }

    /// Every pair of an end and a server's port on a cluster, with the rule that decides it. Nothing where the cluster has no server, or
    /// what it has cannot be read.
    pub fn cells(&self, id: &ClusterId) -> Result<Vec<Cell>, Box<Refusal>> {
        let Some((cluster, there)) = self.clusters.get(id).zip(self.assignment.get(id)) else {
            return Ok(Vec::new());
        };
        let made = self.made(std::iter::once(there));
        let candidate = Candidate::new(cluster);
        let Some(place) = self.place(&candidate, there, &made) else { return Ok(Vec::new()) };
        let servers = self.drawn(&place)?;
        let mut cells = cells::cells(&place, &self.pairs(&servers), &self.policies(&place));
        if is_without(cluster) {
            for cell in &mut cells {
                (cell.open, cell.by) = (true, "the cluster enforces no NetworkPolicy".to_owned());
            }
        }
        Ok(cells)
    }
}

/// Sets by app, and which of the clients that name clusters count.
type Key<'k> = (Vec<(&'k str, &'k SetDigest)>, Vec<bool>);

/// Findings of the clusters so far.
#[derive(Default)]
struct Gathered {
    pairs: usize,
    found: BTreeMap<Found, Vec<ClusterId>>,
    assumptions: BTreeSet<String>,
    /// Clusters that state to enforce nothing.
    open: Vec<String>,
    /// Clusters of which that is not known.
    unknown: Vec<String>,
    /// Clusters that wait for their first contact.
    waiting: Vec<String>,
    /// Clusters of which what they have is not known.
    unread: Vec<String>,
}

impl Gathered {
    fn take(&mut self, id: &ClusterId, judged: &Judged) {
        self.pairs += judged.pairs;
        self.assumptions.extend(judged.assumptions.iter().cloned());
        for found in &judged.found {
            self.found.entry(found.clone()).or_default().push(id.clone());
        }
    }

    fn done(self) -> Proof {
        let Self { pairs, found, assumptions, open, unknown, waiting, unread } = self;
        let of = |clusters: &[String], what: &str| {
            (!clusters.is_empty()).then(|| format!("{}: {what}", listed(clusters)))
        };
        let mut all: Vec<String> = Vec::new();
        all.extend(of(&open, "spec.network.networkPolicy is NotEnforced: its servers are open to everybody"));
        all.extend(of(&unknown, "whether NetworkPolicies are enforced is not known"));
        all.extend(of(&waiting, "what is to be there waits for the first contact, and is not judged"));
        all.extend(of(&unread, "what is there cannot be read, and is not judged"));
        all.extend(assumptions);
        let mut violations: Vec<Violation> =
            found.into_iter().map(|(found, clusters)| Violation { found, clusters }).collect();
        violations.sort_by_key(|violation| !violation.found.fails);
        Proof { pairs, assumptions: all, violations }
    }
}

impl Violation {
    /// `catalog:8080 on 2 clusters is open to any pod of namespace shop: ...`; `made_in` is the file of the chart that makes the policy.
    fn sentence(&self, made_in: Option<&str>) -> String {
        let Found { is_extra, to, port, from, by, .. } = &self.found;
        let on = match self.clusters.as_slice() {
            [cluster] => cluster.to_string(),
            clusters => counted(clusters.len(), "cluster"),
        };
        let door = if port.contains(' ') { format!("{port} of {to}") } else { format!("{to}:{port}") };
        let by = match made_in {
            Some(file) => by.replacen(')', &format!(", {file})"), 1),
            None => by.clone(),
        };
        if *is_extra {
            format!("{door} on {on} is open to {from}: {by}")
        } else {
            format!("{from} does not reach {door} on {on}: {by}")
        }
    }

    /// The cure, by who makes the policy that decides.
    fn cure(&self) -> String {
        let Found { is_extra, policy, .. } = &self.found;
        let report = "or set onViolation: Report";
        match policy {
            None => format!("set networkPolicy: Servers in the {KIND}, {report}"),
            Some((_, maker)) if maker.starts_with("app ") => {
                let change = if *is_extra { "turn it off" } else { "let the client in or out" };
                format!("{change} in the chart's values, delete it with a GenericActionIntent, {report}")
            }
            Some((_, maker)) if maker.starts_with(KIND) => {
                format!("give its pods other labels than those of the client, name it as a client, {report}")
            }
            Some(_) => format!("set isolation: Closed in the LogicalCloud, {report}"),
        }
    }
}

impl Proof {
    /// The verdict.
    pub fn verdict(&self) -> ReachabilityVerdict {
        match (self.violations.is_empty(), self.assumptions.is_empty()) {
            (false, _) => ReachabilityVerdict::Violated,
            (true, false) => ReachabilityVerdict::Assumed,
            (true, true) => ReachabilityVerdict::Proven,
        }
    }

    /// The first violation that refuses a plan.
    pub fn fails(&self) -> Option<&Violation> {
        self.violations.first().filter(|violation| violation.found.fails)
    }

    /// The sentence of a refusal by it.
    pub fn refusal(&self, violation: &Violation, made_in: Option<&str>) -> String {
        let more = self.violations.iter().filter(|other| other.found.fails).count().saturating_sub(1);
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        format!("{}{more}; {}", violation.sentence(made_in), violation.cure())
    }

    /// As a status has it.
    pub fn status(&self) -> Reachability {
        let text = |text: &str| crate::conditions::truncate(text, LONGEST);
        let violation = |violation: &Violation| {
            let Violation { found: Found { is_extra, to, port, from, by, .. }, clusters } = violation;
            ReachabilityViolation {
                kind: if *is_extra { Difference::Extra } else { Difference::Missing },
                from: text(from),
                to: to.clone(),
                port: crate::conditions::truncate(port, LONGEST_PORT),
                by: text(by),
                clusters: i64::try_from(clusters.len()).unwrap_or(i64::MAX),
                example: clusters.first().map(ToString::to_string).unwrap_or_default(),
            }
        };
        let more = self.violations.len().saturating_sub(MOST);
        Reachability {
            verdict: self.verdict(),
            pairs: i64::try_from(self.pairs).unwrap_or(i64::MAX),
            assumptions: self.assumptions.iter().take(MOST).map(|assumption| text(assumption)).collect(),
            violations: self.violations.iter().take(MOST).map(violation).collect(),
            more: i64::try_from(more).ok().filter(|more| *more > 0),
        }
    }
}

#[cfg(test)]
mod tests;
