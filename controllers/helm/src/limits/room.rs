//! Bytes that the render of this thread has alive.
//!
//! The account belongs to the thread, since readers and writers deep below the functions of templates count too. Texts, lists and
//! maps count themselves from when they are made until nobody has them any more. On threads without a render nothing is counted.
use std::cell::Cell;

/// What one value in a list, a map or a document takes at least, beside its text.
pub(crate) const NODE_BYTES: usize = 96;

/// What a map takes as soon as it has an entry: its tree has room for eleven.
pub(crate) const MAP_BYTES: usize = 700;

/// The longest text that is made at once where no render counts.
const MOST_AT_ONCE: usize = 256 << 20;

/// Bytes that documents may take beyond the room of a render, for each byte that was printed. Ordinary manifests take nine to
/// sixteen times their text, in maps of few entries.
const DOCUMENT_FACTOR: usize = 6;

/// Parts of values that one render may look through without making anything of them.
const MOST_LOOKS: usize = 8 << 20;

#[derive(Clone, Copy, Debug)]
struct Account {
    /// `usize::MAX` without a render.
    limit: usize,
    alive: usize,
    printed: usize,
    documents: usize,
    looks: usize,
    passed: bool,
}

const NONE: Account =
    Account { limit: usize::MAX, alive: 0, printed: 0, documents: 0, looks: 0, passed: false };

thread_local! {
    static ACCOUNT: Cell<Account> = const { Cell::new(NONE) };
}

/// Changes the account of a render, if there is one.
fn change(change: impl FnOnce(&mut Account) -> bool) -> bool {
    let mut account = ACCOUNT.get();
    if account.limit == usize::MAX {
        return true;
    }
    let fits = change(&mut account);
    account.passed |= !fits;
    ACCOUNT.set(account);
    fits
}

/// A render begins.
pub(super) fn open(bytes: usize) {
    ACCOUNT.set(Account { limit: bytes, ..NONE });
}

/// A render ends.
pub(super) fn close() {
    ACCOUNT.set(NONE);
}

/// Whether the render asked for more than it may have: it fails at its next step.
pub(crate) fn has_passed() -> bool {
    ACCOUNT.get().passed
}

/// Accounts for bytes that are made; false when they are more than the render may have. They count until they are given back.
pub(crate) fn take(bytes: usize) -> bool {
    change(|account| {
        account.alive = account.alive.saturating_add(bytes);
        account.alive <= account.limit
    })
}

/// Gives back what was taken.
pub(crate) fn give(bytes: usize) {
    change(|account| {
        account.alive = account.alive.saturating_sub(bytes);
        true
    });
}

/// So many bytes may be made at once. They are not accounted for: for what is dropped soon, or counts itself.
pub(crate) fn fits(bytes: usize) -> bool {
    let has_room = change(|account| bytes <= account.limit.saturating_sub(account.alive).min(MOST_AT_ONCE));
    has_room && bytes <= MOST_AT_ONCE
}

/// Accounts for text that is printed into a manifest.
pub(super) fn print(bytes: usize) {
    change(|account| {
        account.printed = account.printed.saturating_add(bytes);
        true
    });
}

/// Accounts for the data of a document, which stays until the render ends; false when it is too much for what was printed.
pub(crate) fn take_document(bytes: usize) -> bool {
    change(|account| {
        account.documents = account.documents.saturating_add(bytes);
        let more = account.printed.saturating_mul(DOCUMENT_FACTOR);
        account.documents <= account.limit.saturating_add(more)
    })
}

/// Looks at one more part of a value; false when there are too many. Values that share values have exponentially many.
pub(crate) fn look() -> bool {
    change(|account| {
        account.looks += 1;
        account.looks <= MOST_LOOKS
    })
}

/// Runs what is not to be counted for the render of this thread.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    let account = ACCOUNT.replace(NONE);
    let done = work();
    ACCOUNT.set(account);
    done
}

/// Bytes that are taken until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

impl Held {
    /// Takes more; false when they are more than the render may have.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        take(bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        give(self.0);
    }
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
    fn what_was_dropped_does_not_count() {
        open(100);
        for _ in 0..10 {
            let mut held = Held::default();
            assert!(held.add(50) && held.add(40));
        }
        assert!(take(100) && !has_passed());
        close();
    }

    #[test]
    fn documents_may_take_more_when_more_was_printed() {
        open(100);
        assert!(take_document(100) && !has_passed());
        print(10);
        assert!(take_document(60) && !take_document(1));
        close();
    }

    #[test]
    fn what_does_not_fit_at_once_fails_the_render() {
        open(100);
        assert!(!fits(101) && has_passed());
        close();
        assert!(!fits(MOST_AT_ONCE + 1) && !has_passed(), "no render is there to fail");
    }
}
