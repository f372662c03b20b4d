//! Says when a credential is renewed: after about two thirds of its life, not all of a logical cloud's at one moment.

use jiff::{SignedDuration, Timestamp};

/// Thousandths of a life: the first and the last moment.
const FROM: i64 = 600;
const TO: i64 = 667;
/// A life is no shorter, whatever a certificate says: a cluster whose clock is wrong must not be asked without a pause.
const SHORTEST: SignedDuration = SignedDuration::from_secs(15);

/// When a credential is renewed. The same `spread` gives the same moment.
pub fn renew_at(issued: Timestamp, expires: Timestamp, spread: u64) -> Timestamp {
    let life = expires.duration_since(issued).max(SHORTEST);
    let within = u64::try_from(TO - FROM).unwrap_or(1);
    let share = FROM + i64::try_from(spread % within).unwrap_or_default();
    // Whole seconds, as statuses have them.
    let after = life.as_secs().saturating_mul(share) / 1000;
    issued.checked_add(SignedDuration::from_secs(after)).unwrap_or(expires)
}

/// The earliest of several times.
pub fn first(times: impl IntoIterator<Item = Timestamp>) -> Option<Timestamp> {
    times.into_iter().min()
}
