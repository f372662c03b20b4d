//! Limits the plans that run at once, so that no project's plans keep those of others waiting: projects take turns, and some
//! turns are kept for projects that have none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::shares;

/// Namespace and name of a deployment.
type Key = (String, String);

/// Bounds on plans.
#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Plans at once: planning is the processor's work.
    pub at_once: usize,
    /// Plans of one project at once; fewer than all, so that one is left for another project.
    pub of_a_project: usize,
    /// Further plans, of projects that have none under way.
    pub spare: usize,
    /// Wall time of one plan.
    pub time: Duration,
}

impl Default for PlanLimits {
    fn default() -> Self {
        Self { at_once: 4, of_a_project: 3, spare: 2, time: Duration::from_mins(10) }
    }
}

/// How long a deployment without a turn waits at most: the one that was queued before it may be gone by then.
pub const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long a turn stays free for the deployment that was woken for it.
const RESERVED: Duration = Duration::from_secs(5);

/// Wakes a deployment that may plan now.
type Wake = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Hands out turns for plans.
pub struct PlanTurns {
    limits: PlanLimits,
    state: Arc<Mutex<State>>,
    wake: Arc<OnceLock<Wake>>,
}

#[derive(Default)]
struct State {
    /// Plans that run, with the generation that each one plans.
    running: BTreeMap<Key, Running>,
    /// Deployments that asked in vain, by project, in the order they came.
    waiting: BTreeMap<String, VecDeque<String>>,
    /// Deployments that were woken for a turn, and until when it is kept for them.
    reserved: BTreeMap<Key, Instant>,
    /// The project that had the last turn.
    last: String,
}

struct Running {
    generation: i64,
    stop: watch::Sender<bool>,
}

impl State {
    fn of(&self, project: &str) -> usize {
        let held = self.running.keys().chain(self.reserved.keys());
        held.filter(|(namespace, _)| namespace == project).count()
    }

    /// How many turns one project may have at this moment.
    fn most(&self, limits: &PlanLimits) -> usize {
        match self.running.len() + self.reserved.len() {
            used if used < limits.at_once => limits.of_a_project,
            used if used < limits.at_once + limits.spare => 1,
            _ => 0,
        }
    }

    /// Keeps free turns for the deployments that go next, and names them: of the projects with the fewest plans the one whose
    /// turn it is, and of that the deployment that waits longest.
    fn hand_out(&mut self, limits: &PlanLimits) -> Vec<Key> {
        let now = Instant::now();
        self.reserved.retain(|_, until| *until > now);
        let mut next = Vec::new();
        loop {
            let (most, held) = (self.most(limits), |project: &String| self.of(project));
            let Some(project) = shares::next(self.waiting.keys(), &self.last, held, most).cloned() else {
                return next;
            };
            let Some(queue) = self.waiting.get_mut(&project) else { return next };
            let name = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&project);
            }
            self.last.clone_from(&project);
            let Some(name) = name else { continue };
            let key = (project, name);
            self.reserved.insert(key.clone(), now + RESERVED);
            next.push(key);
        }
    }

    fn push(&mut self, (project, name): &Key) {
        let queue = self.waiting.entry(project.clone()).or_default();
        if !queue.contains(name) {
            queue.push_back(name.clone());
        }
    }

    fn no_longer_waits(&mut self, (project, name): &Key) {
        if let Some(queue) = self.waiting.get_mut(project) {
            queue.retain(|waiting| waiting != name);
            if queue.is_empty() {
                self.waiting.remove(project);
            }
        }
    }
}

impl Default for PlanTurns {
    fn default() -> Self {
        Self::new(PlanLimits::default())
    }
}

impl PlanTurns {
    /// Turns within these limits.
    pub fn new(limits: PlanLimits) -> Self {
        Self { limits, state: Arc::default(), wake: Arc::default() }
    }

    /// Wall time of one plan.
    pub const fn time(&self) -> Duration {
        self.limits.time
    }

