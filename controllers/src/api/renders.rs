//! Bounds the renderings of the whole process: how many use memory at once, and how many of one project. Projects that wait
//! take turns, so that each waits for at most one rendering of every other one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emco_engine::resolve::Supervisor;
use parking_lot::{Condvar, Mutex};

use crate::api::planning::Planning;
use crate::api::{priority, shares};

/// Renderings at once. The worst that `emco_helm::Limits` allow was seen to take 300 MiB, so this many bound the memory of all.
const AT_ONCE: usize = 3;
/// Renderings of one project at once are fewer, so that one is left for another project.
const OF_A_PROJECT: usize = AT_ONCE - 1;

/// Renderings of one project at once on so many processors: one is left for everything else. Threads of low priority alone do not
/// leave it: what they interrupt waits for their time slice at every step.
fn of_a_project(processors: usize) -> usize {
    processors.saturating_sub(1).clamp(1, OF_A_PROJECT)
}

/// Turns for renderings, handed out to threads.
pub struct Renders {
    state: Mutex<State>,
    moved: Condvar,
}

impl Default for Renders {
    fn default() -> Self {
        Self::on(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

struct State {
    /// The most that one project has.
    most: usize,
    running: BTreeMap<String, usize>,
    /// Numbers of threads that wait, by project.
    waiting: BTreeMap<String, VecDeque<u64>>,
    /// Threads that have a turn and were not awake since.
    admitted: BTreeSet<u64>,
    /// The project that had the last turn.
    last: String,
    numbers: u64,
}

impl State {
    fn new(most: usize) -> Self {
        Self {
            most,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            admitted: BTreeSet::new(),
            last: String::new(),
            numbers: 0,
        }
    }

    fn push(&mut self, project: &str) -> u64 {
        self.numbers += 1;
        self.waiting.entry(project.to_owned()).or_default().push_back(self.numbers);
        self.numbers
    }

    /// Gives the free turns to the projects that are next. Says whether there was one.
    fn admit(&mut self) -> bool {
        let mut any = false;
        while self.running.values().sum::<usize>() < AT_ONCE {
            let held = |project: &String| self.running.get(project).copied().unwrap_or(0);
            let Some(project) = shares::next(self.waiting.keys(), &self.last, held, self.most).cloned()
            else {
                break;
            };
            let Some(queue) = self.waiting.get_mut(&project) else { break };
            let number = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&project);
            }
            self.admitted.extend(number);
            *self.running.entry(project.clone()).or_default() += 1;
            self.last = project;
            any = true;
        }
        any
    }

    /// Takes back a wait.
    fn withdraw(&mut self, project: &str, number: u64) {
        if let Some(queue) = self.waiting.get_mut(project) {
            queue.retain(|waiting| *waiting != number);
            if queue.is_empty() {
                self.waiting.remove(project);
            }
        }
    }

    fn leave(&mut self, project: &str) {
        if let Some(own) = self.running.get_mut(project) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.running.remove(project);
            }
        }
    }
}

impl Renders {
    /// On a machine of so many processors.
    fn on(processors: usize) -> Self {
        Self { state: Mutex::new(State::new(of_a_project(processors))), moved: Condvar::new() }
    }

    /// Waits for a turn; `None` if the plan is stopped meanwhile.
    fn enter(&self, project: &str, stop: &AtomicBool) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        let number = state.push(project);
        state.admit();
        loop {
            let admitted = state.admitted.remove(&number);
            if stop.load(Ordering::Relaxed) {
                if admitted {
                    state.leave(project);
                } else {
                    state.withdraw(project, number);
                }
                if state.admit() {
                    self.moved.notify_all();
                }
                return None;
            }
            if admitted {
                return Some(Turn { renders: self, project: project.to_owned() });
            }
            self.moved.wait(&mut state);
        }
    }

    /// Wakes threads whose plan may have been stopped.
    fn look_again(&self) {
        let _state = self.state.lock();
        self.moved.notify_all();
    }
}

