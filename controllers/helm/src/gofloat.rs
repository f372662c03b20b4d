//! Writes floats as Go's `strconv.FormatFloat`.
use std::fmt::Write as _;

/// The shortest digits that read back as the same number, and the place of the decimal point before or after them.
struct Digits {
    negative: bool,
    text: String,
    /// The value is `0.digits` times ten to this power.
    point: i32,
}

fn digits(scientific: &str) -> Digits {
    let (negative, rest) = match scientific.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, scientific),
    };
    let (mantissa, exponent) = rest.split_once('e').unwrap_or((rest, "0"));
    let mut text: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if text.bytes().all(|digit| digit == b'0') {
        text = String::new();
        return Digits { negative, text, point: 0 };
    }
    Digits { negative, text, point: exponent + 1 }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// `%g` with the fewest digits that keep the value.
pub(crate) fn shortest_g(value: f64) -> String {
    special(value).map_or_else(|| general(&digits(&format!("{value:e}")), 6, 'e'), str::to_owned)
}

/// As `shortest_g`, for 32-bit floats.
pub(crate) fn shortest_g_32(value: f32) -> String {
    special(f64::from(value)).map_or_else(|| general(&digits(&format!("{value:e}")), 6, 'e'), str::to_owned)
}

/// A float as Go's JSON writes it; not for infinities and NaN.
pub(crate) fn json(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{value}");
    }
    let text = exponent_form(&digits(&format!("{value:e}")), None, 'e');
    // Go shortens e-09 to e-9 here.
    match text.rsplit_once("e-0") {
        Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
        None => text,
    }
}

/// A float by a verb of `fmt` (`e`, `E`, `f`, `F`, `g`, `G`, `b`, `x`, `X`) and a precision, `None` for the shortest.
pub(crate) fn format(value: f64, verb: char, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    // More digits than any float has are zeros; the bound keeps a chart from asking for gigabytes.
    let precision = precision.map(|precision| precision.min(1_000_000));
    match (verb, precision) {
        ('e' | 'E', None) => exponent_form(&digits(&format!("{value:e}")), None, verb),
        ('e' | 'E', Some(precision)) => {
            exponent_form(&digits(&format!("{value:.precision$e}")), Some(precision), verb)
        }
        ('f' | 'F', None) => format!("{value}"),
        ('f' | 'F', Some(precision)) => format!("{value:.precision$}"),
        ('g' | 'G', None) => general(&digits(&format!("{value:e}")), 6, if verb == 'g' { 'e' } else { 'E' }),
        ('g' | 'G', Some(precision)) => {
            let precision = precision.max(1);
            let mut digits = digits(&format!("{value:.0$e}", precision - 1));
            let significant = digits.text.trim_end_matches('0').len();
            digits.text.truncate(significant);
            let count = i32::try_from(digits.text.len()).unwrap_or(i32::MAX);
            let mut limit = i32::try_from(precision).unwrap_or(i32::MAX);
            if limit > count && count >= digits.point {
                limit = count;
            }
            general(&digits, limit, if verb == 'g' { 'e' } else { 'E' })
        }
        ('b', _) => binary(value),
        (_, precision) => hexadecimal(value, precision, verb == 'X'),
    }
}

/// `%e` for exponents below -4 or from the limit on, else `%f`, without padding.
fn general(digits: &Digits, limit: i32, letter: char) -> String {
    let exponent = if digits.text.is_empty() { 0 } else { digits.point - 1 };
    if exponent < -4 || exponent >= limit.max(i32::from(digits.text.is_empty())) {
        return exponent_form(digits, None, letter);
    }
    let mut out = String::from(if digits.negative { "-" } else { "" });
    let point = usize::try_from(digits.point).unwrap_or(0);
    if point == 0 || digits.text.is_empty() {
        out.push('0');
    } else {
        let whole = digits.text.get(..point).unwrap_or(&digits.text);
        out.push_str(whole);
        out.extend(std::iter::repeat_n('0', point - whole.len()));
    }
    let fraction = digits.text.get(point..).unwrap_or_default();
    if !fraction.is_empty() {
        out.push('.');
        if digits.point < 0 {
            out.extend(std::iter::repeat_n('0', digits.point.unsigned_abs() as usize));
        }
        out.push_str(fraction);
    }
    out
}

/// `d.ddde±dd`. With a precision zeros are kept, without none are.
fn exponent_form(digits: &Digits, precision: Option<usize>, letter: char) -> String {
    let mut out = String::from(if digits.negative { "-" } else { "" });
    let (first, rest) = digits.text.split_at_checked(1).unwrap_or(("0", ""));
    out.push_str(first);
    let wanted = precision.unwrap_or(rest.len());
    if wanted > 0 {
        out.push('.');
        out.push_str(rest);
        out.extend(std::iter::repeat_n('0', wanted.saturating_sub(rest.len())));
    }
    let exponent = if digits.text.is_empty() { 0 } else { digits.point - 1 };
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{letter}{sign}{:02}", exponent.unsigned_abs());
    out
}

/// Mantissa and exponent of a finite float: the value is mantissa times two to the exponent.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7FF).unwrap_or(0);
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | (1 << 52), exponent - 1075) }
}

fn binary(value: f64) -> String {
    let (mantissa, exponent) = parts(value);
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}")
}

fn hexadecimal(value: f64, precision: Option<usize>, upper: bool) -> String {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // Normalize to one bit before the point, 60 after it.
        let shift = i32::try_from(mantissa.leading_zeros()).unwrap_or(0) - 3;
        mantissa = if shift >= 0 { mantissa << shift } else { mantissa >> -shift };
        exponent += 60 - shift;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = precision * 4;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut out = format!("{}0x{}", if value.is_sign_negative() { "-" } else { "" }, mantissa >> 60);
    let mut fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(precision) => {
            fraction.truncate(precision);
            fraction.extend(std::iter::repeat_n('0', precision.saturating_sub(15)));
        }
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(&fraction);
    }
    let _ = write!(out, "p{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    if upper { out.to_uppercase() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_numbers_get_an_exponent() {
        let text = [1e6, 123_456.0, 0.0001, 0.000_01, 1.5, 100.0, 0.0, -0.0, 1e21].map(shortest_g);
        let want = ["1e+06", "123456", "0.0001", "1e-05", "1.5", "100", "0", "-0", "1e+21"];
        assert_eq!(text, want);
    }

    #[test]
    fn json_keeps_digits_up_to_1e21() {
        assert_eq!(
            [1e6, 1e20, 1e21, 1e-7, 0.5].map(json),
            ["1000000", "100000000000000000000", "1e+21", "1e-7", "0.5"]
        );
    }
}
