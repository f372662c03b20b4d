//! Resolves the text and tag of a scalar to its typed value, by YAML 1.1 as Kubernetes' tools read it.
use super::YamlError;

/// What `!!` stands for.
pub(super) const TAG_PREFIX: &[u8] = b"tag:yaml.org,2002:";

/// A scalar's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number above the range of `i64`.
    Uint(u64),
    Float(f64),
    /// Text that reads as a time; it stays text.
    Timestamp,
    Text,
}

impl Scalar {
    fn short_tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::Text => "!!str",
        }
    }
}

/// The value of a scalar with a tag (full form, empty for none). Unknown tags leave text.
pub(super) fn resolve(tag: &[u8], text: &[u8]) -> Result<Scalar, YamlError> {
    let short = match tag.strip_prefix(TAG_PREFIX) {
        _ if tag.is_empty() => "",
        Some(b"bool") => "!!bool",
        Some(b"int") => "!!int",
        Some(b"float") => "!!float",
        Some(b"null") => "!!null",
        Some(b"timestamp") => "!!timestamp",
        // `!!str`, and tags without a rule.
        _ => return Ok(Scalar::Text),
    };
    let value = guess(text, matches!(short, "" | "!!timestamp"));
    match (short, value) {
        ("", _) => Ok(value),
        ("!!float", Scalar::Int(int)) => {
            #[allow(clippy::cast_precision_loss)] // A float was asked for.
            Ok(Scalar::Float(int as f64))
        }
        _ if short == value.short_tag() => Ok(value),
        _ => Err(YamlError::plain(format!(
            "cannot decode {} `{}` as a {short}",
            value.short_tag(),
            String::from_utf8_lossy(text)
        ))),
    }
}

/// The value plain text stands for.
pub(super) fn guess(text: &[u8], times: bool) -> Scalar {
    let Some(&first) = text.first() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match word(text) {
            Scalar::Text => {
                let text = std::str::from_utf8(text).unwrap_or_default();
                crate::funcs::parse_float(text).map_or(Scalar::Text, Scalar::Float)
            }
            value => value,
        },
        b'+' | b'-' | b'0'..=b'9' => match word(text) {
            Scalar::Text if times && is_timestamp(text) => Scalar::Timestamp,
            Scalar::Text => number(text),
            value => value,
        },
        _ => Scalar::Text,
    }
}

fn word(text: &[u8]) -> Scalar {
    match text {
        b"y" | b"Y" | b"yes" | b"Yes" | b"YES" | b"true" | b"True" | b"TRUE" | b"on" | b"On" | b"ON" => {
            Scalar::Bool(true)
        }
        b"n" | b"N" | b"no" | b"No" | b"NO" | b"false" | b"False" | b"FALSE" | b"off" | b"Off" | b"OFF" => {
            Scalar::Bool(false)
        }
        b"~" | b"null" | b"Null" | b"NULL" => Scalar::Null,
        b".nan" | b".NaN" | b".NAN" => Scalar::Float(f64::NAN),
        b".inf" | b".Inf" | b".INF" | b"+.inf" | b"+.Inf" | b"+.INF" => Scalar::Float(f64::INFINITY),
        b"-.inf" | b"-.Inf" | b"-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => Scalar::Text,
    }
}

/// Integers in any base, then floats; underscores are ignored.
fn number(text: &[u8]) -> Scalar {
    let plain: String = text.iter().filter(|byte| **byte != b'_').map(|byte| char::from(*byte)).collect();
    let (negative, digits) = match plain.as_bytes() {
        [b'-', ..] => (true, plain.get(1..).unwrap_or_default()),
        [b'+', ..] => (false, plain.get(1..).unwrap_or_default()),
        _ => (false, plain.as_str()),
    };
    let signed = digits.len() != plain.len();
    let (base, body) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, digits.get(2..).unwrap_or_default()),
        [b'0', b'o' | b'O', _, ..] => (8, digits.get(2..).unwrap_or_default()),
        [b'0', b'b' | b'B', _, ..] => (2, digits.get(2..).unwrap_or_default()),
        [b'0', _, ..] => (8, digits.get(1..).unwrap_or_default()),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign of its own, which a second one here must not be.
    if body.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && let Ok(magnitude) = u64::from_str_radix(body, base)
    {
        let wide = i128::from(magnitude);
        if let Ok(int) = i64::try_from(if negative { -wide } else { wide }) {
            return Scalar::Int(int);
        }
        if !signed {
            return Scalar::Uint(magnitude);
        }
    }
    if is_yaml_float(plain.as_bytes()) {
        float(plain.as_bytes()).map_or(Scalar::Text, Scalar::Float)
    } else {
        Scalar::Text
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_yaml_float(text: &[u8]) -> bool {
    let count = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = match text {
        [b'-' | b'+', rest @ ..] => rest,
        all => all,
    };
    let whole = count(rest);
    rest = rest.get(whole..).unwrap_or_default();
    if let [b'.', tail @ ..] = rest {
        let fraction = count(tail);
        if whole == 0 && fraction == 0 {
            return false;
        }
        rest = tail.get(fraction..).unwrap_or_default();
    } else if whole == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'-' | b'+', digits @ ..] | [b'e' | b'E', digits @ ..] => {
            !digits.is_empty() && count(digits) == digits.len()
        }
        _ => false,
    }
}

/// A decimal float within range.
fn float(text: &[u8]) -> Option<f64> {
    if !is_yaml_float(text) {
        return None;
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// `2001-12-14`, `2001-12-14T21:59:43.1Z`, `2001-12-14 21:59:43`: fields may lack leading zeros, not the year.
fn is_timestamp(text: &[u8]) -> bool {
    let Some((year, rest)) = text.split_at_checked(5) else { return false };
    if year.last() != Some(&b'-') || !year.iter().take(4).all(u8::is_ascii_digit) {
        return false;
    }
    let year = digits_value(year.get(..4).unwrap_or_default());
    date_and_time(year, rest).is_some()
}

fn digits_value(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
}

/// One or two digits within a range, and what follows them.
fn field(text: &[u8], low: u32, high: u32) -> Option<(u32, &[u8])> {
    let length = text.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(length)?;
    let value = digits_value(digits);
    (length > 0 && (low..=high).contains(&value)).then_some((value, rest))
}

fn date_and_time(year: u32, text: &[u8]) -> Option<()> {
    let (month, rest) = field(text, 1, 12)?;
    let (day, rest) = field(rest.strip_prefix(b"-")?, 1, 31)?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day > days {
        return None;
    }
    let (zoned, rest) = match rest {
        [] => return Some(()),
        [b'T' | b't', rest @ ..] => (true, rest),
        [b' ', rest @ ..] => (false, rest),
        _ => return None,
    };
    let (_, rest) = field(rest, 0, 23)?;
    let (_, rest) = field(rest.strip_prefix(b":")?, 0, 59)?;
    let (_, mut rest) = field(rest.strip_prefix(b":")?, 0, 59)?;
    if let [b'.' | b',', fraction @ ..] = rest {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 {
            rest = fraction.get(length..)?;
        }
    }
    match (zoned, rest) {
        (false, []) | (true, [b'Z']) => Some(()),
        (true, [b'+' | b'-', h1, h2, b':', m1, m2]) => {
            let digits = [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit());
            (digits && digits_value(&[*h1, *h2]) <= 24 && digits_value(&[*m1, *m2]) <= 60).then_some(())
        }
        _ => None,
    }
}
