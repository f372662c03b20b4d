//! Converts values of any type to numbers and text, by the lenient rules of Helm's conversions.
use crate::gofmt;
use crate::value::{Kind, ListType, Text, Value};

/// A float as Go on amd64 converts it to `int64`: what does not fit is the smallest number.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn truncate(float: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&float) { float as i64 } else { i64::MIN }
}

/// `int64`: what is no number is zero.
pub(crate) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Int(int) => int.wrapping_i64(),
        Value::Float(float) => truncate(*float),
        Value::Text(text) => {
            text.as_str().and_then(|text| parse_int(trim_zero_decimal(text), 0)).unwrap_or(0)
        }
        Value::Bool(value) => i64::from(*value),
        Value::Object(object) => match (object.kind(), object.plain()) {
            // Months and weekdays count; other named integers do not.
            (Kind::Int(_), Value::Int(int))
                if matches!(object.type_name(), "time.Month" | "time.Weekday") =>
            {
                int.wrapping_i64()
            }
            _ => 0,
        },
        _ => 0,
    }
}

/// `float64`: what is no number is zero.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Int(int) => int.as_f64(),
        Value::Float(float) => *float,
        Value::Text(text) => text.as_str().and_then(parse_float).unwrap_or(0.0),
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Object(_) => to_int64(value) as f64,
        _ => 0.0,
    }
}

/// `1.0` as `1`, `1.10` as it is.
fn trim_zero_decimal(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// As `parse_int` in base 10, but a number out of range is the nearest one in range, for callers that ignore the
/// error alone.
pub(crate) fn parse_int_saturating(text: &str) -> i64 {
    if let Some(value) = parse_int(text, 10) {
        return value;
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return 0;
    }
    if text.starts_with('-') { i64::MIN } else { i64::MAX }
}

/// Go's `strconv.ParseInt`. Base 0 reads prefixes and underscores between digits.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let magnitude = i128::from(parse_uint(body, base)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn parse_uint(text: &str, base: u32) -> Option<u64> {
    if base != 0 {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return if plain { u64::from_str_radix(text, base).ok() } else { None };
    }
    let (base, body) = match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, text.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, text.get(2..)?),
        [b'0', b'b' | b'B', _, ..] => (2, text.get(2..)?),
        [b'0', _, ..] => (8, text.get(1..)?),
        _ => (10, text),
    };
    let mut digits = body.to_owned();
    if body.contains('_') {
        // Underscores stand between digits, or after a prefix.
        let lead = if base == 10 { "" } else { "0" };
        let shape = format!("{lead}{body}");
        if shape.starts_with('_') || shape.ends_with('_') || shape.contains("__") {
            return None;
        }
        digits.retain(|c| c != '_');
    }
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { u64::from_str_radix(&digits, base).ok() } else { None }
}

/// Go's `strconv.ParseFloat`: also `inf`, `infinity`, `nan` and hexadecimal floats.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1.0, text.get(1..)?),
        b'+' => (1.0, text.get(1..)?),
        _ => (1.0, text),
    };
    let lower = body.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    if lower.starts_with("0x") {
        return parse_hex_float(&lower).map(|value| sign * value).filter(|value| value.is_finite());
    }
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-' | b'_');
    if !lower.bytes().all(plain) {
        return None;
    }
    // Underscores stand between digits.
    let bytes = lower.as_bytes();
    let between = |at: usize| {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && !between(at)) {
        return None;
    }
    let value: f64 = lower.replace('_', "").parse().ok()?;
    (value.is_finite()).then_some(sign * value)
}

fn parse_hex_float(text: &str) -> Option<f64> {
    let plain = if text.contains('_') {
        if text.contains("__") || text.ends_with('_') {
            return None;
        }
        text.replace('_', "")
    } else {
        text.to_owned()
    };
    let (mantissa, exponent) = plain.strip_prefix("0x")?.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0 / 16.0;
    for digit in fraction.chars() {
        value += f64::from(digit.to_digit(16)?) * scale;
        scale /= 16.0;
    }
    Some(value * 2.0_f64.powi(exponent))
}

/// Text of a value: strings and bytes as they are, everything else as printed.
pub(crate) fn strval(value: &Value) -> Text {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(list) if list.list_type() == ListType::Bytes => {
            let byte = |item: &Value| match item {
                Value::Int(int) => int.wrapping_u64().to_le_bytes().first().copied().unwrap_or(0),
                _ => 0,
            };
            Text::from(list.items().iter().map(byte).collect::<Vec<u8>>())
        }
        other => {
            crate::objects::file_contents(other).cloned().unwrap_or_else(|| gofmt::display(other).into())
        }
    }
}

/// Texts of a list's items without nils; a single value is a list of one.
pub(crate) fn strslice(value: &Value) -> Vec<Text> {
    match value {
        Value::Nil => Vec::new(),
        Value::List(list) => list.items().iter().filter(|item| !is_untyped_nil(item)).map(strval).collect(),
        Value::Object(object) if object.kind() == Kind::Slice => strslice(&object.plain()),
        other => vec![strval(other)],
    }
}

pub(crate) fn is_untyped_nil(value: &Value) -> bool {
    matches!(value, Value::Nil)
}
