//! Knows which objects of others owners take as they are. No watch of ours shows them, so who misses one says so.

use std::collections::BTreeMap;

use emco_engine::identity::{Id, Identity};

/// By owner: what it takes, and whether that is in doubt.
#[derive(Default)]
pub struct Taken(BTreeMap<String, BTreeMap<Id, bool>>);

impl Taken {
    /// Records what an owner takes. What was in doubt before stays so.
    pub fn set<'a>(&mut self, owner: &str, ids: impl Iterator<Item = &'a Id>) {
        let before = self.0.remove(owner).unwrap_or_default();
        let doubted = |id: &Id| before.get(id).copied().unwrap_or_default();
        let now: BTreeMap<Id, bool> = ids.map(|id| (id.clone(), doubted(id))).collect();
        if !now.is_empty() {
            self.0.insert(owner.to_owned(), now);
        }
    }

    /// Somebody misses these; answers whose they are.
    pub fn doubt(&mut self, misses: impl Fn(&Identity) -> bool) -> Vec<String> {
        let mut owners = Vec::new();
        for (owner, all) in &mut self.0 {
            let mut missed = all.iter_mut().filter(|(id, _)| misses(id)).peekable();
            if missed.peek().is_some() {
                owners.push(owner.clone());
            }
            missed.for_each(|(_, doubted)| *doubted = true);
        }
        owners
    }

    /// What of an owner's is in doubt. It looks at them now.
    pub fn doubted(&mut self, owner: &str) -> Vec<Id> {
        let all = self.0.get_mut(owner).into_iter().flatten();
        all.filter_map(|(id, doubted)| std::mem::take(doubted).then(|| id.clone())).collect()
    }
}
