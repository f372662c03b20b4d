//! Parses and prints durations such as `1h15m30.918s`.
use std::fmt::Write as _;

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Durations reach to here and, negative, one further.
const LIMIT: u64 = 1 << 63;

/// Nanoseconds of a duration's text; on failure Go's complaint.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let shown = crate::template::quoting::quote(text.as_bytes());
    let invalid = || format!("time: invalid duration {shown}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole_length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole_text = rest.get(..whole_length).unwrap_or_default();
        rest = rest.get(whole_length..).unwrap_or_default();
        let fraction = match rest.strip_prefix('.') {
            Some(after) => {
                let length = after.bytes().take_while(u8::is_ascii_digit).count();
                rest = after.get(length..).unwrap_or_default();
                after.get(..length).unwrap_or_default()
            }
            None => "",
        };
        if whole_text.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole: u64 = if whole_text.is_empty() { 0 } else { whole_text.parse().map_err(|_| invalid())? };
        let name_length = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let name = rest.get(..name_length).unwrap_or_default();
        rest = rest.get(name_length..).unwrap_or_default();
        if name.is_empty() {
            return Err(format!("time: missing unit in duration {shown}"));
        }
        let Some(unit) = unit(name) else {
            let name = crate::template::quoting::quote(name.as_bytes());
            return Err(format!("time: unknown unit {name} in duration {shown}"));
        };
        let mut value = whole.checked_mul(unit).filter(|value| *value <= LIMIT).ok_or_else(invalid)?;
        if !fraction.is_empty() {
            value += fraction_of(fraction, unit);
        }
        total = total.checked_add(value).filter(|total| *total <= LIMIT).ok_or_else(invalid)?;
    }
    if negative {
        return Ok(0_i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// A decimal fraction of a unit, with the digits that count and float rounding as Go does it.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let Some(next) = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0')))
        else {
            break;
        };
        if next > i64::MAX.unsigned_abs() {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// A duration as Go prints it: `1h15m30.918s`, `1.5ms`.
pub(crate) fn format_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    if size == 0 {
        return "0s".to_owned();
    }
    if size < 1_000_000_000 {
        let (unit, digits, name) = match size {
            0..1_000 => return format!("{sign}{size}ns"),
            1_000..1_000_000 => (1_000, 3, "µs"),
            _ => (1_000_000, 6, "ms"),
        };
        return format!("{sign}{}{}{name}", size / unit, fraction(size % unit, digits));
    }
    let seconds = size / 1_000_000_000;
    let mut out = sign.to_owned();
    if seconds >= 3600 {
        let _ = write!(out, "{}h", seconds / 3600);
    }
    if seconds >= 60 {
        let _ = write!(out, "{}m", seconds / 60 % 60);
    }
    let _ = write!(out, "{}{}s", seconds % 60, fraction(size % 1_000_000_000, 9));
    out
}

/// `.918`, without trailing zeros, nothing for zero.
fn fraction(value: u64, digits: usize) -> String {
    if value == 0 {
        return String::new();
    }
    format!(".{value:0digits$}").trim_end_matches('0').to_owned()
}
