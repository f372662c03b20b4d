//! Counts the parts of kept charts, whose room is free once all of them are gone.

use std::collections::BTreeMap;

use super::Listed;
use crate::store::StoreContext;

/// How many parts of each archive the hub has, by its owner label and name.
pub(super) struct Parts(BTreeMap<(String, String), usize>);

impl Parts {
    pub(super) fn of(packs: &[Listed]) -> Self {
        let mut parts = BTreeMap::new();
        for part in packs.iter().filter(|pack| pack.is_chart()) {
            *parts.entry((part.owner.clone(), part.named().to_owned())).or_insert(0) += 1;
        }
        Self(parts)
    }

    pub(super) fn has(&self, owner: &str, name: &str) -> bool {
        self.0.contains_key(&(owner.to_owned(), name.to_owned()))
    }

    /// One part is gone. Its archive takes room until all are.
    pub(super) fn deleted(&mut self, ctx: &StoreContext, part: &Listed) {
        if !part.is_chart() {
            return;
        }
        ctx.charts.on_hub.tear(&part.owner, part.named());
        if let Some(left) = self.0.get_mut(&(part.owner.clone(), part.named().to_owned())) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                ctx.charts.on_hub.forget(&part.owner, part.named());
            }
        }
    }
}
