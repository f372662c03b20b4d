//! Reads layouts such as `Mon Jan 2 15:04:05 2006`: their fields, and the text between them.

/// One field of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    /// A numeric offset: `Z` for UTC or not, colons or not, and 1 to 3 parts.
    Offset {
        z: bool,
        colon: bool,
        parts: u8,
    },
    /// A fraction of a second: its digits, whether trailing zeros are kept, and its separator.
    Fraction {
        digits: usize,
        keep: bool,
        separator: u8,
    },
}

/// The text before the first field, the field, and the layout after it.
pub(super) fn next(layout: &[u8]) -> (&[u8], Option<Field>, &[u8]) {
    for i in 0..layout.len() {
        let rest = layout.get(i..).unwrap_or_default();
        if let Some((field, skip, length)) = field(rest) {
            let before = layout.get(..i + skip).unwrap_or_default();
            return (before, Some(field), rest.get(skip + length..).unwrap_or_default());
        }
    }
    (layout, None, &[])
}

/// The field at the start, after how many bytes it begins, and its length.
fn field(rest: &[u8]) -> Option<(Field, usize, usize)> {
    let at = |i: usize| rest.get(i).copied().unwrap_or(0);
    let lower = |i: usize| at(i).is_ascii_lowercase();
    let simple = |field: Field, length: usize| Some((field, 0, length));
    match at(0) {
        b'J' if rest.starts_with(b"January") => simple(Field::LongMonth, 7),
        b'J' if rest.starts_with(b"Jan") && !lower(3) => simple(Field::Month, 3),
        b'M' if rest.starts_with(b"Monday") => simple(Field::LongWeekday, 6),
        b'M' if rest.starts_with(b"Mon") && !lower(3) => simple(Field::Weekday, 3),
        b'M' if rest.starts_with(b"MST") => simple(Field::ZoneName, 3),
        b'0' => match (at(1), at(2)) {
            (b'1', _) => simple(Field::ZeroMonth, 2),
            (b'2', _) => simple(Field::ZeroDay, 2),
            (b'3', _) => simple(Field::ZeroHour12, 2),
            (b'4', _) => simple(Field::ZeroMinute, 2),
            (b'5', _) => simple(Field::ZeroSecond, 2),
            (b'6', _) => simple(Field::Year, 2),
            (b'0', b'2') => simple(Field::ZeroYearDay, 3),
            _ => None,
        },
        b'1' if at(1) == b'5' => simple(Field::Hour, 2),
        b'1' => simple(Field::NumMonth, 1),
        b'2' if rest.starts_with(b"2006") => simple(Field::LongYear, 4),
        b'2' => simple(Field::Day, 1),
        b'_' if rest.starts_with(b"_2006") => Some((Field::LongYear, 1, 4)),
        b'_' if at(1) == b'2' => simple(Field::UnderDay, 2),
        b'_' if rest.starts_with(b"__2") => simple(Field::UnderYearDay, 3),
        b'3' => simple(Field::Hour12, 1),
        b'4' => simple(Field::Minute, 1),
        b'5' => simple(Field::Second, 1),
        b'P' if at(1) == b'M' => simple(Field::UpperPm, 2),
        b'p' if at(1) == b'm' => simple(Field::LowerPm, 2),
        b'-' | b'Z' => offset(rest),
        b'.' | b',' if matches!(at(1), b'0' | b'9') => {
            let digit = at(1);
            let digits = rest.iter().skip(1).take_while(|byte| **byte == digit).count();
            // A longer run of digits is no fraction.
            if at(digits + 1).is_ascii_digit() {
                return None;
            }
            simple(Field::Fraction { digits, keep: digit == b'0', separator: at(0) }, digits + 1)
        }
        _ => None,
    }
}

fn offset(rest: &[u8]) -> Option<(Field, usize, usize)> {
    let z = rest.first() == Some(&b'Z');
    let body = rest.get(1..)?;
    let forms: [(&[u8], bool, u8); 5] = [
        (b"070000", false, 3),
        (b"07:00:00", true, 3),
        (b"0700", false, 2),
        (b"07:00", true, 2),
        (b"07", false, 1),
    ];
    let (text, colon, parts) = forms.into_iter().find(|(text, ..)| body.starts_with(text))?;
    Some((Field::Offset { z, colon, parts }, 0, text.len() + 1))
}
