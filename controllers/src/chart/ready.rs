//! Compiled charts by digest: the ones used last stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_helm::Compiled;

struct Kept {
    compiled: Arc<Compiled>,
    bytes: usize,
    used: u64,
}

/// Bounded by number and by the size of the archives.
pub struct Ready {
    most: usize,
    most_bytes: usize,
    kept: BTreeMap<String, Kept>,
    uses: u64,
}

impl Ready {
    pub const fn new(most: usize, most_bytes: usize) -> Self {
        Self { most, most_bytes, kept: BTreeMap::new(), uses: 0 }
    }

    pub fn get(&mut self, digest: &str) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let kept = self.kept.get_mut(digest)?;
        kept.used = self.uses;
        Some(Arc::clone(&kept.compiled))
    }

    pub fn put(&mut self, digest: &str, compiled: Arc<Compiled>, bytes: usize) {
        self.uses += 1;
        self.kept.insert(digest.to_owned(), Kept { compiled, bytes, used: self.uses });
        while self.kept.len() > 1 && (self.kept.len() > self.most || self.bytes() > self.most_bytes) {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(digest, _)| digest.clone());
            let Some(oldest) = oldest else { return };
            self.kept.remove(&oldest);
        }
    }

    fn bytes(&self) -> usize {
        self.kept.values().map(|kept| kept.bytes).sum()
    }
}