    /// Says how deployments are queued whose turn comes; the first call counts.
    pub fn wake_with(&self, wake: impl Fn(&str, &str) + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    /// A turn, unless the project or all together have as many as they may: then the deployment is queued when there is one.
    pub fn take(&self, namespace: &str, name: &str, generation: i64) -> Option<PlanTurn> {
        let key = (namespace.to_owned(), name.to_owned());
        let mut state = self.state.lock();
        if state.running.contains_key(&key) {
            state.push(&key);
            return None;
        }
        let now = Instant::now();
        state.reserved.remove(&key);
        state.reserved.retain(|_, until| *until > now);
        // Others that wait may be next; who waits already keeps its place among them.
        if state.of(namespace) >= state.most(&self.limits) {
            state.push(&key);
            return None;
        }
        state.no_longer_waits(&key);
        namespace.clone_into(&mut state.last);
        let (stop, stopped) = watch::channel(false);
        state.running.insert(key.clone(), Running { generation, stop });
        drop(state);
        Some(PlanTurn {
            key,
            stopped,
            limits: self.limits,
            state: Arc::clone(&self.state),
            wake: Arc::clone(&self.wake),
        })
    }

    /// Stops the plan of a deployment whose spec is another one by now, or that ends. Says whether there was one.
    pub fn changed(&self, namespace: &str, name: &str, generation: i64, deleting: bool) -> bool {
        let state = self.state.lock();
        let running = state.running.get(&(namespace.to_owned(), name.to_owned()));
        let running = running.filter(|running| deleting || running.generation != generation);
        running.is_some_and(|running| {
            running.stop.send_replace(true);
            true
        })
    }

    /// Stops all plans of a namespace: what is planned there is carried out by another rule now.
    pub fn stop_all(&self, namespace: &str) {
        let state = self.state.lock();
        for (_, running) in state.running.iter().filter(|((within, _), _)| within == namespace) {
            running.stop.send_replace(true);
        }
    }
}

/// One plan may run while this is kept.
pub struct PlanTurn {
    key: Key,
    stopped: watch::Receiver<bool>,
    limits: PlanLimits,
    state: Arc<Mutex<State>>,
    wake: Arc<OnceLock<Wake>>,
}

impl PlanTurn {
    /// Waits until the plan is of no use any more.
    pub async fn stopped(&mut self) {
        // The sender is kept as long as the turn.
        let _ = self.stopped.wait_for(|stopped| *stopped).await;
    }
}

impl Drop for PlanTurn {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.running.remove(&self.key);
        let next = state.hand_out(&self.limits);
        drop(state);
        let Some(wake) = self.wake.get() else { return };
        for (namespace, name) in next {
            wake(&namespace, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn turns() -> (PlanTurns, Arc<Mutex<Vec<String>>>) {
        turns_of(PlanLimits::default())
    }

    fn turns_of(limits: PlanLimits) -> (PlanTurns, Arc<Mutex<Vec<String>>>) {
        let turns = PlanTurns::new(limits);
        let queued = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&queued);
        turns.wake_with(move |namespace, name| told.lock().push(format!("{namespace}/{name}")));
        (turns, queued)
    }

    #[test]
    fn a_project_never_has_all_turns() {
        let (turns, queued) = turns();
        let held: Vec<_> = (0..10).filter_map(|at| turns.take("loud", &format!("d{at}"), 1)).collect();
        assert_eq!(held.len(), 3);
        assert!(turns.take("quiet", "shop", 1).is_some(), "one is left for another project");
        assert_eq!(*queued.lock(), Vec::<String>::new(), "the loud project has its share");
        drop(held);
        assert_eq!(*queued.lock(), ["loud/d3", "loud/d4", "loud/d5"]);
    }

    #[test]
    fn two_projects_with_long_plans_leave_turns_to_others() {
        let (turns, _) = turns();
        let plans = |project: &str| -> Vec<_> {
            (0..10).filter_map(|at| turns.take(project, &format!("d{at}"), 1)).collect()
        };
        let held = [plans("loud"), plans("noisy")];
        assert_eq!(held.each_ref().map(Vec::len), [3, 1]);
        assert_eq!([plans("quiet"), plans("small"), plans("late")].each_ref().map(Vec::len), [1, 1, 0]);
    }

    #[test]
    fn the_project_with_the_fewest_plans_goes_next() {
        let limits = PlanLimits { of_a_project: 2, spare: 0, ..PlanLimits::default() };
        let (turns, queued) = turns_of(limits);
        let mut held: Vec<_> = (0..2).filter_map(|at| turns.take("loud", &format!("d{at}"), 1)).collect();
        held.extend((0..2).filter_map(|at| turns.take("other", &format!("d{at}"), 1)));
        assert!(turns.take("loud", "d3", 1).is_none() && turns.take("quiet", "shop", 1).is_none());
        held.remove(0);
        assert_eq!(*queued.lock(), ["quiet/shop"]);
        assert!(turns.take("loud", "d4", 1).is_none(), "the turn is kept for the one that was woken");
        held.extend(turns.take("quiet", "shop", 1));
        held.clear();
        assert_eq!(*queued.lock(), ["quiet/shop", "loud/d3", "loud/d4"]);
    }

    #[test]
    fn projects_that_wait_for_plans_take_turns_however_many_they_have() {
        let limits = PlanLimits { at_once: 1, of_a_project: 1, spare: 0, ..PlanLimits::default() };
        let (turns, queued) = turns_of(limits);
        let held = turns.take("loud", "d0", 1);
        for at in 1..4 {
            assert!(turns.take("loud", &format!("d{at}"), 1).is_none());
        }
        assert!(turns.take("quiet", "shop", 1).is_none());
        drop(held);
        assert_eq!(*queued.lock(), ["quiet/shop"], "the loud project had the last turn");
        drop(turns.take("quiet", "shop", 1));
        assert_eq!(queued.lock().last().map(String::as_str), Some("loud/d1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_nobody_comes_for_is_given_on() {
        let limits = PlanLimits { at_once: 1, of_a_project: 1, spare: 0, ..PlanLimits::default() };
        let (turns, _) = turns_of(limits);
        let held = turns.take("shop", "gone", 1);
        assert!(turns.take("shop", "deleted", 1).is_none());
        drop(held);
        assert!(turns.take("quiet", "shop", 1).is_none());
        tokio::time::advance(RESERVED).await;
        assert!(turns.take("quiet", "shop", 1).is_some());
    }

    #[test]
    fn a_deployment_that_changes_or_ends_stops_its_plan_and_no_other() {
        let (turns, _) = turns();
        let mut one = turns.take("shop", "one", 4).unwrap();
        let mut two = turns.take("shop", "two", 7).unwrap();
        turns.changed("shop", "one", 4, false);
        assert!(one.stopped().now_or_never().is_none(), "a status was written");
        turns.changed("shop", "one", 5, false);
        turns.changed("shop", "two", 7, true);
        assert!(one.stopped().now_or_never().is_some() && two.stopped().now_or_never().is_some());
    }

    #[test]
    fn the_plans_of_a_namespace_are_stopped_and_those_of_others_go_on() {
        let (turns, _) = turns();
        let mut one = turns.take("shop", "one", 4).unwrap();
        let mut other = turns.take("shop-2", "one", 4).unwrap();
        turns.stop_all("shop");
        assert!(one.stopped().now_or_never().is_some() && other.stopped().now_or_never().is_none());
    }
}
