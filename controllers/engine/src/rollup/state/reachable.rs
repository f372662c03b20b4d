//! Walks the observations that can come after each other: what people and the operator do, and what becomes of two clusters.
//!
//! Combinations of numbers that no cluster can show, such as a removal that failed and left nothing, would be ways that nobody can go.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use emco_crds::State;

use super::Observation;

/// A function of states, as [`super::next`].
pub type Next = fn(State, &Observation) -> State;

/// A revision, seen from the one that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rev {
    None,
    This,
    Another,
}

impl Rev {
    const fn number(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Another => Some(1),
            Self::This => Some(2),
        }
    }

    /// The same once another revision is stored.
    const fn outdated(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::This | Self::Another => Self::Another,
        }
    }
}

/// `spec.desiredState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Desired {
    Instantiated,
    Planned,
    Terminated,
}

/// The facts of a deployment that is to be on two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(clippy::struct_excessive_bools)] // independent facts, none of them a state
struct World {
    desired: Desired,
    approved: bool,
    suspended: bool,
    stored: bool,
    /// Rows have a target.
    targeted: bool,
    /// The first cluster answers.
    answers: bool,
    /// Something may be there.
    touched: bool,
    /// The revision that it has completely.
    has: Rev,
    failing: bool,
    /// The revision of the second one, which answers only while it gets one.
    away: Rev,
}

/// The state and the revision of the status, beside what is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    pub state: State,
    before: Rev,
    world: World,
}

const START: Node = Node {
    state: State::Created,
    before: Rev::None,
    world: World {
        desired: Desired::Instantiated,
        approved: false,
        suspended: false,
        stored: false,
        targeted: false,
        answers: true,
        touched: false,
        has: Rev::None,
        failing: false,
        away: Rev::None,
    },
};

impl Node {
    fn removing(&self) -> bool {
        self.world.desired == Desired::Terminated
    }

    /// The revision that a look would find to be running.
    fn running(&self) -> Rev {
        let World { desired, approved, suspended, stored, targeted, .. } = self.world;
        let held = !approved || desired == Desired::Planned || suspended && self.before == Rev::None;
        match (self.removing(), stored) {
            (true, _) => self.before,
            (false, true) if targeted || !held => Rev::This,
            (false, _) => Rev::None,
        }
    }

    fn observation(&self) -> Observation {
        let World { approved, suspended, targeted, answers, touched, has, failing, away, .. } = self.world;
        let removing = self.removing();
        let wanted = !removing && targeted && self.running() == Rev::This;
        let applied = |has: Rev| wanted && has == Rev::This;
        let another = |has: Rev| wanted && has == Rev::Another;
        let number = |flags: [bool; 2]| flags.into_iter().filter(|flag| *flag).count();
        Observation {
            approved: approved || removing,
            revision: self.running().number(),
            revision_before: self.before.number(),
            removing,
            suspended,
            applied: number([applied(has), applied(away)]),
            progressing: usize::from(wanted && answers && !failing && !applied(has)),
            failed: usize::from(failing && answers && (wanted || removing && touched)),
            unreachable: number([wanted && !answers && !applied(has), another(away)]),
            on_another: number([another(has), another(away)]),
            left: number([removing && touched, removing && away != Rev::None]),
        }
    }

    /// After a look.
    fn looked(&self, next: Next) -> Self {
        let running = self.running();
        let before = if running == Rev::None { self.before } else { running };
        Self { state: next(self.state, &self.observation()), before, ..*self }
    }

    /// All that may become true next, one thing at a time.
    fn moves(&self) -> Vec<Self> {
        let now = self.world;
        let with = |world: World| Self { world, ..*self };
        let mut moves: Vec<Self> = [Desired::Instantiated, Desired::Planned, Desired::Terminated]
            .map(|desired| with(World { desired, ..now }))
            .into();
        moves.push(with(World { approved: !now.approved, ..now }));
        moves.push(with(World { suspended: !now.suspended, ..now }));
        moves.push(with(World { answers: !now.answers, ..now }));
        // Removed there, or given up.
        if self.removing() && !now.targeted {
            moves.push(with(World { away: Rev::None, ..now }));
        }
        if now.suspended {
            return moves;
        }
        let (given, cleaned) = match now.desired {
            Desired::Instantiated if now.approved => {
                let targeted = World { targeted: true, touched: true, failing: false, ..now };
                if now.stored {
                    moves.push(with(targeted));
                }
                let (has, away) = (now.has.outdated(), now.away.outdated());
                let before = self.before.outdated();
                moves.push(Self { before, ..with(World { stored: true, has, away, ..targeted }) });
                (now.targeted, false)
            }
            Desired::Terminated if now.targeted => {
                moves.push(with(World { targeted: false, failing: false, ..now }));
                (false, false)
            }
            Desired::Terminated => (false, now.touched),
            Desired::Instantiated | Desired::Planned => (now.targeted, false),
        };
        if given {
            moves.push(with(World { away: Rev::This, ..now }));
        }
        if now.answers && (given || cleaned) {
            moves.push(with(World { failing: !now.failing, ..now }));
            let (has, touched) = if given { (Rev::This, true) } else { (Rev::None, false) };
            moves.push(with(World { has, touched, failing: false, ..now }));
        }
        moves
    }
}

/// All that can be reached, and where each can go. Looks are missed: an operator that was away sees what became of many moves.
pub struct Walk {
    nodes: Vec<Node>,
    after: Vec<Vec<usize>>,
}

impl Walk {
    pub fn of(next: Next) -> Self {
        let mut walk = Self { nodes: vec![START], after: Vec::new() };
        let mut known = BTreeMap::from([(START, 0)]);
        while let Some(node) = walk.nodes.get(walk.after.len()).copied() {
            let mut after = Vec::new();
            for next in node.moves().into_iter().chain([node.looked(next)]) {
                after.push(match known.entry(next) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        walk.nodes.push(next);
                        *new.insert(walk.nodes.len() - 1)
                    }
                });
            }
            walk.after.push(after);
        }
        walk
    }

    /// The states after each state, itself left out.
    pub fn followers(&self) -> BTreeMap<State, BTreeSet<State>> {
        let mut found: BTreeMap<State, BTreeSet<State>> =
            State::ALL.into_iter().map(|state| (state, BTreeSet::new())).collect();
        for (node, after) in self.nodes.iter().zip(&self.after) {
            let states = after.iter().map(|next| self.nodes[*next].state);
            found.get_mut(&node.state).unwrap().extend(states.filter(|state| *state != node.state));
        }
        found
    }

    /// The first node from which there is no way to a state; `None` where there is one from each.
    pub fn without_way_to(&self, state: State) -> Option<&Node> {
        let mut from: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, after) in self.after.iter().enumerate() {
            for next in after {
                from[*next].push(at);
            }
        }
        let mut leads: Vec<bool> = self.nodes.iter().map(|node| node.state == state).collect();
        let mut next: Vec<usize> = (0..leads.len()).filter(|at| leads[*at]).collect();
        while let Some(at) = next.pop() {
            next.extend(
                from[at].iter().copied().filter(|before| !std::mem::replace(&mut leads[*before], true)),
            );
        }
        leads.iter().position(|leads| !leads).map(|at| &self.nodes[at])
    }
}
