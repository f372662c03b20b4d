//! Tests of the choice of points at which a process dies.

use std::collections::BTreeSet;

use super::{BETWEEN, Choice, NO_COMMIT, chosen};

fn sample(seed: u32) -> Choice {
    Choice::Sample(seed.to_string())
}

#[test]
fn a_sample_has_the_first_and_the_last_point_and_some_between() {
    for number in 0..100 {
        for seed in 0..20 {
            let points = sample(seed).points(number);
            assert_eq!(points.len(), number.min(BETWEEN + 2), "{number} points, seed {seed}: {points:?}");
            assert_eq!(points.first().copied(), (number > 0).then_some(0), "{number} points, seed {seed}");
            assert_eq!(points.last().copied(), number.checked_sub(1), "{number} points, seed {seed}");
        }
    }
}

#[test]
fn one_seed_takes_the_same_sample_each_time() {
    for seed in 0..20 {
        assert_eq!(sample(seed).points(40), sample(seed).points(40));
    }
    // On every machine, and by every toolchain.
    let points = Choice::Sample("f0223e0".to_owned()).points(40);
    assert_eq!(points, BTreeSet::from([0, 1, 11, 22, 30, 39]));
}

#[test]
fn each_point_is_taken_by_some_seed() {
    for number in [7, 20, 60] {
        let taken: BTreeSet<usize> = (0..300).flat_map(|seed| sample(seed).points(number)).collect();
        assert_eq!(taken, (0..number).collect::<BTreeSet<_>>(), "of {number}");
    }
}

#[test]
fn all_points_are_taken_where_all_are_asked_for() {
    let all = Choice::of(Some("all"), Some("7".to_owned()), || None);
    for number in 0..60 {
        assert_eq!(all.points(number), (0..number).collect::<BTreeSet<_>>());
    }
}

#[test]
fn the_seed_is_the_one_that_is_set_or_else_the_commit() {
    let of = |seed: Option<&str>, commit: Option<&str>| {
        Choice::of(None, seed.map(str::to_owned), || commit.map(str::to_owned))
    };
    let seed = |text: &str| Choice::Sample(text.to_owned());
    assert_eq!(of(Some("7"), Some("f0223e0")), seed("7"));
    assert_eq!(of(None, Some("f0223e0")), seed("f0223e0"));
    assert_eq!(of(Some(""), Some("f0223e0")), seed("f0223e0"));
    assert_eq!(of(None, None), seed(NO_COMMIT));
    assert_eq!(Choice::of(Some(""), None, || None), seed(NO_COMMIT));
}

#[test]
#[should_panic(expected = "EMCO_CRASHES is \"some\": set it to all, or unset it for a sample")]
fn another_choice_than_all_is_refused() {
    Choice::of(Some("some"), None, || None);
}

#[test]
fn a_failure_says_the_points_and_how_they_are_taken_again() {
    let text = sample(7).text(&BTreeSet::from([0, 3, 9]), 10);
    assert_eq!(
        text,
        "takes points {0, 3, 9} of 0..10: EMCO_CRASH_SEED=\"7\" takes these again, EMCO_CRASHES=all takes all"
    );
}

#[test]
fn points_are_taken_in_their_order() {
    let points = chosen(10..40);
    assert!(points.is_sorted(), "{points:?}");
    assert_eq!((points.first(), points.last()), (Some(&10), Some(&39)));
}
