//! Bytes that the render of this thread may still make.
//!
//! The account belongs to the thread, since readers and writers deep below the functions of templates count too. On threads
//! without a render nothing is counted.
use std::cell::Cell;

/// What one value in a list, a map or a document takes at least, beside its text.
pub(crate) const NODE_BYTES: usize = 96;

/// What a map takes as soon as it has an entry: its tree has room for eleven.
pub(crate) const MAP_BYTES: usize = 700;

/// The longest text that is made at once where no render counts.
const MOST_AT_ONCE: usize = 256 << 20;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    static PASSED: Cell<bool> = const { Cell::new(false) };
}

/// A render begins.
pub(super) fn open(bytes: usize) {
    LEFT.set(bytes);
    PASSED.set(false);
}

/// A render ends.
pub(super) fn close() {
    open(usize::MAX);
}

/// Bytes that are left.
pub(crate) fn left() -> usize {
    LEFT.get()
}

/// Whether the render asked for more than it may have: it fails at its next step.
pub(crate) fn has_passed() -> bool {
    PASSED.get()
}

/// Accounts for bytes that are made; false when they are more than the render may make.
pub(crate) fn take(bytes: usize) -> bool {
    let left = LEFT.get();
    if left == usize::MAX {
        return true;
    }
    match left.checked_sub(bytes) {
        Some(left) => LEFT.set(left),
        None => PASSED.set(true),
    }
    bytes <= left
}

/// Whether so many bytes may be made at once. They are not accounted for: for what is dropped soon or counted later.
pub(crate) fn fits(bytes: usize) -> bool {
    let left = LEFT.get();
    let fits = bytes <= left.min(MOST_AT_ONCE);
    if !fits && left != usize::MAX {
        PASSED.set(true);
    }
    fits
}

/// Runs what is made once for all renders and is not to be counted for the one that happens to be first.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    let (left, passed) = (LEFT.replace(usize::MAX), PASSED.replace(false));
    let done = work();
    LEFT.set(left);
    PASSED.set(passed);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_render_gets_no_more_than_its_room() {
        open(100);
        assert!(take(60) && !has_passed());
        assert!(fits(40) && !has_passed());
        assert!(!take(41) && has_passed());
        assert_eq!(apart(|| (take(1000), has_passed())), (true, false));
        assert!(has_passed());
        close();
        assert!(take(usize::MAX) && !has_passed());
    }

    #[test]
    fn what_does_not_fit_at_once_fails_the_render() {
        open(100);
        assert!(!fits(101) && has_passed());
        close();
        assert!(!fits(MOST_AT_ONCE + 1) && !has_passed(), "no render is there to fail");
    }
}
