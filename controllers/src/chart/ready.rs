//! Compiled charts by digest: the ones used last stay. The project that has most makes room.

use std::collections::BTreeMap;
use std::sync::Arc;

struct Kept<T> {
    compiled: Arc<T>,
    bytes: usize,
    used: u64,
    /// The project that had it compiled.
    project: Arc<str>,
}

/// Bounded by number, and by the bytes that the charts take in memory.
pub struct Ready<T> {
    most: usize,
    most_bytes: usize,
    kept: BTreeMap<String, Kept<T>>,
    uses: u64,
}

impl<T> Ready<T> {
    pub const fn new(most: usize, most_bytes: usize) -> Self {
        Self { most, most_bytes, kept: BTreeMap::new(), uses: 0 }
    }

    pub fn get(&mut self, digest: &str) -> Option<Arc<T>> {
        self.uses += 1;
        let kept = self.kept.get_mut(digest)?;
        kept.used = self.uses;
        Some(Arc::clone(&kept.compiled))
    }

    pub fn put(&mut self, digest: &str, compiled: Arc<T>, bytes: usize, project: Arc<str>) {
        self.uses += 1;
        self.kept.insert(digest.to_owned(), Kept { compiled, bytes, used: self.uses, project });
        loop {
            let many = self.kept.len() > self.most;
            if !many && self.bytes() <= self.most_bytes {
                return;
            }
            let Some(oldest) = self.surplus(digest, many) else { return };
            self.kept.remove(&oldest);
        }
    }

    /// Of the project with most charts, or bytes, the one that was used longest ago; never the newest.
    fn surplus(&self, newest: &str, many: bool) -> Option<String> {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for kept in self.kept.values() {
            *taken.entry(&kept.project).or_default() += if many { 1 } else { kept.bytes };
        }
        let others = self.kept.iter().filter(|(digest, _)| *digest != newest);
        let of = |kept: &Kept<T>| taken.get(&*kept.project).copied().unwrap_or_default();
        let first = others.min_by_key(|(_, kept)| (std::cmp::Reverse(of(kept)), kept.used));
        first.map(|(digest, _)| digest.clone())
    }

    /// Forgets all others.
    pub fn keep_only(&mut self, is_pinned: impl Fn(&str) -> bool) {
        self.kept.retain(|digest, _| is_pinned(digest));
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.values().map(|kept| kept.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(ready: &Ready<()>) -> Vec<&str> {
        ready.kept.keys().map(String::as_str).collect()
    }

    #[test]
    fn a_project_that_fills_the_memory_drops_its_own_charts() {
        for (most, most_bytes) in [(4, usize::MAX), (usize::MAX, 40)] {
            let mut ready = Ready::new(most, most_bytes);
            ready.put("quiet", Arc::new(()), 10, Arc::from("quiet"));
            for n in 0..9 {
                ready.put(&format!("loud-{n}"), Arc::new(()), 10, Arc::from("loud"));
            }
            assert_eq!(digests(&ready), ["loud-6", "loud-7", "loud-8", "quiet"]);
        }
    }

    #[test]
    fn the_newest_chart_stays_whatever_it_takes() {
        let mut ready = Ready::new(4, 10);
        ready.put("quiet", Arc::new(()), 10, Arc::from("quiet"));
        ready.put("large", Arc::new(()), 99, Arc::from("loud"));
        assert_eq!(digests(&ready), ["large"]);
    }
}
