//! Converts seconds since 1970 to calendar dates and back.
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::Time;

/// Where a time is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Zone {
    Utc,
    /// A zone with one offset in seconds east of UTC, perhaps without a name.
    Fixed {
        name: String,
        offset: i32,
    },
    /// A zone of the time zone database.
    Named(TimeZone),
}

impl Zone {
    /// A zone by name. Templates run without a machine's own zone, so `Local` is UTC.
    pub fn load(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" | "Local" => Some(Self::Utc),
            name => TimeZoneDatabase::bundled().get(name).ok().map(Self::Named),
        }
    }

    /// The offset in seconds and the abbreviation at an instant.
    pub fn at(&self, seconds: i64) -> (i32, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Fixed { name, offset } => (*offset, name.clone()),
            Self::Named(zone) => {
                let instant = jiff::Timestamp::from_second(seconds).unwrap_or_default();
                let info = zone.to_offset_info(instant);
                (info.offset().seconds(), info.abbreviation().to_owned())
            }
        }
    }
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub year: i64,
    /// 1 to 12
    pub month: u32,
    /// 1 to 31
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
    /// 0 is Sunday.
    pub weekday: u32,
    /// 1 to 366
    pub year_day: u32,
}

const DAY: i64 = 86_400;

/// Days from 1970 to a date of the Gregorian calendar. Months and days may lie outside their range.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12));
    // Years begin in March here, so that a leap day is their last.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year + day - 1 - 719_468
}

fn date(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let small = |value: i64| u32::try_from(value).unwrap_or(1);
    (era * 400 + year + carry, small(month), small(day))
}

impl Civil {
    pub fn of(time: &Time) -> Self {
        let (offset, _) = time.zone.at(time.seconds);
        let local = time.seconds.saturating_add(i64::from(offset));
        let (day_number, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = date(day_number);
        let small = |value: i64| u32::try_from(value).unwrap_or(0);
        Self {
            year,
            month,
            day,
            hour: small(second / 3600),
            minute: small(second / 60 % 60),
            second: small(second % 60),
            nanos: time.nanos,
            weekday: small((day_number + 4).rem_euclid(7)),
            year_day: small(day_number - days(year, 1, 1) + 1),
        }
    }

    /// Seconds since 1970 of a date and time of day, taken as UTC; fields may lie outside their range.
    pub fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> i64 {
        days(year, month, day)
            .wrapping_mul(DAY)
            .wrapping_add(hour.wrapping_mul(3600))
            .wrapping_add(minute.wrapping_mul(60))
            .wrapping_add(second)
    }
}

/// The number of days a month has.
pub(super) fn days_in(month: u32, year: i64) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