struct Turn<'a> {
    renders: &'a Renders,
    project: String,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.renders.state.lock();
        state.leave(&self.project);
        if state.admit() {
            self.renders.moved.notify_all();
        }
    }
}

/// Renderings of one plan.
pub struct PlanRenders {
    times: Arc<Planning>,
    renders: Arc<Renders>,
    project: String,
    stop: Arc<AtomicBool>,
}

impl PlanRenders {
    /// Of a plan of a project.
    pub fn new(times: Arc<Planning>, renders: Arc<Renders>, project: &str) -> Arc<Self> {
        Arc::new(Self { times, renders, project: project.to_owned(), stop: Arc::default() })
    }

    /// Ends what is being rendered, and lets nothing more begin.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.renders.look_again();
    }
}

impl Supervisor for PlanRenders {
    fn rendering(&self, render: &mut dyn FnMut()) {
        // Without a turn the plan is stopped, and the rendering ends as it begins.
        let _turn = self.renders.enter(&self.project, &self.stop);
        self.times.rendering(render);
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.stop))
    }

    fn slow(&self) -> Option<fn()> {
        Some(priority::lower)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_project_that_renders_all_it_may_leaves_a_turn_for_another() {
        let renders = Renders::on(4);
        let stop = AtomicBool::new(false);
        let held: Vec<_> = (0..OF_A_PROJECT).filter_map(|_| renders.enter("loud", &stop)).collect();
        assert_eq!(held.len(), OF_A_PROJECT);
        thread::scope(|scope| {
            let more = scope.spawn(|| renders.enter("loud", &stop).is_some());
            assert!(renders.enter("quiet", &stop).is_some(), "at once");
            assert!(!more.is_finished(), "the loud project has its share");
            drop(held);
            assert!(more.join().unwrap());
        });
    }

    #[test]
    fn a_project_leaves_a_processor_to_everything_else() {
        assert_eq!([1, 2, 3, 64].map(of_a_project), [1, 1, 2, 2]);
        let renders = Renders::on(2);
        let stop = AtomicBool::new(false);
        let held = renders.enter("loud", &stop);
        thread::scope(|scope| {
            let more = scope.spawn(|| renders.enter("loud", &stop).is_some());
            let others = ["quiet", "still"].map(|project| renders.enter(project, &stop));
            assert!(others.iter().all(Option::is_some), "at once");
            drop(others);
            assert!(!more.is_finished(), "one processor is left");
            drop(held);
            assert!(more.join().unwrap());
        });
    }

    #[test]
    fn a_project_waits_for_one_rendering_of_each_other_project() {
        let mut state = State::new(OF_A_PROJECT);
        for project in ["loud", "noisy"] {
            for _ in 0..5 {
                state.push(project);
            }
        }
        assert!(state.admit());
        state.admitted.clear();
        let quiet = state.push("quiet");
        assert!(!state.admit(), "two projects have all turns");
        state.leave("loud");
        assert!(state.admit());
        assert_eq!(state.admitted, BTreeSet::from([quiet]), "before those who waited longer");
        state.withdraw("loud", 5);
        state.withdraw("noisy", 10);
        for project in ["loud", "noisy", "quiet", "loud", "noisy", "noisy", "loud"] {
            state.leave(project);
            state.admit();
        }
        assert!(state.waiting.is_empty(), "{:?}", state.waiting);
    }

    #[test]
    fn a_stopped_plan_does_not_wait_for_its_turn() {
        let renders = Arc::new(Renders::on(4));
        let plan = PlanRenders::new(Arc::default(), Arc::clone(&renders), "loud");
        let go_on = AtomicBool::new(false);
        let held: Vec<_> = (0..OF_A_PROJECT).filter_map(|_| renders.enter("loud", &go_on)).collect();
        thread::scope(|scope| {
            let waits = scope.spawn(|| renders.enter("loud", &plan.stop).is_none());
            plan.stop();
            assert!(waits.join().unwrap());
        });
        drop(held);
    }
}
