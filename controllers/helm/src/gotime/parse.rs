//! Parses a time by a layout.
use super::civil::days_in;
use super::format::{MONTHS, WEEKDAYS};
use super::layout::{Field, next};
use super::{Civil, Time, Zone};
use crate::template::quoting::quote;

/// What has been read so far.
#[derive(Default)]
struct Parts {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    pm: Option<bool>,
    utc: bool,
    offset: Option<i32>,
    zone: Option<String>,
}

/// Why a field does not fit.
enum Misfit {
    Bad,
    Range(&'static str),
}

type Read<'a> = Result<&'a [u8], Misfit>;

/// The time a text names by a layout; a text without zone is in UTC.
pub(crate) fn parse(layout: &[u8], text: &[u8]) -> Result<Time, String> {
    let (full_layout, full_text) = (layout, text);
    let problem = |layout: &[u8], text: &[u8], message: &str| {
        let (shown, value) = (quote(full_layout), quote(full_text));
        if message.is_empty() {
            format!("parsing time {value} as {shown}: cannot parse {} as {}", quote(text), quote(layout))
        } else {
            format!("parsing time {value}{message}")
        }
    };
    let (mut layout, mut text) = (layout, text);
    let mut parts = Parts::default();
    loop {
        let (before, field, after) = next(layout);
        let Some(rest) = skip(text, before) else { return Err(problem(before, text, "")) };
        text = rest;
        let Some(field) = field else {
            if !text.is_empty() {
                return Err(problem(b"", b"", &format!(": extra text: {}", quote(text))));
            }
            break;
        };
        let token = layout.get(before.len()..layout.len() - after.len()).unwrap_or_default();
        layout = after;
        match parts.read(field, text, layout) {
            Ok(rest) => text = rest,
            Err(Misfit::Range(what)) => return Err(problem(b"", b"", &format!(": {what} out of range"))),
            Err(Misfit::Bad) => return Err(problem(token, text, "")),
        }
    }
    parts.time().map_err(|what| problem(b"", b"", &format!(": {what} out of range")))
}

/// The text after a literal prefix; a space in the layout matches any number of spaces.
fn skip<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (mut text, mut prefix) = (text, prefix);
    while let Some((first, rest)) = prefix.split_first() {
        if *first == b' ' {
            if text.first().is_some_and(|byte| *byte != b' ') {
                return None;
            }
            prefix = prefix.trim_ascii_start_spaces();
            text = text.trim_ascii_start_spaces();
            continue;
        }
        text = text.strip_prefix(&[*first])?;
        prefix = rest;
    }
    Some(text)
}

trait Spaces {
    fn trim_ascii_start_spaces(&self) -> &Self;
}

impl Spaces for [u8] {
    fn trim_ascii_start_spaces(&self) -> &Self {
        let spaces = self.iter().take_while(|byte| **byte == b' ').count();
        self.get(spaces..).unwrap_or_default()
    }
}

/// One or two digits; exactly two when fixed.
fn number(text: &[u8], fixed: bool) -> Result<(u32, &[u8]), Misfit> {
    let length = text.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 || (fixed && length < 2) {
        return Err(Misfit::Bad);
    }
    digits(text, length).ok_or(Misfit::Bad)
}

