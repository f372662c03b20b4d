//! Values of an evaluation: parts of the object are borrowed, what an expression makes is shared.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::eval::{Failure, Steps};

/// One value.
#[derive(Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'a str),
    MadeText(Rc<str>),
    List(&'a [Value]),
    MadeList(Rc<Vec<Self>>),
    Map(&'a Map<String, Value>),
}

impl<'a> Val<'a> {
    /// A part of the object.
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(*is),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list),
            Value::Object(map) => Self::Map(map),
        }
    }

    /// A text that an expression made.
    pub fn made(text: &str) -> Self {
        Self::MadeText(Rc::from(text))
    }

    /// Its type, for people.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Uint(_) | Self::Double(_) => "a number",
            Self::Text(_) | Self::MadeText(_) => "text",
            Self::List(_) | Self::MadeList(_) => "a list",
            Self::Map(_) => "an object",
        }
    }

    /// As text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::MadeText(text) => Some(text),
            _ => None,
        }
    }

    /// Items of a list, or keys of an object.
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.len()),
            Self::MadeList(list) => Some(list.len()),
            Self::Map(map) => Some(map.len()),
            _ => None,
        }
    }

    /// An item of a list.
    pub fn item(&self, at: usize) -> Option<Self> {
        match self {
            Self::List(list) => list.get(at).map(Self::of),
            Self::MadeList(list) => list.get(at).cloned(),
            _ => None,
        }
    }

    /// What a comprehension goes through: the items of a list, or the keys of an object.
    pub fn items(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(list) => Some(list.iter().map(Self::of).collect()),
            Self::MadeList(list) => Some(list.to_vec()),
            Self::Map(map) => Some(map.keys().map(|key| Self::Text(key)).collect()),
            _ => None,
        }
    }
}

/// Whether two values are equal; those of different types are not.
pub(super) fn equal<'a>(a: &Val<'a>, b: &Val<'a>, steps: &mut Steps) -> Result<bool, Failure> {
    steps.spend(1)?;
    if let (Some(a), Some(b)) = (a.text(), b.text()) {
        steps.bytes(a.len().min(b.len()))?;
        return Ok(a == b);
    }
    match (a, b) {
        (Val::Null, Val::Null) => Ok(true),
        (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
        (Val::Map(a), Val::Map(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, a) in *a {
                steps.bytes(key.len())?;
                let Some(b) = b.get(key) else { return Ok(false) };
                if !equal(&Val::of(a), &Val::of(b), steps)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::List(_) | Val::MadeList(_), Val::List(_) | Val::MadeList(_)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for at in 0..a.len().unwrap_or_default() {
                let (Some(a), Some(b)) = (a.item(at), b.item(at)) else { return Ok(false) };
                if !equal(&a, &b, steps)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(numbers(a, b) == Some(Ordering::Equal)),
    }
}

/// The order of two values; none where they have none.
pub(super) fn order(a: &Val, b: &Val, steps: &mut Steps) -> Result<Option<Ordering>, Failure> {
    if let (Some(a), Some(b)) = (a.text(), b.text()) {
        steps.bytes(a.len().min(b.len()))?;
        return Ok(Some(a.cmp(b)));
    }
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Ok(Some(a.cmp(b))),
        _ => Ok(numbers(a, b)),
    }
}

/// The order of two numbers of any type.
#[allow(clippy::cast_precision_loss)] // as CEL compares an integer with a double
fn numbers(a: &Val, b: &Val) -> Option<Ordering> {
    let whole = |value: &Val| match value {
        Val::Int(number) => Some(i128::from(*number)),
        Val::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    let double = |value: &Val| match value {
        Val::Double(number) => Some(*number),
        other => whole(other).map(|number| number as f64),
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => double(a)?.partial_cmp(&double(b)?),
    }
}
