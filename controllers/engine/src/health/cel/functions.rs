//! The functions of expressions.

use regex::{Regex, RegexBuilder};

use super::eval::{Failure, Steps};
use super::value::Val;

/// Bytes of a compiled regular expression, and what a search with it costs per byte of text: the first that is enough.
const REGEX_BYTES: [(usize, u64); 4] = [(4 << 10, 1), (16 << 10, 4), (64 << 10, 16), (128 << 10, 32)];

/// A function, with its arguments in the order of the text: the one before the dot is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    Trim,
    Int,
    Uint,
    Double,
    String,
    Bool,
}

impl Function {
    /// The function of a name with so many arguments, one of them before the dot or none. The error says what is wrong.
    pub fn find(name: &str, method: bool, arguments: usize) -> Result<Self, String> {
        let (function, methods, both, count) = match name {
            "size" => (Self::Size, true, true, 1),
            "contains" => (Self::Contains, true, false, 2),
            "startsWith" => (Self::StartsWith, true, false, 2),
            "endsWith" => (Self::EndsWith, true, false, 2),
            "lowerAscii" => (Self::LowerAscii, true, false, 1),
            "upperAscii" => (Self::UpperAscii, true, false, 1),
            "trim" => (Self::Trim, true, false, 1),
            "int" => (Self::Int, false, false, 1),
            "uint" => (Self::Uint, false, false, 1),
            "double" => (Self::Double, false, false, 1),
            "string" => (Self::String, false, false, 1),
            "bool" => (Self::Bool, false, false, 1),
            _ => return Err(format!("uses the function {name}, which health rules do not have")),
        };
        if count != arguments || (method != methods && !both) {
            return Err(format!("uses the function {name} with other arguments than it has"));
        }
        Ok(function)
    }

    /// What it answers, where that is known.
    pub const fn answers(self) -> &'static str {
        match self {
            Self::Contains | Self::StartsWith | Self::EndsWith | Self::Bool => "true or false",
            Self::LowerAscii | Self::UpperAscii | Self::Trim | Self::String => "text",
            Self::Size | Self::Int | Self::Uint | Self::Double => "a number",
        }
    }

    /// Calls it.
    pub fn call<'a>(self, arguments: &[Val<'a>], steps: &mut Steps) -> Result<Val<'a>, Failure> {
        let (Some(first), second) = (arguments.first(), arguments.get(1)) else { return Err(mismatch(self)) };
        for text in arguments.iter().filter_map(Val::text) {
            steps.bytes(text.len())?;
        }
        let wrong = || Failure::wrong(format!("{} is called with {}", self.name(), first.kind()));
        let texts = || Some((first.text()?, second?.text()?));
        match self {
            Self::Size => match (first.len(), first.text()) {
                (Some(length), _) => Ok(number(length)),
                (None, Some(text)) => Ok(number(text.chars().count())),
                (None, None) => Err(wrong()),
            },
            Self::Contains => texts().map(|(a, b)| Val::Bool(a.contains(b))).ok_or_else(wrong),
            Self::StartsWith => texts().map(|(a, b)| Val::Bool(a.starts_with(b))).ok_or_else(wrong),
            Self::EndsWith => texts().map(|(a, b)| Val::Bool(a.ends_with(b))).ok_or_else(wrong),
            Self::LowerAscii => {
                first.text().map(|text| Val::made(&text.to_ascii_lowercase())).ok_or_else(wrong)
            }
            Self::UpperAscii => {
                first.text().map(|text| Val::made(&text.to_ascii_uppercase())).ok_or_else(wrong)
            }
            Self::Trim => first.text().map(|text| Val::made(text.trim())).ok_or_else(wrong),
            Self::Int => int(first).map(Val::Int).ok_or_else(wrong),
            Self::Uint => match first {
                Val::Text(_) | Val::MadeText(_) => {
                    first.text().and_then(|text| text.parse().ok()).map(Val::Uint).ok_or_else(wrong)
                }
                Val::Uint(number) => Ok(Val::Uint(*number)),
                _ => int(first).and_then(|n| u64::try_from(n).ok()).map(Val::Uint).ok_or_else(wrong),
            },
            Self::Double => double(first).map(Val::Double).ok_or_else(wrong),
            Self::String => match first {
                Val::Text(_) | Val::MadeText(_) => Ok(first.clone()),
                Val::Bool(is) => Ok(Val::made(&is.to_string())),
                Val::Int(number) => Ok(Val::made(&number.to_string())),
                Val::Uint(number) => Ok(Val::made(&number.to_string())),
                Val::Double(number) => Ok(Val::made(&number.to_string())),
                _ => Err(wrong()),
            },
            Self::Bool => match (first, first.text()) {
                (Val::Bool(is), _) => Ok(Val::Bool(*is)),
                (_, Some("true")) => Ok(Val::Bool(true)),
                (_, Some("false")) => Ok(Val::Bool(false)),
                _ => Err(wrong()),
            },
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::LowerAscii => "lowerAscii",
            Self::UpperAscii => "upperAscii",
            Self::Trim => "trim",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bool => "bool",
        }
    }
}

fn mismatch(function: Function) -> Failure {
    Failure::wrong(format!("{} is called without an argument", function.name()))
}

fn number<'a>(length: usize) -> Val<'a> {
    Val::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

#[allow(clippy::cast_possible_truncation)] // CEL cuts off, and the range is checked
fn int(value: &Val) -> Option<i64> {
    match value {
        Val::Int(number) => Some(*number),
        Val::Uint(number) => i64::try_from(*number).ok(),
        Val::Double(number) if number.abs() < 9.2e18 => Some(*number as i64),
        other => other.text()?.parse().ok(),
    }
}

#[allow(clippy::cast_precision_loss)] // as CEL converts
fn double(value: &Val) -> Option<f64> {
    match value {
        Val::Int(number) => Some(*number as f64),
        Val::Uint(number) => Some(*number as f64),
        Val::Double(number) => Some(*number),
        other => other.text()?.parse().ok(),
    }
}

/// Compiles a regular expression, which takes time in proportion to a text, whatever it is; and the steps per byte of it.
pub(super) fn pattern(text: &str) -> Result<(Regex, u64), String> {
    let built = REGEX_BYTES.into_iter().find_map(|(bytes, steps)| {
        let built = RegexBuilder::new(text).size_limit(bytes).dfa_size_limit(bytes).build();
        built.ok().map(|regex| (regex, steps))
    });
    built.ok_or_else(|| "has a regular expression that is malformed or too large".to_owned())
}
