//! Makes choices that are the same in every run of a seed, so that what a test found is found again.

/// Xorshift with 64 bits: choices of tests need no better. The seed is not 0, which it would never leave.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Below `end`; 0 where nothing is below it.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    /// A place in a list of this length.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// One of these, which are not none.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.place(all.len())]
    }

    /// Another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.place(last + 1));
        }
    }
}