/// Exactly so many digits.
fn digits(text: &[u8], length: usize) -> Option<(u32, &[u8])> {
    let (head, rest) = text.split_at_checked(length)?;
    let plain = head.iter().all(u8::is_ascii_digit);
    plain.then(|| (head.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')), rest))
}

/// A name out of a list, in any case, perhaps by its first three letters.
fn name<'a>(text: &'a [u8], names: &[&str], short: bool) -> Result<(u32, &'a [u8]), Misfit> {
    for (i, name) in names.iter().enumerate() {
        let name = if short { name.get(..3).unwrap_or(name) } else { name };
        if let Some((head, rest)) = text.split_at_checked(name.len())
            && head.eq_ignore_ascii_case(name.as_bytes())
        {
            return Ok((u32::try_from(i).unwrap_or(0), rest));
        }
    }
    Err(Misfit::Bad)
}

fn within(value: u32, low: u32, high: u32, what: &'static str) -> Result<u32, Misfit> {
    if (low..=high).contains(&value) { Ok(value) } else { Err(Misfit::Range(what)) }
}

impl Parts {
    fn read<'a>(&mut self, field: Field, text: &'a [u8], layout: &[u8]) -> Read<'a> {
        let rest;
        match field {
            Field::Year => {
                let (value, after) = digits(text, 2).ok_or(Misfit::Bad)?;
                self.year = i64::from(value) + if value >= 69 { 1900 } else { 2000 };
                rest = after;
            }
            Field::LongYear => {
                let (value, after) = digits(text, 4).ok_or(Misfit::Bad)?;
                self.year = i64::from(value);
                rest = after;
            }
            Field::Month | Field::LongMonth => {
                let (value, after) = name(text, &MONTHS, field == Field::Month)?;
                self.month = Some(value + 1);
                rest = after;
            }
            Field::NumMonth | Field::ZeroMonth => {
                let (value, after) = number(text, field == Field::ZeroMonth)?;
                self.month = Some(within(value, 1, 12, "month")?);
                rest = after;
            }
            Field::Weekday | Field::LongWeekday => {
                rest = name(text, &WEEKDAYS, field == Field::Weekday)?.1;
            }
            Field::Day | Field::UnderDay | Field::ZeroDay => {
                let text =
                    if field == Field::UnderDay { text.strip_prefix(b" ").unwrap_or(text) } else { text };
                let (value, after) = number(text, field == Field::ZeroDay)?;
                self.day = Some(value);
                rest = after;
            }
            Field::UnderYearDay | Field::ZeroYearDay => {
                let spaces = if field == Field::UnderYearDay {
                    text.iter().take(2).take_while(|byte| **byte == b' ').count()
                } else {
                    0
                };
                let (value, after) =
                    digits(text.get(spaces..).unwrap_or_default(), 3 - spaces).ok_or(Misfit::Bad)?;
                self.year_day = Some(value);
                rest = after;
            }
            Field::Hour => {
                let (value, after) = number(text, false)?;
                self.hour = within(value, 0, 23, "hour")?;
                rest = after;
            }
            Field::Hour12 | Field::ZeroHour12 => {
                let (value, after) = number(text, field == Field::ZeroHour12)?;
                self.hour = within(value, 0, 12, "hour")?;
                rest = after;
            }
            Field::Minute | Field::ZeroMinute => {
                let (value, after) = number(text, field == Field::ZeroMinute)?;
                self.minute = within(value, 0, 59, "minute")?;
                rest = after;
            }
            Field::Second | Field::ZeroSecond => {
                let (value, after) = number(text, field == Field::ZeroSecond)?;
                self.second = within(value, 0, 59, "second")?;
                // A fraction is taken even if the layout names none.
                let fraction = matches!(after, [b'.' | b',', b'0'..=b'9', ..]);
                let named = matches!(next(layout).1, Some(Field::Fraction { .. }));
                rest = if fraction && !named { self.fraction(after) } else { after };
            }
            Field::UpperPm | Field::LowerPm => {
                let (head, after) = text.split_at_checked(2).ok_or(Misfit::Bad)?;
                self.pm = Some(match (head, field) {
                    (b"PM", Field::UpperPm) | (b"pm", Field::LowerPm) => true,
                    (b"AM", Field::UpperPm) | (b"am", Field::LowerPm) => false,
                    _ => return Err(Misfit::Bad),
                });
                rest = after;
            }
            Field::Offset { z: true, .. } if text.first() == Some(&b'Z') => {
                self.utc = true;
                rest = text.get(1..).unwrap_or_default();
            }
            Field::Offset { colon, parts, .. } => rest = self.offset(text, colon, parts)?,
            Field::ZoneName => rest = self.zone_name(text)?,
            Field::Fraction { digits: count, keep: true, .. } => {
                let (head, _) = text.split_at_checked(count + 1).ok_or(Misfit::Bad)?;
                if !matches!(head.first(), Some(b'.' | b',')) || !head.iter().skip(1).all(u8::is_ascii_digit)
                {
                    return Err(Misfit::Bad);
                }
                self.fraction(head);
                rest = text.get(count + 1..).unwrap_or_default();
            }
            Field::Fraction { .. } => {
                rest =
                    if matches!(text, [b'.' | b',', b'0'..=b'9', ..]) { self.fraction(text) } else { text };
            }
        }
        Ok(rest)
    }

    /// A separator and all digits after it.
    fn fraction<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let body = text.get(1..).unwrap_or_default();
        let length = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut nanos = 0;
        for i in 0..9 {
            let digit = if i < length { body.get(i).map_or(0, |digit| u32::from(digit - b'0')) } else { 0 };
            nanos = nanos * 10 + digit;
        }
        self.nanos = nanos;
        body.get(length..).unwrap_or_default()
    }

    fn offset<'a>(&mut self, text: &'a [u8], colon: bool, parts: u8) -> Read<'a> {
        let (sign, mut rest) = text.split_first().ok_or(Misfit::Bad)?;
        let mut values = [0_u32; 3];
        for (i, value) in values.iter_mut().take(usize::from(parts)).enumerate() {
            if i > 0 && colon {
                rest = rest.strip_prefix(b":").ok_or(Misfit::Bad)?;
            }
            (*value, rest) = digits(rest, 2).ok_or(Misfit::Bad)?;
        }
        let [hours, minutes, seconds] = values;
        within(hours, 0, 24, "time zone offset hour")?;
        within(minutes, 0, 60, "time zone offset minute")?;
        within(seconds, 0, 60, "time zone offset second")?;
        let size = i32::try_from((hours * 60 + minutes) * 60 + seconds).unwrap_or(0);
        self.offset = Some(match sign {
            b'+' => size,
            b'-' => -size,
            _ => return Err(Misfit::Bad),
        });
        Ok(rest)
    }

    /// An abbreviation such as `UTC`, `CEST`, `GMT-8` or `+03`.
    fn zone_name<'a>(&mut self, text: &'a [u8]) -> Read<'a> {
        if let Some(rest) = text.strip_prefix(b"UTC") {
            self.utc = true;
            return Ok(rest);
        }
        let length = zone_length(text).ok_or(Misfit::Bad)?;
        let (name, rest) = text.split_at_checked(length).ok_or(Misfit::Bad)?;
        self.zone = Some(String::from_utf8_lossy(name).into_owned());
        Ok(rest)
    }

    fn time(self) -> Result<Time, &'static str> {
        let mut hour = self.hour;
        match self.pm {
            Some(true) if hour < 12 => hour += 12,
            Some(false) if hour == 12 => hour = 0,
            _ => {}
        }
        let (mut month, mut day) = (self.month, self.day);
        if let Some(year_day) = self.year_day {
            let leap = days_in(2, self.year) == 29;
            if year_day < 1 || year_day > 365 + u32::from(leap) {
                return Err("day-of-year");
            }
            let first = Civil::seconds(self.year, 1, i64::from(year_day), 0, 0, 0);
            let date = Civil::of(&Time::utc(first, 0));
            if month.is_some_and(|month| month != date.month) || day.is_some_and(|day| day != date.day) {
                return Err("day-of-year does not match month");
            }
            (month, day) = (Some(date.month), Some(date.day));
        }
        let (month, day) = (month.unwrap_or(1), day.unwrap_or(1));
        if day < 1 || day > days_in(month, self.year) {
            return Err("day");
        }
        let part = i64::from;
        let local = Civil::seconds(
            self.year,
            part(month),
            part(day),
            part(hour),
            part(self.minute),
            part(self.second),
        );
        let time = Time::utc(local, self.nanos);
        if self.utc {
            return Ok(time);
        }
        if let Some(offset) = self.offset {
            let named = self.zone.as_deref().unwrap_or("");
            let seconds = local - i64::from(offset);
            let utc = offset == 0 && (named.is_empty() || named == "UTC");
            let zone = if utc { Zone::Utc } else { Zone::Fixed { name: named.to_owned(), offset } };
            return Ok(Time { seconds, zone, ..time });
        }
        if let Some(name) = self.zone {
            // An abbreviation does not tell its offset, but `GMT+3` does.
            let hours = name.strip_prefix("GMT").and_then(|hours| hours.parse::<i32>().ok()).unwrap_or(0);
            let offset = hours * 3600;
            return Ok(Time { zone: Zone::Fixed { name, offset }, ..time });
        }
        Ok(time)
    }
}

/// The length of a zone abbreviation at the start of a text.
fn zone_length(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if text.starts_with(b"GMT") {
        return Some(3 + signed_hours(text.get(3..).unwrap_or_default()));
    }
    if matches!(text.first(), Some(b'+' | b'-')) {
        return Some(signed_hours(text)).filter(|length| *length > 0);
    }
    let upper = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    match upper {
        5 if text.get(4) == Some(&b'T') => Some(5),
        4 if text.get(3) == Some(&b'T') || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// The length of a signed number of hours, 0 if there is none.
fn signed_hours(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'+' | b'-')) {
        return 0;
    }
    let length = text.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let hours = text
        .iter()
        .skip(1)
        .take(length)
        .fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    if length == 0 || hours > 23 { 0 } else { length + 1 }
}
