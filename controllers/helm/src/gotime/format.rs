//! Prints a time by a layout.
use std::fmt::Write as _;

use super::layout::{Field, next};
use super::{Civil, Time};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) fn month_name(month: u32) -> &'static str {
    usize::try_from(month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?).copied()).unwrap_or("")
}

pub(super) fn weekday_name(weekday: u32) -> &'static str {
    usize::try_from(weekday).ok().and_then(|weekday| WEEKDAYS.get(weekday).copied()).unwrap_or("")
}

/// The text of a time by a layout.
pub(crate) fn format(time: &Time, layout: &[u8]) -> Vec<u8> {
    let civil = Civil::of(time);
    let (offset, zone) = time.zone.at(time.seconds);
    let mut out = Vec::new();
    let mut rest = layout;
    while !rest.is_empty() {
        let (before, field, after) = next(rest);
        out.extend_from_slice(before);
        let Some(field) = field else { break };
        out.extend_from_slice(text(field, &civil, offset, &zone).as_bytes());
        rest = after;
    }
    out
}

fn text(field: Field, civil: &Civil, offset: i32, zone: &str) -> String {
    let short = |name: &'static str| name.get(..3).unwrap_or(name).to_owned();
    let hour12 = if civil.hour.is_multiple_of(12) { 12 } else { civil.hour % 12 };
    let sign = |width: usize| {
        if civil.year < 0 {
            format!("-{:0width$}", civil.year.unsigned_abs())
        } else {
            format!("{:0width$}", civil.year)
        }
    };
    match field {
        Field::LongMonth => month_name(civil.month).to_owned(),
        Field::Month => short(month_name(civil.month)),
        Field::NumMonth => civil.month.to_string(),
        Field::ZeroMonth => format!("{:02}", civil.month),
        Field::LongWeekday => weekday_name(civil.weekday).to_owned(),
        Field::Weekday => short(weekday_name(civil.weekday)),
        Field::Day => civil.day.to_string(),
        Field::UnderDay => format!("{:2}", civil.day),
        Field::ZeroDay => format!("{:02}", civil.day),
        Field::UnderYearDay => format!("{:3}", civil.year_day),
        Field::ZeroYearDay => format!("{:03}", civil.year_day),
        Field::Hour => format!("{:02}", civil.hour),
        Field::Hour12 => hour12.to_string(),
        Field::ZeroHour12 => format!("{hour12:02}"),
        Field::Minute => civil.minute.to_string(),
        Field::ZeroMinute => format!("{:02}", civil.minute),
        Field::Second => civil.second.to_string(),
        Field::ZeroSecond => format!("{:02}", civil.second),
        Field::LongYear => sign(4),
        Field::Year => format!("{:02}", civil.year.rem_euclid(100)),
        Field::UpperPm => if civil.hour >= 12 { "PM" } else { "AM" }.to_owned(),
        Field::LowerPm => if civil.hour >= 12 { "pm" } else { "am" }.to_owned(),
        Field::ZoneName if zone.is_empty() => offset_text(offset, false, 2),
        Field::ZoneName => zone.to_owned(),
        Field::Offset { z: true, .. } if offset == 0 => "Z".to_owned(),
        Field::Offset { colon, parts, .. } => offset_text(offset, colon, parts),
        Field::Fraction { digits, keep, separator } => fraction(civil.nanos, digits, keep, separator),
    }
}

fn offset_text(offset: i32, colon: bool, parts: u8) -> String {
    let size = offset.unsigned_abs();
    let separator = if colon { ":" } else { "" };
    let mut out = format!("{}{:02}", if offset < 0 { '-' } else { '+' }, size / 3600);
    if parts > 1 {
        let _ = write!(out, "{separator}{:02}", size / 60 % 60);
    }
    if parts > 2 {
        let _ = write!(out, "{separator}{:02}", size % 60);
    }
    out
}

fn fraction(nanos: u32, digits: usize, keep: bool, separator: u8) -> String {
    let mut text = format!("{nanos:09}");
    text.truncate(digits.min(9));
    if !keep {
        text.truncate(text.trim_end_matches('0').len());
        if text.is_empty() {
            return text;
        }
    }
    text.extend(std::iter::repeat_n('0', if keep { digits.saturating_sub(9) } else { 0 }));
    format!("{}{text}", char::from(separator))
}
