//! Orders requests for something that all tenants share: fairly by project, then by owner, then in the order they came.
//!
//! Each project has a clock of what it had (start-time fair queueing): the one whose next request ends first on its clock goes
//! first. So a small request of a project that had nothing lately goes before large ones of a project that waits with
//! thousands, and many deployments of one project have the share of one.

use std::collections::{BTreeMap, VecDeque};

use emco_crds::OwnerKind;

/// Who asks: a project's namespace, and an owner in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    /// Namespace on the hub.
    pub project: String,
    /// Kind and name.
    pub owner: String,
}

impl Claimant {
    /// An owner in a namespace.
    pub fn new(project: &str, kind: &OwnerKind, name: &str) -> Self {
        Self { project: project.to_owned(), owner: format!("{kind}/{name}") }
    }
}

/// What waits.
pub struct FairQueue<T> {
    projects: BTreeMap<String, Flow<Project<T>>>,
    clock: u64,
    next: u64,
}

/// One that shares, with its clock.
struct Flow<Q> {
    /// What its next request begins at.
    start: u64,
    queue: Q,
}

struct Project<T> {
    owners: BTreeMap<String, Flow<Owner<T>>>,
    clock: u64,
}

struct Owner<T> {
    first: VecDeque<Waiting<T>>,
    rest: VecDeque<Waiting<T>>,
}

struct Waiting<T> {
    ticket: u64,
    cost: u64,
    value: T,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { projects: BTreeMap::new(), clock: 0, next: 0 }
    }
}

impl<T> Default for Project<T> {
    fn default() -> Self {
        Self { owners: BTreeMap::new(), clock: 0 }
    }
}

impl<T> Default for Owner<T> {
    fn default() -> Self {
        Self { first: VecDeque::new(), rest: VecDeque::new() }
    }
}

impl<T> Owner<T> {
    fn head(&self) -> Option<&Waiting<T>> {
        self.first.front().or_else(|| self.rest.front())
    }

    fn pop(&mut self) -> Option<Waiting<T>> {
        self.first.pop_front().or_else(|| self.rest.pop_front())
    }
}

impl<T> Project<T> {
    fn is_empty(&self) -> bool {
        self.owners.values().all(|owner| owner.queue.head().is_none())
    }

    /// The owner whose turn it is, with the cost of its request.
    fn head(&self) -> Option<(&String, u64)> {
        let heads = self.owners.iter().filter_map(|(name, owner)| {
            let cost = owner.queue.head()?.cost;
            Some((owner.start.saturating_add(cost), name, cost))
        });
        heads.min().map(|(_, name, cost)| (name, cost))
    }

    fn pop(&mut self) -> Option<Waiting<T>> {
        let name = self.head()?.0.clone();
        let owner = self.owners.get_mut(&name)?;
        let waiting = owner.queue.pop()?;
        self.clock = self.clock.max(owner.start);
        owner.start = owner.start.saturating_add(waiting.cost);
        let clock = self.clock;
        self.owners.retain(|_, owner| owner.queue.head().is_some() || owner.start > clock);
        Some(waiting)
    }
}

