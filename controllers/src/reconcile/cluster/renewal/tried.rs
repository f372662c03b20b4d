//! Remembers what the last renewal of each cluster's token came to, so that a cluster that refuses is asked seldom.

use std::collections::BTreeMap;
use std::time::Duration;

use emco_engine::identity::ClusterId;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::remote::kubeconfig::claims::Bound;

/// Why a token was not renewed. No part of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A phrase that says why; it does not change while the cause is the same.
    pub message: String,
    /// Whether somebody has to do something. What is a matter of moments is said only when the end is near.
    pub lasts: bool,
    /// The first pause before the cluster is asked again; it doubles.
    pub pause: Duration,
    /// The longest one.
    pub longest: Duration,
}

/// The last try.
struct Tried {
    /// Of the token that was issued and ends so. Another one is tried afresh.
    of: (Timestamp, Timestamp),
    refusal: Option<Refusal>,
    failures: u32,
    not_before_ms: i64,
}

/// What the last tries came to, of clusters that are registered. A process that begins tries once more.
#[derive(Default)]
pub struct Renewals(Mutex<BTreeMap<ClusterId, Tried>>);

fn of(bound: &Bound) -> (Timestamp, Timestamp) {
    (bound.issued, bound.ends)
}

fn later(now_ms: i64, by: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
}

impl Renewals {
    /// How long the cluster is not asked for another token like this, and what it said last.
    pub(crate) fn pause(
        &self,
        id: &ClusterId,
        bound: &Bound,
        now_ms: i64,
    ) -> Option<(Duration, Option<Refusal>)> {
        let all = self.0.lock();
        let tried = all.get(id).filter(|tried| tried.of == of(bound))?;
        let left = u64::try_from(tried.not_before_ms.saturating_sub(now_ms)).ok().filter(|left| *left > 0)?;
        Some((Duration::from_millis(left), tried.refusal.clone()))
    }

    /// A try came to nothing. Answers the pause before the next one.
    pub(crate) fn refused(&self, id: &ClusterId, bound: &Bound, refusal: Refusal, now_ms: i64) -> Duration {
        let mut all = self.0.lock();
        let before = all.get(id).filter(|tried| tried.of == of(bound));
        let failures = before.map_or(0, |tried| tried.failures);
        let pause = refusal.pause.saturating_mul(1_u32 << failures.min(16)).min(refusal.longest);
        let tried = Tried {
            of: of(bound),
            refusal: Some(refusal),
            failures: failures.saturating_add(1),
            not_before_ms: later(now_ms, pause),
        };
        all.insert(id.clone(), tried);
        pause
    }

    /// The cluster issued this token, which is not renewed for a while whatever the clocks say: where the cluster's is far behind the hub's,
    /// it would be due at once.
    pub(crate) fn renewed(&self, id: &ClusterId, bound: &Bound, now_ms: i64) {
        let life = Duration::try_from(bound.ends.duration_since(bound.issued)).unwrap_or_default();
        let tried =
            Tried { of: of(bound), refusal: None, failures: 0, not_before_ms: later(now_ms, life / 5) };
        self.0.lock().insert(id.clone(), tried);
    }

    /// The cluster is gone, or somebody wants another try now.
    pub(crate) fn forget(&self, id: &ClusterId) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(ends: i64) -> Bound {
        Bound {
            issued: Timestamp::from_second(0).unwrap(),
            ends: Timestamp::from_second(ends).unwrap(),
            account: (String::new(), String::new()),
            account_uid: None,
            audiences: Vec::new(),
            secret: None,
        }
    }

    fn refusal() -> Refusal {
        let (pause, longest) = (Duration::from_secs(60), Duration::from_secs(600));
        Refusal { message: "it is so".to_owned(), lasts: true, pause, longest }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_another_token_is_tried_at_once() {
        let (all, id) = (Renewals::default(), ClusterId::new("acme", "a"));
        assert!(all.pause(&id, &bound(600), 0).is_none());
        let pauses: Vec<u64> =
            (0..6).map(|_| all.refused(&id, &bound(600), refusal(), 0).as_secs()).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 600, 600]);
        assert_eq!(all.pause(&id, &bound(600), 599_000), Some((Duration::from_secs(1), Some(refusal()))));
        assert!(all.pause(&id, &bound(600), 600_000).is_none());
        assert!(all.pause(&id, &bound(700), 0).is_none(), "another token");
        all.forget(&id);
        assert!(all.pause(&id, &bound(600), 0).is_none());
    }

    #[test]
    fn what_was_just_issued_is_not_renewed_at_once_whatever_the_clocks_say() {
        let (all, id) = (Renewals::default(), ClusterId::new("acme", "a"));
        all.renewed(&id, &bound(600), 0);
        assert_eq!(all.pause(&id, &bound(600), 0), Some((Duration::from_secs(120), None)));
    }
}
