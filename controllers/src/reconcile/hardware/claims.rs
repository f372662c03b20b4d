//! Sees to it that two plans do not take the same hardware: one that was worked out beside another waits for what that takes.
//!
//! The watches show what was stored a moment later than it was. Until then, what this process gave is known from here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::hardware::Demand;
use emco_engine::identity::ClusterId;
use parking_lot::Mutex;

use super::state::RESERVED;
use crate::api::key_queue::Key;

/// Claims, in the order in which they were made.
#[derive(Default)]
pub struct Claims(Mutex<State>);

#[derive(Default)]
struct State {
    /// Of the last one.
    number: u64,
    all: Vec<Claim>,
}

struct Claim {
    number: u64,
    owner: Key,
    at_ms: i64,
    /// The plan that it was made for is stored.
    stored: bool,
    /// Apps with what they need, by cluster.
    gives: BTreeMap<ClusterId, Vec<(String, Arc<Demand>)>>,
}

impl Claims {
    /// The number of the last one: a plan that is worked out now knows all until then.
    pub fn number(&self) -> u64 {
        self.0.lock().number
    }

    /// Takes hardware for a plan that knew all claims until `known`; false where another owner took some of the same clusters since.
    pub fn take(
        &self,
        owner: &Key,
        known: u64,
        gives: BTreeMap<ClusterId, Vec<(String, Arc<Demand>)>>,
        now_ms: i64,
    ) -> bool {
        let mut state = self.0.lock();
        state.all.retain(|claim| is_live(claim, now_ms));
        let clusters: BTreeSet<&ClusterId> = gives.keys().collect();
        let meets = |claim: &Claim| {
            claim.number > known
                && claim.owner != *owner
                && claim.gives.keys().any(|cluster| clusters.contains(cluster))
        };
        if state.all.iter().any(meets) {
            return false;
        }
        state.all.retain(|claim| claim.owner != *owner);
        if !gives.is_empty() {
            state.number += 1;
            let number = state.number;
            state.all.push(Claim { number, owner: owner.clone(), at_ms: now_ms, stored: false, gives });
        }
        true
    }

    /// The plan is stored.
    pub fn keep(&self, owner: &Key) {
        for claim in &mut self.0.lock().all {
            claim.stored |= claim.owner == *owner;
        }
    }

    /// The plan was not stored: what another one of the same owner has stays.
    pub fn give_back(&self, owner: &Key) {
        self.0.lock().all.retain(|claim| claim.owner != *owner || claim.stored);
    }

    /// All that still counts: owner, cluster, app and what it needs.
    pub fn all(&self, now_ms: i64) -> Vec<(Key, ClusterId, String, Arc<Demand>)> {
        let state = self.0.lock();
        let live = state.all.iter().filter(|claim| is_live(claim, now_ms));
        let each = live.flat_map(|claim| {
            claim.gives.iter().flat_map(move |(cluster, apps)| {
                apps.iter().map(move |(app, demand)| {
                    (claim.owner.clone(), cluster.clone(), app.clone(), Arc::clone(demand))
                })
            })
        });
        each.collect()
    }
}

fn is_live(claim: &Claim, now_ms: i64) -> bool {
    let reserved = i64::try_from(RESERVED.as_millis()).unwrap_or(i64::MAX);
    (0..reserved).contains(&(now_ms - claim.at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        ("team".to_owned(), name.to_owned())
    }

    fn gives(cluster: &str) -> BTreeMap<ClusterId, Vec<(String, Arc<Demand>)>> {
        [(ClusterId::new("acme", cluster), vec![("web".to_owned(), Arc::default())])].into()
    }

    #[test]
    fn a_plan_that_did_not_know_of_another_does_not_take_the_same_cluster() {
        let claims = Claims::default();
        let known = claims.number();
        assert!(claims.take(&key("a"), known, gives("x"), 0));
        assert!(!claims.take(&key("b"), known, gives("x"), 0), "worked out beside it");
        assert!(claims.take(&key("b"), known, gives("y"), 0), "another cluster");
        assert!(claims.take(&key("c"), claims.number(), gives("x"), 0), "it knew");
        assert_eq!(claims.all(0).len(), 3);
    }

    #[test]
    fn a_claim_ends_with_its_time_with_the_next_and_when_it_is_given_back() {
        let claims = Claims::default();
        assert!(claims.take(&key("a"), 0, gives("x"), 0));
        assert!(claims.take(&key("a"), 0, gives("y"), 1000));
        assert_eq!(claims.all(1000).len(), 1);
        assert!(claims.all(1000 + 600_000).is_empty(), "after ten minutes");
        claims.give_back(&key("a"));
        assert!(claims.all(1000).is_empty());
    }

    #[test]
    fn what_a_stored_plan_took_is_not_given_back_with_a_later_one() {
        let claims = Claims::default();
        assert!(claims.take(&key("a"), 0, gives("x"), 0));
        claims.keep(&key("a"));
        claims.give_back(&key("a"));
        assert_eq!(claims.all(0).len(), 1);
    }
}
