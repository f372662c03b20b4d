//! Derives the state from the last one and from what is true of the clusters now. Observed: no verb of anybody's plays
//! a part.

use emco_crds::State;

/// What is true now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// A plan may be carried out.
    pub approved: bool,
    /// The running revision; `None` before the first.
    pub revision: Option<i64>,
    /// The revision that the last state spoke of.
    pub revision_before: Option<i64>,
    /// Everything is to be removed: `desiredState: Terminated`, or the owner is being deleted.
    pub removing: bool,
    /// Nothing is written to any edge.
    pub suspended: bool,
    /// Clusters that have the running revision completely.
    pub applied: usize,
    /// Clusters on their way.
    pub progressing: usize,
    /// Clusters where it failed.
    pub failed: usize,
    /// Clusters that do not have it and cannot be reached.
    pub unreachable: usize,
    /// Clusters that have another revision completely.
    pub on_another: usize,
    /// While removing: clusters where something of this owner may be left.
    pub left: usize,
}

/// The state after an observation.
pub const fn next(current: State, seen: &Observation) -> State {
    if seen.removing {
        return removing(current, seen);
    }
    let Some(revision) = seen.revision else {
        return if seen.approved { State::Approved } else { State::Created };
    };
    // What never was complete is still being instantiated, whatever its number.
    let update = match current {
        State::Updating | State::Updated | State::UpdateFailed => true,
        State::Instantiated => matches!(seen.revision_before, Some(before) if revision != before),
        // What was suspended in the middle of an update goes on with it.
        State::InstantiateStopped => seen.on_another > 0,
        _ => false,
    };
    // Applied everywhere it can be: what waits for a cluster to come back holds up nothing, unless it is all there is.
    let settled = seen.failed == 0 && seen.progressing == 0 && (seen.applied > 0 || seen.unreachable == 0);
    match (settled, seen.suspended, seen.failed > 0, update) {
        (true, _, _, false) => State::Instantiated,
        (true, _, _, true) => State::Updated,
        (false, true, _, _) => State::InstantiateStopped,
        (false, false, true, false) => State::InstantiateFailed,
        (false, false, true, true) => State::UpdateFailed,
        (false, false, false, false) => State::Instantiating,
        (false, false, false, true) => State::Updating,
    }
}

const fn removing(current: State, seen: &Observation) -> State {
    let nothing_was_ever_there =
        seen.revision.is_none() && matches!(current, State::Created | State::Approved);
    if seen.left == 0 {
        return if nothing_was_ever_there { current } else { State::Terminated };
    }
    if seen.suspended {
        State::TerminateStopped
    } else if seen.failed > 0 {
        State::TerminateFailed
    } else {
        State::Terminating
    }
}

