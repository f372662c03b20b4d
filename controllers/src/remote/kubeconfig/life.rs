//! From when to when a credential holds; from when on its end is spoken of.

use jiff::{SignedDuration, Timestamp};

/// Nobody needs to hear of an end that is further away.
const EARLIEST: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The life of a credential that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// When it is accepted no more.
    pub ends: Timestamp,
    /// From when on people are warned: two weeks before the end, or when a third of a shorter life is left.
    pub warns: Timestamp,
}

impl Life {
    /// Of a credential that says when it ends and, most often, when it began.
    pub fn new(begins: Option<Timestamp>, ends: Timestamp) -> Self {
        let third = begins.map_or(EARLIEST, |begins| ends.duration_since(begins) / 3);
        let early = third.clamp(SignedDuration::ZERO, EARLIEST);
        Self { ends, warns: ends.checked_sub(early).unwrap_or(ends) }
    }

    /// That of two which ends first.
    pub fn first(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min_by_key(|life| life.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_long_life_is_warned_of_two_weeks_before_its_end_and_a_short_one_in_its_last_third() {
        let year = Life::new(Some(at("2026-01-01T00:00:00Z")), at("2027-01-01T00:00:00Z"));
        assert_eq!(year.warns, at("2026-12-18T00:00:00Z"));
        let day = Life::new(Some(at("2026-01-01T00:00:00Z")), at("2026-01-02T00:00:00Z"));
        assert_eq!(day.warns, at("2026-01-01T16:00:00Z"));
        let unknown = Life::new(None, at("2026-01-15T00:00:00Z"));
        assert_eq!(unknown.warns, at("2026-01-01T00:00:00Z"));
        let odd = Life::new(Some(at("2026-01-02T00:00:00Z")), at("2026-01-01T00:00:00Z"));
        assert_eq!(odd.warns, odd.ends, "one that ends before it begins");
        assert_eq!(Life::first(Some(year), Some(day)), Some(day));
        assert_eq!(Life::first(None, Some(day)), Some(day));
    }
}
