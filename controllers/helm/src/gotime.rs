//! Go's times and durations: instants, zones, and text by Go's layouts.
mod civil;
mod duration;
mod format;
mod layout;
mod object;
mod parse;

pub(crate) use civil::{Civil, Zone};
pub(crate) use duration::{format_duration, parse_duration};
pub(crate) use format::format;
pub(crate) use object::{TimeObject, round_duration};
pub(crate) use parse::parse;

/// An instant shown in a zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time {
    /// Seconds since 1970 UTC.
    pub seconds: i64,
    pub nanos: u32,
    pub zone: Zone,
}

/// The year 1 of Go's zero time, in seconds since 1970.
const ZERO_SECONDS: i64 = -62_135_596_800;

impl Time {
    pub fn utc(seconds: i64, nanos: u32) -> Self {
        Self { seconds, nanos, zone: Zone::Utc }
    }

    /// Go's zero time: the first of January of the year 1.
    pub fn zero() -> Self {
        Self::utc(ZERO_SECONDS, 0)
    }

    pub fn is_zero(&self) -> bool {
        self.seconds == ZERO_SECONDS && self.nanos == 0
    }

    /// The instant a number of nanoseconds later.
    #[must_use]
    pub fn add(&self, nanos: i64) -> Self {
        let total = i64::from(self.nanos) + nanos.rem_euclid(1_000_000_000);
        let carry = total / 1_000_000_000;
        Self {
            seconds: self.seconds.wrapping_add(nanos.div_euclid(1_000_000_000)).wrapping_add(carry),
            nanos: u32::try_from(total % 1_000_000_000).unwrap_or(0),
            zone: self.zone.clone(),
        }
    }

    /// Nanoseconds from another instant to this one, as far as a duration reaches.
    pub fn since(&self, earlier: &Self) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(earlier.seconds);
        let nanos = seconds * 1_000_000_000 + i128::from(self.nanos) - i128::from(earlier.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}