#[cfg(test)]
mod reachable;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::reachable::Walk;
    use super::*;

    /// Every state with every combination of small numbers and flags.
    fn all() -> impl Iterator<Item = (State, Observation)> {
        State::ALL.into_iter().flat_map(|current| {
            (0..2_usize.pow(12)).map(move |bits| {
                let bit = |n: u32| bits >> n & 1;
                let revision = [None, Some(1), Some(2), Some(3)][bit(0) + 2 * bit(1)];
                let seen = Observation {
                    approved: bit(2) == 1,
                    revision,
                    revision_before: [None, Some(2)][bit(3)],
                    removing: bit(4) == 1,
                    suspended: bit(5) == 1,
                    applied: bit(6),
                    progressing: bit(7),
                    failed: bit(8),
                    unreachable: bit(9),
                    left: bit(10),
                    on_another: bit(11),
                };
                (current, seen)
            })
        })
    }

    #[test]
    fn a_state_says_only_what_was_seen() {
        use State as S;
        for (current, seen) in all() {
            let next = next(current, &seen);
            let context = format!("{current} {seen:?} -> {next}");
            match next {
                S::Created => assert!(seen.revision.is_none() && seen.applied + seen.left < 3, "{context}"),
                S::Approved => assert!(seen.revision.is_none(), "{context}"),
                S::Instantiated | S::Updated => {
                    assert!(!seen.removing && seen.failed + seen.progressing == 0, "{context}");
                    assert!(seen.applied > 0 || seen.unreachable == 0, "{context}");
                }
                S::InstantiateFailed | S::UpdateFailed => {
                    assert!(!seen.removing && seen.failed > 0, "{context}");
                }
                S::Instantiating | S::Updating => {
                    assert!(!seen.removing && !seen.suspended && seen.failed == 0, "{context}");
                    assert!(seen.progressing > 0 || (seen.unreachable > 0 && seen.applied == 0), "{context}");
                }
                S::Terminated => assert!(seen.removing && seen.left == 0, "{context}"),
                S::Terminating => assert!(seen.removing && seen.left > 0 && seen.failed == 0, "{context}"),
                S::TerminateFailed => assert!(seen.removing && seen.left > 0 && seen.failed > 0, "{context}"),
                S::InstantiateStopped => assert!(!seen.removing && seen.suspended, "{context}"),
                S::TerminateStopped => assert!(seen.removing && seen.suspended && seen.left > 0, "{context}"),
            }
        }
    }

    /// States that a cell of the book names.
    fn named(cell: &str) -> BTreeSet<State> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(|word| serde_json::from_value(serde_json::json!(word)).unwrap()).collect()
    }

    #[test]
    fn what_follows_a_state_is_what_the_book_says() {
        let book = include_str!("../../../../docs/concepts.md");
        let table =
            book.split("\n| After | Comes |\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let mut written = BTreeMap::<State, BTreeSet<State>>::new();
        for row in table.lines() {
            let (after, comes) = row.strip_prefix("| ").unwrap().split_once(" | ").unwrap();
            let comes: BTreeSet<State> = if comes.starts_with("each other state") {
                State::ALL.into_iter().collect()
            } else {
                named(comes)
            };
            for state in named(after) {
                let others = comes.iter().copied().filter(|next| *next != state).collect();
                assert!(written.insert(state, others).is_none(), "{state} has two rows");
            }
        }
        assert_eq!(Walk::of(next).followers(), written);
    }

    #[test]
    fn from_each_state_there_is_a_way_to_every_other_one() {
        let walk = Walk::of(next);
        for state in State::ALL {
            assert_eq!(walk.without_way_to(state), None, "there is no way to {state}");
        }
    }

    /// A function whose removals stay failed unless one fails and leaves nothing, which no cluster can show.
    #[test]
    fn a_way_that_only_impossible_observations_open_is_none() {
        let stuck = |current, seen: &Observation| match current {
            State::TerminateFailed if !seen.removing || seen.left > 0 || seen.failed == 0 => current,
            _ => next(current, seen),
        };
        let walk = Walk::of(stuck);
        let lost = walk.without_way_to(State::Terminated).map(|node| node.state);
        assert_eq!(lost, Some(State::TerminateFailed));
        let opened = all().find(|(current, seen)| {
            *current == State::TerminateFailed && stuck(*current, seen) == State::Terminated
        });
        assert!(opened.is_some_and(|(_, seen)| seen.failed > 0 && seen.left == 0), "{opened:?}");
    }

    #[test]
    fn whatever_it_was_it_can_be_terminated_and_instantiated_again() {
        let seen = Observation { revision: Some(3), revision_before: Some(3), ..Observation::default() };
        let removing = Observation { removing: true, ..seen };
        for state in State::ALL {
            for left in [
                Observation { left: 1, ..removing },
                Observation { left: 1, failed: 1, ..removing },
                Observation { left: 1, suspended: true, ..removing },
            ] {
                assert_eq!(next(next(state, &left), &removing), State::Terminated, "{state} {left:?}");
            }
            let terminated = next(state, &removing);
            assert_eq!(terminated, State::Terminated, "{state}");
            for way in [
                Observation { progressing: 1, ..seen },
                Observation { failed: 1, ..seen },
                Observation { progressing: 1, suspended: true, ..seen },
            ] {
                let applied = Observation { applied: 1, ..seen };
                assert_eq!(next(next(terminated, &way), &applied), State::Instantiated, "{state} {way:?}");
            }
        }
    }

    #[test]
    fn an_observation_made_twice_changes_nothing() {
        for (current, seen) in all() {
            let once = next(current, &seen);
            let again = Observation { revision_before: seen.revision, ..seen };
            assert_eq!(next(once, &again), once, "{current} {seen:?}");
        }
    }

    /// The original turned Terminated into `TerminateFailed` when it was terminated again.
    #[test]
    fn what_is_terminated_stays_terminated() {
        let gone = Observation { removing: true, revision: Some(3), ..Observation::default() };
        assert_eq!(next(State::Terminated, &gone), State::Terminated);
        assert_eq!(next(State::Terminating, &gone), State::Terminated);
    }

    #[test]
    fn a_life() {
        let mut state = State::Created;
        let mut before = None;
        let mut see = |seen: Observation| {
            state = next(state, &Observation { revision_before: before, ..seen });
            before = seen.revision;
            state
        };
        let seen = Observation::default();
        let rev = |n| Observation { revision: Some(n), ..seen };
        assert_eq!(see(seen), State::Created);
        assert_eq!(see(Observation { approved: true, ..seen }), State::Approved);
        assert_eq!(see(Observation { progressing: 2, ..rev(1) }), State::Instantiating);
        assert_eq!(see(Observation { progressing: 1, failed: 1, ..rev(1) }), State::InstantiateFailed);
        // An edit before the first revision was complete.
        assert_eq!(see(Observation { progressing: 2, ..rev(2) }), State::Instantiating);
        assert_eq!(see(Observation { applied: 1, unreachable: 1, ..rev(2) }), State::Instantiated);
        assert_eq!(see(Observation { progressing: 2, ..rev(3) }), State::Updating);
        assert_eq!(see(Observation { applied: 2, ..rev(3) }), State::Updated);
        assert_eq!(see(Observation { failed: 1, applied: 1, ..rev(4) }), State::UpdateFailed);
        assert_eq!(see(Observation { suspended: true, failed: 1, ..rev(4) }), State::InstantiateStopped);
        assert_eq!(see(Observation { progressing: 1, on_another: 1, ..rev(4) }), State::Updating);
        assert_eq!(see(Observation { removing: true, left: 2, ..rev(4) }), State::Terminating);
        assert_eq!(see(Observation { removing: true, left: 1, failed: 1, ..rev(4) }), State::TerminateFailed);
        assert_eq!(see(Observation { removing: true, ..rev(4) }), State::Terminated);
        assert_eq!(see(Observation { progressing: 2, ..rev(5) }), State::Instantiating);
        assert_eq!(see(Observation { applied: 2, ..rev(5) }), State::Instantiated);
        assert_eq!(see(Observation { applied: 2, ..rev(5) }), State::Instantiated);
    }
}
