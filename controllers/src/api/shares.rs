//! Chooses who is next among those who share something: of those who have the least, the one after the last.

/// `None` where everybody who waits has as many as one may have.
pub fn next<'a, K: Ord>(
    waiting: impl Iterator<Item = &'a K>,
    last: &K,
    held: impl Fn(&K) -> usize,
    most: usize,
) -> Option<&'a K> {
    waiting.filter(|who| held(who) < most).min_by_key(|who| (held(who), *who <= last, *who))
}
