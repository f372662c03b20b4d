//! Admits requests to one cluster: a bounded number at a time, fairly by project and owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fair::{Claimant, FairQueue};

/// Requests beyond the limit, for projects that have none under way: one whose requests take long, such as by a slow admission
/// webhook of its own, does not stop the others.
pub const SPARE: usize = 1;

/// The gate of one cluster.
#[derive(Clone)]
pub struct Gate {
    state: Arc<Mutex<State>>,
    limit: usize,
}

#[derive(Default)]
struct State {
    busy: usize,
    /// Requests under way by project; none has 0.
    projects: BTreeMap<String, usize>,
    waiting: FairQueue<(String, oneshot::Sender<()>)>,
}

impl State {
    fn enter(&mut self, project: &str) {
        self.busy += 1;
        *self.projects.entry(project.to_owned()).or_default() += 1;
    }

    fn leave(&mut self, project: &str) {
        self.busy = self.busy.saturating_sub(1);
        if let Some(count) = self.projects.get_mut(project) {
            *count -= 1;
            if *count == 0 {
                self.projects.remove(project);
            }
        }
    }

    fn may(&self, project: &str, limit: usize) -> bool {
        self.busy < limit || self.busy < limit + SPARE && !self.projects.contains_key(project)
    }

    fn admit(&mut self, limit: usize) {
        loop {
            let Self { busy, projects, waiting } = self;
            let spare = *busy >= limit;
            if spare && *busy >= limit + SPARE {
                return;
            }
            let next = waiting.pop(|project| !spare || !projects.contains_key(project));
            let Some(((project, sender), _)) = next else { return };
            if sender.send(()).is_ok() {
                self.enter(&project);
            }
        }
    }
}

/// A request that was admitted. Dropped, it makes room.
pub struct Admitted {
    gate: Gate,
    project: String,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.leave(&self.project);
        state.admit(self.gate.limit);
    }
}

/// A request at the gate. Dropped while it waits, it gives its place up.
struct AtGate<'a> {
    gate: &'a Gate,
    who: &'a Claimant,
    ticket: u64,
    entered: bool,
}

impl Drop for AtGate<'_> {
    fn drop(&mut self) {
        if self.entered {
            return;
        }
        let mut state = self.gate.state.lock();
        if !state.waiting.remove(self.who, self.ticket) {
            // It was admitted and does not know.
            state.leave(&self.who.project);
            state.admit(self.gate.limit);
        }
    }
}

impl Gate {
    /// Admits `limit` requests at a time.
    pub fn new(limit: usize) -> Self {
        Self { state: Arc::default(), limit: limit.max(1) }
    }

    /// Waits for the turn of a request.
    pub async fn enter(&self, who: &Claimant) -> Admitted {
        let (sender, admitted) = oneshot::channel();
        let ticket = {
            let mut state = self.state.lock();
            if state.waiting.is_empty() && state.may(&who.project, self.limit) {
                state.enter(&who.project);
                return Admitted { gate: self.clone(), project: who.project.clone() };
            }
            let ticket = state.waiting.push(who, 1, false, (who.project.clone(), sender));
            state.admit(self.limit);
            ticket
        };
        let mut waiting = AtGate { gate: self, who, ticket, entered: false };
        // The gate, which is borrowed, holds the sender until it sends.
        let _ = admitted.await;
        waiting.entered = true;
        drop(waiting);
        Admitted { gate: self.clone(), project: who.project.clone() }
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::OwnerKind;
    use futures::FutureExt;

    use super::*;

    fn who(project: &str, owner: &str) -> Claimant {
        Claimant::new(project, &OwnerKind::DeploymentIntentGroup, owner)
    }

    #[tokio::test]
    async fn one_project_has_all_places_while_nobody_else_asks() {
        let (gate, acme) = (Gate::new(4), who("acme", "a"));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(gate.enter(&acme).now_or_never().unwrap());
        }
        assert!(gate.enter(&acme).now_or_never().is_none());
        held.pop();
        assert!(gate.enter(&acme).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_project_whose_requests_hang_does_not_stop_another() {
        let (gate, acme, shop, bank) = (Gate::new(4), who("acme", "a"), who("shop", "b"), who("bank", "c"));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(gate.enter(&acme).await);
        }
        let mut more = Vec::new();
        for _ in 0..100 {
            let mut waiting = Box::pin(gate.enter(&acme));
            assert!(waiting.as_mut().now_or_never().is_none());
            more.push(waiting);
        }
        for _ in 0..10 {
            let admitted = gate.enter(&shop).now_or_never().unwrap();
            assert!(gate.enter(&bank).now_or_never().is_none(), "one at a time beyond the limit");
            drop(admitted);
            drop(gate.enter(&bank).now_or_never().unwrap());
        }
        drop(held);
        assert!(more.remove(0).now_or_never().is_some());
    }

    #[tokio::test]
    async fn many_deployments_of_a_project_do_not_come_before_another_project() {
        let gate = Gate::new(1);
        let held = gate.enter(&who("acme", "first")).await;
        // The place beyond the limit is taken as well.
        let spare = gate.enter(&who("bank", "x")).await;
        let owners: Vec<Claimant> = (0..50).map(|n| who("acme", &format!("d{n}"))).collect();
        let mut before: Vec<_> = owners.iter().map(|owner| Box::pin(gate.enter(owner))).collect();
        for waiting in &mut before {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let till = who("shop", "till");
        let mut other = Box::pin(gate.enter(&till));
        assert!(other.as_mut().now_or_never().is_none());
        drop(held);
        let taken = before.iter_mut().filter_map(|waiting| waiting.as_mut().now_or_never()).count();
        let other_has = other.as_mut().now_or_never().is_some();
        assert!(taken <= 1 && (other_has || taken == 1), "{taken} {other_has}");
        drop(spare);
        assert!(other_has || other.now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_gives_up_takes_no_place() {
        let (gate, acme) = (Gate::new(1), who("acme", "a"));
        let held = gate.enter(&acme).await;
        let mut first = Box::pin(gate.enter(&acme));
        let mut second = Box::pin(gate.enter(&acme));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(held);
        // Admitted, and dropped before it knew.
        drop(first);
        assert!(second.now_or_never().is_some());
        assert_eq!(gate.state.lock().busy, 0);
    }
}
