//! Parses numeric constants into every Go type that they fit.
use super::Kind;
use crate::template::ast::{Number, Pos};
use crate::template::quoting::{Unit, quote, unquote_unit};

pub(super) fn parse(pos: Pos, text: &str, kind: Kind) -> Result<Number, String> {
    let number = Number { pos, text: text.to_owned(), ..Number::default() };
    match kind {
        Kind::CharConstant => character(number),
        Kind::Complex => complex(number),
        _ => real(number),
    }
}

fn character(mut number: Number) -> Result<Number, String> {
    let inner = number.text.as_bytes().get(1..).unwrap_or_default();
    let Some((unit, tail)) = unquote_unit(inner, b'\'') else { return Err("invalid syntax".to_owned()) };
    if tail != b"'" {
        return Err(format!("malformed character constant: {}", number.text));
    }
    let code = match unit {
        Unit::Byte(byte) => u32::from(byte),
        Unit::Char(c) => u32::from(c),
    };
    number.int = Some(i64::from(code));
    number.uint = Some(u64::from(code));
    number.float = Some(f64::from(code));
    Ok(number)
}

/// `1+2i`: the sign before the imaginary part is the last one that is no exponent's.
fn complex(mut number: Number) -> Result<Number, String> {
    let bad = || "syntax error scanning complex number".to_owned();
    let body = number.text.strip_suffix('i').ok_or_else(bad)?;
    let split = body
        .char_indices()
        .filter(|(index, c)| {
            let exponent = body.get(..*index).is_some_and(|head| head.ends_with(['e', 'E', 'p', 'P']));
            let hex_digit = exponent && !is_exponent(body, *index);
            matches!(c, '+' | '-') && *index > 0 && (!exponent || hex_digit)
        })
        .map(|(index, _)| index)
        .next()
        .ok_or_else(bad)?;
    let (re, im) = body.split_at_checked(split).ok_or_else(bad)?;
    let (re, im) = (float(re).ok_or_else(bad)?, float(im).ok_or_else(bad)?);
    simplify(&mut number, re, im);
    Ok(number)
}

/// Whether the letter before a sign is an exponent mark and no hexadecimal digit.
fn is_exponent(body: &str, sign: usize) -> bool {
    let hex = body.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
    let mark = body.as_bytes().get(sign.wrapping_sub(1)).copied().unwrap_or_default();
    if hex { matches!(mark, b'p' | b'P') } else { matches!(mark, b'e' | b'E') }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn simplify(number: &mut Number, re: f64, im: f64) {
    number.complex = Some((re, im));
    if im == 0.0 {
        number.float = Some(re);
        number.int = exact_i64(re);
        number.uint = exact_u64(re);
    }
}

fn real(mut number: Number) -> Result<Number, String> {
    let text = number.text.clone();
    if let Some(im) = text.strip_suffix('i').and_then(float) {
        simplify(&mut number, 0.0, im);
        return Ok(number);
    }
    number.uint = unsigned(&text);
    number.int = signed(&text);
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    #[allow(clippy::cast_precision_loss)] // Go rounds the same way.
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(value) = float(&text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote(text.as_bytes())));
        }
        number.float = Some(value);
        number.int = exact_i64(value);
        number.uint = exact_u64(value);
    } else {
        return Err(format!("illegal number syntax: {}", quote(text.as_bytes())));
    }
    Ok(number)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn exact_i64(value: f64) -> Option<i64> {
    let int = value as i64;
    (int as f64 == value && value < 9_223_372_036_854_775_808.0).then_some(int)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp
)]
fn exact_u64(value: f64) -> Option<u64> {
    let int = value as u64;
    (int as f64 == value && value < 18_446_744_073_709_551_616.0).then_some(int)
}

fn unsigned(text: &str) -> Option<u64> {
    let (radix, digits) = radix(text);
    let digits = without_underscores(digits, radix != 10)?;
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&digits, radix).ok()
}

