//! Decides which of the clusters that an app already has it keeps.
//!
//! Each cluster in use is counted for one group, so that no group's choice is lost because another group could have used
//! it. What does not fit (a count was lowered) leaves, the least wanted first. Deciding once more changes nothing.

use std::collections::VecDeque;

/// Which of `used` stay. `fits[u]` lists the groups that the cluster at `u` qualifies for; `used` is in order of
/// preference. `room[g]` is how many of a group are still to be chosen beside what `allOf` gives, `count[g]` how many
/// without that: what was chosen before `allOf` grew stays too.
pub fn keep(fits: &[Vec<usize>], room: &[usize], count: &[usize]) -> Vec<bool> {
    let mut seats = Seats { of: vec![None; fits.len()], taken: vec![0; count.len()] };
    for limits in [room, count] {
        for used in 0..fits.len() {
            if seats.of.get(used).is_some_and(Option::is_none) {
                seats.seat(used, fits, limits);
            }
        }
    }
    seats.of.iter().map(Option::is_some).collect()
}

struct Seats {
    /// The group a cluster is counted for.
    of: Vec<Option<usize>>,
    /// How many clusters a group has.
    taken: Vec<usize>,
}

impl Seats {
    /// Finds a place for one more, moving others between groups where that makes one free: a breadth-first search over
    /// groups, so its cost is groups times clusters.
    fn seat(&mut self, newcomer: usize, fits: &[Vec<usize>], limits: &[usize]) {
        // How each group was reached: by moving which cluster into it.
        let mut via: Vec<Option<usize>> = vec![None; limits.len()];
        let mut queue = VecDeque::new();
        for &group in fits.get(newcomer).into_iter().flatten() {
            if let Some(slot @ None) = via.get_mut(group) {
                *slot = Some(newcomer);
                queue.push_back(group);
            }
        }
        while let Some(group) = queue.pop_front() {
            if self.taken.get(group).zip(limits.get(group)).is_some_and(|(taken, limit)| taken < limit) {
                self.shift(group, &via);
                return;
            }
            for (member, _) in self.of.iter().enumerate().filter(|(_, seat)| **seat == Some(group)) {
                for &next in fits.get(member).into_iter().flatten() {
                    if let Some(slot @ None) = via.get_mut(next) {
                        *slot = Some(member);
                        queue.push_back(next);
                    }
                }
            }
        }
    }

    /// Walks the path back: everybody on it moves one group on, which frees a place for the newcomer.
    fn shift(&mut self, free: usize, via: &[Option<usize>]) {
        let mut group = free;
        if let Some(taken) = self.taken.get_mut(free) {
            *taken += 1;
        }
        while let Some(mover) = via.get(group).copied().flatten() {
            let Some(seat) = self.of.get_mut(mover) else { return };
            let Some(left) = seat.replace(group) else { return };
            group = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_two_groups_could_use_does_not_push_out_another_choice() {
        // The first qualifies for both groups, the second for group 0 alone: both stay.
        assert_eq!(keep(&[vec![0, 1], vec![0]], &[1, 1], &[1, 1]), [true, true]);
    }

    #[test]
    fn the_least_wanted_leaves_when_a_count_is_lowered() {
        assert_eq!(keep(&[vec![0], vec![0], vec![0]], &[2], &[2]), [true, true, false]);
    }

    #[test]
    fn a_choice_stays_when_all_of_grows_over_its_group() {
        assert_eq!(keep(&[vec![0]], &[0], &[1]), [true]);
    }

    #[test]
    fn a_longer_chain_of_moves_is_found() {
        let fits = [vec![0, 1], vec![1, 2], vec![0], vec![1]];
        assert_eq!(keep(&fits, &[1, 1, 1], &[1, 1, 1]), [true, true, true, false]);
    }

    #[test]
    fn a_cluster_that_fits_no_group_leaves() {
        assert_eq!(keep(&[vec![], vec![0]], &[1], &[1]), [false, true]);
    }
}