impl<T> FairQueue<T> {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.projects.values().all(|project| project.queue.is_empty())
    }

    /// Puts a request in; `first` is before others of the same owner. The ticket names it.
    pub fn push(&mut self, who: &Claimant, cost: u64, first: bool, value: T) -> u64 {
        self.next += 1;
        let waiting = Waiting { ticket: self.next, cost: cost.max(1), value };
        let start = self.clock;
        let project = self
            .projects
            .entry(who.project.clone())
            .or_insert_with(|| Flow { start, queue: Project::default() });
        if project.queue.is_empty() {
            project.start = project.start.max(start);
        }
        let start = project.queue.clock;
        let owner = project
            .queue
            .owners
            .entry(who.owner.clone())
            .or_insert_with(|| Flow { start, queue: Owner::default() });
        if owner.queue.head().is_none() {
            owner.start = owner.start.max(start);
        }
        let queue = if first { &mut owner.queue.first } else { &mut owner.queue.rest };
        queue.push_back(waiting);
        self.next
    }

    /// Takes the request whose turn it is, of projects that `may` have one now.
    pub fn pop(&mut self, may: impl Fn(&str) -> bool) -> Option<(T, u64)> {
        let heads = self.projects.iter().filter(|(name, _)| may(name)).filter_map(|(name, project)| {
            let (_, cost) = project.queue.head()?;
            Some((project.start.saturating_add(cost), name))
        });
        let name = heads.min()?.1.clone();
        let project = self.projects.get_mut(&name)?;
        let waiting = project.queue.pop()?;
        self.clock = self.clock.max(project.start);
        project.start = project.start.saturating_add(waiting.cost);
        if self.is_empty() {
            // Nobody competes: what was had is history.
            self.projects.clear();
            self.clock = 0;
        } else {
            let clock = self.clock;
            self.projects.retain(|_, project| !project.queue.is_empty() || project.start > clock);
        }
        Some((waiting.value, waiting.cost))
    }

    /// Puts a request before the others of its owner.
    pub fn hurry(&mut self, who: &Claimant, ticket: u64) {
        let Some(owner) = self.owner(who) else { return };
        let Some(at) = owner.rest.iter().position(|waiting| waiting.ticket == ticket) else { return };
        let waiting = owner.rest.remove(at);
        owner.first.extend(waiting);
    }

    /// Takes a request back; false if it is not waiting any more.
    pub fn remove(&mut self, who: &Claimant, ticket: u64) -> bool {
        let Some(owner) = self.owner(who) else { return false };
        for queue in [&mut owner.first, &mut owner.rest] {
            if let Some(at) = queue.iter().position(|waiting| waiting.ticket == ticket) {
                queue.remove(at);
                return true;
            }
        }
        false
    }

    fn owner(&mut self, who: &Claimant) -> Option<&mut Owner<T>> {
        let project = self.projects.get_mut(&who.project)?;
        project.queue.owners.get_mut(&who.owner).map(|owner| &mut owner.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(project: &str, owner: &str) -> Claimant {
        Claimant::new(project, &OwnerKind::DeploymentIntentGroup, owner)
    }

    fn order(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop(|_| true).map(|(value, _)| value)).collect()
    }

    #[test]
    fn a_small_request_goes_before_those_of_a_project_that_had_much() {
        let mut queue = FairQueue::default();
        for _ in 0..5 {
            queue.push(&who("acme", "large"), 1000, false, "large");
        }
        assert_eq!(queue.pop(|_| true), Some(("large", 1000)));
        queue.push(&who("shop", "till"), 1, false, "small");
        assert_eq!(queue.pop(|_| true), Some(("small", 1)));
    }

    #[test]
    fn projects_share_evenly_however_many_owners_they_have() {
        let mut queue = FairQueue::default();
        for owner in ["a", "b", "c"] {
            for _ in 0..4 {
                queue.push(&who("acme", owner), 10, false, "acme");
            }
        }
        for _ in 0..4 {
            queue.push(&who("shop", "till"), 10, false, "shop");
        }
        let first = &order(&mut queue)[..8];
        assert_eq!(first.iter().filter(|value| **value == "shop").count(), 4, "{first:?}");
    }

    #[test]
    fn owners_of_a_project_take_turns() {
        let mut queue = FairQueue::default();
        for _ in 0..3 {
            queue.push(&who("acme", "a"), 10, false, "a");
        }
        queue.push(&who("acme", "b"), 10, false, "b");
        assert_eq!(order(&mut queue), ["a", "b", "a", "a"]);
    }

    #[test]
    fn a_hurried_request_goes_first_within_its_owner_alone() {
        let mut queue = FairQueue::default();
        queue.push(&who("acme", "a"), 10, false, "a1");
        let last = queue.push(&who("acme", "a"), 10, false, "a2");
        queue.push(&who("shop", "b"), 5, false, "b");
        queue.hurry(&who("acme", "a"), last);
        assert_eq!(order(&mut queue), ["b", "a2", "a1"]);
    }

    #[test]
    fn a_stream_of_small_requests_does_not_starve_a_large_one() {
        let mut queue = FairQueue::default();
        queue.push(&who("acme", "a"), 100, false, "large");
        queue.push(&who("shop", "b"), 1, false, "small");
        let mut served = 0;
        while queue.pop(|_| true).is_some_and(|(value, _)| value == "small") {
            served += 1;
            queue.push(&who("shop", "b"), 1, false, "small");
            assert!(served < 200, "the large one never has its turn");
        }
    }

    #[test]
    fn what_is_taken_back_or_may_not_go_stays_out() {
        let mut queue = FairQueue::default();
        let ticket = queue.push(&who("acme", "a"), 1, false, "gone");
        queue.push(&who("shop", "b"), 1, false, "b");
        assert!(queue.remove(&who("acme", "a"), ticket) && !queue.remove(&who("acme", "a"), ticket));
        assert_eq!(queue.pop(|project| project != "shop"), None);
        assert_eq!(order(&mut queue), ["b"]);
        assert!(queue.is_empty() && queue.projects.is_empty());
    }
}