fn signed(text: &str) -> Option<i64> {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    let magnitude = i128::from(unsigned(magnitude)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// The base a literal's prefix names, and its digits. A leading zero alone means octal.
fn radix(text: &str) -> (u32, &str) {
    let Some(rest) = text.strip_prefix('0') else { return (10, text) };
    match rest.as_bytes().first() {
        None => (10, text),
        Some(b'x' | b'X') => (16, rest.get(1..).unwrap_or_default()),
        Some(b'o' | b'O') => (8, rest.get(1..).unwrap_or_default()),
        Some(b'b' | b'B') => (2, rest.get(1..).unwrap_or_default()),
        Some(_) => (8, rest),
    }
}

/// Digits without the underscores Go allows: single ones, between digits or after a prefix.
fn without_underscores(digits: &str, after_prefix: bool) -> Option<String> {
    if !digits.contains('_') {
        return Some(digits.to_owned());
    }
    let misplaced =
        digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !after_prefix);
    (!misplaced).then(|| digits.replace('_', ""))
}

/// Go's `ParseFloat` for what the lexer lets through: decimal and hexadecimal floats.
fn float(text: &str) -> Option<f64> {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    if !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value = if magnitude.starts_with("0x") || magnitude.starts_with("0X") {
        hex_float(magnitude.get(2..)?)?
    } else {
        without_underscores(magnitude, false)?.parse().ok().filter(|value: &f64| value.is_finite())?
    };
    Some(if negative { -value } else { value })
}

/// `1.8p3`: hexadecimal digits, which must have a binary exponent.
fn hex_float(text: &str) -> Option<f64> {
    let text = text.replace('_', "");
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 30 {
        return None;
    }
    let bits = u128::from_str_radix(&digits, 16).ok()?;
    let shift = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    #[allow(clippy::cast_precision_loss)] // To nearest even, as Go rounds.
    let value = bits as f64 * 2f64.powi(shift.clamp(-1200, 1200));
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Forms = (Option<i64>, Option<u64>, Option<f64>);

    fn number(text: &str) -> Result<Forms, String> {
        let kind = if text.starts_with('\'') { Kind::CharConstant } else { Kind::Number };
        parse(0, text, kind).map(|n| (n.int, n.uint, n.float))
    }

    #[test]
    fn constants_have_every_type_they_fit() {
        assert_eq!(number("0").unwrap(), (Some(0), Some(0), Some(0.0)));
        assert_eq!(number("-0").unwrap(), (Some(0), Some(0), Some(0.0)));
        assert_eq!(number("073").unwrap(), (Some(59), Some(59), Some(59.0)));
        assert_eq!(number("0x123").unwrap(), (Some(291), Some(291), Some(291.0)));
        assert_eq!(number("0b1_01").unwrap(), (Some(5), Some(5), Some(5.0)));
        assert_eq!(number("-73").unwrap(), (Some(-73), None, Some(-73.0)));
        assert_eq!(number("1e19").unwrap(), (None, Some(10_000_000_000_000_000_000), Some(1e19)));
        assert_eq!(number("-1.2").unwrap(), (None, None, Some(-1.2)));
        assert_eq!(number("0x1p20").unwrap(), (Some(1 << 20), Some(1 << 20), Some(1_048_576.0)));
        assert_eq!(number("'\\n'").unwrap(), (Some(10), Some(10), Some(10.0)));
        assert_eq!(number("1_000").unwrap(), (Some(1000), Some(1000), Some(1000.0)));
    }

    #[test]
    fn malformed_constants_say_why() {
        assert_eq!(number("18446744073709551616").unwrap_err(), "integer overflow: \"18446744073709551616\"");
        assert_eq!(number("089").unwrap_err(), "integer overflow: \"089\"");
        assert_eq!(number("1.2.3").unwrap_err(), "illegal number syntax: \"1.2.3\"");
        assert_eq!(number("'ab'").unwrap_err(), "malformed character constant: 'ab'");
    }
}
